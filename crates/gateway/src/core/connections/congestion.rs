//! Back-pressure: a server that cannot keep up makes those who flood it be read
//! more slowly, rather than being closed as a slow reader for what others sent.
//!
//! Once much waits for a server, it is counted who caused what
//! ([`Backlog`](super::backlog::Backlog)). A client with more than a little waiting there is
//! paused: what it sends waits in its own socket, where it harms only itself. A
//! pause is short. When it ends, the server's side is asked whether the client
//! still has more than a little waiting at a congested server, and the pause is
//! renewed only if so. A client with little waiting is read as ever, however
//! congested the server is and whoever congests it.
//!
//! A pause comes after the bytes it is for. What a server is spared beyond that is
//! described in [`full_servers`](super::full_servers).
//!
//! The messages, all over the bus, since client and server may be on different
//! connection managers:
//!
//! ```text
//! client's side        channel manager             server's side
//!      │                        │   Congested             │
//!      │◀─────── Pause ─────────│◀────────────────────────│
//!      │  (the pause ends)      │                         │
//!      │──── AskCongestion ────▶│───── AskCongestion ────▶│
//!      │◀─── Pause | Resume ────│◀─ Congested | Relieved ─│
//! ```

use std::collections::BTreeSet;
use std::time::Duration;

use bytes::Bytes;
use lagometer_units::Time;

use crate::core::bus::ToChannels;
use crate::core::ids::{ConnId, ConnKey, Peer};
use crate::core::settings::SlowReaders;

use super::ConnectionManager;
use super::backlog::Client;
use super::outbox::whole;

/// From this part of what a client is closed at on, those who write to a server
/// are paused.
const CONGESTED_FROM: usize = 4;

/// From this part on it is counted who causes what.
const COUNTED_FROM: usize = 8;

/// A client with fewer bytes waiting at a congested server is not paused: some
/// seconds of a player's input.
pub(super) const LITTLE_BYTES: usize = 4 << 10;

/// From so many sixteenths of what a server is closed at on nobody is exempt.
/// Where half waits, whoever has more than a little waiting gets nothing more to
/// the server ([`full_servers`](super::full_servers)): what is beyond that is of
/// many clients, none of which has much.
const NOBODY_EXEMPT_FROM: usize = 9;

/// The pause of a sender when a server begins to be congested. It doubles with
/// each further eighth of a client's limit that waits.
const SHORTEST_PAUSE: Duration = Duration::from_millis(10);

/// The longest pause, after which the server's side is asked.
const LONGEST_PAUSE: Duration = Duration::from_millis(100);

/// A client that was paused is read again if the server's side has not answered
/// within this time.
const ANSWER_WITHIN: Duration = Duration::from_millis(100);

/// What is to become of the reading of a connection; see
/// [`ConnectionManager::poll_pause`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadControl {
    /// Nothing more is to be read of it until it is resumed.
    Pause,
    /// It is to be read as ever.
    Resume,
}

/// A client that is not read.
#[derive(Debug)]
pub(super) struct Pause {
    /// The servers that are congested with what it sent.
    receivers: BTreeSet<ConnId>,
    /// When the pause ends, or, once it has, when the answer is not waited for
    /// any longer.
    until: Time,
    /// The pause has ended and the servers' sides were asked.
    asked: bool,
}

/// How long a client is to be paused that has `share` of the `waiting` bytes in
/// a server's outbox.
fn pause(waiting: usize, share: usize, limits: &SlowReaders) -> Option<Duration> {
    let limit = limits.close_at_bytes;
    let over = waiting.checked_sub(limit / CONGESTED_FROM)?;
    let little = if waiting < limits.server_close_at_bytes / 16 * NOBODY_EXEMPT_FROM {
        LITTLE_BYTES
    } else {
        1
    };
    if share < little {
        return None;
    }
    let doublings = u32::try_from(over / (limit / 8).max(1)).unwrap_or(u32::MAX);
    let factor = 1_u32.checked_shl(doublings).unwrap_or(u32::MAX);
    Some(SHORTEST_PAUSE.saturating_mul(factor).min(LONGEST_PAUSE))
}

impl ConnectionManager {
    /// Queues for a server what a client's request has caused, and asks for a
    /// pause of the client if too much of it waits there.
    pub(super) fn forward(&mut self, now: Time, cause: Client, to: ConnId, message: &Bytes) {
        let Some(&slot) = self.by_id.get(&to) else {
            return;
        };
        if self.may_add(slot, cause, message.len()) {
            let parts = whole(message.len());
            self.queue_of(now, slot, Some(cause), &[], message, &parts);
        } else {
            self.drop_before_server(now, cause.id, message);
        }
        self.judge(now, slot, cause.id, false);
    }

    /// Counts what was queued for a server by who caused it, while much waits.
    pub(super) fn count_backlog(&mut self, slot: u32, cause: Option<Client>, bytes: usize) {
        let from = self.settings.slow_readers.close_at_bytes / COUNTED_FROM;
        if let Some(connection) = self.table.at_mut(slot)
            && connection.peer == Peer::Server
            && (connection.backlog.is_some() || connection.outbox.waiting() >= from)
        {
            let backlog = connection.backlog.get_or_insert_with(Box::default);
            backlog.queued(cause, bytes);
        }
    }

