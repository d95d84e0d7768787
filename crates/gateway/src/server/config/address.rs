//! Addresses to listen at, and ranges of addresses to turn away.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer};

/// What is spoken at an address.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Wire {
    /// The frames over TCP.
    Tcp,
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
    const NAMES: [(&'static str, Self); 7] = [
        ("tcp", Self::Tcp),
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
                format!("nothing is known of `{name}`; tcp, tls, ws, wss, kcp, kcp-tuned are")
            })
    }

    /// Whether a certificate is needed.
    #[must_use]
    pub fn is_secure(self) -> bool {
        matches!(self, Self::Tls | Self::Wss)
    }
}

/// Where to listen, as in `ws://0.0.0.0:12109` or `:12108` (TCP, everywhere).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ListenAddress {
    /// What is spoken there.
    pub wire: Wire,
    /// Where.
    pub socket: SocketAddr,
}

impl ListenAddress {
    /// Everywhere, over TCP.
    #[must_use]
    pub fn tcp(port: u16) -> Self {
        Self {
            wire: Wire::Tcp,
            socket: SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port),
        }
    }

    /// Over TCP, for this machine alone.
    #[must_use]
    pub fn loopback(port: u16) -> Self {
        Self {
            wire: Wire::Tcp,
            socket: SocketAddr::new(Ipv4Addr::LOCALHOST.into(), port),
        }
    }

    /// The same place for something else.
    #[must_use]
    pub fn over(self, wire: Wire) -> Self {
        Self { wire, ..self }
    }
}

impl FromStr for ListenAddress {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (wire, rest) = match text.split_once("://") {
            Some((name, rest)) => (Wire::named(name)?, rest),
            None => (Wire::Tcp, text),
        };
        // The path of a WebSocket's address is of no concern here.
        let place = rest.split('/').next().unwrap_or_default();
        let place = place.replacen("localhost:", "127.0.0.1:", 1);
        let socket = match place.strip_prefix(':') {
            Some(port) => port
                .parse()
                .map(|port| SocketAddr::new(Ipv6Addr::UNSPECIFIED.into(), port))
                .ok(),
            None => place.parse().ok(),
        };
        let socket = socket.ok_or_else(|| {
            format!(
                "`{text}` is no address to listen at, such as \"0.0.0.0:12108\" or \"ws://:12109\""
            )
        })?;
        Ok(Self { wire, socket })
    }
}

impl fmt::Display for ListenAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = Wire::NAMES
            .iter()
            .find(|(_, wire)| *wire == self.wire)
            .map_or("tcp", |(name, _)| name);
        write!(f, "{name}://{}", self.socket)
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
