//! When ENet next has something to do of its own accord.
//!
//! ENet keeps its timers to itself and expects to be called every few
//! milliseconds. To wake it only when it matters, we read along on the wire:
//! which reliable commands are out and since when decides when they will be sent
//! again. The answer may be early by a little, never late: then ENet is asked
//! again a millisecond on. (A forged acknowledgement can make it late by up to
//! a second, the longest it ever says.)
//!
//! Instants are milliseconds of ENet's clock.

use std::collections::{BTreeMap, BTreeSet};

use rusty_enet::consts::HOST_BANDWIDTH_THROTTLE_INTERVAL;

use super::wire::Command;

/// A reliable command: its channel and sequence number.
type Key = (u8, u16);

/// The connect request, and the answer to it: each side's first reliable
/// command, outside any channel.
const HANDSHAKE: Key = (0xff, 1);

/// ENet's timers, as seen from outside.
#[derive(Debug, Default)]
pub(super) struct Timers {
    unacknowledged: BTreeMap<Key, Resend>,
    /// The same by the time they are due, earliest first.
    due: BTreeSet<(u64, Key)>,
    acknowledged_at_ms: u64,
    bandwidth_checked_at_ms: u64,
    serviced_at_ms: u64,
}

/// When a command is sent again, and how long it was waited for.
#[derive(Clone, Copy, Debug)]
struct Resend {
    due_ms: u64,
    timeout_ms: u64,
}

impl Timers {
    /// ENet was called. It looks at its bandwidths once a second
    /// (`enet_host_service`).
    pub(super) fn serviced(&mut self, now_ms: u64) {
        self.serviced_at_ms = now_ms;
        let interval_ms = u64::from(HOST_BANDWIDTH_THROTTLE_INTERVAL);
        if now_ms.saturating_sub(self.bandwidth_checked_at_ms) >= interval_ms {
            self.bandwidth_checked_at_ms = now_ms;
        }
    }

    /// ENet sent a command. One that it had sent before has waited its
    /// timeout and gets twice as long; a new one gets `first_timeout_ms`.
    pub(super) fn sent(&mut self, command: Command, now_ms: u64, first_timeout_ms: u64) {
        let key = match command {
            Command::Reliable { channel, sequence } => (channel, sequence),
            Command::VerifyConnect => HANDSHAKE,
            _ => return,
        };
        let timeout_ms = match self.unacknowledged.get(&key) {
            Some(resend) => {
                self.due.remove(&(resend.due_ms, key));
                resend.timeout_ms.saturating_mul(2)
            }
            None => first_timeout_ms,
        };
        let due_ms = now_ms.saturating_add(timeout_ms);
        self.unacknowledged
            .insert(key, Resend { due_ms, timeout_ms });
        self.due.insert((due_ms, key));
    }

    /// ENet was handed a command of the peer's.
    pub(super) fn received(&mut self, command: Command, now_ms: u64) {
        let key = match command {
            Command::Acknowledge { channel, sequence } => {
                self.acknowledged_at_ms = now_ms;
                (channel, sequence)
            }
            Command::VerifyConnect => HANDSHAKE,
            _ => return,
        };
        if let Some(resend) = self.unacknowledged.remove(&key) {
            self.due.remove(&(resend.due_ms, key));
        }
    }

    /// When ENet must next be called. With `ping_interval_ms`, a connection
    /// on which nothing is out and nothing was acknowledged for so long is
    /// pinged.
    pub(super) fn next_ms(&self, ping_interval_ms: Option<u64>) -> u64 {
        let bandwidth_ms =
            self.bandwidth_checked_at_ms + u64::from(HOST_BANDWIDTH_THROTTLE_INTERVAL);
        let resend_ms = self.due.first().map(|&(due_ms, _)| due_ms);
        let ping_ms = ping_interval_ms
            .filter(|_| self.due.is_empty())
            .map(|interval_ms| self.acknowledged_at_ms + interval_ms);
        [resend_ms, ping_ms]
            .into_iter()
            .flatten()
            .fold(bandwidth_ms, u64::min)
            .max(self.serviced_at_ms + 1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const COMMAND: Command = Command::Reliable {
        channel: 0,
        sequence: 3,
    };

    const ACKNOWLEDGEMENT: Command = Command::Acknowledge {
        channel: 0,
        sequence: 3,
    };

    fn timers_at(now_ms: u64) -> Timers {
        let mut timers = Timers::default();
        timers.serviced(now_ms);
        timers
    }

    #[test]
    fn a_command_is_due_after_its_timeout_and_then_twice_as_late() {
        let mut timers = timers_at(5000);
        timers.sent(COMMAND, 5000, 150);
        assert_eq!(timers.next_ms(Some(500)), 5150);
        timers.serviced(5150);
        timers.sent(COMMAND, 5150, 90);
        assert_eq!(timers.next_ms(Some(500)), 5450);
    }

    #[test]
    fn what_is_overdue_is_asked_for_every_millisecond() {
        let mut timers = timers_at(5000);
        timers.sent(COMMAND, 5000, 150);
        timers.serviced(5160);
        assert_eq!(timers.next_ms(None), 5161);
    }

    #[test]
    fn an_acknowledged_command_is_not_waited_for() {
        let mut timers = timers_at(5000);
        timers.sent(COMMAND, 5000, 150);
        timers.received(ACKNOWLEDGEMENT, 5100);
        assert_eq!(timers.next_ms(Some(500)), 5600, "the next ping");
        assert_eq!(timers.next_ms(None), 6000, "the next look at bandwidths");
    }
}
