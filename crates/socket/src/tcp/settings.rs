//! What can be chosen of the kernel's TCP, and what the kernel offers.

use std::fs;
use std::io;
use std::time::Duration;

use lagometer_transport::{BadSetting, TransportProperties};
use lagometer_units::{Size, Span};
use serde::{Deserialize, Serialize};

use super::connection::TcpConnection;
use crate::connection::BoxedConnection;
use crate::framing::LENGTH_BYTES;
use crate::transport::{Opening, SocketTransport, Unavailable};

/// How the kernel's TCP is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// The congestion control's name, as the kernel has it: `cubic`, `bbr`,
    /// `reno`.
    pub congestion_control: String,
    /// Small messages leave at once rather than wait for an acknowledgement
    /// (`TCP_NODELAY`).
    pub no_delay: bool,
    /// Acknowledgements leave at once, up to 40 ms earlier (`TCP_QUICKACK`).
    /// The kernel forgets it, so it is told again after every read: one more
    /// system call.
    pub quick_ack: bool,
    /// How long sent data may stay unacknowledged before the connection is
    /// given up (`TCP_USER_TIMEOUT`); 0 leaves it to the kernel, which tries
    /// for a quarter of an hour.
    pub user_timeout: Span,
    /// Retransmission timeouts of a stream with little in flight stay as they
    /// are instead of doubling (`TCP_THIN_LINEAR_TIMEOUTS`).
    pub thin_linear_timeouts: bool,
    /// The kernel's send buffer; 0 lets the kernel size it. A message that
    /// finds it full is refused.
    pub send_buffer: Size,
    /// The largest message; a longer one announced by the peer ends the
    /// connection.
    pub max_message: Size,
}

impl Settings {
    /// Settings for a game with this congestion control: no delay, quick
    /// acknowledgements, and half a minute of timeout.
    #[must_use]
    pub fn with(congestion_control: &str) -> Self {
        Self {
            congestion_control: congestion_control.to_owned(),
            no_delay: true,
            quick_ack: true,
            user_timeout: Span(Duration::from_secs(30)),
            thin_linear_timeouts: false,
            send_buffer: Size(0),
            max_message: Size(1 << 20),
        }
    }
}

/// The congestion controls the kernel has ready, by name.
fn offered() -> String {
    fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control").unwrap_or_default()
}

impl SocketTransport for Settings {
    const TRANSPORT: &'static str = "tcp";

    fn library(&self) -> String {
        let release = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        format!("{} {}", std::env::consts::OS, release.trim())
            .trim()
            .to_owned()
    }

    fn check(&self) -> Result<(), BadSetting> {
        let name = &self.congestion_control;
        let is_name = (1..16).contains(&name.len())
            && name
                .bytes()
                .all(|byte| byte.is_ascii_alphanumeric() || byte == b'_');
        if !is_name {
            return Err(BadSetting::new(
                "congestion_control",
                "expected a name of up to 15 letters, as in \"cubic\"",
            ));
        }
        if self.user_timeout.duration().as_millis() > u128::from(u32::MAX) {
            return Err(BadSetting::new("user_timeout", "expected at most 49 days"));
        }
        if !(8..=1 << 30).contains(&self.max_message.bytes()) {
            return Err(BadSetting::new("max_message", "expected 8 B to 1 GiB"));
        }
        if self.send_buffer.bytes() > 1 << 30 {
            return Err(BadSetting::new("send_buffer", "expected at most 1 GiB"));
        }
        Ok(())
    }

    fn available(&self) -> Result<(), Unavailable> {
        let name = &self.congestion_control;
        let offered = offered();
        if offered.split_whitespace().any(|offer| offer == name) {
            return Ok(());
        }
        Err(Unavailable {
            lacks: format!(
                "the kernel has no congestion control `{name}`, only {}",
                offered.split_whitespace().collect::<Vec<_>>().join(", ")
            ),
            mend: format!("`sudo modprobe tcp_{name}` loads it where the kernel has it"),
        })
    }

    fn properties(&self) -> TransportProperties {
        TransportProperties {
            reliable: true,
            ordered: true,
            encrypted: false,
            mtu_bytes: 1500,
            // IPv4 20, TCP 20 with 12 of time stamps (RFC 7323), our length.
            header_bytes: 20 + 32 + LENGTH_BYTES as u32,
            acks: if self.quick_ack {
                "at once".to_owned()
            } else {
                "the kernel's: every second segment, or after up to 40 ms".to_owned()
            },
            congestion_control: self.congestion_control.clone(),
        }
    }

    fn largest_message_bytes(&self) -> usize {
        self.max_message.bytes() as usize
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
    fn a_congestion_control_that_is_not_there_is_told_with_its_mend() {
        let settings = Settings::with("nonesuch");
        settings.check().unwrap();
        let said = settings.available().unwrap_err().to_string();
        assert!(
            said.contains("`nonesuch`") && said.contains("modprobe"),
            "{said}"
        );
    }

    #[test]
    fn names_that_are_none_are_refused() {
        for name in ["", "a b", "cubic\n", "aaaaaaaaaaaaaaaa"] {
            assert!(Settings::with(name).check().is_err(), "{name:?}");
        }
    }
}
