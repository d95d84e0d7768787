//! An end of a conversation as people name it: an address, a port, or both.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};
use thiserror::Error;

/// An address, a port, or both: `10.0.0.2`, `:7777`, `10.0.0.2:7777`, `[fe80::1]:7777`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressPattern {
    ip: Option<IpAddr>,
    port: Option<u16>,
}

/// What is no end of a conversation.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "`{0}` is no address: write one as \"10.0.0.2\", \"10.0.0.2:7777\", \":7777\" or \"[::1]:7777\""
)]
pub struct BadAddressPattern(String);

impl AddressPattern {
    /// Whether it is this one.
    #[must_use]
    pub fn is(&self, address: SocketAddr) -> bool {
        self.ip.is_none_or(|ip| ip == address.ip())
            && self.port.is_none_or(|port| port == address.port())
    }
}

impl FromStr for AddressPattern {
    type Err = BadAddressPattern;

    fn from_str(written: &str) -> Result<Self, BadAddressPattern> {
        let pattern = |ip, port| Ok(Self { ip, port });
        if let Ok(ip) = written.parse::<IpAddr>() {
            return pattern(Some(ip), None);
        }
        if let Ok(both) = written.parse::<SocketAddr>() {
            return pattern(Some(both.ip()), Some(both.port()));
        }
        let port = written.strip_prefix(':').and_then(|port| port.parse().ok());
        match port {
            Some(port) => pattern(None, Some(port)),
            None => Err(BadAddressPattern(written.to_owned())),
        }
    }
}

impl fmt::Display for AddressPattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match (self.ip, self.port) {
            (Some(ip), Some(port)) => SocketAddr::new(ip, port).fmt(formatter),
            (Some(ip), None) => ip.fmt(formatter),
            (None, Some(port)) => write!(formatter, ":{port}"),
            (None, None) => formatter.write_str("any"),
        }
    }
}

impl Serialize for AddressPattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl<'de> Deserialize<'de> for AddressPattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let written = String::deserialize(deserializer)?;
        written.parse().map_err(de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_read_as_they_are_written() {
        for written in ["10.0.0.2", "10.0.0.2:7777", ":7777", "::1", "[::1]:7777"] {
            let pattern: AddressPattern = written.parse().unwrap();
            assert_eq!(pattern.to_string(), written);
        }
        for wrong in ["", "host", "10.0.0", ":70000", "10.0.0.2:", "any"] {
            let error = wrong.parse::<AddressPattern>().unwrap_err();
            assert!(
                error
                    .to_string()
                    .starts_with(&format!("`{wrong}` is no address"))
            );
        }
    }

    #[test]
    fn what_is_left_out_of_a_place_may_be_anything() {
        let address: SocketAddr = "10.0.0.2:7777".parse().unwrap();
        for written in ["10.0.0.2", "10.0.0.2:7777", ":7777"] {
            assert!(
                written.parse::<AddressPattern>().unwrap().is(address),
                "{written}"
            );
        }
        for written in ["10.0.0.3", "10.0.0.2:7778", ":1"] {
            assert!(
                !written.parse::<AddressPattern>().unwrap().is(address),
                "{written}"
            );
        }
    }
}
