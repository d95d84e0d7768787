//! Budgets: what one peer may cost the gateway, and what is counted and logged
//! when it asks for more.
//!
//! A budget limits bytes, messages, work or kept state of *one* peer, so that
//! whoever asks for too much is refused, slowed or closed and nobody else
//! notices. Who enforces a budget calls [`BudgetMonitor::record`]; the counts
//! leave the core with its counters
//! ([`ConnectionCounters::over_budget`](super::ConnectionCounters::over_budget),
//! [`ChannelCounters::over_budget`](super::ChannelCounters::over_budget)), the
//! log lines as [`Event::OverBudget`], at a limited rate: a flood of refusals
//! is not to become a flood of lines.

use std::time::Duration;

use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use super::events::Event;
use super::ids::{ConnId, Peer};

/// At most one log line of each budget in this time; what comes between is
/// counted and reported with the next line.
const LINE_EVERY: Duration = Duration::from_secs(1);

/// Something of which every peer has a limited amount.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Budget {
    /// Bytes received from a connection before its login.
    LoginBytes,
    /// Messages received from a connection before its login.
    LoginMessages,
    /// Logins that one connection attempts.
    LoginAttempts,
    /// Time spent on a connection before its login.
    LoginWork,
    /// Memory held by all connections that have not logged in, together.
    LoginMemory,
    /// Messages a second.
    Messages,
    /// Bytes a second, counted after decompression.
    Bytes,
    /// Units of work a second that a peer's requests cost the channels.
    Work,
    /// Channels, other than of entities, that a peer has made.
    Channels,
    /// Channels of entities that a peer has made.
    EntityChannels,
    /// Bytes of channel data that a peer's requests have added.
    Data,
    /// Channels that a peer has subscribed to.
    Subscriptions,
    /// Field masks of one subscription: their number and their bytes.
    Masks,
    /// Levels of one field mask.
    MaskDepth,
    /// How far ahead a subscription's interval and delay may lie.
    FanOutTimes,
    /// Metadata filters of one LIST: their number and their bytes.
    Filters,
    /// Bytes of the answer to one LIST.
    ListAnswer,
    /// Places in one spatial query.
    Places,
    /// Entities in one group.
    GroupSize,
    /// Bytes of a channel's metadata.
    Metadata,
    /// Bytes of the name a player logs in with.
    PlayerName,
    /// Bytes of a login token.
    LoginToken,
    /// Bytes kept for the recording of one client.
    Recording,
    /// Bytes that wait for a game server because of a client, where very much
    /// waits for it.
    ServerBacklog,
}

/// How many budgets there are.
const BUDGETS: usize = Budget::ALL.len();

impl Budget {
    /// All of them, in the order of their [`index`](Self::index).
    pub const ALL: [Self; 24] = [
        Self::LoginBytes,
        Self::LoginMessages,
        Self::LoginAttempts,
        Self::LoginWork,
        Self::LoginMemory,
        Self::Messages,
        Self::Bytes,
        Self::Work,
        Self::Channels,
        Self::EntityChannels,
        Self::Data,
        Self::Subscriptions,
        Self::Masks,
        Self::MaskDepth,
        Self::FanOutTimes,
        Self::Filters,
        Self::ListAnswer,
        Self::Places,
        Self::GroupSize,
        Self::Metadata,
        Self::PlayerName,
        Self::LoginToken,
        Self::Recording,
        Self::ServerBacklog,
    ];

    /// A place in an array of all.
    #[must_use]
    pub fn index(self) -> usize {
        self as usize
    }

    /// The label that metrics and log lines bear.
    #[must_use]
    pub fn label(self) -> &'static str {
        match self {
            Self::LoginBytes => "login_bytes",
            Self::LoginMessages => "login_messages",
            Self::LoginAttempts => "login_attempts",
            Self::LoginWork => "login_work",
            Self::LoginMemory => "login_memory",
            Self::Messages => "messages",
            Self::Bytes => "bytes",
            Self::Work => "work",
            Self::Channels => "channels",
            Self::EntityChannels => "entity_channels",
            Self::Data => "data",
            Self::Subscriptions => "subscriptions",
            Self::Masks => "masks",
            Self::MaskDepth => "mask_depth",
            Self::FanOutTimes => "fan_out_times",
            Self::Filters => "filters",
            Self::ListAnswer => "list_answer",
            Self::Places => "places",
            Self::GroupSize => "group_size",
            Self::Metadata => "metadata",
            Self::PlayerName => "player_name",
            Self::LoginToken => "login_token",
            Self::Recording => "recording",
            Self::ServerBacklog => "server_backlog",
        }
    }
}

