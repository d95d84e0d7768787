//! What the channel manager counts, and its events for the log.

use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::budget::{Budget, BudgetMonitor};
use crate::core::counters::{ChannelCounters, TypeCounters};
use crate::core::events::{Event, Events};
use crate::core::ids::{ConnId, Peer};

/// Counters and events.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Telemetry {
    /// Those that are counted where things happen.
    pub(super) counters: ChannelCounters,
    budgets: BudgetMonitor,
    events: Events,
}

impl Telemetry {
    /// The counters of a type of channel.
    pub(super) fn of_type(&mut self, channel_type: i32) -> &mut TypeCounters {
        self.counters.of_mut(channel_type)
    }

    /// Keeps an event for the log.
    pub(super) fn event(&mut self, event: Event) {
        self.events.push(event);
    }

    /// Counts, and logs once in a while, that a peer goes over a budget.
    pub(super) fn over_budget(&mut self, now: Time, peer: Peer, id: ConnId, budget: Budget) {
        if let Some(event) = self.budgets.record(now, peer, Some(id), budget) {
            self.events.push(event);
        }
    }

    /// All that was counted so far.
    pub(super) fn counters(&self) -> ChannelCounters {
        ChannelCounters {
            events_lost: self.events.lost(),
            over_budget: self.budgets.counters(),
            ..self.counters
        }
    }

    /// The next event for the log.
    pub(super) fn poll_event(&mut self) -> Option<Event> {
        self.events.pop()
    }
}
