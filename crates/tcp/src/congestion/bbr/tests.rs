//! Rules of the kernel's BBR by themselves.

use super::*;

#[test]
fn measuring_the_round_trip_keeps_a_larger_window_from_before() {
    let mut flow = Flow::new(1460, 0);
    let mut bbr = Bbr::default();
    bbr.init(&mut flow);
    bbr.prior_cwnd = 20;
    flow.ticks = MIN_RTT_SECONDS * flow.hz + 1;
    bbr.update_min_rtt(&mut flow, &RateSample::default());
    assert_eq!((bbr.mode, bbr.prior_cwnd), (Mode::ProbeRtt, 20));
}

/// A round trip in which ten packets were delivered and ten lost.
fn lossy_round(bbr: &mut Bbr, flow: &mut Flow) {
    flow.delivered += 10;
    flow.lost += 10;
    flow.delivered_us += 100_000;
    let sample = RateSample {
        prior_delivered: flow.delivered,
        delivered: Some(10),
        interval_us: Some(100_000),
        losses: 10,
        ..RateSample::default()
    };
    bbr.update_bandwidth(flow, &sample);
}

#[test]
fn what_is_found_policed_is_no_longer_probed_from_that_acknowledgement_on() {
    // Linux 6.1 `bbr_lt_bw_interval_done`: the phase that this acknowledgement may end
    // is already one without a gain.
    let mut flow = Flow::new(1460, 0);
    let mut bbr = Bbr::default();
    bbr.init(&mut flow);
    bbr.mode = Mode::ProbeBandwidth;
    bbr.pacing_gain = CYCLE[0];
    let mut rounds = 0;
    while bbr.policer.bandwidth().is_none() {
        assert_eq!(bbr.pacing_gain, CYCLE[0], "after {rounds} rounds");
        lossy_round(&mut bbr, &mut flow);
        rounds += 1;
        assert!(rounds < 20);
    }
    assert_eq!(bbr.pacing_gain, UNIT);
}
