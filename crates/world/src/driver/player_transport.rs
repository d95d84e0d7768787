//! How players reach the gateway: one table, from which names, testbeds and the
//! command line take all they know of a transport.

use std::fmt;
use std::str::FromStr;

use lagometer_transport::kcp::StreamProfile;
use lagometer_transport::tcp::Algorithm;
use thiserror::Error;

/// What carries a player's bytes to the gateway and back.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PlayerTransport {
    name: &'static str,
    /// Other names that it goes by.
    aliases: &'static [&'static str],
    /// What a gateway's address for it begins with.
    scheme: &'static str,
    /// What emulated hosts must use, by the kernel's name.
    congestion_control: Option<&'static str>,
    pub(crate) stream: PlayerStream,
}

/// How the frames of the gateway's protocol travel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PlayerStream {
    /// As they are, over TCP without delay; in virtual time with this congestion
    /// control.
    Tcp(Algorithm),
    /// As they are, over KCP.
    Kcp(StreamProfile),
    /// In the messages of a WebSocket over TCP without delay; in virtual time with
    /// this congestion control.
    WebSocket(Algorithm),
}

/// There is no such transport.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "no transport of players is called `{name}`; there are {}",
    PlayerTransport::names()
)]
pub struct UnknownTransport {
    name: String,
}

impl PlayerTransport {
    /// TCP with CUBIC, Linux's default, without delay: what is meant by TCP and
    /// nothing else.
    pub const TCP_CUBIC: Self = Self {
        name: "tcp-cubic",
        aliases: &["tcp"],
        scheme: "tcp",
        congestion_control: Some("cubic"),
        stream: PlayerStream::Tcp(Algorithm::Cubic),
    };

    /// The same with BBR.
    pub const TCP_BBR: Self = Self {
        name: "tcp-bbr",
        aliases: &[],
        congestion_control: Some("bbr"),
        stream: PlayerStream::Tcp(Algorithm::Bbr),
        ..Self::TCP_CUBIC
    };

    /// The same with Reno.
    pub const TCP_RENO: Self = Self {
        name: "tcp-reno",
        aliases: &[],
        congestion_control: Some("reno"),
        stream: PlayerStream::Tcp(Algorithm::Reno),
        ..Self::TCP_CUBIC
    };

    /// KCP as channeld's peers have it: a flush every 100 ms, windows of 32.
    pub const KCP: Self = Self {
        name: "kcp",
        aliases: &[],
        scheme: "kcp",
        congestion_control: None,
        stream: PlayerStream::Kcp(StreamProfile::KcpGo),
    };

    /// KCP for play: a flush every 10 ms, resends after two skips, windows of
    /// 256, no congestion control.
    pub const KCP_TUNED: Self = Self {
        name: "kcp-tuned",
        scheme: "kcp-tuned",
        stream: PlayerStream::Kcp(StreamProfile::Tuned),
        ..Self::KCP
    };

    /// A WebSocket over TCP: with CUBIC in virtual time, in emulated hosts with
    /// what the machine's kernel begins with.
    pub const WEB_SOCKET: Self = Self {
        name: "websocket",
        aliases: &[],
        scheme: "ws",
        congestion_control: None,
        stream: PlayerStream::WebSocket(Algorithm::Cubic),
    };

    /// All of them, in the order in which they are listed.
    pub const ALL: [Self; 6] = [
        Self::TCP_CUBIC,
        Self::TCP_BBR,
        Self::TCP_RENO,
        Self::KCP,
        Self::KCP_TUNED,
        Self::WEB_SOCKET,
    ];

    /// Its name on the command line and in documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        self.name
    }

    /// What a gateway's address for it begins with, as in `kcp://`.
    #[must_use]
    pub const fn scheme(self) -> &'static str {
        self.scheme
    }

    /// The congestion control that emulated hosts must use for it, by the
    /// kernel's name; none where there is no TCP, or any will do.
    #[must_use]
    pub const fn congestion_control(self) -> Option<&'static str> {
        self.congestion_control
    }

    /// The names there are, in a line: `tcp-cubic (or tcp), tcp-bbr, …`.
    #[must_use]
    pub fn names() -> String {
        let with_aliases = Self::ALL.map(|transport| match transport.aliases {
            [] => transport.name.to_owned(),
            aliases => format!("{} (or {})", transport.name, aliases.join(", ")),
        });
        with_aliases.join(", ")
    }
}

impl Default for PlayerTransport {
    /// TCP, as most games have it.
    fn default() -> Self {
        Self::TCP_CUBIC
    }
}

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
            .find(|transport| transport.name == text || transport.aliases.contains(&text))
            .ok_or_else(|| UnknownTransport {
                name: text.to_owned(),
            })
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
        assert_eq!("tcp".parse(), Ok(PlayerTransport::TCP_CUBIC));
        let error = "quic".parse::<PlayerTransport>().unwrap_err();
        assert!(error.to_string().contains("kcp-tuned"), "{error}");
    }

    #[test]
    fn names_are_listed_with_their_aliases() {
        let names = PlayerTransport::names();
        assert!(
            names.starts_with("tcp-cubic (or tcp), tcp-bbr, "),
            "{names}"
        );
    }
}
