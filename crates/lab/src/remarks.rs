//! What may be played and is perhaps not meant.

use std::time::Duration;

use lagometer_link::Direction;
use lagometer_link::cross::Cross;
use lagometer_units::Span;

use crate::bottleneck::is_on;
use crate::resolve::Resolved;
use crate::workload::scheduled::SMALLEST_BYTES;

mod unmet;

pub use unmet::{Each, Play, Unmet};

/// What a connection's receiver may let come at once, in bytes: the largest receive
/// buffer, of which half is for data (Linux `tcp_rmem`, `tcp_adv_win_scale`).
const AT_ONCE_BYTES: u64 = 3 << 20;

impl Resolved {
    /// What whoever asked for this should know of its other traffic, and of what its
    /// network does again and again under these seeds, each on one line.
    #[must_use]
    pub fn remarks(&self, seeds: &[u64]) -> Vec<String> {
        let of_traffic = (0..).zip(&self.cross);
        let of_traffic = of_traffic.filter_map(|(nth, cross)| {
            let is_on = |&seed: &u64| is_on(cross, seed, nth, &self.plan);
            if seeds.iter().any(is_on) {
                self.remark(cross)
            } else {
                Some(self.never_on(cross, seeds.len()))
            }
        });
        let mut remarks: Vec<String> = of_traffic.collect();
        remarks.extend(self.unmet(seeds).iter().map(Unmet::to_string));
        remarks.extend(self.about_traffic());
        remarks
    }

    /// What its network does again and again, and is not played under these seeds, or not
    /// as often.
    #[must_use]
    pub fn unmet(&self, seeds: &[u64]) -> Vec<Unmet> {
        let play = Play {
            network: &self.network,
            profile: &self.profile,
            seeds,
            each: Each::Seed,
            end: self.end(),
        };
        play.unmet()
    }

    /// When a seed's play ends, from the start of its impairments.
    fn end(&self) -> Duration {
        self.plan.offset + self.plan.duration
    }

    /// What is played of the workload's file.
    fn about_traffic(&self) -> Option<String> {
        let workload = &self.experiment.workload;
        let (file, traffic) = (workload.file()?, workload.traffic()?);
        let (length, plays) = (traffic.length(), self.plan.duration);
        let end = if plays <= length {
            String::new()
        } else {
            format!(
                "; it begins again every {:.3} s, {:.1} times in all (`at_end = \"stop\"` ends with it)",
                length.as_secs_f64(),
                plays.as_secs_f64() / length.as_secs_f64()
            )
        };
        let small = Direction::BOTH.into_iter().flat_map(|it| traffic.way(it));
        let small = small.filter(|message| message.bytes < SMALLEST_BYTES);
        let filled_up = match small.count() {
            0 => String::new(),
            small => format!("; {small} below {SMALLEST_BYTES} B are filled up to it"),
        };
        Some(format!("`{file}` has {traffic}{end}{filled_up}"))
    }

    /// What is said of other traffic that none of so many seeds has while it is measured.
    fn never_on(&self, cross: &Cross, seeds: usize) -> String {
        let name = cross.name();
        let end = Span(self.end());
        if !cross.may_start_before(end.duration()) {
            return format!(
                "other traffic `{name}` is never on: it begins after the run's {end}; \
                 play for longer (`--for`), or say an earlier `at`"
            );
        }
        format!(
            "other traffic `{name}` is on at times that each seed draws, and {} it within its \
             {end}: play more seeds (`--seeds`) or for longer (`--for`) for it to count",
            if seeds == 1 {
                "this one never has".to_owned()
            } else {
                format!("none of these {seeds} has")
            },
        )
    }

    fn remark(&self, cross: &Cross) -> Option<String> {
        let (name, direction) = (cross.name(), Direction::from(cross.direction));
        if !cross.is_tcp() {
            return None;
        }
        if self.profile.swallows_full_packets(direction) {
            return Some(format!(
                "other traffic `{name}` sends packets of 1500 B, which vanish {direction}: the \
                 `mtu` there is below that; say `oversize = \"refuse\"` for TCP to learn of it"
            ));
        }
        if !self.profile.has_unbounded_queue(direction) {
            return None;
        }
        let bits = self.profile.rate_bits_per_second(direction)?;
        let most = AT_ONCE_BYTES.saturating_mul(u64::from(cross.flows()));
        let seconds = most as f64 * 8.0 / bits as f64;
        Some(format!(
            "other traffic `{name}` meets a queue without a bound {direction}: up to {} MB of \
             it, {seconds:.0} s at the rate, may wait there; say a `queue` under `[{direction}]`, \
             as in \"200 ms\"",
            most / 1_000_000
        ))
    }
}

#[cfg(test)]
mod tests;
