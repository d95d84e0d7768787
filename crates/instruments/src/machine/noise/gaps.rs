//! What a thread that never sleeps loses to others: interrupts, other
//! processes, and on a virtual machine its host.

use std::time::{Duration, Instant};

use super::{micros, tenths};

/// A step of the clock longer than this means that the thread did not run.
const GAP: Duration = Duration::from_micros(2);

/// What was lost.
pub(super) struct Gaps {
    /// Share of the time in which the thread did not run, per cent.
    pub(super) lost_pct: f64,
    /// The longest time in which it did not run.
    pub(super) longest_us: f64,
}

/// Spins for a while and looks at the clock.
pub(super) fn while_spinning(span: Duration) -> Gaps {
    let began = Instant::now();
    let mut before = began;
    let (mut lost, mut longest) = (Duration::ZERO, Duration::ZERO);
    while before.duration_since(began) < span {
        let now = Instant::now();
        let step = now.duration_since(before);
        if step > GAP {
            lost += step;
            longest = longest.max(step);
        }
        before = now;
    }
    let share = lost.as_secs_f64() / before.duration_since(began).as_secs_f64();
    Gaps {
        lost_pct: (share * 1e4).round() / 1e2,
        longest_us: tenths(micros(longest)),
    }
}
