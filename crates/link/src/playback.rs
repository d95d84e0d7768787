//! Playing a recording: where a traveller who only moves forward stands among
//! its steps, and among a Mahimahi file's opportunities.

use std::sync::Arc;

use crate::Direction;
use crate::trace::mahimahi::OPPORTUNITY_BYTES;
use crate::trace::{Opportunities, Recording, Step};

const NANOS_PER_MICRO: u64 = 1_000;

/// A forward cursor over one direction of a recording, loop after loop.
#[derive(Clone, Debug)]
pub(crate) struct StepCursor {
    recording: Arc<Recording>,
    direction: Direction,
    /// The start of the loop the cursor is in, in nanoseconds of impairment time.
    loop_start: u64,
    index: usize,
    /// Bits per second times nanoseconds that a whole loop carries; `None` where
    /// some step has no limit.
    loop_work: Option<u128>,
}

/// Whole loops of a recording that can be passed at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Loops {
    /// How long they last together, nanoseconds.
    pub(crate) span: u64,
    /// What they carry together, bits per second times nanoseconds.
    pub(crate) work: u64,
}

impl StepCursor {
    pub(crate) fn new(recording: Arc<Recording>, direction: Direction) -> Self {
        let loop_work = loop_work(&recording, direction);
        Self {
            recording,
            direction,
            loop_start: 0,
            index: 0,
            loop_work,
        }
    }

    /// As many whole loops from `instant` on as carry less than `work` together
    /// and last no longer than `room`. None where `instant` is not the beginning
    /// of one.
    ///
    /// A loop may be as short as a microsecond and carry a millionth of a bit, so
    /// that one packet takes thousands of millions of them.
    pub(crate) fn loops_within(&self, instant: u64, work: u64, room: u64) -> Option<Loops> {
        let lasts = self.recording.lasts_us() * NANOS_PER_MICRO;
        let loop_work = self.loop_work.filter(|&work| work > 0)?;
        if !instant.is_multiple_of(lasts) {
            return None;
        }
        // Less than all of it: the end of a packet is found step by step.
        let by_work = u128::from(work.checked_sub(1)?) / loop_work;
        let loops = by_work.min(u128::from(room / lasts)) as u64;
        (loops > 0).then(|| Loops {
            span: loops * lasts,
            work: (u128::from(loops) * loop_work) as u64,
        })
    }

    /// The step that holds at `instant`, and the instant at which the next one
    /// begins. Instants must not decrease from call to call.
    pub(crate) fn at(&mut self, instant: u64) -> (Step, u64) {
        let lasts = self.recording.lasts_us() * NANOS_PER_MICRO;
        let within = instant.saturating_sub(self.loop_start);
        if within >= lasts {
            self.loop_start += within / lasts * lasts;
            self.index = 0;
        }
        let within = instant.saturating_sub(self.loop_start);
        let steps = self.recording.steps(self.direction);
        let begins = |index: usize| steps.get(index).map(|step| step.from_us * NANOS_PER_MICRO);
        while begins(self.index + 1).is_some_and(|next| next <= within) {
            self.index += 1;
        }
        let until = begins(self.index + 1).unwrap_or(lasts);
        (steps[self.index], self.loop_start.saturating_add(until))
    }
}

/// What one loop carries in a direction; `None` where some step has no limit.
fn loop_work(recording: &Recording, direction: Direction) -> Option<u128> {
    let steps = recording.steps(direction);
    let ends = steps.iter().skip(1).map(|step| step.from_us);
    let mut work = 0;
    for (step, end) in steps.iter().zip(ends.chain([recording.lasts_us()])) {
        let span = u128::from((end - step.from_us) * NANOS_PER_MICRO);
        work += u128::from(step.rate_bits_per_second?) * span;
    }
    Some(work)
}

/// A forward cursor over a Mahimahi file's opportunities, loop after loop.
#[derive(Clone, Debug)]
pub(crate) struct OpportunityCursor {
    opportunities: Arc<Opportunities>,
    /// The current opportunity's number, counted through all loops.
    number: u64,
    /// What the current opportunity can still deliver.
    left_bytes: u64,
}

impl OpportunityCursor {
    pub(crate) const fn new(opportunities: Arc<Opportunities>) -> Self {
        Self {
            opportunities,
            number: 0,
            left_bytes: OPPORTUNITY_BYTES,
        }
    }

    /// The instant of the first opportunity at or after `instant` with room
    /// left; those before it are lost. Instants must not decrease from call to
    /// call.
    pub(crate) fn begin(&mut self, instant: u64) -> u64 {
        if self.left_bytes == 0 {
            self.number += 1;
            self.left_bytes = OPPORTUNITY_BYTES;
        }
        if self.instant_of(self.number) < instant {
            self.number = self.first_at_or_after(instant);
            self.left_bytes = OPPORTUNITY_BYTES;
        }
        self.instant_of(self.number)
    }

