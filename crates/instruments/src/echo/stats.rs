//! What an echo run has seen so far. Pure: the time is passed in.

use std::time::Duration;

use lagometer_results::EchoCounts;
use lagometer_stats::Distribution;
use lagometer_units::Time;

/// Steps of the series of a run.
const STEPS: u32 = 100;

/// The shortest step: a rate over less says nothing.
const LEAST_STEP: Duration = Duration::from_millis(50);

/// Echoes counted and timed.
#[derive(Clone, Debug)]
pub struct EchoStats {
    /// Messages and what became of them.
    pub counts: EchoCounts,
    /// Round trips of those echoed.
    pub round_trips: Distribution,
    step: Duration,
    step_ends: Time,
    in_step: u64,
    series: Vec<f64>,
    last_echo: Time,
}

impl EchoStats {
    /// For a run of about `span` that begins at [`Time::ZERO`].
    #[must_use]
    pub fn new(span: Duration) -> Self {
        let step = (span / STEPS).max(LEAST_STEP);
        Self {
            counts: EchoCounts::default(),
            round_trips: Distribution::new(),
            step,
            step_ends: Time::ZERO + step,
            in_step: 0,
            series: Vec::new(),
            last_echo: Time::ZERO,
        }
    }

    /// A verified echo came at `now` after `round_trip`.
    #[inline]
    pub fn echoed(&mut self, now: Time, round_trip: Duration) {
        self.counts.echoed += 1;
        self.counts.sent += 1;
        self.round_trips.record(round_trip);
        self.last_echo = now;
        if now >= self.step_ends {
            self.close_steps(now);
        }
        self.in_step += 1;
    }

    /// A message was given up.
    pub fn lost(&mut self) {
        self.counts.lost += 1;
        self.counts.sent += 1;
    }

    /// The instant of the last echo.
    #[must_use]
    pub const fn last_echo(&self) -> Time {
        self.last_echo
    }

    /// Echoes each second, for each whole step up to `end`, and its width.
    #[must_use]
    pub fn series(mut self, end: Time) -> (Vec<f64>, Duration) {
        self.close_steps(end);
        (self.series, self.step)
    }

    fn close_steps(&mut self, now: Time) {
        while now >= self.step_ends {
            let rate = self.in_step as f64 / self.step.as_secs_f64();
            self.series.push(rate);
            self.in_step = 0;
            self.step_ends += self.step;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_series_holds_every_whole_step_even_silent_ones() {
        let mut stats = EchoStats::new(Duration::from_secs(1));
        for millis in [10, 20, 60, 210] {
            stats.echoed(Time::from_millis(millis), Duration::from_micros(5));
        }
        stats.lost();
        assert_eq!(stats.counts.sent, 5);
        assert_eq!(stats.last_echo(), Time::from_millis(210));
        let (series, step) = stats.series(Time::from_millis(260));
        assert_eq!(step, LEAST_STEP);
        assert_eq!(series, [40.0, 20.0, 0.0, 0.0, 20.0]);
    }
}
