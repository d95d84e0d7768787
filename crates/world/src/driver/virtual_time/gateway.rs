//! The gateway's core with its two sides on one thread.

use lagometer_client::Outbox;
use lagometer_gateway::core::{
    ChannelManager, ChannelSettings, CloseReason, ConnKey, ConnectionManager, Grid, Peer, Recovery,
    SettingsError, SideId,
};
use lagometer_gateway::server::config::{Config, ConfigError, FileConfig};
use lagometer_units::Time;
use thiserror::Error;

use crate::Space;

/// The gateway, as `lagometer world` starts one for itself: everyone is let
/// in, ticks and windows as the published tests had them.
#[derive(Debug)]
pub(super) struct Gateway {
    pub(super) side: ConnectionManager,
    channels: ChannelManager,
}

/// Why there is no gateway as a scenario wants it.
#[derive(Debug, Error)]
pub enum GatewayError {
    /// The settings of every gateway.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The grid of this one.
    #[error("the grid: {0}")]
    Grid(#[from] SettingsError),
}

/// The one connection manager.
const SIDE: SideId = SideId(0);

impl Gateway {
    /// With a `space` it has that grid, and servers that break off may come back
    /// for what they had.
    pub(super) fn new(space: Option<&Space>) -> Result<Self, GatewayError> {
        let mut file = FileConfig {
            dev: true,
            ..FileConfig::default()
        };
        file.channels.settings = Some("channel_settings_hifi.json".into());
        file.clients.state_machine = Some("client_authoratative_fsm.json".into());
        let config: Config = file.resolve(1)?;
        Ok(Self {
            side: ConnectionManager::new(config.connection_settings().clone()),
            channels: ChannelManager::new(ChannelSettings {
                unix_ns_at_zero: 0,
                grid: space
                    .map(|space| Grid::from_json(&space.controller_json()))
                    .transpose()?,
                recovery: space.map(|_| Recovery { within: None }),
                ..config.channel_settings().clone()
            }),
        })
    }

    /// A connection has come; nobody is banned here.
    pub(super) fn open(&mut self, now: Time, peer: Peer) -> Option<ConnKey> {
        self.side.open(now, peer, None).ok()
    }

    /// Takes all that the gateway has for a peer beside it into `bytes`.
    pub(super) fn take_output(&mut self, now: Time, key: ConnKey, bytes: &mut Vec<u8>) {
        bytes.clear();
        for slice in self.side.output(key) {
            bytes.extend_from_slice(slice);
        }
        self.side.wrote(now, key, bytes.len());
    }

    /// Reads all that a peer beside the gateway has to say; how many bytes it was.
    pub(super) fn read(&mut self, now: Time, key: ConnKey, outbox: &mut Outbox) -> u64 {
        let pending = outbox.pending();
        let bytes = pending.len();
        self.side.receive(now, key, pending);
        outbox.sent(bytes);
        bytes as u64
    }

    /// Carries what the sides have for each other, until neither has more.
    /// Whether there was anything.
    pub(super) fn exchange(&mut self, now: Time) -> bool {
        let mut moved = false;
        loop {
            let mut more = false;
            while let Some(message) = self.side.poll_bus() {
                self.channels.handle(now, SIDE, message);
                more = true;
            }
            while let Some((_, message)) = self.channels.poll_bus() {
                self.side.handle(now, message);
                more = true;
            }
            if !more {
                break;
            }
            moved = true;
        }
        // Nobody keeps a log.
        while self.side.poll_event().is_some() {}
        while self.channels.poll_event().is_some() {}
        moved
    }

    pub(super) fn next_deadline(&self) -> Option<Time> {
        [self.side.next_deadline(), self.channels.next_deadline()]
            .into_iter()
            .flatten()
            .min()
    }

    pub(super) fn handle_deadline(&mut self, now: Time) {
        self.side.handle_deadline(now);
        self.channels.handle_deadline(now);
    }

    /// The connection is no more.
    pub(super) fn close(&mut self, key: ConnKey, why: CloseReason) {
        self.side.close(key, why);
    }

    /// Messages that came in and went out so far.
    pub(super) fn messages(&self) -> (u64, u64) {
        let counters = self.side.counters();
        counters.peers.iter().fold((0, 0), |(taken, sent), of| {
            (taken + of.messages_in, sent + of.messages_out)
        })
    }
}