    /// Delivers `bytes` from `instant` on and returns when the last of them
    /// left.
    pub(crate) fn carry(&mut self, instant: u64, bytes: u64) -> u64 {
        self.begin(instant);
        if bytes <= self.left_bytes {
            self.left_bytes -= bytes;
        } else {
            let beyond = bytes - self.left_bytes;
            let more = beyond.div_ceil(OPPORTUNITY_BYTES);
            self.number += more;
            self.left_bytes = more * OPPORTUNITY_BYTES - beyond;
        }
        self.instant_of(self.number)
    }

    fn instant_of(&self, number: u64) -> u64 {
        let instants = self.opportunities.instants();
        let loops = number / instants.len() as u64;
        let index = (number % instants.len() as u64) as usize;
        loops
            .saturating_mul(self.opportunities.lasts())
            .saturating_add(instants[index])
    }

    fn first_at_or_after(&self, instant: u64) -> u64 {
        let Some(before) = instant.checked_sub(1) else {
            return 0;
        };
        let instants = self.opportunities.instants();
        let lasts = self.opportunities.lasts();
        // The last opportunity of a loop is at `lasts`, so there is one after
        // every instant below it.
        let index = instants.partition_point(|&at| at <= before % lasts);
        before / lasts * instants.len() as u64 + index as u64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_hold_until_the_next_and_start_again() {
        let text = "lagometer-trace/1\nlasts 100\nup 0 1 7 0\nup 40 2 8 0\ndown 0 - 0 0\n";
        let recording = Arc::new(Recording::parse("t", text).unwrap());
        let mut cursor = StepCursor::new(recording, Direction::Up);
        for (instant, delay, until) in [
            (0, 7, 40_000),
            (39_999, 7, 40_000),
            (40_000, 8, 100_000),
            (100_000, 7, 140_000),
            (1_000_041_000, 8, 1_000_100_000),
        ] {
            let (step, ends) = cursor.at(instant);
            assert_eq!((step.delay_us, ends), (delay, until), "at {instant}");
        }
    }

    #[test]
    fn whole_loops_are_passed_at_once_but_for_the_one_in_which_the_work_ends() {
        let text = "lagometer-trace/1\nlasts 1\nup 0 1 0 0\ndown 0 - 0 0\n";
        let recording = Arc::new(Recording::parse("t", text).unwrap());
        // A loop is a thousand nanoseconds at one bit a second.
        let up = StepCursor::new(Arc::clone(&recording), Direction::Up);
        let loops = |span, work| Some(Loops { span, work });
        assert_eq!(up.loops_within(0, 10_001, u64::MAX), loops(10_000, 10_000));
        assert_eq!(up.loops_within(0, 10_000, u64::MAX), loops(9000, 9000));
        assert_eq!(up.loops_within(5000, 10_000, 2500), loops(2000, 2000));
        assert_eq!(up.loops_within(5001, 10_000, u64::MAX), None);
        assert_eq!(up.loops_within(0, 1000, u64::MAX), None);
        assert_eq!(up.loops_within(0, 0, u64::MAX), None);
        let down = StepCursor::new(recording, Direction::Down);
        assert_eq!(down.loops_within(0, 10_000, u64::MAX), None);
    }

    #[test]
    fn opportunities_are_lost_or_shared_as_in_mahimahi() {
        let trace = Arc::new(Opportunities::parse("t", "1\n1\n3\n").unwrap());
        let mut cursor = OpportunityCursor::new(trace);
        let ms = |instant: u64| instant * 1_000_000;
        // Two at 1 ms: 2000 bytes use one and a part of the other, whose rest
        // serves the next packet at once.
        assert_eq!(cursor.carry(0, 2000), ms(1));
        assert_eq!(cursor.carry(ms(1), 1000), ms(1));
        // Nothing waits at 3 and 4 ms, which are lost; then the loop has one
        // more at 4 ms, too early, and one at 6 ms.
        assert_eq!(cursor.carry(ms(5), 1500), ms(6));
        assert_eq!(cursor.carry(ms(6), 1501), ms(7));
        assert_eq!(cursor.begin(ms(6)), ms(7));
    }

    #[test]
    fn a_busy_hour_passes_the_mean_rate() {
        let trace = Arc::new(Opportunities::parse("t", "3\n7\n7\n8\n20\n").unwrap());
        let mean = trace.mean_bits_per_second();
        let mut cursor = OpportunityCursor::new(trace);
        let mut latest = 0;
        for _ in 0..10_000 {
            latest = cursor.carry(latest, 700);
        }
        let rate = 10_000.0 * 700.0 * 8.0 / (latest as f64 / 1e9);
        assert!((rate / mean as f64 - 1.0).abs() < 0.001, "{rate} {mean}");
    }
}
