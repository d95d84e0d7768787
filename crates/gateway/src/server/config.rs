//! What a gateway is to do: one TOML file, the game's own settings files that
//! it names, and whatever the command line sets instead.
//!
//! [`FileConfig`] is the file as it is written. [`FileConfig::resolve`] reads
//! what it names, checks what concerns several keys at once, and gives a
//! [`Config`] that a server can be started with.

mod address;
mod check;
mod file;
mod game_files;
mod resolve;
mod stock;
mod threads;

pub use address::{ListenAddress, NetworkRange, Wire};
pub use file::{
    AuthSection, ChannelsSection, ClientsSection, CompressionName, FileConfig, LimitsSection,
    LogFormat, LogLevel, LogSection, Provider, ServersSection, ShutdownSection, SlowReadersSection,
    TcpSection, ThreadsSection, TlsSection, WebSection,
};
pub use resolve::{Config, ConfigError};

pub use super::stream_transport::TlsError;

pub(super) use resolve::{AuthChoice, Limits};
