//! Back-pressure: a server that cannot keep up makes those who flood it be read
//! more slowly, rather than being closed as a slow reader for what others sent.
//!
//! Each message of a client that finds much waiting for its server gets its
//! sender paused: shortly at first, for longer the more there waits. Who sends
//! more meets this more often, so the most talkative wait most, and who sends
//! nothing to that server does not notice. What a paused client has sent waits
//! in its own socket, where it harms only itself.
//!
//! The server's connection side notices it, the channel side knows where the
//! sender is ([`ToChannels::Congested`]), and the sender's connection side tells
//! its driver ([`poll_pause`](ConnectionSide::poll_pause)).

use std::time::Duration;

use bytes::Bytes;
use lagometer_units::Time;

use crate::core::bus::ToChannels;
use crate::core::ids::{ConnId, Peer};

use super::ConnectionSide;
use super::outbox::whole;

/// From this part of what a client is closed at on, those who write to a server
/// are paused.
const CONGESTED_FROM: usize = 4;

/// The pause of a sender when a server begins to be congested. It doubles with
/// each further eighth of a client's limit that waits.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// The longest pause. It is renewed with the next message.
const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// How long a sender is to be paused whose recipient has `waiting` bytes in its
/// outbox; `limit` is what a client is closed at.
fn pause(waiting: usize, limit: usize) -> Option<Duration> {
    let from = limit / CONGESTED_FROM;
    let over = waiting.checked_sub(from)?;
    let doublings = u32::try_from(over / (limit / 8).max(1)).unwrap_or(u32::MAX);
    let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
    Some(SHORTEST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE))
}

impl ConnectionSide {
    /// Queues a client's message for a server, and asks for a pause of the
    /// client if too much waits there.
    pub(super) fn forward(&mut self, now: Time, from: ConnId, to: ConnId, message: &Bytes) {
        let Some(&slot) = self.by_id.get(&to) else {
            return;
        };
        self.queue(now, slot, &[], message, &whole(message.len()));
        let limit = self.settings.slow_readers.close_at_bytes;
        if let Some(connection) = self.table.at_mut(slot)
            && connection.peer == Peer::Server
            && let Some(pause) = pause(connection.outbox.waiting(), limit)
        {
            self.counters.of_mut(Peer::Client).paused += 1;
            let sender = from;
            // Of a sender with many messages one note at a time is enough.
            if !self.is_last_note(sender) {
                self.to_channels
                    .push_back(ToChannels::Congested { sender, pause });
            }
        }
    }

    /// Whether the last message for the channel side is of the same sender.
    fn is_last_note(&self, of: ConnId) -> bool {
        matches!(
            self.to_channels.back(),
            Some(ToChannels::Congested { sender, .. }) if *sender == of
        )
    }

    /// A connection of this side is to be read more slowly.
    pub(super) fn pause(&mut self, id: ConnId, pause: Duration) {
        if let Some(&slot) = self.by_id.get(&id)
            && let Some(connection) = self.table.at_mut(slot)
        {
            if connection.pause.is_none() {
                self.paused.push_back(connection.key);
            }
            let longest = connection.pause.unwrap_or_default().max(pause);
            connection.pause = Some(longest);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_what_waits_and_have_an_end() {
        let limit = 4 << 20;
        assert_eq!(pause((1 << 20) - 1, limit), None);
        assert_eq!(pause(1 << 20, limit), Some(SHORTEST_PAUSE));
        assert_eq!(pause(3 << 19, limit), Some(2 * SHORTEST_PAUSE));
        assert_eq!(pause(2 << 20, limit), Some(4 * SHORTEST_PAUSE));
        assert_eq!(pause(usize::MAX, limit), Some(LONGEST_PAUSE));
        assert_eq!(pause(5, 0), Some(SHORTEST_PAUSE * 32));
    }
}
