//! When a thread looks after its side: whenever something happens, or at a
//! game's tick alone.

use std::time::Duration;

use lagometer_socket::SocketConnection;
use lagometer_units::Time;

/// The longest a thread sleeps, and so the longest until it reads what its testbed
/// signals.
pub const LONGEST_WAIT: Duration = Duration::from_millis(100);

/// The pace of one thread.
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    tick: Option<Duration>,
    phase: Duration,
}

impl Pace {
    /// Pumped whenever something happens, or, with a tick, only at times that
    /// lie `phase` after a multiple of it.
    pub(super) fn new(tick: Option<Duration>, phase: Duration) -> Self {
        Self {
            tick: tick.filter(|tick| !tick.is_zero()),
            phase,
        }
    }

    /// Sleeps until the side has something to do, or `application`'s time has
    /// come, or the next tick; or for [`LONGEST_WAIT`].
    pub(super) fn wait(
        &self,
        now: Time,
        side: &mut dyn SocketConnection,
        application: Option<Time>,
    ) {
        if let Some(rest) = self.until_tick(now) {
            // A tick heeds nothing that comes between.
            std::thread::sleep(rest);
            return;
        }
        let next = [side.next_deadline(), application]
            .into_iter()
            .flatten()
            .min();
        let rest = next.map_or(LONGEST_WAIT, |next| next.since(now));
        side.wait(rest.min(LONGEST_WAIT));
    }

    fn until_tick(&self, now: Time) -> Option<Duration> {
        let tick = self.tick?.as_nanos();
        let into = u128::from(now.as_nanos()) + tick - self.phase.as_nanos() % tick;
        Some(Duration::from_nanos((tick - into % tick) as u64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_keep_their_phase() {
        let pace = Pace::new(Some(Duration::from_millis(16)), Duration::from_millis(8));
        for (now, rest) in [(0, 8), (7, 1), (8, 16), (9, 15), (24, 16), (41, 15)] {
            assert_eq!(
                pace.until_tick(Time::from_millis(now)),
                Some(Duration::from_millis(rest)),
                "at {now} ms"
            );
        }
        let none = Pace::new(Some(Duration::ZERO), Duration::ZERO);
        assert_eq!(none.until_tick(Time::from_millis(5)), None);
    }
}
