//! `lagometer-trace/1`: rate, delay and loss of both directions over time,
//! constant from one line to the next, starting again after the end.
//!
//! ```text
//! lagometer-trace/1
//! # from a café's Wi-Fi to a server in the same city
//! lasts 60000000
//! up 0 - 24000 0
//! up 1500000 8000000 31000 12500
//! down 0 40000000 23500 0
//! ```
//!
//! The first line names the format. `lasts` is the length of the loop in
//! microseconds. Every other line is a step: the direction, the microsecond
//! from which it holds, the rate in bits per second (`-`: no limit; `0`:
//! nothing moves and everything waits), the one-way delay in microseconds, and
//! the loss in millionths. The steps of each direction begin at 0 and strictly
//! ascend; the two directions may be interleaved. Blank lines and lines that
//! begin with `#` are passed over. All numbers are whole, so that what is
//! written is what is read back.

use std::fmt;

use lagometer_units::BadInput;
use thiserror::Error;

use super::bad_line;
use crate::Direction;

const HEADER: &str = "lagometer-trace/1";
/// A hundred days, in microseconds. It keeps sums in range.
const LONGEST_US: u64 = 100 * 24 * 3600 * 1_000_000;
const FASTEST_BITS_PER_SECOND: u64 = 1_000_000_000_000;
const MILLION: u32 = 1_000_000;

/// How a direction behaves from one instant of a recording on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// From when on, in microseconds since the start of the recording.
    pub from_us: u64,
    /// Bits per second; `None` is no limit, zero holds everything.
    pub rate_bits_per_second: Option<u64>,
    /// The one-way delay in microseconds.
    pub delay_us: u64,
    /// Lost packets in a million.
    pub loss_ppm: u32,
}

/// Why steps make no recording that can be played, on one line.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{0}")]
pub struct BadRecording(String);

impl BadRecording {
    /// Says what is wrong.
    pub fn new(what: impl Into<String>) -> Self {
        Self(what.into())
    }
}

/// A link's behaviour in both directions, recorded. It can only be built such
/// that it can be played: see [`Recording::new`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recording {
    lasts_us: u64,
    steps: [Vec<Step>; 2],
}

impl Recording {
    /// A recording of `lasts_us` microseconds from its steps up and down.
    ///
    /// # Errors
    ///
    /// [`BadRecording`] if it lasts no time or more than a hundred days; if a
    /// direction's steps do not begin at 0, do not strictly ascend or reach
    /// beyond the end; if a loss is above a million, a delay beyond a hundred
    /// days or a rate above 1000 Gbit/s; or if a direction never moves
    /// anything.
    pub fn new(lasts_us: u64, up: Vec<Step>, down: Vec<Step>) -> Result<Self, BadRecording> {
        if !(1..=LONGEST_US).contains(&lasts_us) {
            return Err(BadRecording::new(format!(
                "a trace must last 1 to {LONGEST_US} us"
            )));
        }
        for (direction, steps) in [("up", &up), ("down", &down)] {
            check_steps(direction, steps, lasts_us)?;
        }
        Ok(Self {
            lasts_us,
            steps: [up, down],
        })
    }

    /// Reads a trace in the format this module describes.
    ///
    /// # Errors
    ///
    /// [`BadInput`] with the line that was not understood.
    pub fn parse(origin: &str, text: &str) -> Result<Self, BadInput> {
        let mut lines = text
            .lines()
            .enumerate()
            .map(|(index, line)| (index, line.trim()))
            .filter(|(_, line)| !line.is_empty() && !line.starts_with('#'));
        match lines.next() {
            Some((_, HEADER)) => {}
            Some((index, _)) => {
                return Err(bad_line(
                    origin,
                    index,
                    format!("expected `{HEADER}`, the only version that is understood"),
                ));
            }
            None => return Err(bad_line(origin, 0, format!("expected `{HEADER}`"))),
        }
        let mut lasts = None;
        let mut steps = [Vec::new(), Vec::new()];
        for (index, line) in lines {
            let complain = |message: String| bad_line(origin, index, message);
            let mut words = line.split_whitespace();
            let direction = match words.next() {
                Some("lasts") if lasts.is_none() => {
                    let number = words.next().ok_or_else(|| {
                        complain("expected the loop's length in microseconds".to_owned())
                    })?;
                    lasts = Some((index, whole(number).map_err(complain)?));
                    if words.next().is_some() {
                        return Err(complain("expected one number after `lasts`".to_owned()));
                    }
                    continue;
                }
                Some("up") => Direction::Up,
                Some("down") => Direction::Down,
                _ => {
                    return Err(complain(
                        "expected `lasts` (once), `up` or `down` at the start of the line"
                            .to_owned(),
                    ));
                }
            };
            steps[direction.index()].push(parse_step(words).map_err(complain)?);
        }
        let Some((lasts_line, lasts_us)) = lasts else {
            return Err(bad_line(
                origin,
                0,
                "expected a line `lasts` with the loop's length in microseconds",
            ));
        };
        let [up, down] = steps;
        Self::new(lasts_us, up, down).map_err(|bad| bad_line(origin, lasts_line, bad.to_string()))
    }

