//! The logs of the 2015 comparison of reliable UDP libraries, and of clients
//! that print like its own: text in, samples, statistics and a lane out.
//!
//! The format has no definition but the programs that print it. A line holds
//! ten round-trip times in milliseconds, some with the number of times the
//! message was sent (`82:2`); then the largest of the ten and one or several
//! averages, their number and wording differing from program to program. It
//! may begin with the local time, `15:9.22`, its fields not padded; since the
//! program prints the time after the line break, it stamps the end of the
//! *previous* ten. Around them stand the command, greetings, blank lines, and
//! single letters by which some programs report on standard error.
//!
//! Nothing in a log says when a message was sent or that one was lost: a
//! client that held back while it was stuck shows fewer samples, not longer
//! ones. [`Log::clock`] says how many a second there were.

mod lane;
mod statistics;

use thiserror::Error;

use crate::document::ClockSpan;

/// What a log holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Log {
    /// The round trips in the order of their arrival.
    pub echoes: Vec<Echo>,
    /// What the log's clock says, where it stamped at least one line.
    pub clock: Option<ClockSpan>,
    /// Lines that were neither round trips nor empty: headers and strays.
    pub stray_lines: u64,
    /// Lines whose own maximum is not that of their round trips: something
    /// was printed into them.
    pub damaged_lines: u64,
}

/// One round trip.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Echo {
    /// The round trip in milliseconds.
    pub rtt_ms: u32,
    /// How often the client sent the message, where the log says so; zero is
    /// what some clients print when they do not know.
    pub sends: Option<u32>,
}

/// A text that is no such log.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadLog {
    /// No line of it holds round trips.
    #[error("none of the {lines} lines holds round-trip times in the 2015 format")]
    NoEchoes {
        /// The number of lines of the text.
        lines: u64,
    },
}

/// Letters that the clients print on standard error, which may end up in the
/// midst of a line: time-out, write interest added and removed, would block,
/// sender held back.
const STDERR_LETTERS: &[char] = &['.', 'A', 'R', 'N', 'B'];

/// Longer than any line of ten: what does not fit was not printed by such a
/// client.
const MOST_IN_A_LINE: usize = 100;

impl Log {
    /// Reads a log.
    ///
    /// # Errors
    ///
    /// [`BadLog`] when it holds no round trips at all; anything else that is
    /// not understood is counted as a stray line.
    pub fn parse(text: &str) -> Result<Self, BadLog> {
        let mut log = Self::default();
        let mut clock = Clock::default();
        let mut lines = 0;
        for line in text.lines() {
            lines += 1;
            let (stamp, rest) = split_stamp(line);
            if let Some(stamp) = stamp {
                clock.stamp(stamp, log.echoes.len() as u64);
            }
            log.take_line(rest);
        }
        if log.echoes.is_empty() {
            return Err(BadLog::NoEchoes { lines });
        }
        log.clock = clock.span();
        Ok(log)
    }

    fn take_line(&mut self, line: &str) {
        if line.trim().is_empty() {
            return;
        }
        let (echoes, trailer) = line.split_once("max").unwrap_or((line, ""));
        let Some(echoes) = parse_echoes(echoes) else {
            self.stray_lines += 1;
            return;
        };
        let largest = echoes.iter().map(|echo| echo.rtt_ms).max();
        if let Some(printed) = leading_number(trailer)
            && Some(printed) != largest
        {
            self.damaged_lines += 1;
        }
        self.echoes.extend(echoes);
    }
}

/// The round trips of a line up to its maximum; `None` if anything else
/// stands among them, or nothing.
fn parse_echoes(text: &str) -> Option<Vec<Echo>> {
    let words = text
        .split_whitespace()
        .map(|word| word.trim_matches(STDERR_LETTERS))
        .filter(|word| !word.is_empty());
    let echoes: Vec<Echo> = words
        .take(MOST_IN_A_LINE + 1)
        .map(parse_echo)
        .collect::<Option<_>>()?;
    (1..=MOST_IN_A_LINE)
        .contains(&echoes.len())
        .then_some(echoes)
}

fn parse_echo(word: &str) -> Option<Echo> {
    let (rtt, sends) = match word.split_once(':') {
        Some((rtt, sends)) => (rtt, Some(digits(sends)?)),
        None => (word, None),
    };
    Some(Echo {
        rtt_ms: digits(rtt)?,
        sends,
    })
}

/// A number of digits alone, without a sign.
fn digits(text: &str) -> Option<u32> {
    text.bytes()
        .all(|byte| byte.is_ascii_digit())
        .then(|| text.parse().ok())
        .flatten()
}

/// The number behind the colon of `: 52  average…`.
fn leading_number(trailer: &str) -> Option<u32> {
    let trailer = trailer.strip_prefix(':')?.trim_start();
    let end = trailer
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(trailer.len());
    trailer[..end].parse().ok()
}

/// Splits the stamp, in seconds of the day, off the start of a line.
fn split_stamp(line: &str) -> (Option<u32>, &str) {
    let word_end = line.find(char::is_whitespace).unwrap_or(line.len());
    let (word, rest) = line.split_at(word_end);
    match parse_stamp(word) {
        Some(stamp) => (Some(stamp), rest),
        None => (None, line),
    }
}

/// `15:9.22` is 22 seconds past nine minutes past three in the afternoon.
fn parse_stamp(word: &str) -> Option<u32> {
    let (hours, rest) = word.split_once(':')?;
    let (minutes, seconds) = rest.split_once('.')?;
    let (hours, minutes, seconds) = (digits(hours)?, digits(minutes)?, digits(seconds)?);
    (hours < 24 && minutes < 60 && seconds < 60).then_some(hours * 3600 + minutes * 60 + seconds)
}

/// The clock of a log, as its stamps come by.
#[derive(Default)]
struct Clock {
    first: Option<Stamp>,
    last: Option<Stamp>,
    /// Seconds from the first stamp to the last.
    seconds: u64,
}

#[derive(Clone, Copy)]
struct Stamp {
    second_of_day: u32,
    /// Echoes logged before it.
    echoes: u64,
}

const DAY: u32 = 86_400;

impl Clock {
    fn stamp(&mut self, second_of_day: u32, echoes: u64) {
        let stamp = Stamp {
            second_of_day,
            echoes,
        };
        if let Some(last) = self.last {
            // Past midnight the clock begins anew; a small step back is a
            // clock that was set, and no time passed.
            let ahead = (second_of_day + DAY - last.second_of_day) % DAY;
            self.seconds += u64::from(if ahead < DAY / 2 { ahead } else { 0 });
        }
        self.first.get_or_insert(stamp);
        self.last = Some(stamp);
    }

    fn span(&self) -> Option<ClockSpan> {
        let (first, last) = (self.first?, self.last?);
        Some(ClockSpan {
            first: written(first.second_of_day),
            last: written(last.second_of_day),
            seconds: self.seconds,
            samples: last.echoes - first.echoes,
        })
    }
}

/// A second of the day as `15:09:22`.
fn written(second_of_day: u32) -> String {
    let (hours, rest) = (second_of_day / 3600, second_of_day % 3600);
    format!("{hours:02}:{:02}:{:02}", rest / 60, rest % 60)
}

#[cfg(test)]
mod tests;