impl std::fmt::Display for Budget {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.label())
    }
}

/// How often peers asked for more than a budget, by kind of peer and budget.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OverBudgetCounters {
    counts: [[u64; BUDGETS]; 2],
}

impl OverBudgetCounters {
    /// The count for one kind of peer and one budget.
    #[must_use]
    pub fn of(&self, peer: Peer, budget: Budget) -> u64 {
        self.counts[peer.index()][budget.index()]
    }

    /// Adds what another part of the gateway has counted.
    pub fn add(&mut self, other: &Self) {
        for (sum, other) in self.counts.iter_mut().zip(&other.counts) {
            for (sum, other) in sum.iter_mut().zip(other) {
                *sum += other;
            }
        }
    }
}

/// Counts what goes over budget, and decides which of it is logged.
#[derive(Debug, Default, Serialize, Deserialize)]
pub struct BudgetMonitor {
    counters: OverBudgetCounters,
    lines: [LogLine; BUDGETS],
}

/// Log lines of one kind, at a limited rate.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct LogLine {
    last: Option<Time>,
    suppressed: u64,
}

impl LogLine {
    /// Whether a line is to be written, and if so how many were not since the
    /// last one.
    pub(super) fn due(&mut self, now: Time) -> Option<u64> {
        if self.last.is_some_and(|last| now.since(last) < LINE_EVERY) {
            self.suppressed += 1;
            return None;
        }
        self.last = Some(now);
        Some(std::mem::take(&mut self.suppressed))
    }
}

impl BudgetMonitor {
    /// Counts that a peer asked for more than a budget. Returns the line for
    /// the log, unless this budget had one less than a second ago. `id` is
    /// absent before login.
    pub fn record(
        &mut self,
        now: Time,
        peer: Peer,
        id: Option<ConnId>,
        budget: Budget,
    ) -> Option<Event> {
        self.counters.counts[peer.index()][budget.index()] += 1;
        let suppressed = self.lines[budget.index()].due(now)?;
        Some(Event::OverBudget {
            id,
            peer,
            budget,
            suppressed,
        })
    }

    /// What was counted so far.
    #[must_use]
    pub fn counters(&self) -> OverBudgetCounters {
        self.counters
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_budget_has_its_place_and_a_label_of_its_own() {
        for (place, budget) in Budget::ALL.into_iter().enumerate() {
            assert_eq!(budget.index(), place, "{budget:?}");
        }
        let mut labels = Budget::ALL.map(Budget::label);
        labels.sort_unstable();
        assert!(labels.windows(2).all(|pair| pair[0] != pair[1]));
    }

    #[test]
    fn a_flood_over_a_budget_is_logged_once_a_second_with_the_number_suppressed() {
        let mut monitor = BudgetMonitor::default();
        let mut lines = Vec::new();
        for ms in 0..2_500 {
            let at = Time::from_millis(ms);
            lines.extend(monitor.record(at, Peer::Client, Some(ConnId(7)), Budget::Channels));
        }
        let suppressed: Vec<u64> = lines
            .iter()
            .map(|line| match line {
                Event::OverBudget { suppressed, .. } => *suppressed,
                other => panic!("{other}"),
            })
            .collect();
        assert_eq!(suppressed, [0, 999, 999]);
        assert_eq!(
            lines[1].to_string(),
            "client connection 7 is over its budget of channels (999 more in between)"
        );
        // Another budget has lines of its own.
        let other = monitor.record(Time::from_millis(2_499), Peer::Server, None, Budget::Masks);
        assert_eq!(
            other.map(|line| line.to_string()).as_deref(),
            Some("server connection before login is over its budget of masks")
        );
        let counters = monitor.counters();
        assert_eq!(counters.of(Peer::Client, Budget::Channels), 2_500);
        assert_eq!(counters.of(Peer::Server, Budget::Channels), 0);
        assert_eq!(counters.of(Peer::Server, Budget::Masks), 1);
    }

    #[test]
    fn counters_of_several_threads_add_up() {
        let mut monitor = BudgetMonitor::default();
        let _ = monitor.record(Time::ZERO, Peer::Client, None, Budget::LoginBytes);
        let mut sum = monitor.counters();
        sum.add(&monitor.counters());
        assert_eq!(sum.of(Peer::Client, Budget::LoginBytes), 2);
        assert_eq!(sum.of(Peer::Client, Budget::LoginMessages), 0);
    }
}
