//! What the kernel offers of TCP. The settings are those of the crate
//! `transport`, whose engine plays them in virtual time.

use std::fs;
use std::io;

pub use lagometer_transport::tcp::Settings;
use lagometer_transport::{BadSetting, Transport, TransportProperties, Tunable};

use super::connection::TcpConnection;
use crate::connection::BoxedConnection;
use crate::transport::{Opening, SocketTransport, Unavailable};

/// The congestion controls the kernel has ready, by name.
fn offered() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default()
}

/// With which the kernel asks for ECN, and grants it.
const ASKS_FOR_ECN: &str = "1";

/// Whether connections of this machine ask for ECN, and grant it, as the kernel says.
fn ecn_mode() -> String {
    let mode = fs::read_to_string("/proc/sys/net/ipv4/tcp_ecn").unwrap_or_default();
    mode.trim().to_owned()
}

/// Whether all connections of this machine ask for ECN, as lanes do that ask for it.
///
/// # Errors
///
/// They do not, with what changes that.
pub fn machine_asks_for_ecn() -> Result<(), Unavailable> {
    let mode = ecn_mode();
    if mode == ASKS_FOR_ECN {
        return Ok(());
    }
    Err(Unavailable {
        lacks: format!("the kernel does not ask for ECN: net.ipv4.tcp_ecn is {mode}"),
        mend: "`sudo sysctl net.ipv4.tcp_ecn=1` has all connections of this host ask for it"
            .to_owned(),
    })
}

impl SocketTransport for Settings {
    const TRANSPORT: &'static str = <Self as Transport>::TRANSPORT;
    const TUNABLES: &'static [Tunable] = <Self as Transport>::TUNABLES;

    fn library(&self) -> String {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        format!("{} {}", std::env::consts::OS, release.trim())
            .trim()
            .to_owned()
    }

    fn check(&self) -> Result<(), BadSetting> {
        self.check_values()?;
        if self.bbr_phases.iter().any(|phases| !phases.is_empty()) {
            return Err(BadSetting::new(
                "bbr_phases",
                "a kernel draws its own; they can be given in `sim` alone",
            ));
        }
        if self.standing_clock {
            return Err(BadSetting::new(
                "standing_clock",
                "a kernel has the clock that it has; leave it out, or play in `sim`",
            ));
        }
        Ok(())
    }

    fn available(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    fn offered(&self) -> Result<(), Unavailable> {
        let name = &self.congestion_control;
        let offered = offered();
        if !offered.split_whitespace().any(|offer| offer == name) {
            return Err(Unavailable {
                lacks: format!(
                    "the kernel has no congestion control `{name}`, only {}",
                    offered.split_whitespace().collect::<Vec<_>>().join(", ")
                ),
                mend: format!("`sudo modprobe tcp_{name}` loads it where the kernel has it"),
            });
        }
        Ok(())
    }

    fn asks_for_ecn(&self) -> bool {
        self.ecn
    }

    fn properties(&self) -> TransportProperties {
        self.promises()
    }

    fn largest_message_bytes(&self) -> usize {
        Transport::largest_message_bytes(self)
    }

    fn is_carried_by_udp(&self) -> bool {
        false
    }

    fn client(&self, opening: &Opening) -> io::Result<BoxedConnection> {
        Ok(Box::new(TcpConnection::connect(
            self,
            opening.local,
            opening.remote,
        )?))
    }

    fn server(&self, opening: &Opening) -> io::Result<BoxedConnection> {
        Ok(Box::new(TcpConnection::listen(
            self,
            opening.remote,
            opening.local.ip(),
        )?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whether_the_machine_asks_for_ecn_is_what_its_kernel_says() {
        let asks = machine_asks_for_ecn();
        if ecn_mode() == ASKS_FOR_ECN {
            assert_eq!(asks, Ok(()));
        } else {
            let said = asks.unwrap_err().to_string();
            assert!(said.contains("net.ipv4.tcp_ecn"), "{said}");
        }
    }

    #[test]
    fn a_congestion_control_that_is_not_there_is_reported_with_its_mend() {
        let settings = Settings::with("nonesuch");
        SocketTransport::check(&settings).unwrap();
        let said = SocketTransport::offered(&settings).unwrap_err().to_string();
        assert!(
            said.contains("`nonesuch`") && said.contains("modprobe"),
            "{said}"
        );
    }
}
