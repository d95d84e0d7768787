//! The settings that a conversation is held under.

use std::time::Duration;

use lagometer_gateway::core::{
    AntiDdos, AuthPolicy, Budgets, ChannelSettings, ChannelTypes, ConnNumbers, ConnectionSettings,
    Fsm, Grid, PeerBudgets, Recovery, SlowReaders,
};
use lagometer_gateway::server::config::{Config, FileConfig};

use super::choices::Choices;

/// The least that a client is closed at.
pub(crate) const CLOSE_AT_BYTES: usize = 2 << 20;

/// The settings a conversation is held under.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "each is a setting by itself")]
pub(crate) struct ConversationSettings {
    /// Attackers come in as servers too: then nothing is promised to anybody
    /// but that the gateway lives and its tables are sound.
    pub(crate) hostile_servers: bool,
    /// Clients subscribe and write by themselves.
    pub(crate) clients_decide: bool,
    /// Logins are for a provider to decide.
    pub(crate) provider: bool,
    pub(crate) grid: bool,
    pub(crate) recovery: bool,
    pub(crate) anti_ddos: bool,
    /// Little may wait for a reader.
    pub(crate) tight: bool,
    pub(crate) recording: bool,
    /// The gateway has settings files that come with channeld, or `--dev`: what
    /// they leave open is nobody's promise.
    pub(crate) files: Option<Files>,
    pub(crate) sides: usize,
    /// The largest connection number.
    pub(crate) max_conn_id: u32,
    /// Budgets are so small that a few requests exceed them.
    pub(crate) small: bool,
    /// The rights in channels are the gateway's own, whatever files say.
    closed: bool,
}

/// Settings files by their names, as a user gives them.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Files {
    pub(crate) dev: bool,
    channels: Option<&'static str>,
    clients: Option<&'static str>,
    servers: Option<&'static str>,
    grid: Option<&'static str>,
}

impl Files {
    fn draw(choices: &mut Choices<'_>) -> Self {
        Self {
            dev: choices.one_in(2),
            channels: choices.pick(&[
                None,
                Some("channel_settings_hifi.json"),
                Some("channel_settings_lofi.json"),
                Some("channel_settings_tps.json"),
                Some("channel_settings_ue.json"),
            ]),
            clients: choices.pick(&[
                None,
                Some("client_authoratative_fsm.json"),
                Some("client_non_authoratative_fsm.json"),
            ]),
            servers: choices.pick(&[None, Some("server_authoratative_fsm.json")]),
            grid: choices.pick(&[
                Some("spatial_static_2x2.json"),
                Some("spatial_static_4x1.json"),
                Some("spatial_static_benchmark.json"),
                Some("spatial_static_tanks_big.json"),
                Some("spatial_static_tanks_small.json"),
            ]),
        }
    }

    /// What the server makes of them.
    fn resolve(self) -> Config {
        let mut file = FileConfig {
            dev: self.dev,
            ..FileConfig::default()
        };
        file.channels.settings = self.channels.map(Into::into);
        file.channels.grid = self.grid.map(Into::into);
        file.clients.state_machine = self.clients.map(Into::into);
        file.servers.state_machine = self.servers.map(Into::into);
        file.resolve(1)
            .expect("what comes with the gateway is sound")
    }
}

impl ConversationSettings {
    pub(super) fn draw(choices: &mut Choices<'_>) -> Self {
        Self {
            hostile_servers: choices.one_in(2),
            clients_decide: choices.one_in(2),
            provider: choices.one_in(4),
            grid: !choices.one_in(3),
            recovery: choices.one_in(3),
            anti_ddos: choices.one_in(4),
            tight: choices.one_in(2),
            recording: choices.one_in(6),
            files: choices.one_in(3).then(|| Files::draw(choices)),
            sides: 1 + choices.below(3),
            max_conn_id: choices.pick(&[u32::MAX >> 1, u32::MAX >> 1, 31]),
            small: false,
            closed: false,
        }
    }

    /// Other settings of the same gateway. Rights change only where nothing is
    /// promised.
    pub(crate) fn reloaded(&self, tight: bool, anti_ddos: bool) -> Self {
        Self {
            anti_ddos,
            tight,
            closed: tight && self.files.is_some(),
            ..self.clone()
        }
    }

    pub(crate) fn slow_readers(&self) -> SlowReaders {
        let roomy = SlowReaders::default();
        if !self.tight {
            return roomy;
        }
        SlowReaders {
            merge_from_bytes: 1000,
            resume_at_bytes: 500,
            close_at_bytes: CLOSE_AT_BYTES,
            server_close_at_bytes: 2 * CLOSE_AT_BYTES,
            close_after: Duration::from_secs(2),
            ..roomy
        }
    }

    pub(crate) fn connections(&self) -> ConnectionSettings {
        let base = match self.files {
            Some(files) => files.resolve().connection_settings().clone(),
            None => ConnectionSettings {
                client_fsm: if self.clients_decide {
                    Fsm::authoritative_client()
                } else {
                    Fsm::client()
                },
                ..ConnectionSettings::default()
            },
        };
        ConnectionSettings {
            anti_ddos: self.anti_ddos.then(AntiDdos::default),
            slow_readers: self.slow_readers(),
            ..base
        }
    }

    pub(crate) fn channels(&self) -> ChannelSettings {
        let grid = r#"{ "Config": { "GridWidth": 10, "GridHeight": 10, "GridCols": 4,
            "GridRows": 4, "ServerCols": 2, "ServerRows": 1, "ServerInterestBorderSize": 1 } }"#;
        let base = match self.files {
            Some(files) => files.resolve().channel_settings().clone(),
            None => ChannelSettings::default(),
        };
        let grid = self.grid.then(|| {
            base.grid
                .unwrap_or_else(|| Grid::from_json(grid).expect("a grid"))
        });
        ChannelSettings {
            types: if self.closed {
                ChannelTypes::default()
            } else {
                base.types
            },
            budgets: if self.small {
                small_budgets(&base.budgets)
            } else {
                base.budgets
            },
            auth: if self.provider {
                AuthPolicy::AskProvider
            } else {
                AuthPolicy::AdmitAll
            },
            grid,
            recovery: self.recovery.then_some(Recovery {
                within: Some(Duration::from_secs(1)),
            }),
            max_failed_auth: if self.anti_ddos { 5 } else { 0 },
            max_conn_id: self.max_conn_id,
            development: true,
            conn_numbers: ConnNumbers::Counted,
            unix_ns_at_zero: 0,
            ..base
        }
    }
}

/// Budgets of a few of everything.
fn small_budgets(base: &Budgets) -> Budgets {
    let few = |peer: PeerBudgets| PeerBudgets {
        entity_channels: 3,
        list_answer_bytes: 300,
        filters: 4,
        places: 10,
        group_size: 4,
        ..peer
    };
    Budgets {
        servers: few(base.servers),
        clients: PeerBudgets {
            subscriptions: 4,
            shared_data_bytes: 4096,
            ..few(base.clients)
        },
        orphaned_channels: 5,
        orphaned_data_bytes: 20_000,
    }
}