    /// The length of the loop in microseconds.
    #[must_use]
    pub const fn lasts_us(&self) -> u64 {
        self.lasts_us
    }

    /// The steps of one direction; the first is at 0.
    #[must_use]
    pub fn steps(&self, direction: Direction) -> &[Step] {
        &self.steps[direction.index()]
    }

    /// The mean rate of one direction over time in bits per second, or nothing
    /// if it has no limit at some time.
    #[must_use]
    pub fn mean_bits_per_second(&self, direction: Direction) -> Option<u64> {
        let steps = self.steps(direction);
        let ends = steps[1..].iter().map(|step| step.from_us);
        let mut bits = 0.0;
        for (step, end) in steps.iter().zip(ends.chain([self.lasts_us])) {
            bits += step.rate_bits_per_second? as f64 * (end - step.from_us) as f64;
        }
        Some(((bits / self.lasts_us as f64) as u64).max(1))
    }
}

impl fmt::Display for Recording {
    /// Writes the trace in the format [`Recording::parse`] reads.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(formatter, "{HEADER}\nlasts {}", self.lasts_us)?;
        for direction in Direction::BOTH {
            for step in self.steps(direction) {
                write!(formatter, "{direction} {} ", step.from_us)?;
                match step.rate_bits_per_second {
                    Some(rate) => write!(formatter, "{rate}")?,
                    None => write!(formatter, "-")?,
                }
                writeln!(formatter, " {} {}", step.delay_us, step.loss_ppm)?;
            }
        }
        Ok(())
    }
}

fn parse_step<'a>(mut words: impl Iterator<Item = &'a str>) -> Result<Step, String> {
    let mut word = || {
        words
            .next()
            .ok_or("expected four numbers: from us, rate bit/s or `-`, delay us, loss ppm")
    };
    let step = Step {
        from_us: whole(word()?)?,
        rate_bits_per_second: match word()? {
            "-" => None,
            rate => Some(whole(rate)?),
        },
        delay_us: whole(word()?)?,
        loss_ppm: u32::try_from(whole(word()?)?)
            .map_err(|_| format!("a loss is at most {MILLION} millionths"))?,
    };
    match words.next() {
        None => Ok(step),
        Some(more) => Err(format!("expected nothing after the loss, found `{more}`")),
    }
}

fn whole(word: &str) -> Result<u64, String> {
    word.parse()
        .map_err(|_| format!("expected a whole number, found `{word}`"))
}

