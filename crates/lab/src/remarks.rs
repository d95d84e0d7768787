//! What may be played and is perhaps not meant.

use lagometer_link::cross::Cross;
use lagometer_link::{Direction, Scheduled};
use lagometer_units::Span;

use crate::resolve::Resolved;

/// What a connection's receiver may let come at once, in bytes: the largest receive
/// buffer, of which half is for data (Linux `tcp_rmem`, `tcp_adv_win_scale`).
const AT_ONCE_BYTES: u64 = 3 << 20;

impl Resolved {
    /// What whoever asked for this should know of its other traffic, and of what its
    /// network does at fixed times, each on one line.
    #[must_use]
    pub fn remarks(&self) -> Vec<String> {
        let crosses = self.cross.iter();
        let scheduled = self.profile.scheduled();
        let of_network = scheduled.iter().filter_map(|it| self.is_cut_short(it));
        crosses
            .filter_map(|cross| self.remark(cross))
            .chain(of_network)
            .collect()
    }

    /// Every seed begins its network anew, so that a run of many short seeds meets what comes
    /// at fixed times never, or more often than the network has it.
    fn is_cut_short(&self, scheduled: &Scheduled) -> Option<String> {
        let Scheduled { kind, first, every } = *scheduled;
        let end = self.plan.offset + self.plan.duration;
        let (kind, network) = (kind.name(), &self.network);
        let (first_in_words, end_in_words) = (Span(first), Span(end));
        if first >= end {
            return Some(format!(
                "the {kind} that `{network}` has at {first_in_words} is in no seed of \
                 {end_in_words}: play for longer (`--for`) for it to count"
            ));
        }
        let every = every.filter(|&every| every > end)?;
        Some(format!(
            "the {kind} that `{network}` has every {} is in each seed of {end_in_words}: play for \
             longer (`--for`) for it to be no more frequent than that",
            Span(every)
        ))
    }

    fn remark(&self, cross: &Cross) -> Option<String> {
        let (name, direction) = (cross.name(), Direction::from(cross.direction));
        let end = self.plan.offset + self.plan.duration;
        if !cross.may_start_before(end) {
            return Some(format!(
                "other traffic `{name}` is never on: it begins after the run's {:.0} s; play for \
                 longer (`--for`), or say an earlier `at`",
                end.as_secs_f64()
            ));
        }
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
