//! How late a gateway comes to the ticks of its channels, as it says itself.
//!
//! Only this project's gateway counts them; of others there is nothing to report.

use std::net::SocketAddr;

use lagometer_web::scrape::{fetch, samples};
use serde::{Deserialize, Serialize};

/// The histogram of how late ticks were come to, seconds.
const DELAY: &str = "gateway_tick_delay_seconds_bucket";

/// Later than this a tick is called late.
const LATE_MS: f64 = 10.0;

/// All ticks so far: how many were come to within so many milliseconds.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Ticks {
    within_ms: Vec<(f64, f64)>,
}

/// The ticks of a stretch of time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct Lateness {
    /// How many a second.
    pub(crate) per_s: f64,
    /// The share that was come to more than 10 ms late, percent.
    pub(crate) late_pct: f64,
    /// None was later than so many milliseconds; absent where one was later than
    /// the last bucket reaches.
    pub(crate) at_most_ms: Option<f64>,
}

impl Ticks {
    /// Asks the gateway whose metrics are at `address`. `None` where none
    /// answers, or it is one that does not report it.
    pub(crate) fn ask(address: SocketAddr) -> Option<Self> {
        let text = fetch(address).ok()?;
        Self::read(&text)
    }

    fn read(text: &str) -> Option<Self> {
        let within_ms: Vec<(f64, f64)> = samples(text, DELAY)
            .filter_map(|(labels, count)| {
                let end_s = labels.strip_prefix("le=\"")?.strip_suffix('"')?;
                Some((end_s.parse::<f64>().ok()? * 1e3, count))
            })
            .collect();
        (!within_ms.is_empty()).then_some(Self { within_ms })
    }

    /// What came after `before`, which was `seconds` ago.
    pub(crate) fn since(&self, before: &Self, seconds: f64) -> Option<Lateness> {
        let gained: Vec<(f64, f64)> = self
            .within_ms
            .iter()
            .zip(&before.within_ms)
            .map(|(&(end, after), (_, before))| (end, after - before))
            .collect();
        let &(_, all) = gained.last()?;
        let within = |ms: f64| gained.iter().find(|(end, _)| *end >= ms);
        let (_, in_time) = within(LATE_MS)?;
        let at_most_ms = gained.iter().find(|(_, count)| *count >= all)?.0;
        Some(Lateness {
            per_s: all / seconds,
            late_pct: if all > 0.0 {
                100.0 * (all - in_time) / all
            } else {
                0.0
            },
            at_most_ms: Some(at_most_ms).filter(|ms| ms.is_finite()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reported(counts: [u32; 4]) -> Ticks {
        let [five, ten, twenty, all] = counts;
        Ticks::read(&format!(
            "# TYPE gateway_tick_delay_seconds histogram\n\
             gateway_tick_delay_seconds_bucket{{le=\"0.005\"}} {five}\n\
             gateway_tick_delay_seconds_bucket{{le=\"0.01\"}} {ten}\n\
             gateway_tick_delay_seconds_bucket{{le=\"0.02\"}} {twenty}\n\
             gateway_tick_delay_seconds_bucket{{le=\"+Inf\"}} {all}\n\
             gateway_tick_delay_seconds_count {all}\n"
        ))
        .unwrap()
    }

    #[test]
    fn ticks_are_those_since_the_last_question() {
        let before = reported([10, 11, 12, 13]);
        let lateness = |per_s, late_pct, at_most_ms| Lateness {
            per_s,
            late_pct,
            at_most_ms,
        };
        let since = |after: [u32; 4]| reported(after).since(&before, 2.0);
        assert_eq!(
            since([90, 106, 112, 113]),
            Some(lateness(50.0, 5.0, Some(20.0)))
        );
        let worse = since([90, 106, 112, 114]).unwrap();
        assert_eq!(worse.at_most_ms, None);
        assert_eq!(
            before.since(&before, 2.0),
            Some(lateness(0.0, 0.0, Some(5.0)))
        );
    }

    #[test]
    fn another_gateway_reports_nothing() {
        assert_eq!(
            Ticks::read("channel_tick_duration{type=\"TEST\"} 1\n"),
            None
        );
    }
}