fn check_steps(direction: &str, steps: &[Step], lasts_us: u64) -> Result<(), BadRecording> {
    if steps.first().is_none_or(|first| first.from_us != 0) {
        return Err(BadRecording::new(format!(
            "the steps {direction} must begin with one at 0 us"
        )));
    }
    for pair in steps.windows(2) {
        if pair[1].from_us <= pair[0].from_us {
            return Err(BadRecording::new(format!(
                "the steps {direction} must ascend, but {} us follows {} us",
                pair[1].from_us, pair[0].from_us
            )));
        }
    }
    for step in steps {
        if step.from_us >= lasts_us {
            return Err(BadRecording::new(format!(
                "the step {direction} at {} us is not before the end, {lasts_us} us",
                step.from_us
            )));
        }
        if step.loss_ppm > MILLION {
            return Err(BadRecording::new(format!(
                "a loss is at most {MILLION} millionths"
            )));
        }
        if step.delay_us > LONGEST_US {
            return Err(BadRecording::new(format!(
                "a delay is at most {LONGEST_US} us"
            )));
        }
        if step.rate_bits_per_second > Some(FASTEST_BITS_PER_SECOND) {
            return Err(BadRecording::new(format!(
                "a rate is at most {FASTEST_BITS_PER_SECOND} bit/s"
            )));
        }
    }
    if steps
        .iter()
        .all(|step| step.rate_bits_per_second == Some(0))
    {
        return Err(BadRecording::new(format!(
            "nothing ever moves {direction}: every rate is 0"
        )));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const SAMPLE: &str = "lagometer-trace/1\n# a note\nlasts 2000000\nup 0 - 24000 0\n\
                          down 0 40000000 23500 0\nup 1500000 0 31000 12500\n";

    #[test]
    fn the_format_in_the_docs_is_read() {
        let recording = Recording::parse("t", SAMPLE).unwrap();
        assert_eq!(recording.lasts_us(), 2_000_000);
        assert_eq!(recording.steps(Direction::Up).len(), 2);
        assert_eq!(recording.steps(Direction::Up)[1].loss_ppm, 12_500);
        assert_eq!(recording.steps(Direction::Up)[0].rate_bits_per_second, None);
        assert_eq!(recording.steps(Direction::Down)[0].delay_us, 23_500);
    }

    #[test]
    fn a_trace_lasts_a_hundred_days_at_most() {
        let lasting = |us: u64| format!("{HEADER}\nlasts {us}\nup 0 - 0 0\ndown 0 - 0 0\n");
        let longest = 8_640_000_000_000;
        assert!(Recording::parse("t", &lasting(longest)).is_ok());
        assert!(Recording::parse("t", &lasting(longest + 1)).is_err());
    }

    #[test]
    fn the_mean_rate_is_that_of_all_its_time() {
        let recording = Recording::parse("t", SAMPLE).unwrap();
        let mean = |recording: &Recording, direction| recording.mean_bits_per_second(direction);
        assert_eq!(mean(&recording, Direction::Down), Some(40_000_000));
        assert_eq!(mean(&recording, Direction::Up), None, "no limit at a time");
        // 40 Mbit/s for half a second and 8 for a second and a half.
        let text = format!("{SAMPLE}down 500000 8000000 23500 0\n");
        let recording = Recording::parse("t", &text).unwrap();
        assert_eq!(mean(&recording, Direction::Down), Some(16_000_000));
    }

    #[test]
    fn mistakes_name_their_line_and_what_was_expected() {
        for (from, to, line, words) in [
            ("trace/1", "trace/2", 1, "lagometer-trace/1"),
            ("lasts 2000000", "lasts", 3, "microseconds"),
            ("lasts 2000000", "lasts 0", 3, "must last"),
            ("lasts 2000000", "lasts 1", 3, "not before the end"),
            ("lasts 2000000\n", "", 1, "lasts"),
            ("up 1500000 0", "up 1500000 x", 6, "whole number"),
            ("31000 12500", "31000", 6, "four numbers"),
            ("31000 12500", "31000 12500 7", 6, "nothing after"),
            ("31000 12500", "31000 1000001", 3, "millionths"),
            ("up 1500000", "up 0", 3, "ascend"),
            ("down 0 40000000", "down 0 0", 3, "nothing ever moves"),
            ("down 0 40000000 23500 0\n", "", 3, "begin with one at 0"),
            ("down 0", "left 0", 5, "`up` or `down`"),
        ] {
            let text = SAMPLE.replace(from, to);
            let error = Recording::parse("t", &text).unwrap_err();
            assert_eq!(error.line, line, "{error} in {text}");
            assert!(error.message.contains(words), "{error}");
        }
    }

    fn steps() -> impl Strategy<Value = Vec<Step>> {
        let step = (
            1..1_000_u64,
            proptest::option::of(0..1_000_000_u64),
            0..1_000_000_u64,
            0..=MILLION,
        );
        proptest::collection::vec(step, 1..20).prop_map(|parts| {
            let mut from_us = 0;
            parts
                .into_iter()
                .map(|(gap, rate_bits_per_second, delay_us, loss_ppm)| {
                    let step = Step {
                        from_us,
                        rate_bits_per_second,
                        delay_us,
                        loss_ppm,
                    };
                    from_us += gap;
                    step
                })
                .collect()
        })
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(up in steps(), down in steps()) {
            if let Ok(recording) = Recording::new(20_000, up, down) {
                let back = Recording::parse("t", &recording.to_string()).unwrap();
                prop_assert_eq!(back, recording);
            }
        }

        #[test]
        fn no_text_makes_it_panic(
            text in "(lagometer-trace/1\n)?(lasts|up|down|-|[0-9]{0,21}|#|x| |\n)*"
        ) {
            let _ = Recording::parse("t", &text);
        }
    }
}
