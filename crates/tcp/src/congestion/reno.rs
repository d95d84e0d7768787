//! Reno (RFC 5681; Linux 6.1 `tcp_reno_cong_avoid`, `tcp_reno_ssthresh`).

use super::{CongestionControl, Flow};

/// Slow start, then a packet more every round trip; half after a loss.
#[derive(Clone, Copy, Debug, Default)]
pub struct Reno;

impl CongestionControl for Reno {
    fn name(&self) -> &'static str {
        "reno"
    }

    fn threshold_after_loss(&mut self, flow: &mut Flow) -> u32 {
        (flow.cwnd / 2).max(2)
    }

    fn grow(&mut self, flow: &mut Flow, mut acked: u32) {
        if !flow.is_limited_by_cwnd() {
            return;
        }
        if flow.in_slow_start() {
            acked = flow.slow_start(acked);
            if acked == 0 {
                return;
            }
        }
        flow.additive_increase(flow.cwnd, acked);
    }
}

#[cfg(test)]
mod tests {
    use super::{CongestionControl, Flow, Reno};

    #[test]
    fn the_window_doubles_a_round_trip_and_then_grows_by_one() {
        let mut flow = Flow::new(1460, 0);
        flow.is_cwnd_limited = true;
        flow.ssthresh = 20;
        Reno.grow(&mut flow, 10);
        assert_eq!(flow.cwnd, 20);
        Reno.grow(&mut flow, 20);
        assert_eq!(flow.cwnd, 21);
        assert_eq!(Reno.threshold_after_loss(&mut flow), 10);
    }

    #[test]
    fn a_window_that_is_not_used_does_not_grow() {
        let mut flow = Flow::new(1460, 0);
        flow.ssthresh = 5;
        Reno.grow(&mut flow, 10);
        assert_eq!(flow.cwnd, 10);
    }
}
