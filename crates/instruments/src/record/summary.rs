//! What was recorded, in figures.

use std::fmt;
use std::time::Duration;

use crate::record::fates::Way;

/// One direction in figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Summary {
    /// Probes sent.
    pub probes: usize,
    /// Least, median, 99th percentile and greatest delay; `None` if nothing
    /// came.
    pub delay: Option<[Duration; 4]>,
    /// The share that never came.
    pub lost: f64,
    /// How many were lost in a row, on average; zero if none was.
    pub lost_in_a_row: f64,
    /// The share that was overtaken.
    pub overtaken: f64,
    /// The share that came more than once.
    pub duplicated: f64,
    /// Bits per second, where trains showed it.
    pub rate_bits_per_second: Option<u64>,
}

impl Summary {
    /// The figures of a direction.
    #[must_use]
    pub fn of(way: &Way) -> Self {
        let delays = way.delays();
        let at = |share: f64| {
            let index = (share * delays.len().saturating_sub(1) as f64).round() as usize;
            delays.get(index).copied()
        };
        let delay = match (at(0.0), at(0.5), at(0.99), at(1.0)) {
            (Some(least), Some(median), Some(p99), Some(most)) => Some([least, median, p99, most]),
            _ => None,
        };
        let runs = way
            .fates
            .chunk_by(|one, next| one.delay.is_none() == next.delay.is_none())
            .filter(|run| run[0].delay.is_none());
        let (count, lost) = runs.fold((0_usize, 0_usize), |(count, lost), run| {
            (count + 1, lost + run.len())
        });
        Self {
            probes: way.fates.len(),
            delay,
            lost: way.lost(),
            lost_in_a_row: if count == 0 {
                0.0
            } else {
                lost as f64 / count as f64
            },
            overtaken: way.share(|fate| fate.was_overtaken),
            duplicated: way.share(|fate| fate.copies > 0),
            rate_bits_per_second: way.rate_bits_per_second,
        }
    }
}

/// On one line.
impl fmt::Display for Summary {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.delay {
            Some(delays) => {
                let [least, median, p99, most] = delays.map(|delay| delay.as_secs_f64() * 1e3);
                write!(
                    formatter,
                    "delay min {least:.2} ms, p50 {median:.2} ms, p99 {p99:.2} ms, max {most:.2} ms; "
                )?;
            }
            None => formatter.write_str("nothing came; ")?,
        }
        write!(formatter, "lost {:.2} %", self.lost * 100.0)?;
        if self.lost > 0.0 {
            write!(formatter, " ({:.1} in a row)", self.lost_in_a_row)?;
        }
        write!(
            formatter,
            ", overtaken {:.2} %, twice {:.2} %",
            self.overtaken * 100.0,
            self.duplicated * 100.0
        )?;
        match self.rate_bits_per_second {
            Some(rate) => write!(formatter, ", {:.2} Mbit/s", rate as f64 / 1e6),
            None => Ok(()),
        }
    }
}
