//! The log: what the core has to say, as structured events.
//!
//! Nothing is put into words unless somebody listens. Peers can cause nearly
//! every line, and as often as they like: of each kind so many are written in a
//! second, and the log says how many were not.

use std::io;

use lagometer_limits::LineRate;
use lagometer_units::Time;
use tracing::{debug, info, warn};

use crate::core::{Event, Severity, channel_type_name};

/// Lines of one kind that a thread writes in a second.
pub(super) const LINES_PER_S: u32 = 20;

/// Kinds of lines.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Opened,
    Admitted,
    LoginRefused,
    Closed,
    ClosedBeforeLogin,
    AddressBanned,
    PlayerBanned,
    ChannelMade,
    ChannelRemoved,
    OwnerLost,
    Dropped,
    TooLong,
    Refused,
    OverBudget,
    SlowReader,
    HandedOver,
    CannotAccept,
}

impl Kind {
    const ALL: [Self; 17] = [
        Self::Opened,
        Self::Admitted,
        Self::LoginRefused,
        Self::Closed,
        Self::ClosedBeforeLogin,
        Self::AddressBanned,
        Self::PlayerBanned,
        Self::ChannelMade,
        Self::ChannelRemoved,
        Self::OwnerLost,
        Self::Dropped,
        Self::TooLong,
        Self::Refused,
        Self::OverBudget,
        Self::SlowReader,
        Self::HandedOver,
        Self::CannotAccept,
    ];

    fn of(event: &Event) -> Self {
        match event {
            Event::Opened { .. } => Self::Opened,
            Event::Admitted { .. } => Self::Admitted,
            Event::LoginRefused { .. } => Self::LoginRefused,
            Event::Closed { id: Some(_), .. } => Self::Closed,
            Event::Closed { id: None, .. } => Self::ClosedBeforeLogin,
            Event::AddressBanned(_) => Self::AddressBanned,
            Event::PlayerBanned(_) => Self::PlayerBanned,
            Event::ChannelMade { .. } => Self::ChannelMade,
            Event::ChannelRemoved(_) => Self::ChannelRemoved,
            Event::OwnerLost { .. } => Self::OwnerLost,
            Event::Dropped { .. } => Self::Dropped,
            Event::TooLong { .. } => Self::TooLong,
            Event::Refused { .. } => Self::Refused,
            Event::OverBudget { .. } => Self::OverBudget,
            Event::SlowReader(_) => Self::SlowReader,
            Event::HandedOver { .. } => Self::HandedOver,
        }
    }

    /// Whether it is of interest only when looking for a mistake.
    fn is_for_debugging(self) -> bool {
        matches!(
            self,
            Self::Opened
                | Self::ClosedBeforeLogin
                | Self::Dropped
                | Self::Refused
                | Self::HandedOver
        )
    }
}

/// The log's lines of one thread.
#[derive(Debug)]
pub(super) struct Journal {
    rates: [LineRate; Kind::ALL.len()],
    /// Some kind has lines that were left out and not reported.
    is_behind: bool,
}

impl Default for Journal {
    fn default() -> Self {
        Self {
            rates: [LineRate::new(LINES_PER_S); Kind::ALL.len()],
            is_behind: false,
        }
    }
}

impl Journal {
    /// Writes one event of the core, unless there were too many of its kind.
    pub(super) fn write(&mut self, now: Time, event: &Event) {
        if self.is_due(now, Kind::of(event)) {
            write(event);
        }
    }

    /// The system has no file or memory for another connection.
    pub(super) fn cannot_accept(&mut self, now: Time, listener: &str, error: &io::Error) {
        if self.is_due(now, Kind::CannotAccept) {
            warn!(listener, %error, "cannot accept for a while");
        }
    }

    /// Reports lines that were left out in seconds that are over.
    pub(super) fn settle(&mut self, now: Time) {
        if !self.is_behind {
            return;
        }
        for (kind, left_out) in self.take_left_out(now) {
            report_left_out(kind, left_out);
        }
    }

    fn take_left_out(&mut self, now: Time) -> Vec<(Kind, u64)> {
        let since = now.since(Time::ZERO);
        let kinds = Kind::ALL.into_iter().zip(&mut self.rates);
        let reported = kinds.filter_map(|(kind, rate)| Some((kind, rate.take_left_out(since)?)));
        let reported = reported.collect();
        self.is_behind = self.rates.iter().any(LineRate::has_left_out);
        reported
    }

    /// Whether a line of the kind is to be written now.
    fn is_due(&mut self, now: Time, kind: Kind) -> bool {
        match self.rates[kind as usize].due(now.since(Time::ZERO)) {
            None => self.is_behind = true,
            Some(0) => return true,
            Some(left_out) => {
                report_left_out(kind, left_out);
                return true;
            }
        }
        false
    }
}

fn report_left_out(kind: Kind, left_out: u64) {
    if kind.is_for_debugging() {
        debug!(?kind, left_out, "log lines left out");
    } else {
        warn!(?kind, left_out, "log lines left out");
    }
}

/// Writes one event of the core.
fn write(event: &Event) {
    match event {
        Event::Admitted {
            id,
            player,
            recovers,
        } => info!(connection = id.0, player, recovers, "let in"),
        Event::Closed {
            id: Some(id),
            peer,
            why,
        } => info!(connection = id.0, %peer, %why, "closed"),
        Event::ChannelMade {
            channel,
            channel_type,
        } => info!(
            channel = channel.0,
            channel_type = %channel_type_name(*channel_type),
            "channel made"
        ),
        Event::OwnerLost { channel, owner } => {
            warn!(channel = channel.0, owner = owner.0, "owner lost");
        }
        Event::SlowReader(id) => warn!(connection = id.0, "slow reader"),
        Event::OverBudget {
            id,
            peer,
            budget,
            suppressed,
        } => warn!(
            connection = id.map(|id| id.0),
            %peer,
            %budget,
            suppressed,
            "over budget"
        ),
        Event::Dropped {
            from,
            channel,
            msg_type,
            why,
        } => debug!(
            connection = from.0,
            channel = channel.0,
            msg_type,
            why,
            "message dropped"
        ),
        other => match other.severity() {
            Severity::Debug => debug!("{other}"),
            Severity::Info => info!("{other}"),
            Severity::Warning => warn!("{other}"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::core::{ChannelId, ConnId};

    #[test]
    fn a_flood_of_one_kind_is_cut_and_counted_and_hides_no_other() {
        let mut journal = Journal::default();
        let mut written = 0;
        for n in 0..10_000 {
            let at = Time::from_millis(u64::from(n) / 100);
            written += u32::from(journal.is_due(at, Kind::of(&Event::SlowReader(ConnId(n)))));
        }
        assert_eq!(written, LINES_PER_S);
        let removed = Event::ChannelRemoved(ChannelId(1));
        assert!(journal.is_due(Time::from_millis(100), Kind::of(&removed)));
        assert_eq!(journal.take_left_out(Time::from_millis(900)), []);
        assert!(journal.is_behind);
        let reported = journal.take_left_out(Time::from_millis(1_100));
        let left_out = u64::from(10_000 - LINES_PER_S);
        assert_eq!(reported, [(Kind::SlowReader, left_out)]);
        assert!(!journal.is_behind);
    }

    #[test]
    fn every_kind_has_a_rate_of_its_own() {
        for (place, kind) in Kind::ALL.into_iter().enumerate() {
            assert_eq!(kind as usize, place);
        }
    }
}
