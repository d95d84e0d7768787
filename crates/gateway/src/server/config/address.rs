//! Addresses to listen at, and ranges of addresses to turn away.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// What is spoken at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// The frames over TCP.
    Tcp,
    /// The frames over a Unix socket.
    Unix,
    /// The frames over TLS.
    Tls,
    /// WebSocket.
    Ws,
    /// WebSocket over TLS.
    Wss,
    /// KCP as channeld has it.
    Kcp,
    /// KCP tuned for play.
    KcpTuned,
}

impl Wire {
    const NAMES: [(&'static str, Self); 8] = [
        ("tcp", Self::Tcp),
        ("unix", Self::Unix),
        ("tls", Self::Tls),
        ("ws", Self::Ws),
        ("websocket", Self::Ws),
        ("wss", Self::Wss),
        ("kcp", Self::Kcp),
        ("kcp-tuned", Self::KcpTuned),
    ];

    /// The wire of that name.
    ///
    /// # Errors
    ///
    /// A line that says which there are.
    pub fn named(name: &str) -> Result<Self, String> {
        Self::NAMES
            .iter()
            .find(|(known, _)| *known == name)
            .map(|(_, wire)| *wire)
            .ok_or_else(|| {
                format!(
                    "nothing is known of `{name}`; tcp, tcp4, tcp6, unix, tls, ws, wss, kcp, \
                     kcp-tuned are"
                )
            })
    }

    /// Whether datagrams carry it.
    #[must_use]
    pub fn is_udp(self) -> bool {
        matches!(self, Self::Kcp | Self::KcpTuned)
    }

    /// Whether a certificate is needed.
    #[must_use]
    pub fn is_secure(self) -> bool {
        matches!(self, Self::Tls | Self::Wss)
    }
}

/// The longest path that a Unix socket may have (`sun_path` in unix(7), with the
/// zero at its end).
const UNIX_PATH_BYTES: usize = 107;

/// Where to listen, as in `ws://0.0.0.0:12109`, `:12108` (TCP, everywhere) or
/// `unix:///run/game/servers`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    /// What is spoken there.
    pub wire: Wire,
    endpoint: Endpoint,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Endpoint {
    /// An address and port. IPv6's unspecified address takes IPv4 too unless
    /// it is to be `only_v6`.
    Socket { at: SocketAddr, only_v6: bool },
    /// The path of a Unix socket.
    Path(PathBuf),
}

impl ListenAddress {
    /// Everywhere, over TCP.
    #[must_use]
    pub fn tcp(port: u16) -> Self {
        Self::socket_at(Wire::Tcp, (Ipv6Addr::UNSPECIFIED, port).into())
    }

    /// A place by the name of a network and an address there, as channeld's
    /// options give them: Go's `tcp4`, `tcp6` and `unix`, or a [`Wire`]'s name.
    ///
    /// # Errors
    ///
    /// A line that says what would be right.
    pub fn on(network: &str, address: &str) -> Result<Self, String> {
        match network {
            "unix" => Self::unix(address),
            "tcp4" | "tcp6" => {
                let is_v6 = network == "tcp6";
                let everywhere = if is_v6 {
                    IpAddr::V6(Ipv6Addr::UNSPECIFIED)
                } else {
                    IpAddr::V4(Ipv4Addr::UNSPECIFIED)
                };
                let at = socket(address, everywhere)
                    .filter(|at| at.is_ipv6() == is_v6)
                    .ok_or_else(|| {
                        format!("`{address}` is no address to listen at by {network}")
                    })?;
                Ok(Self {
                    wire: Wire::Tcp,
                    endpoint: Endpoint::Socket { at, only_v6: is_v6 },
                })
            }
            name => {
                let wire = Wire::named(name)?;
                let at = socket(address, Ipv6Addr::UNSPECIFIED.into()).ok_or_else(|| {
                    format!(
                        "`{address}` is no address to listen at, such as \"0.0.0.0:12108\" or \
                         \"ws://:12109\""
                    )
                })?;
                Ok(Self::socket_at(wire, at))
            }
        }
    }

    /// Over TCP, for this machine alone.
    #[must_use]
    pub fn loopback(port: u16) -> Self {
        Self::socket_at(Wire::Tcp, (Ipv4Addr::LOCALHOST, port).into())
    }

    /// The address and port, unless it is a Unix socket.
    #[must_use]
    pub fn socket(&self) -> Option<SocketAddr> {
        match self.endpoint {
            Endpoint::Socket { at, .. } => Some(at),
            Endpoint::Path(_) => None,
        }
    }

    /// The path of a Unix socket, if it is one.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match &self.endpoint {
            Endpoint::Socket { .. } => None,
            Endpoint::Path(path) => Some(path),
        }
    }

    /// Whether peers that speak IPv4 are to be kept out.
    #[must_use]
    pub fn is_only_v6(&self) -> bool {
        matches!(self.endpoint, Endpoint::Socket { only_v6: true, .. })
    }

    fn socket_at(wire: Wire, at: SocketAddr) -> Self {
        Self {
            wire,
            endpoint: Endpoint::Socket { at, only_v6: false },
        }
    }

    fn unix(path: &str) -> Result<Self, String> {
        if path.is_empty() || path.len() > UNIX_PATH_BYTES || path.contains('\0') {
            return Err(format!(
                "`{path}` is no path for a Unix socket: it has 1 to {UNIX_PATH_BYTES} bytes"
            ));
        }
        Ok(Self {
            wire: Wire::Unix,
            endpoint: Endpoint::Path(path.into()),
        })
    }
}