    /// Asks for a pause of a client if a server is congested, the client has
    /// more than a little waiting there, and its last pause has `ended`. Returns
    /// whether it asked.
    fn judge(&mut self, now: Time, slot: u32, sender: ConnId, ended: bool) -> bool {
        let limits = &self.settings.slow_readers;
        let Some(connection) = self.table.at_mut(slot) else {
            return false;
        };
        let (Some(backlog), Some(receiver)) = (&mut connection.backlog, connection.id) else {
            return false;
        };
        if connection.closing.is_some() {
            return false;
        }
        let share = backlog.of(sender);
        let Some(pause) = pause(connection.outbox.waiting(), share, limits) else {
            return false;
        };
        let paused_until = backlog.paused_until(sender);
        if !ended && paused_until.is_some_and(|until| now < until) {
            return false;
        }
        backlog.note_pause(sender, now + pause);
        self.counters.of_mut(Peer::Client).paused += 1;
        self.to_channels.push_back(ToChannels::Congested {
            sender,
            receiver,
            pause,
        });
        true
    }

    /// The pause of a client has ended: is it to be renewed?
    pub(super) fn answer_congestion(&mut self, now: Time, sender: ConnId, receiver: ConnId) {
        let slot = self.by_id.get(&receiver).copied();
        if slot.is_none_or(|slot| !self.judge(now, slot, sender, true)) {
            self.to_channels
                .push_back(ToChannels::Relieved { sender, receiver });
        }
    }

    /// A client of this side is not to be read for a while.
    pub(super) fn pause(&mut self, now: Time, id: ConnId, receiver: ConnId, pause: Duration) {
        let Some(&slot) = self.by_id.get(&id) else {
            return;
        };
        let Some(connection) = self.table.at_mut(slot) else {
            return;
        };
        if connection.closing.is_some() {
            return;
        }
        let key = connection.key;
        let until = now + pause.min(LONGEST_PAUSE);
        match &mut connection.pause {
            Some(paused) => {
                paused.receivers.insert(receiver);
                if !paused.asked && paused.until >= until {
                    return;
                }
                self.pauses_due.remove(&(paused.until, key));
                paused.until = until;
                paused.asked = false;
            }
            none => {
                *none = Some(Box::new(Pause {
                    receivers: [receiver].into(),
                    until,
                    asked: false,
                }));
                self.read_control.push_back(key);
            }
        }
        self.pauses_due.insert((until, key));
    }

    /// A server is no longer congested with what a client of this side sent.
    pub(super) fn relieve(&mut self, now: Time, id: ConnId, receiver: ConnId) {
        if let Some(&slot) = self.by_id.get(&id)
            && let Some(connection) = self.table.at_mut(slot)
            && let Some(paused) = &mut connection.pause
        {
            paused.receivers.remove(&receiver);
            if paused.receivers.is_empty() {
                let key = connection.key;
                self.end_pause(now, key);
            }
        }
    }

    /// Asks about those whose pause has ended, and resumes those of whom no
    /// answer came.
    pub(super) fn end_pauses(&mut self, now: Time) {
        while let Some(&(due, key)) = self.pauses_due.first()
            && due <= now
        {
            self.pauses_due.pop_first();
            let Some(connection) = self.table.get_mut(key) else {
                continue;
            };
            let (Some(sender), Some(paused)) = (connection.id, &mut connection.pause) else {
                continue;
            };
            if paused.asked {
                self.end_pause(now, key);
                continue;
            }
            paused.asked = true;
            paused.until = now + ANSWER_WITHIN;
            self.pauses_due.insert((paused.until, key));
            let asks = paused.receivers.iter();
            self.to_channels
                .extend(asks.map(|&receiver| ToChannels::AskCongestion { sender, receiver }));
        }
    }

    fn end_pause(&mut self, now: Time, key: ConnKey) {
        if let Some(connection) = self.table.get_mut(key)
            && let Some(paused) = connection.pause.take()
        {
            // Its silence until now was the gateway's doing.
            connection.last_received = connection.last_received.max(now);
            self.pauses_due.remove(&(paused.until, key));
            self.read_control.push_back(key);
        }
    }

    /// The next connection whose reading is to be paused or resumed: its
    /// messages wait for a server that cannot keep up, or do no longer. A pause
    /// lasts a fifth of a second at most unless the server's side says that it
    /// is to go on; the core keeps the time
    /// ([`next_deadline`](Self::next_deadline)). Whoever reads a paused
    /// connection all the same risks that the server is closed as a slow reader.
    pub fn poll_pause(&mut self) -> Option<(ConnKey, ReadControl)> {
        loop {
            let key = self.read_control.pop_front()?;
            let Some(connection) = self.table.get_mut(key) else {
                continue;
            };
            let control = match connection.pause {
                Some(_) => ReadControl::Pause,
                None => ReadControl::Resume,
            };
            if control != connection.read_control {
                connection.read_control = control;
                return Some((key, control));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pauses_grow_with_what_waits_and_have_an_end() {
        let limits = SlowReaders::default();
        let of = |waiting| pause(waiting, LITTLE_BYTES, &limits);
        assert_eq!(of((1 << 20) - 1), None);
        assert_eq!(of(1 << 20), Some(SHORTEST_PAUSE));
        assert_eq!(of(3 << 19), Some(2 * SHORTEST_PAUSE));
        assert_eq!(of(2 << 20), Some(4 * SHORTEST_PAUSE));
        assert_eq!(of(usize::MAX), Some(LONGEST_PAUSE));
        let none = SlowReaders {
            close_at_bytes: 0,
            ..limits
        };
        assert_eq!(pause(5, LITTLE_BYTES, &none), Some(LONGEST_PAUSE));
    }

    #[test]
    fn a_sender_with_little_waiting_is_exempt_until_the_server_is_about_to_be_closed() {
        let limits = SlowReaders::default();
        let mark = limits.server_close_at_bytes / 16 * NOBODY_EXEMPT_FROM;
        assert_eq!(pause(mark - 1, LITTLE_BYTES - 1, &limits), None);
        assert_eq!(pause(mark, 1, &limits), Some(LONGEST_PAUSE));
        assert_eq!(pause(mark, 0, &limits), None);
    }
}
