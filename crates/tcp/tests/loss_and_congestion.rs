//! Losses, timeouts and congestion as Linux's TCP treats them, seen from outside.

mod support;

use std::time::Duration;

use lagometer_tcp::congestion::{Algorithm, CongestionState};
use lagometer_tcp::wire::Flags;
use lagometer_tcp::{CloseReason, Config, EcnMode, State};
use support::{Network, Path, Random, digest, drop_data, ms, path, pattern, warm};

#[test]
fn a_lost_tail_is_probed_after_two_round_trips() {
    let mut network = warm(&Config::default());
    let begin = network.now;
    // Five packets, the last lost.
    drop_data(&mut network, vec![4]);
    let bytes = pattern(1448 * 5);
    assert!(network.transfer(0, &bytes, Duration::from_secs(5)) == bytes);
    let sent = network.data_of(0);
    assert_eq!(sent.len(), 6);
    // The timer starts anew with each acknowledgement, 80 ms in: two round trips
    // and 2 ms more, rounded up to the wheel's bucket of at most 8 ms; alone in
    // flight it waits 200 ms for a delayed acknowledgement.
    let waited = ms(sent[5].at - begin);
    assert!((240..=460).contains(&waited), "{waited} ms");
    let counters = network.client(|c| *c.counters());
    assert_eq!((counters.tail_loss_probes, counters.timeouts), (1, 0));
}

#[test]
fn two_lost_at_the_tail_are_probed_two_round_trips_after_the_last_acknowledgement() {
    let mut network = warm(&Config::default());
    let begin = network.now;
    drop_data(&mut network, vec![8, 9]);
    let bytes = pattern(1448 * 10);
    assert!(network.transfer(0, &bytes, Duration::from_secs(5)) == bytes);
    let sent = network.data_of(0);
    // Acknowledgements at 80 ms, the probe 162 to 172 ms later.
    let waited = ms(sent[10].at - begin);
    assert!((80 + 160..=80 + 180).contains(&waited), "{waited} ms");
    assert_eq!(network.client(|c| c.counters().timeouts), 0);
}

#[test]
fn without_probes_the_timeout_is_200_ms_above_the_round_trip() {
    let config = Config {
        tail_loss_probe: false,
        timer_wheel: false,
        ..Config::default()
    };
    let mut network = warm(&config);
    let begin = network.now;
    drop_data(&mut network, vec![0]);
    assert!(network.transfer(0, b"lost", Duration::from_secs(5)) == b"lost");
    let sent = network.data_of(0);
    let waited = ms(sent[1].at - begin);
    assert!((280..=284).contains(&waited), "{waited} ms");
    assert_eq!(network.client(|c| c.counters().timeouts), 1);
}

#[test]
fn a_timeout_doubles_with_each_retransmission() {
    let config = Config {
        tail_loss_probe: false,
        timer_wheel: false,
        ..Config::default()
    };
    let mut network = warm(&config);
    drop_data(&mut network, (0..5).collect());
    assert!(network.transfer(0, b"lost", Duration::from_mins(1)) == b"lost");
    let sent = network.data_of(0);
    let gaps: Vec<u64> = sent
        .windows(2)
        .map(|pair| ms(pair[1].at - pair[0].at))
        .collect();
    for pair in gaps.windows(2) {
        assert!(pair[1].abs_diff(2 * pair[0]) <= 2, "{gaps:?}");
    }
}

#[test]
fn a_thin_stream_with_linear_timeouts_does_not_back_off() {
    let config = Config {
        tail_loss_probe: false,
        timer_wheel: false,
        thin_linear_timeouts: true,
        ..Config::default()
    };
    let mut network = warm(&config);
    // One loss before, so that slow start has ended for good.
    drop_data(&mut network, vec![0]);
    network.transfer(0, b"first", Duration::from_mins(1));
    network.run(Duration::from_secs(2));
    network.trace.clear();
    drop_data(&mut network, (0..5).collect());
    assert!(network.transfer(0, b"lost", Duration::from_mins(1)) == b"lost");
    let sent = network.data_of(0);
    let gaps: Vec<u64> = sent
        .windows(2)
        .map(|pair| ms(pair[1].at - pair[0].at))
        .collect();
    assert!(
        gaps.iter().all(|gap| gap.abs_diff(gaps[0]) <= 2),
        "{gaps:?}"
    );
}

#[test]
fn a_single_loss_is_repaired_without_a_timeout() {
    let mut network = warm(&Config::default());
    let cwnd = network.client(|c| c.flow().cwnd);
    drop_data(&mut network, vec![20]);
    let bytes = pattern(1448 * 60);
    assert!(network.transfer(0, &bytes, Duration::from_secs(5)) == bytes);
    network.run(Duration::from_secs(1));
    let counters = network.client(|c| *c.counters());
    assert_eq!((counters.fast_recoveries, counters.timeouts), (1, 0));
    assert_eq!(counters.retransmissions, 1);
    assert!(network.client(|c| c.flow().cwnd) < cwnd.max(40));
}

