//! Every byte arrives once and in order while the path lives, whatever the path
//! does; and the same seed gives the same packets.

mod support;

use std::time::Duration;

use lagometer_tcp::congestion::Algorithm;
use lagometer_tcp::{CloseReason, Config, State};
use proptest::prelude::*;
use support::{Network, Path, digest, pattern};

fn config(congestion: Algorithm) -> Config {
    Config {
        congestion,
        ..Config::default()
    }
}

#[test]
fn bytes_arrive_in_both_families_over_a_clean_path() {
    for addresses in [["10.0.0.1", "10.0.0.2"], ["fd00::1", "fd00::2"]] {
        let mut network = Network::between(
            addresses,
            1,
            Path::default(),
            &Config::default(),
            &Config::default(),
        );
        assert!(network.run_until(network.now + Duration::from_secs(1), |n| n.server.is_some()));
        let bytes = pattern(1_000_000);
        assert!(network.transfer(0, &bytes, Duration::from_secs(20)) == bytes);
        assert!(network.transfer(1, &bytes, Duration::from_secs(20)) == bytes);
        let counters = network.client(|c| *c.counters());
        assert_eq!((counters.retransmissions, counters.timeouts), (0, 0));
    }
}

#[test]
fn bytes_arrive_over_every_path_with_every_control() {
    let paths = [
        Path {
            loss: 0.05,
            ..Path::default()
        },
        Path {
            loss: 0.02,
            burst: 10,
            ..Path::default()
        },
        Path {
            reorder: 0.3,
            ..Path::default()
        },
        Path {
            duplicate: 0.3,
            reorder: 0.1,
            ..Path::default()
        },
        Path {
            rate: Some(250_000),
            queue: 20_000,
            ..Path::default()
        },
        Path {
            loss: 0.2,
            duplicate: 0.1,
            reorder: 0.2,
            ..Path::default()
        },
    ];
    for congestion in [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr] {
        for (seed, path) in paths.iter().enumerate() {
            let mut network = Network::connected(seed as u64, path.clone(), &config(congestion));
            let bytes = pattern(300_000);
            let received = network.transfer(0, &bytes, Duration::from_mins(15));
            assert_eq!(received.len(), bytes.len(), "{congestion:?} over {path:?}");
            assert!(received == bytes, "{congestion:?} over {path:?}");
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_packets() {
    let run = |seed| {
        let path = Path {
            loss: 0.03,
            reorder: 0.1,
            duplicate: 0.02,
            ..Path::default()
        };
        let mut network = Network::connected(seed, path, &Config::default());
        network.transfer(0, &pattern(200_000), Duration::from_mins(2));
        network.transfer(1, &pattern(50_000), Duration::from_mins(2));
        digest(&network.trace)
    };
    for seed in 0..4 {
        assert_eq!(run(seed), run(seed));
        assert_ne!(run(seed), run(seed + 1));
    }
}

#[test]
fn a_connection_ends_in_order_over_a_path_that_loses() {
    for seed in 0..20 {
        let path = Path {
            loss: 0.2,
            ..Path::default()
        };
        let mut network = Network::connected(seed, path, &Config::default());
        let bytes = pattern(5_000);
        let received = network.transfer(0, &bytes, Duration::from_mins(2));
        assert!(received == bytes);
        let now = network.now;
        network.client(|c| c.finish(now));
        let limit = network.now + Duration::from_mins(2);
        assert!(
            network.run_until(limit, |n| n.server(|c| c.is_finished())),
            "{seed}"
        );
        let now = network.now;
        network.server(|c| c.close(now));
        let limit = network.now + Duration::from_mins(5);
        let is_over = |n: &mut Network| {
            n.server(|c| c.state()) == State::Closed && n.client(|c| c.state()) == State::Closed
        };
        assert!(network.run_until(limit, is_over), "{seed}");
        assert_eq!(
            network.server(|c| c.close_reason()),
            Some(CloseReason::Finished)
        );
        assert_eq!(
            network.client(|c| c.close_reason()),
            Some(CloseReason::Finished)
        );
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    #[test]
    fn bytes_arrive_once_in_order_and_all(
        seed in any::<u64>(),
        loss in 0.0..0.25,
        burst in 1..6_u64,
        duplicate in 0.0..0.2,
        reorder in 0.0..0.5,
        delay_ms in 0..100_u64,
        rate in proptest::option::of(20_000..2_000_000_u64),
        mtu in 600..1_500_u32,
        sack in any::<bool>(),
        timestamps in any::<bool>(),
        scaling in any::<bool>(),
        control in 0..3_usize,
        length in 1..60_000_usize,
    ) {
        let config = Config {
            congestion: [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr][control],
            mtu,
            sack,
            timestamps,
            window_scaling: scaling,
            ..Config::default()
        };
        let path = Path {
            delay: Duration::from_millis(delay_ms),
            rate,
            queue: 30_000,
            loss,
            burst,
            duplicate,
            reorder,
            ..Path::default()
        };
        let mut network = Network::new(seed, path, &config, &config);
        let limit = network.now + Duration::from_mins(2);
        network.run_until(limit, |n| n.server.is_some());
        // A handshake may fail over such a path; then there is nothing to test.
        if network.server.is_some() {
            let bytes = pattern(length);
            let received = network.transfer(0, &bytes, Duration::from_secs(50_000));
            prop_assert!(bytes.starts_with(&received));
            let alive = network.client(|c| c.state()) != State::Closed;
            prop_assert!(!alive || received.len() == bytes.len(), "{} of {}", received.len(), bytes.len());
            prop_assert!(network.server(|c| c.receive_memory()) < 7 << 20);
        }
    }
}
