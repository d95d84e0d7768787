//! From the file as it is written to what a server is started with.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use lagometer_protocol::merge::MergeLimits;
use lagometer_protocol::schema::Schema;
use lagometer_protocol::{Compression, FrameLimits};
use lagometer_units::Span;
use thiserror::Error;

use crate::core::{
    AntiDdos, AuthPolicy, Budgets, ChannelSettings, ClientRights, ConnNumbers, ConnectionSettings,
    Fsm, Grid, LoginBudget, LoginLimits, PeerBudgets, RecordingLimits, Recovery, SettingsError,
    Shard, SlowReaders, openings,
};
use crate::server::listener::CAN_SHARE_PORTS;
use crate::server::mailbox::Capacity;
use crate::server::stream_transport::{TcpOptions, TlsError, TlsIdentity};

use super::address::{ListenAddress, NetworkRange};
use super::file::{CompressionName, FileConfig, Provider};
use super::game_files::{read, settings};

/// What a server is started with.
#[derive(Clone, Debug)]
pub struct Config {
    pub(in crate::server) servers: Vec<ListenAddress>,
    pub(in crate::server) clients: Vec<ListenAddress>,
    pub(in crate::server) web: Option<SocketAddr>,
    pub(in crate::server) wait_for_owner: bool,
    pub(in crate::server) record_to: Option<PathBuf>,
    pub(in crate::server) tls: Option<TlsIdentity>,
    pub(in crate::server) auth: AuthChoice,
    pub(in crate::server) limits: Limits,
    pub(in crate::server) kcp: KcpLimits,
    pub(in crate::server) tcp: TcpOptions,
    pub(in crate::server) threads: ThreadPlan,
    pub(in crate::server) grace: Duration,
    pub(in crate::server) drain_within: Duration,
    pub(in crate::server) connections: ConnectionSettings,
    pub(in crate::server) channels: ChannelSettings,
    pub(in crate::server) warnings: Vec<String>,
}

/// Who decides about logins, with what that takes.
#[derive(Clone, PartialEq, Eq)]
pub(in crate::server) enum AuthChoice {
    /// Everyone is let in.
    Everyone,
    /// Nobody is, but servers that need not ask.
    Nobody,
    /// Clients that present the shared token.
    SharedToken(String),
    /// Who has a token signed with the key.
    SignedToken(Vec<u8>),
    /// Whom the service lets in.
    Http { url: String, timeout: Duration },
}

/// Secrets do not show.
impl std::fmt::Debug for AuthChoice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Everyone => "Everyone",
            Self::Nobody => "Nobody",
            Self::SharedToken(_) => "SharedToken",
            Self::SignedToken(_) => "SignedToken",
            Self::Http { .. } => "Http",
        })
    }
}

/// What is put up with, beyond what the core minds.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::server) struct Limits {
    pub(in crate::server) connections: u32,
    pub(in crate::server) reserved_for_servers: u32,
    pub(in crate::server) unauthenticated: u32,
    pub(in crate::server) unauthenticated_per_address: u32,
    /// Bytes of memory that clients which have not logged in may hold together.
    pub(in crate::server) unauthenticated_bytes: usize,
    pub(in crate::server) connections_per_address: Option<u32>,
    pub(in crate::server) connects_per_second: Option<u32>,
    pub(in crate::server) messages_per_second_per_address: Option<u32>,
    /// Of one client, beyond which it is read more slowly.
    pub(in crate::server) messages_per_second: u32,
    /// The same of bytes.
    pub(in crate::server) bytes_per_second: u64,
    pub(in crate::server) login_within: Duration,
    /// Processor time that a connection may cost before its login.
    pub(in crate::server) login_work: Duration,
    pub(in crate::server) banned: Vec<NetworkRange>,
}

/// What is put up with of KCP's peers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) struct KcpLimits {
    /// Conversations of a thread with peers that are not proven.
    pub(in crate::server) unproven: u32,
    /// The same of one address.
    pub(in crate::server) unproven_per_address: u32,
    /// Bytes of memory that those of a thread may hold together.
    pub(in crate::server) unproven_bytes: usize,
    /// How long nothing may come from a peer.
    pub(in crate::server) silent_at_most: Duration,
}

/// Which threads there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) struct ThreadPlan {
    /// Threads for connections; 0: one thread for all.
    pub(in crate::server) connections: u16,
    pub(in crate::server) pin: bool,
    pub(in crate::server) queue: Capacity,
    pub(in crate::server) gather: Duration,
}

