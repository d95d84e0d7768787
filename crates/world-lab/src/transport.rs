//! How players reach the gateway.

use std::fmt;
use std::str::FromStr;

use thiserror::Error;

/// What carries a player's bytes to the gateway and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PlayerTransport {
    /// TCP with CUBIC, without delay, the frames as they are.
    TcpCubic,
    /// The same with BBR.
    TcpBbr,
    /// The same with Reno.
    TcpReno,
    /// KCP as channeld's peers have it: a flush every 100 ms, windows of 32.
    Kcp,
    /// KCP for play: a flush every 10 ms, resends after two skips, windows of
    /// 256, no congestion control.
    KcpTuned,
    /// A WebSocket over TCP with CUBIC.
    WebSocket,
}

/// There is no such transport.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "no transport of players is called `{0}`; there are tcp-cubic (or tcp), tcp-bbr, tcp-reno, \
     kcp, kcp-tuned and websocket"
)]
pub struct UnknownTransport(String);

impl PlayerTransport {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::TcpCubic,
        Self::TcpBbr,
        Self::TcpReno,
        Self::Kcp,
        Self::KcpTuned,
        Self::WebSocket,
    ];

    /// Its name on the command line and in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TcpCubic => "tcp-cubic",
            Self::TcpBbr => "tcp-bbr",
            Self::TcpReno => "tcp-reno",
            Self::Kcp => "kcp",
            Self::KcpTuned => "kcp-tuned",
            Self::WebSocket => "websocket",
        }
    }

    /// What a gateway's address for it begins with, as in `kcp://`.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        match self {
            Self::WebSocket => "ws",
            Self::TcpCubic | Self::TcpBbr | Self::TcpReno => "tcp",
            Self::Kcp => "kcp",
            Self::KcpTuned => "kcp-tuned",
        }
    }

    /// The congestion control that emulated hosts must use for it, by the
    /// kernel's name; none where there is no TCP, or any will do: a WebSocket
    /// takes what the machine's kernel begins with.
    #[must_use]
    pub const fn congestion_control(self) -> Option<&'static str> {
        match self {
            Self::TcpCubic => Some("cubic"),
            Self::TcpBbr => Some("bbr"),
            Self::TcpReno => Some("reno"),
            Self::WebSocket | Self::Kcp | Self::KcpTuned => None,
        }
    }
}

/// What is meant by TCP and nothing else: Linux's default.
const PLAIN_TCP: (&str, PlayerTransport) = ("tcp", PlayerTransport::TcpCubic);

impl fmt::Display for PlayerTransport {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

impl FromStr for PlayerTransport {
    type Err = UnknownTransport;

    fn from_str(text: &str) -> Result<Self, UnknownTransport> {
        Self::ALL
            .into_iter()
            .find(|transport| transport.name() == text || (text, *transport) == PLAIN_TCP)
            .ok_or_else(|| UnknownTransport(text.to_owned()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_read_as_they_are_written() {
        for transport in PlayerTransport::ALL {
            assert_eq!(transport.to_string().parse(), Ok(transport));
        }
        assert_eq!("tcp".parse(), Ok(PlayerTransport::TcpCubic));
        let error = "quic".parse::<PlayerTransport>().unwrap_err();
        assert!(error.to_string().contains("kcp-tuned"), "{error}");
    }
}
