//! `gateway.toml` as it is written. Every key may be left out.

mod limits;

use std::path::PathBuf;

use lagometer_units::{BadInput, Size, Span, from_toml};
use serde::Deserialize;

use super::address::ListenAddress;

pub use limits::{LimitsSection, SlowReadersSection};

/// The whole file.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct FileConfig {
    /// For development only: everyone is let in, and may ask for the grid.
    pub dev: bool,
    /// The listener for game servers.
    pub servers: ServersSection,
    /// The listener for game clients.
    pub clients: ClientsSection,
    /// The certificate for `tls` and `wss`.
    pub tls: Option<TlsSection>,
    /// Metrics and health.
    pub web: WebSection,
    /// Types of channel, the grid, types of data.
    pub channels: ChannelsSection,
    /// Who decides about logins.
    pub auth: AuthSection,
    /// Limits on connections, logins, sizes and rates.
    pub limits: LimitsSection,
    /// Limits on unsent data of those who read slowly.
    pub slow_readers: SlowReadersSection,
    /// How the kernel treats TCP connections.
    pub tcp: TcpSection,
    /// Which threads there are.
    pub threads: ThreadsSection,
    /// How the gateway ends.
    pub shutdown: ShutdownSection,
    /// What is written to the log.
    pub log: LogSection,
}

/// `[servers]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ServersSection {
    /// Where to listen; everywhere on TCP 11288 by default.
    pub listen: Option<Vec<ListenAddress>>,
    /// What servers may send when: a JSON file.
    pub state_machine: Option<PathBuf>,
    /// Servers are let in without asking the provider.
    pub bypass_auth: bool,
    /// A server that broke off may come back and take up its channels.
    pub recovery: bool,
    /// How long that is possible; for ever where it is not said.
    pub recovery_within: Option<Span>,
}

impl Default for ServersSection {
    fn default() -> Self {
        Self {
            listen: None,
            state_machine: None,
            bypass_auth: true,
            recovery: false,
            recovery_within: None,
        }
    }
}

/// `[clients]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ClientsSection {
    /// Where to listen; everywhere on TCP 12108 by default.
    pub listen: Option<Vec<ListenAddress>>,
    /// What clients may send when: a JSON file.
    pub state_machine: Option<PathBuf>,
    /// Clients are let in once a server owns GLOBAL.
    pub wait_for_owner: bool,
    /// Keep all that each client sends, in a file for each in this folder.
    pub record_to: Option<PathBuf>,
    /// Offer peers to compress: `none` or `snappy`.
    pub compression: CompressionName,
}

impl Default for ClientsSection {
    fn default() -> Self {
        Self {
            listen: None,
            state_machine: None,
            wait_for_owner: true,
            record_to: None,
            compression: CompressionName::None,
        }
    }
}

/// How packets may be compressed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum CompressionName {
    /// Not at all.
    #[default]
    None,
    /// With snappy.
    Snappy,
}

/// `[tls]`: PEM files.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TlsSection {
    /// The chain, the gateway's own certificate first.
    pub certificate: PathBuf,
    /// The key.
    pub key: PathBuf,
}

/// `[web]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WebSection {
    /// Where `/metrics`, `/healthz` and `/readyz` are; only this machine can reach
    /// them by default.
    pub listen: ListenAddress,
    /// Whether they are anywhere.
    pub enabled: bool,
}

impl Default for WebSection {
    fn default() -> Self {
        Self {
            listen: ListenAddress::loopback(8080),
            enabled: true,
        }
    }
}

/// `[channels]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ChannelsSection {
    /// Ticks, intervals and rights by type: a JSON file as channeld's `-chs`.
    pub settings: Option<PathBuf>,
    /// That file need not be there: then channels have what channeld gives them
    /// without it, and the log says so. For `-chs` alone.
    #[serde(skip)]
    pub settings_may_be_missing: bool,
    /// The world's grid: a JSON file as channeld's `-scc`.
    pub grid: Option<PathBuf>,
    /// The game's types of data: `.proto` files or descriptor sets.
    pub schema: Vec<PathBuf>,
    /// Where `.proto` files find what they import.
    pub schema_includes: Vec<PathBuf>,
    /// The first number of a place in the grid.
    pub spatial_from: u32,
    /// The first number of an entity.
    pub entities_from: u32,
    /// How many bits a connection's number may have, 1 to 32.
    pub connection_id_bits: u32,
    /// How large one channel's data may grow.
    pub max_data: Size,
    /// Look into Unreal's spawn and destroy messages.
    pub unreal: bool,
}

impl Default for ChannelsSection {
    fn default() -> Self {
        Self {
            settings: None,
            settings_may_be_missing: false,
            grid: None,
            schema: Vec::new(),
            schema_includes: Vec::new(),
            spatial_from: 0x0001_0000,
            entities_from: 0x0008_0000,
            connection_id_bits: 31,
            max_data: Size(16 << 20),
            unreal: true,
        }
    }
}

/// Who decides about logins.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Provider {
    /// Nobody: with `dev` everyone is let in, without it no client is.
    #[default]
    None,
    /// The login token is one word that all know.
    SharedToken,
    /// The login token is signed: a JWT with HS256 whose `sub` is the player.
    SignedToken,
    /// A service is asked over HTTP.
    Http,
}

