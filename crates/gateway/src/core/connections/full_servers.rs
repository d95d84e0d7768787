//! Servers for which so much waits that clients may add little or nothing.
//!
//! A server is closed once too much waits for it, and clients alone shall never
//! bring it there. They are paused long before
//! ([`congestion`](super::congestion)), but a pause comes only after something
//! waits: a frame is taken whole, and a new connection has nothing waiting yet.
//! So what clients cause is held against two marks before it is queued:
//!
//! - From [half](CLIENTS_SHARE_FROM) of what the server is closed at on, those who
//!   have more than a little waiting, or whose source prefix has much, get nothing
//!   more to it.
//! - Beyond [three quarters](CLIENTS_UP_TO) no client does. The last quarter is for
//!   what servers and channels send to it.
//!
//! What is not queued is dropped and counted, and the channel manager closes the
//! client when it goes on, or when it was a notice that was dropped. What follows
//! from a client's end is nobody's and never dropped.

use bytes::Bytes;
use lagometer_protocol::Packet;
use lagometer_units::Time;

use crate::core::budget::Budget;
use crate::core::bus::ToChannels;
use crate::core::ids::{ConnId, Peer};

use super::ConnectionManager;
use super::backlog::Client;
use super::congestion::LITTLE_BYTES;

/// From so many quarters of what a server is closed at on, clients add to what
/// waits only while they have little there.
const CLIENTS_SHARE_FROM: usize = 2;

/// So many quarters clients may fill, all together.
const CLIENTS_UP_TO: usize = 3;

/// What all clients of one source prefix may have waiting to be among those with
/// little: sixteen players' worth.
const LITTLE_OF_A_SOURCE_PREFIX_BYTES: usize = 16 * LITTLE_BYTES;

impl ConnectionManager {
    /// Whether a client may add so many bytes to what waits in a slot.
    pub(super) fn may_add(&mut self, slot: u32, client: Client, bytes: usize) -> bool {
        let quarter = self.settings.slow_readers.server_close_at_bytes / 4;
        let Some(connection) = self.table.at_mut(slot) else {
            return true;
        };
        if connection.peer != Peer::Server || connection.closing.is_some() {
            return true;
        }
        let waiting = connection.outbox.waiting();
        if waiting + bytes > CLIENTS_UP_TO * quarter {
            return false;
        }
        // Before anything is looked up: of a server that keeps up this is asked for
        // each message.
        if waiting < CLIENTS_SHARE_FROM * quarter {
            return true;
        }
        let Some(backlog) = &connection.backlog else {
            return true;
        };
        let of_source_prefix = client
            .source_prefix
            .map_or(0, |source_prefix| backlog.of_source_prefix(source_prefix));
        backlog.of(client.id) < LITTLE_BYTES && of_source_prefix < LITTLE_OF_A_SOURCE_PREFIX_BYTES
    }

    /// Counts what a client has caused and a server does not get, and notifies the
    /// channel manager.
    pub(super) fn drop_before_server(&mut self, now: Time, sender: ConnId, message: &Bytes) {
        let budget = Budget::ServerBacklog;
        let event = self.budgets.record(now, Peer::Client, Some(sender), budget);
        if let Some(event) = event {
            self.events.push(event);
        }
        let first = Packet::read(message).next();
        let is_game = matches!(first, Some(Ok(message)) if message.is_user_space());
        self.to_channels.push_back(ToChannels::Undelivered {
            sender,
            bytes: message.len(),
            is_notice: !is_game,
        });
    }
}