#[test]
fn a_window_full_of_holes_is_repaired_in_one_recovery() {
    let mut network = warm(&Config::default());
    drop_data(&mut network, (0..30).filter(|i| i % 3 == 1).collect());
    let bytes = pattern(1448 * 60);
    assert!(network.transfer(0, &bytes, Duration::from_secs(5)) == bytes);
    let counters = network.client(|c| *c.counters());
    assert_eq!((counters.retransmissions, counters.timeouts), (10, 0));
}

#[test]
fn a_needless_timeout_is_taken_back() {
    let mut network = warm(&Config::default());
    let cwnd = network.client(|c| c.flow().cwnd);
    // The path stalls for a second: everything comes late, nothing is lost.
    network.path.delay = Duration::from_secs(1);
    let bytes = pattern(1448 * 6);
    network.write(0, &bytes);
    network.run(Duration::from_millis(900));
    network.path.delay = Duration::from_millis(40);
    network.run(Duration::from_secs(4));
    assert!(network.read(1) == bytes);
    let counters = network.client(|c| *c.counters());
    assert!(counters.timeouts >= 1);
    assert!(counters.undos >= 1, "{counters:?}");
    let (after, state) = network.client(|c| (c.flow().cwnd, c.flow().state));
    assert!(after >= cwnd.min(10), "{after} of {cwnd}");
    assert_eq!(state, CongestionState::Open);
}

#[test]
fn a_needless_recovery_from_reordering_is_taken_back_and_not_repeated() {
    let mut network = warm(&Config::default());
    let mut random = Random::new(7);
    let mut recoveries = Vec::new();
    for _ in 0..30 {
        network.path.reorder = 0.3;
        let bytes = pattern(1448 * 20 + random.below(1_000) as usize);
        assert!(network.transfer(0, &bytes, Duration::from_secs(10)) == bytes);
        recoveries.push(network.client(|c| c.counters().fast_recoveries));
    }
    let half = recoveries[14];
    let last = recoveries[29];
    assert!(last - half <= half, "{recoveries:?}");
    assert!(network.client(|c| c.counters().undos) > 0);
}

#[test]
fn the_initial_window_is_ten_segments() {
    let mut network = Network::connected(1, path(40), &Config::default());
    network.trace.clear();
    network.write(0, &pattern(60_000));
    network.run(Duration::from_millis(30));
    assert_eq!(network.data_of(0).len(), 10);
}

#[test]
fn the_window_restarts_after_an_idle_time() {
    let mut network = warm(&Config::default());
    let bytes = pattern(1_000_000);
    network.transfer(0, &bytes, Duration::from_secs(10));
    let before = network.client(|c| c.flow().cwnd);
    assert!(before > 40);
    network.run(Duration::from_secs(10));
    network.write(0, b"x");
    assert_eq!(network.client(|c| c.flow().cwnd), 10);
}

#[test]
fn slow_start_ends_before_the_queue_overflows() {
    let slow = Path {
        rate: Some(2_500_000),
        queue: 1 << 20,
        ..path(25)
    };
    let mut network = Network::connected(1, slow, &Config::default());
    network.transfer(0, &pattern(2_000_000), Duration::from_secs(20));
    let flow = network.client(|c| c.flow().clone());
    assert!(flow.ssthresh < 700, "{}", flow.ssthresh);
    assert_eq!(network.client(|c| c.counters().retransmissions), 0);
}

#[test]
fn bbr_fills_the_bottleneck_with_a_small_queue() {
    let rate = 1_250_000;
    let slow = Path {
        rate: Some(rate),
        queue: 1 << 20,
        ..path(20)
    };
    let run = |congestion| {
        let config = Config {
            congestion,
            ..Config::default()
        };
        let mut network = Network::connected(1, slow.clone(), &config);
        network.transfer(0, &pattern(2_000_000), Duration::from_secs(30));
        network.worst_queue = Duration::ZERO;
        let begin = network.now;
        network.transfer(0, &pattern(8_000_000), Duration::from_secs(30));
        let seconds = (network.now - begin).as_secs_f64();
        (8_000_000.0 / seconds / rate as f64, network.worst_queue)
    };
    let (share, queue) = run(Algorithm::Bbr);
    assert!(share > 0.85, "{share}");
    assert!(queue < Duration::from_millis(80), "{queue:?}");
    let (cubic, cubic_queue) = run(Algorithm::Cubic);
    assert!(cubic > 0.9, "{cubic}");
    assert!(cubic_queue > 2 * queue, "{cubic_queue:?} beside {queue:?}");
}

#[test]
fn bbr_paces_its_packets() {
    let config = Config {
        congestion: Algorithm::Bbr,
        ..Config::default()
    };
    let slow = Path {
        rate: Some(1_250_000),
        ..path(20)
    };
    let mut network = Network::connected(1, slow, &config);
    network.transfer(0, &pattern(3_000_000), Duration::from_secs(30));
    network.trace.clear();
    network.transfer(0, &pattern(1_000_000), Duration::from_secs(30));
    let sent = network.data_of(0);
    let most = sent
        .chunk_by(|a, b| a.at == b.at)
        .map(<[support::Seen]>::len)
        .max()
        .unwrap();
    assert!(most <= 4, "{most} packets at once");
}

