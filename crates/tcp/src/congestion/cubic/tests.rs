use super::{AckSample, CongestionControl, Cubic, Flow, cubic_root};
use crate::Seq;
use crate::time::Instant;

/// A flow whose window is always full, at a time in milliseconds.
fn flow(cwnd: u32, ssthresh: u32) -> Flow {
    let mut flow = Flow::new(1448, 0);
    flow.cwnd = cwnd;
    flow.ssthresh = ssthresh;
    flow.is_cwnd_limited = true;
    flow
}

fn at(flow: &mut Flow, ms: u64) {
    flow.now = Instant::from_millis(ms);
    flow.ticks = ms;
}

#[test]
fn the_cube_root_is_right_to_a_hundredth() {
    for exponent in 6..44 {
        for step in 0..64_u64 {
            let a = (1 << exponent) + (step << exponent >> 6);
            let root = f64::from(cubic_root(a));
            let exact = (a as f64).cbrt();
            assert!(
                (root - exact).abs() <= (exact * 0.01).max(1.0),
                "{a}: {root} {exact}"
            );
        }
    }
}

#[test]
fn the_window_follows_the_curve_of_rfc_9438() {
    // A loss at 1000 packets over a round trip of 100 ms.
    let mut cubic = Cubic::default();
    let mut flow = flow(1000, 1000);
    cubic.init(&mut flow);
    let ssthresh = cubic.threshold_after_loss(&mut flow);
    assert_eq!(ssthresh, 700);
    flow.cwnd = ssthresh;
    flow.ssthresh = ssthresh;
    let (w_max, c, rtt) = (1000.0_f64, 0.4, 0.1);
    let k = ((w_max - 700.0) / c).cbrt();
    let mut ms = 0;
    // Acknowledgements come as fast as the window has packets.
    while ms < 15_000 {
        at(&mut flow, 1_000_000 + ms);
        let per_ms = flow.cwnd / 100;
        cubic.grow(&mut flow, per_ms.max(1));
        ms += 1;
        if ms % 1000 == 0 && ms >= 2_000 {
            let t = ms as f64 / 1000.0;
            let curve = (c * (t + rtt - k).powi(3) + w_max).max(700.0);
            let off = (f64::from(flow.cwnd) - curve).abs() / curve;
            assert!(off < 0.06, "{t} s: {} against {curve}", flow.cwnd);
        }
    }
}

#[test]
fn a_second_loss_below_the_last_maximum_gives_way_further() {
    let mut cubic = Cubic::default();
    let mut flow = flow(1000, 1000);
    cubic.threshold_after_loss(&mut flow);
    flow.cwnd = 800;
    cubic.threshold_after_loss(&mut flow);
    assert_eq!(cubic.last_max_cwnd, 800 * (1024 + 717) / 2048);
}

#[test]
fn a_small_window_grows_no_slower_than_reno() {
    let mut cubic = Cubic::default();
    let mut flow = flow(10, 10);
    cubic.init(&mut flow);
    flow.cwnd = cubic.threshold_after_loss(&mut flow);
    flow.ssthresh = flow.cwnd;
    // A round trip of 10 ms: Reno with β = 0.7 grows by about 0.53 a round
    // trip, which is far above the cubic curve here.
    for round in 0..200 {
        at(&mut flow, 1_000 + round * 10);
        let acked = flow.cwnd;
        cubic.grow(&mut flow, acked);
    }
    assert!((90..=125).contains(&flow.cwnd), "{}", flow.cwnd);
}

fn acked(cubic: &mut Cubic, flow: &mut Flow, rtt_us: u32) {
    cubic.on_packets_acked(
        flow,
        &AckSample {
            packets: 1,
            rtt_us: Some(rtt_us),
        },
    );
}

#[test]
fn slow_start_ends_when_the_delay_grows_by_an_eighth() {
    let mut cubic = Cubic::default();
    let mut flow = flow(32, 0x7fff_ffff);
    cubic.init(&mut flow);
    flow.next = Seq(1_000_000);
    for i in 0..20 {
        at(&mut flow, 10 + 5 * i);
        acked(&mut cubic, &mut flow, 80_000);
    }
    assert!(flow.in_slow_start());
    // The next round: 11 ms more.
    flow.una = Seq(1_000_001);
    flow.next = Seq(2_000_000);
    for i in 0..9 {
        assert!(flow.in_slow_start(), "{i}");
        at(&mut flow, 210 + 5 * i);
        acked(&mut cubic, &mut flow, 91_000);
    }
    assert_eq!(flow.ssthresh, 32);
}

#[test]
fn slow_start_ends_when_a_train_of_acknowledgements_is_half_a_round_trip_long() {
    let mut cubic = Cubic::default();
    let mut flow = flow(32, 0x7fff_ffff);
    cubic.init(&mut flow);
    flow.next = Seq(1_000_000);
    flow.pacing_rate = 100_000_000_000;
    for ms in 1..=40 {
        at(&mut flow, ms);
        acked(&mut cubic, &mut flow, 80_000);
        assert!(flow.in_slow_start(), "{ms} ms");
    }
    at(&mut flow, 41);
    acked(&mut cubic, &mut flow, 80_000);
    assert_eq!(flow.ssthresh, 32);
}

#[test]
fn a_window_below_sixteen_packets_stays_in_slow_start() {
    let mut cubic = Cubic::default();
    let mut flow = flow(15, 0x7fff_ffff);
    cubic.init(&mut flow);
    for ms in 1..200 {
        at(&mut flow, ms);
        acked(&mut cubic, &mut flow, 80_000 + 1_000 * ms as u32);
    }
    assert!(flow.in_slow_start());
}