/// Reads `HOST:PORT` or `:PORT`, which is `everywhere`; the path of a
/// WebSocket's address is of no concern here.
fn socket(text: &str, everywhere: IpAddr) -> Option<SocketAddr> {
    let place = text.split('/').next().unwrap_or_default();
    let place = place.replacen("localhost:", "127.0.0.1:", 1);
    match place.strip_prefix(':') {
        Some(port) => Some(SocketAddr::new(everywhere, port.parse().ok()?)),
        None => place.parse().ok(),
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (network, address) = text.split_once("://").unwrap_or(("tcp", text));
        Self::on(network, address)
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Wire::NAMES
            .iter()
            .find(|(_, wire)| *wire == self.wire)
            .map_or("tcp", |(name, _)| name);
        match &self.endpoint {
            Endpoint::Socket { at, .. } => write!(f, "{name}://{at}"),
            Endpoint::Path(path) => write!(f, "{name}://{}", path.display()),
        }
    }
}

impl<'de> Deserialize<'de> for ListenAddress {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

/// Addresses with the same beginning, as in `203.0.113.0/24`; without a length
/// only the one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NetworkRange {
    base: IpAddr,
    prefix: u8,
}

impl NetworkRange {
    /// Whether an address is among them.
    #[must_use]
    pub fn contains(&self, address: IpAddr) -> bool {
        match (self.base, address) {
            (IpAddr::V4(base), IpAddr::V4(address)) => {
                let shift = 32 - u32::from(self.prefix);
                let cut = |ip: u32| u64::from(ip) >> shift;
                cut(base.to_bits()) == cut(address.to_bits())
            }
            (IpAddr::V6(base), IpAddr::V6(address)) => {
                let shift = 128 - u32::from(self.prefix);
                let cut = |ip: u128| ip.checked_shr(shift).unwrap_or(0);
                cut(base.to_bits()) == cut(address.to_bits())
            }
            _ => false,
        }
    }
}

impl FromStr for NetworkRange {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            format!(
                "`{text}` is no range of addresses, such as \"203.0.113.7\" or \"203.0.113.0/24\""
            )
        };
        let (base, prefix) = match text.split_once('/') {
            Some((base, prefix)) => (base, Some(prefix)),
            None => (text, None),
        };
        let base: IpAddr = base.parse().map_err(|_| wrong())?;
        let most = if base.is_ipv4() { 32 } else { 128 };
        let prefix = match prefix {
            Some(prefix) => prefix.parse().map_err(|_| wrong())?,
            None => most,
        };
        if prefix > most {
            return Err(wrong());
        }
        Ok(Self { base, prefix })
    }
}

impl<'de> Deserialize<'de> for NetworkRange {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?
            .parse()
            .map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn addresses_are_read_as_channeld_writes_them() {
        let parse = |text: &str| text.parse::<ListenAddress>();
        assert_eq!(parse(":12108"), Ok(ListenAddress::tcp(12108)));
        assert_eq!(
            parse("ws://127.0.0.1:80/path").unwrap().to_string(),
            "ws://127.0.0.1:80"
        );
        assert_eq!(parse("kcp-tuned://[::1]:9").unwrap().wire, Wire::KcpTuned);
        assert_eq!(
            parse("localhost:9").unwrap().to_string(),
            "tcp://127.0.0.1:9"
        );
        assert!(parse("quic://:1").unwrap_err().contains("kcp-tuned"));
        assert!(parse("nowhere").is_err());
    }

    #[test]
    fn gos_networks_are_known() {
        let on = |network, address| ListenAddress::on(network, address).map(|at| at.to_string());
        assert_eq!(on("tcp4", ":12108").as_deref(), Ok("tcp://0.0.0.0:12108"));
        assert_eq!(on("tcp6", ":12108").as_deref(), Ok("tcp://[::]:12108"));
        assert!(ListenAddress::on("tcp6", ":1").unwrap().is_only_v6());
        assert!(!ListenAddress::tcp(1).is_only_v6());
        assert!(on("tcp4", "[::1]:1").is_err() && on("tcp6", "127.0.0.1:1").is_err());
        assert_eq!(on("unix", "/run/a").as_deref(), Ok("unix:///run/a"));
        assert!(on("unix", "").is_err() && on("unix", &"a".repeat(108)).is_err());
        let at: ListenAddress = "unix:///run/a".parse().unwrap();
        assert_eq!((at.socket(), at.path()), (None, Some(Path::new("/run/a"))));
    }

    #[test]
    fn a_range_holds_what_begins_alike() {
        let within = |range: &str, address: &str| {
            range
                .parse::<NetworkRange>()
                .unwrap()
                .contains(address.parse().unwrap())
        };
        assert!(within("10.0.0.0/8", "10.255.0.1"));
        assert!(!within("10.0.0.0/8", "11.0.0.0"));
        assert!(within("0.0.0.0/0", "1.2.3.4"));
        assert!(!within("0.0.0.0/0", "::1"));
        assert!(within("::/0", "fe80::1"));
        assert!(within("fe80::/10", "fe80::1") && !within("fe80::/10", "::1"));
        assert!(within("1.2.3.4", "1.2.3.4") && !within("1.2.3.4", "1.2.3.5"));
        assert!("1.2.3.4/33".parse::<NetworkRange>().is_err());
    }

    proptest! {
        #[test]
        fn no_text_makes_them_panic(text in ".*", address: std::net::Ipv6Addr) {
            let _ = text.parse::<ListenAddress>();
            if let Ok(range) = text.parse::<NetworkRange>() {
                let _ = range.contains(address.into());
            }
        }
    }
}