/// Why a gateway cannot be started as it is configured: the input is wrong.
#[derive(Debug, Error)]
pub enum ConfigError {
    /// A file cannot be read.
    #[error("{path}: cannot be read: {why}")]
    Read {
        /// Which file.
        path: PathBuf,
        /// What the system said.
        why: std::io::Error,
    },
    /// A game's settings file is wrong.
    #[error("{path}: {why}")]
    Settings {
        /// Which file.
        path: PathBuf,
        /// What is wrong in it.
        why: SettingsError,
    },
    /// The game's types of data cannot be learned.
    #[error("{0}")]
    Schema(String),
    /// The certificate cannot be used.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A key's value does not do.
    #[error("{key}: {reason}")]
    Value {
        /// The key.
        key: &'static str,
        /// What is wrong, and what would be right.
        reason: String,
    },
}

impl ConfigError {
    /// The key whose value does not do, as `section.key`, or the section.
    #[must_use]
    pub fn key(&self) -> Option<&'static str> {
        match self {
            Self::Value { key, .. } => Some(key),
            _ => None,
        }
    }
}

impl Config {
    /// What is worth knowing before the gateway is relied on.
    #[must_use]
    pub fn warnings(&self) -> &[String] {
        &self.warnings
    }

    /// What a connection manager is configured with, for whoever drives the core itself.
    #[must_use]
    pub fn connection_settings(&self) -> &ConnectionSettings {
        &self.connections
    }

    /// The same of the channel manager.
    #[must_use]
    pub fn channel_settings(&self) -> &ChannelSettings {
        &self.channels
    }
}

impl FileConfig {
    /// Reads what the file names, and checks what concerns several keys.
    /// `processors` is how many this process may use.
    ///
    /// # Errors
    ///
    /// [`ConfigError`] says on one line what is wrong where.
    pub fn resolve(&self, processors: usize) -> Result<Config, ConfigError> {
        let servers = or_default(self.servers.listen.as_ref(), 11288);
        let clients = or_default(self.clients.listen.as_ref(), 12108);
        self.check(&servers, &clients)?;
        let all = servers.iter().chain(&clients);
        let connection_threads =
            (self.threads).for_connections(all, processors, CAN_SHARE_PORTS)?;
        let tls = match &self.tls {
            Some(files) => Some(TlsIdentity::read(&files.certificate, &files.key)?),
            None if servers.iter().chain(&clients).any(|at| at.wire.is_secure()) => {
                return Err(wrong("tls", "tls and wss need a certificate and a key"));
            }
            None => None,
        };
        let mut warnings = Vec::new();
        let auth = self.auth_choice(&mut warnings)?;
        let schema = self.schema()?;
        let connections = self.connection_settings(schema.clone())?;
        let machines = [
            (&self.servers.state_machine, &connections.server_fsm),
            (&self.clients.state_machine, &connections.client_fsm),
        ];
        for (path, machine) in machines {
            let path = path.as_deref().unwrap_or(Path::new("")).display();
            let left_out = machine.left_out().iter();
            warnings.extend(left_out.map(|what| format!("{path}: {what}")));
        }
        let channels = self.channel_settings(schema, &auth, &mut warnings)?;
        if self.dev {
            warnings.push(
                "--dev: clients may own GLOBAL, unsubscribe others and group entities that are \
                 not theirs"
                    .into(),
            );
        }
        warnings.extend(openings(&connections.client_fsm, &channels.types));
        Ok(Config {
            servers,
            clients,
            web: self.web.listen.socket().filter(|_| self.web.enabled),
            wait_for_owner: self.clients.wait_for_owner,
            record_to: self.clients.record_to.clone(),
            tls,
            auth,
            limits: self.limits(),
            kcp: KcpLimits {
                unproven: self.limits.kcp_unproven,
                unproven_per_address: self.limits.kcp_unproven_per_address,
                unproven_bytes: self.unproven_bytes() / usize::from(connection_threads.max(1)),
                silent_at_most: self.limits.kcp_silent_at_most.duration(),
            },
            tcp: TcpOptions {
                unsent_at_most: u32::try_from(self.tcp.unsent_at_most.bytes())
                    .ok()
                    .filter(|&bytes| bytes > 0),
                congestion_control: self.tcp.congestion_control.clone(),
                dead_after: self.tcp.dead_after.map(Span::duration),
            },
            threads: ThreadPlan {
                connections: connection_threads,
                pin: self.threads.pin,
                queue: Capacity {
                    items: self.threads.queue as usize,
                    bytes: self.threads.queue_bytes.bytes() as usize,
                },
                gather: self.threads.gather.duration(),
            },
            grace: self.shutdown.grace.duration(),
            drain_within: self.shutdown.within.duration(),
            connections,
            channels,
            warnings,
        })
    }