#[test]
fn a_mark_reduces_the_window_once_a_round_trip_and_loses_nothing() {
    let config = Config {
        ecn: EcnMode::Always,
        ..Config::default()
    };
    let addresses = ["fd00::1", "fd00::2"];
    let mut network = Network::between(addresses, 1, path(40), &config, &config);
    let limit = network.now + Duration::from_secs(1);
    assert!(network.run_until(limit, |n| n.server.is_some()));
    network.transfer(0, &pattern(200_000), Duration::from_secs(10));
    // The last acknowledgements come.
    network.run(Duration::from_millis(150));
    let before = network.client(|c| c.flow().cwnd);
    network.trace.clear();
    network.path.mark = true;
    network.write(0, &pattern(1448 * 20));
    network.run(Duration::from_millis(60));
    network.path.mark = false;
    network.run(Duration::from_secs(1));
    network.read(1);
    let echoes = network
        .trace
        .iter()
        .filter(|seen| seen.from == 1 && seen.flags.contains(Flags::ECE));
    assert!(echoes.count() >= 5);
    let after = network.client(|c| c.flow().ssthresh);
    assert!(after < before && after * 2 > before, "{before} to {after}");
    assert_eq!(network.client(|c| c.counters().retransmissions), 0);
    // The next data says that the window was reduced, and the echo ends.
    network.trace.clear();
    network.transfer(0, &pattern(1448 * 20), Duration::from_secs(10));
    assert!(network.data_of(0)[0].flags.contains(Flags::CWR));
    let last = network.trace.iter().rfind(|seen| seen.from == 1).unwrap();
    assert!(!last.flags.contains(Flags::ECE));
}

#[test]
fn without_ecn_nothing_is_marked_capable() {
    let mut network = warm(&Config::default());
    network.path.mark = true;
    network.transfer(0, &pattern(1448 * 20), Duration::from_secs(10));
    let echoes = network
        .trace
        .iter()
        .filter(|seen| seen.flags.contains(Flags::ECE));
    assert_eq!(echoes.count(), 0);
}

#[test]
fn a_user_timeout_gives_up_unacknowledged_data() {
    let config = Config {
        user_timeout: Some(Duration::from_secs(5)),
        ..Config::default()
    };
    let mut network = warm(&config);
    network.drop_if = Some(Box::new(|_, _| true));
    let begin = network.now;
    network.write(0, b"nobody reads");
    let limit = begin + Duration::from_mins(1);
    assert!(network.run_until(limit, |n| n.client(|c| c.state()) == State::Closed));
    let waited = (network.now - begin).as_secs_f64();
    assert!((5.0..7.5).contains(&waited), "{waited} s");
    assert_eq!(
        network.client(|c| c.close_reason()),
        Some(CloseReason::TimedOut)
    );
}

#[test]
fn a_syn_is_sent_again_after_1_3_and_7_seconds() {
    let config = Config {
        timer_wheel: false,
        ..Config::default()
    };
    let mut network = Network::new(1, path(10), &config, &config);
    let begin = network.now;
    network.drop_if = Some(Box::new(|_, _| true));
    network.run(Duration::from_secs(200));
    let at: Vec<u64> = network
        .trace
        .iter()
        .filter(|seen| seen.flags.contains(Flags::SYN))
        .map(|seen| ms(seen.at - begin))
        .collect();
    assert_eq!(at, [0, 1_000, 3_000, 7_000, 15_000, 31_000, 63_000]);
    assert_eq!(
        network.client(|c| c.close_reason()),
        Some(CloseReason::TimedOut)
    );
}

/// Packets of fixed seeds; a change here is a change of behaviour and belongs
/// into the change log.
#[test]
fn the_packets_of_known_seeds_stay_the_same() {
    let run = |seed, congestion| {
        let config = Config {
            congestion,
            ..Config::default()
        };
        let lossy = Path {
            loss: 0.02,
            burst: 3,
            reorder: 0.02,
            duplicate: 0.01,
            rate: Some(500_000),
            queue: 40_000,
            ..path(30)
        };
        let mut network = Network::connected(seed, lossy, &config);
        network.transfer(0, &pattern(600_000), Duration::from_mins(5));
        network.transfer(1, &pattern(20_000), Duration::from_mins(5));
        digest(&network.trace)
    };
    let found: Vec<String> = [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr]
        .into_iter()
        .flat_map(|congestion| (1..=2).map(move |seed| (seed, congestion)))
        .map(|(seed, congestion)| format!("{congestion:?} {seed} {:016x}", run(seed, congestion)))
        .collect();
    let known = include_str!("golden.txt").lines().collect::<Vec<_>>();
    assert_eq!(found, known);
}
