//! One message of a workload and the instants of its life: what every figure
//! of a lane is computed from.

use std::time::Duration;

use lagometer_stats::{in_millis, nanos};
use lagometer_units::Time;

/// One message the workload meant to send and what became of it.
///
/// All instants count from the start of measuring, which is [`Time::ZERO`].
/// An instant that never came, or that nobody could see, is `None`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MessageRecord {
    /// When the schedule wanted it sent. Every delay counts from here, so a
    /// sender that falls behind does not hide what the player feels.
    pub intended: Time,
    /// The instant at which the transport accepted it.
    pub accepted: Option<Time>,
    /// When the remote end's application received it.
    pub arrived: Option<Time>,
    /// When its echo reached the client's application. `None` once the run
    /// and its grace period are over: the message is lost.
    pub returned: Option<Time>,
    /// Whether the transport refused it at least once.
    pub refused: bool,
    /// How long it lay complete at the remote end and its echo at the client,
    /// kept back only because an earlier message was missing. `None` where
    /// the transport does not report.
    pub blocked: Option<Duration>,
}

impl MessageRecord {
    /// A message that is due at `intended` and of which nothing else is known
    /// yet.
    #[must_use]
    pub const fn due(intended: Time) -> Self {
        Self {
            intended,
            accepted: None,
            arrived: None,
            returned: None,
            refused: false,
            blocked: None,
        }
    }

    /// The round trip from the intended send time; `None` if lost.
    #[must_use]
    pub fn rtt(&self) -> Option<Duration> {
        self.returned.map(|returned| returned.since(self.intended))
    }

    /// The round trip from the moment the transport took the message: what a
    /// sender that waits for its transport believes it sees.
    #[must_use]
    pub fn rtt_raw(&self) -> Option<Duration> {
        Some(self.returned?.since(self.accepted?))
    }

    /// The one-way delay to the remote end, from the intended send time.
    #[must_use]
    pub fn up(&self) -> Option<Duration> {
        self.arrived.map(|arrived| arrived.since(self.intended))
    }

    /// The one-way delay of the echo.
    #[must_use]
    pub fn down(&self) -> Option<Duration> {
        Some(self.returned?.since(self.arrived?))
    }

    /// Whether no echo came.
    #[must_use]
    pub const fn is_lost(&self) -> bool {
        self.returned.is_none()
    }
}

/// A duration in milliseconds.
pub(crate) fn millis(duration: Duration) -> f64 {
    in_millis(nanos(duration))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn delays_count_from_the_intended_send() {
        let record = MessageRecord {
            accepted: Some(Time::from_millis(130)),
            arrived: Some(Time::from_millis(150)),
            returned: Some(Time::from_millis(175)),
            ..MessageRecord::due(Time::from_millis(100))
        };
        assert_eq!(record.rtt(), Some(Duration::from_millis(75)));
        assert_eq!(record.rtt_raw(), Some(Duration::from_millis(45)));
        assert_eq!(record.up(), Some(Duration::from_millis(50)));
        assert_eq!(record.down(), Some(Duration::from_millis(25)));
        assert!(!record.is_lost());
    }

    #[test]
    fn a_message_without_echo_is_lost_wherever_it_got_to() {
        let record = MessageRecord {
            arrived: Some(Time::from_millis(1)),
            ..MessageRecord::due(Time::ZERO)
        };
        assert!(record.is_lost());
        assert_eq!(record.rtt(), None);
        assert_eq!(record.down(), None);
    }
}