    /// What of `unauthenticated_memory` is for KCP peers that are not proven.
    fn unproven_bytes(&self) -> usize {
        self.limits.unauthenticated_memory.bytes() as usize / 4
    }

    fn limits(&self) -> Limits {
        let limits = &self.limits;
        Limits {
            connections: limits.connections,
            connections_per_address: limits.connections_per_address,
            connects_per_second: limits.connects_per_second_per_address,
            reserved_for_servers: limits.reserved_for_servers,
            unauthenticated: limits.unauthenticated,
            unauthenticated_per_address: limits.unauthenticated_per_address,
            unauthenticated_bytes: limits.unauthenticated_memory.bytes() as usize
                - self.unproven_bytes(),
            messages_per_second_per_address: limits.messages_per_second_per_address,
            messages_per_second: limits.messages_per_second,
            bytes_per_second: limits.bytes_per_second.bytes(),
            login_within: limits.login_within.duration(),
            login_work: limits.login_work.duration(),
            banned: limits.banned.clone(),
        }
    }

    fn connection_settings(&self, schema: Schema) -> Result<ConnectionSettings, ConfigError> {
        let (limits, slow) = (&self.limits, &self.slow_readers);
        Ok(ConnectionSettings {
            server_fsm: settings(self.servers.state_machine.as_deref(), Fsm::from_json)?
                .unwrap_or_else(Fsm::server),
            client_fsm: settings(self.clients.state_machine.as_deref(), Fsm::from_json)?
                .unwrap_or_else(Fsm::client),
            frames: FrameLimits {
                max_payload_bytes: limits.max_frame.bytes() as usize,
                max_packet_bytes: limits.max_packet.bytes() as usize,
            },
            schema,
            anti_ddos: self.auth.anti_ddos.then(|| AntiDdos {
                auth_timeout: self.auth.login_within.duration(),
                max_failed_auth: self.auth.max_failed,
                max_refused: self.auth.max_refused,
            }),
            // Too fast a client is read more slowly by the loops.
            silent_at_most: limits.silent_at_most.map(Span::duration),
            before_login: LoginBudget {
                bytes: limits.login_bytes.bytes() as usize,
                messages: limits.login_messages,
                attempts: limits.login_attempts,
            },
            logins: LoginLimits {
                player_bytes: limits.player_name.bytes() as usize,
                token_bytes: limits.login_token.bytes() as usize,
            },
            recordings: RecordingLimits {
                client_bytes: limits.recording.bytes() as usize,
                ..RecordingLimits::default()
            },
            slow_readers: SlowReaders {
                merge_from_bytes: slow.merge_from.bytes() as usize,
                resume_at_bytes: slow.resume_at.bytes() as usize,
                close_at_bytes: slow.close_at.bytes() as usize,
                server_close_at_bytes: slow.server_close_at.bytes() as usize,
                close_after: slow.close_after.duration(),
                merged: MergeLimits {
                    max_encoded_bytes: slow.max_merged.bytes() as usize,
                },
            },
        })
    }

    fn channel_settings(
        &self,
        schema: Schema,
        auth: &AuthChoice,
        warnings: &mut Vec<String>,
    ) -> Result<ChannelSettings, ConfigError> {
        let channels = &self.channels;
        Ok(ChannelSettings {
            types: self.channel_types(warnings)?,
            grid: settings(channels.grid.as_deref(), Grid::from_json)?,
            schema,
            data: MergeLimits {
                max_encoded_bytes: channels.max_data.bytes() as usize,
            },
            announced_compression: match self.clients.compression {
                CompressionName::None => Compression::None,
                CompressionName::Snappy => Compression::Snappy,
            },
            max_conn_id: u32::MAX >> (32 - channels.connection_id_bits),
            // The server draws a secret where there is to be one.
            conn_numbers: ConnNumbers::Counted,
            spatial_channels_from: channels.spatial_from,
            entity_channels_from: channels.entities_from,
            servers_bypass_auth: self.servers.bypass_auth,
            auth: match auth {
                AuthChoice::Everyone => AuthPolicy::AdmitAll,
                _ => AuthPolicy::AskProvider,
            },
            max_failed_auth: if self.auth.anti_ddos {
                self.auth.max_failed
            } else {
                0
            },
            barred_for: self.auth.banned_for.duration(),
            budgets: self.budgets(),
            client_rights: if self.dev {
                ClientRights::All
            } else {
                ClientRights::Own
            },
            // Which one this is, each node knows.
            shard: Shard::WHOLE,
            recovery: self.servers.recovery.then(|| Recovery {
                within: self.servers.recovery_within.map(Span::duration),
            }),
            unreal: channels.unreal,
            development: self.dev,
            unix_ns_at_zero: 0,
        })
    }