/// `[auth]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AuthSection {
    /// How logins are authenticated.
    pub provider: Provider,
    /// The file with the shared token or the key of the signatures.
    pub secret_file: Option<PathBuf>,
    /// Where the service is.
    pub url: Option<String>,
    /// How long the service may take.
    pub timeout: Span,
    /// Mind how clients behave: ban those that do not log in in time, fail to
    /// again and again, or send what they may not.
    pub anti_ddos: bool,
    /// Under `anti_ddos`: how long a client may take to log in.
    pub login_within: Span,
    /// Under `anti_ddos`: failed logins that ban; 0 is no limit.
    pub max_failed: u32,
    /// Under `anti_ddos`: refused messages that ban; 0 is no limit.
    pub max_refused: u32,
    /// Under `anti_ddos`: how long a ban lasts.
    pub banned_for: Span,
}

impl Default for AuthSection {
    fn default() -> Self {
        Self {
            provider: Provider::None,
            secret_file: None,
            url: None,
            timeout: Span::from_millis(3_000),
            anti_ddos: false,
            login_within: Span::from_millis(5_000),
            max_failed: 5,
            max_refused: 10,
            banned_for: Span::from_millis(15 * 60 * 1000),
        }
    }
}

/// `[tcp]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct TcpSection {
    /// The most that the kernel takes before it has sent it; the system's own
    /// limit where it is 0.
    pub unsent_at_most: Size,
    /// The congestion control; the system's own where it is not said.
    pub congestion_control: Option<String>,
    /// After so long without a word from a peer's kernel it counts as gone.
    pub dead_after: Option<Span>,
}

impl Default for TcpSection {
    fn default() -> Self {
        Self {
            unsent_at_most: Size(128 << 10),
            congestion_control: None,
            dead_after: Some(Span::from_millis(30_000)),
        }
    }
}

/// `[threads]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ThreadsSection {
    /// Threads for connections, beside one for channels. 0: one thread does
    /// both. Where it is not said: one less than there are processors, but at most
    /// one where KCP is listened with on another system than Linux.
    pub connections: Option<u16>,
    /// Each thread stays on a processor of its own, if there are enough.
    pub pin: bool,
    /// Messages that may wait between two threads, each way.
    pub queue: u32,
    /// Bytes of them. A client that floods a server is paused by a message that goes through
    /// two such queues, and what they hold by then comes upon the server: 4 MiB leave that
    /// far below what the client would be closed for.
    pub queue_bytes: Size,
    /// A connection thread looks for what has arrived no more often than this
    /// and before ticks, so that much of it is taken at once under load; after
    /// a rest it is awake at once. What is due is not held up.
    pub gather: Span,
}

impl Default for ThreadsSection {
    fn default() -> Self {
        Self {
            connections: None,
            pin: true,
            queue: 16_384,
            queue_bytes: Size(4 << 20),
            gather: Span::from_millis(4),
        }
    }
}

/// `[shutdown]`.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ShutdownSection {
    /// How long the gateway goes on, not ready and accepting nobody, before it
    /// asks those connected to go.
    pub grace: Span,
    /// How long it then takes at most.
    pub within: Span,
}

impl Default for ShutdownSection {
    fn default() -> Self {
        Self {
            grace: Span::ZERO,
            within: Span::from_millis(5_000),
        }
    }
}

/// How much is written to the log.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogLevel {
    /// Nothing.
    Off,
    /// What stops the gateway.
    Error,
    /// Mistakes of others, and those who are slow.
    Warn,
    /// Connections that are opened and closed.
    #[default]
    Info,
    /// Each message that was dropped, and why.
    Debug,
    /// The same; libraries may have more to say.
    Trace,
}

/// How the log is written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum LogFormat {
    /// For people.
    #[default]
    Text,
    /// For programs.
    Json,
}

/// `[log]`.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct LogSection {
    /// The least severe events that are logged.
    pub level: LogLevel,
    /// The format of lines: text or JSON.
    pub format: LogFormat,
    /// A file to add it to. `{time}` in its name is when the gateway started.
    pub file: Option<PathBuf>,
    /// Whether it goes to standard error; where it is not said, only if there
    /// is no file.
    pub stderr: Option<bool>,
}

impl FileConfig {
    /// Reads a file's text.
    ///
    /// # Errors
    ///
    /// [`BadInput`] with the line.
    pub fn parse(origin: &str, text: &str) -> Result<Self, BadInput> {
        from_toml(origin, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_misspelt_key_names_its_line() {
        let error = FileConfig::parse("gateway.toml", "[limits]\nconections = 5\n").unwrap_err();
        assert_eq!(error.line, 2);
        assert!(error.message.contains("connections"), "{error}");
    }

    #[test]
    fn every_key_of_the_example_is_known() {
        let text = include_str!("../../../../../deploy/gateway.toml");
        let example = FileConfig::parse("deploy/gateway.toml", text).unwrap();
        // What the example writes out is what holds where nothing is said.
        assert_eq!(
            FileConfig {
                servers: ServersSection {
                    listen: None,
                    ..example.servers.clone()
                },
                clients: ClientsSection {
                    listen: None,
                    ..example.clients.clone()
                },
                ..example
            },
            FileConfig::default()
        );
    }
}