    /// What `[limits]` says of clients; servers have what is the default, but
    /// for texts that all may be as long.
    fn budgets(&self) -> Budgets {
        let limits = &self.limits;
        let metadata_bytes = limits.metadata.bytes() as usize;
        let within_ms = limits.fan_out_within.duration().as_millis();
        Budgets {
            servers: PeerBudgets {
                metadata_bytes,
                ..PeerBudgets::server()
            },
            clients: PeerBudgets {
                channels: limits.channels as usize,
                entity_channels: limits.entity_channels as usize,
                data_bytes: limits.data.bytes() as usize,
                channel_data_bytes: limits.channel_data.bytes() as usize,
                shared_data_bytes: limits.shared_data.bytes() as usize,
                subscriptions: limits.subscriptions as usize,
                masks: limits.masks as usize,
                fan_out_within_ms: u32::try_from(within_ms).unwrap_or(u32::MAX).max(1),
                filters: limits.filters as usize,
                list_answer_bytes: limits.list_answer.bytes() as usize,
                group_size: limits.group_size as usize,
                metadata_bytes,
                work_per_second: limits.work_per_second,
                ..PeerBudgets::client()
            },
            orphaned_channels: limits.orphaned_channels as usize,
            orphaned_data_bytes: limits.orphaned_data.bytes() as usize,
        }
    }

    fn auth_choice(&self, warnings: &mut Vec<String>) -> Result<AuthChoice, ConfigError> {
        let secret = || -> Result<String, ConfigError> {
            let path = self.auth.secret_file.as_deref().ok_or(ConfigError::Value {
                key: "auth.secret_file",
                reason: "this provider needs a file with the secret".into(),
            })?;
            let secret = read(path)?.trim().to_owned();
            if secret.len() < 8 {
                return Err(ConfigError::Value {
                    key: "auth.secret_file",
                    reason: format!("{}: a secret has at least 8 characters", path.display()),
                });
            }
            Ok(secret)
        };
        Ok(match self.auth.provider {
            Provider::None if self.dev => {
                warnings
                    .push("--dev: everyone is let in; not for a gateway that others reach".into());
                AuthChoice::Everyone
            }
            Provider::None => {
                warnings.push(
                    "nobody decides about logins: servers are let in, clients are not; name a \
                     provider under [auth], or say --dev to let everyone in"
                        .into(),
                );
                AuthChoice::Nobody
            }
            Provider::SharedToken => AuthChoice::SharedToken(secret()?),
            Provider::SignedToken => AuthChoice::SignedToken(secret()?.into_bytes()),
            Provider::Http => {
                let url = self.auth.url.clone().unwrap_or_default();
                if !url.starts_with("http://") && !url.starts_with("https://") {
                    return Err(ConfigError::Value {
                        key: "auth.url",
                        reason: "must be the http:// or https:// address to ask".into(),
                    });
                }
                AuthChoice::Http {
                    url,
                    timeout: self.auth.timeout.duration(),
                }
            }
        })
    }

    fn schema(&self) -> Result<Schema, ConfigError> {
        let mut schema = Schema::bundled();
        if !self.channels.schema.is_empty() {
            schema
                .add_files(&self.channels.schema, &self.channels.schema_includes)
                .map_err(|error| {
                    let line: Vec<String> = error
                        .to_string()
                        .split_whitespace()
                        .map(str::to_owned)
                        .collect();
                    ConfigError::Schema(line.join(" "))
                })?;
        }
        Ok(schema)
    }
}

pub(super) fn wrong(key: &'static str, reason: &str) -> ConfigError {
    ConfigError::Value {
        key,
        reason: reason.to_owned(),
    }
}

fn or_default(listen: Option<&Vec<ListenAddress>>, port: u16) -> Vec<ListenAddress> {
    listen.map_or_else(|| vec![ListenAddress::tcp(port)], Clone::clone)
}

#[cfg(test)]
mod tests;
