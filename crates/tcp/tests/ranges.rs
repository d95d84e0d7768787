//! Settings outside of their ranges: a connection takes the nearest inside, and nothing
//! overflows, stands still or goes on for ever.

mod support;

use std::time::Duration;

use lagometer_tcp::congestion::Algorithm;
use lagometer_tcp::{CloseReason, Config, Endpoint, Instant, KeepAlive, State};
use support::{Network, Path, path, pattern};

const CONTROLS: [Algorithm; 3] = [Algorithm::Cubic, Algorithm::Reno, Algorithm::Bbr];

/// Everything as large as its type allows.
fn largest(congestion: Algorithm, timer_wheel: bool) -> Config {
    let most = KeepAlive {
        idle: Duration::MAX,
        interval: Duration::MAX,
        probes: u32::MAX,
    };
    Config {
        hz: u32::MAX,
        timer_wheel,
        congestion,
        mtu: u32::MAX,
        rto_min: Duration::MAX,
        initial_cwnd: u32::MAX,
        receive_buffer: (u32::MAX, u32::MAX),
        send_buffer: (u32::MAX, u32::MAX),
        not_sent_low_water: Some(u32::MAX),
        header_room: u32::MAX,
        keep_alive: Some(most),
        user_timeout: Some(Duration::MAX),
        max_pacing_rate: Some(u64::MAX),
        syn_retries: u32::MAX,
        synack_retries: u32::MAX,
        retries: u32::MAX,
        fin_timeout: Duration::MAX,
        ..Config::default()
    }
}

#[test]
fn the_largest_settings_carry_a_stream_and_give_a_dead_path_up() {
    for congestion in CONTROLS {
        for timer_wheel in [false, true] {
            let losing = Path {
                loss: 0.01,
                ..path(10)
            };
            let mut network = Network::connected(1, losing, &largest(congestion, timer_wheel));
            let bytes = pattern(400_000);
            let arrived = network.transfer(0, &bytes, Duration::from_hours(1));
            assert!(arrived == bytes, "{congestion:?}");
            network.drop_if = Some(Box::new(|_, _| true));
            network.write(0, b"nobody reads this");
            // The user timeout of 2^32 ms is the last to come.
            network.run(Duration::from_hours(24 * 49));
            assert_eq!(network.client(|c| c.state()), State::Established);
            network.run(Duration::from_hours(24 * 2));
            let reason = network.client(|c| c.close_reason());
            assert_eq!(reason, Some(CloseReason::TimedOut), "{congestion:?}");
        }
    }
}

#[test]
fn the_smallest_settings_carry_a_stream_and_end() {
    for congestion in CONTROLS {
        let config = Config {
            hz: 0,
            timer_wheel: false,
            congestion,
            mtu: 0,
            rto_min: Duration::ZERO,
            initial_cwnd: 0,
            header_room: 0,
            user_timeout: Some(Duration::ZERO),
            max_pacing_rate: None,
            syn_retries: 0,
            synack_retries: 0,
            fin_timeout: Duration::ZERO,
            ..Config::default()
        };
        let mut network = Network::connected(1, path(10), &config);
        let bytes = pattern(100_000);
        assert!(network.transfer(0, &bytes, Duration::from_mins(10)) == bytes);
        let now = network.now;
        network.client(|c| c.close(now));
        network.run(Duration::from_mins(1));
        assert_eq!(network.client(|c| c.state()), State::Closed);
    }
}

#[test]
fn the_slowest_pace_with_the_finest_ticks_carries_a_stream() {
    for congestion in CONTROLS {
        for rate in [1, 2, 1_000] {
            let config = Config {
                hz: u32::MAX,
                congestion,
                max_pacing_rate: Some(rate),
                ..Config::default()
            };
            let mut network = Network::connected(1, path(10), &config);
            let bytes = pattern(60_000);
            let limit = Duration::from_hours(24 * 60);
            let arrived = network.transfer(0, &bytes, limit);
            assert!(arrived == bytes, "{congestion:?} {rate}: {}", arrived.len());
        }
    }
}

#[test]
fn the_end_of_time_is_no_overflow() {
    for congestion in CONTROLS {
        let config = Config {
            congestion,
            ..Config::default()
        };
        let mut network = Network::connected(1, path(10), &config);
        network.write(0, &pattern(100_000));
        network.collect();
        let last = Instant::from_nanos(u64::MAX);
        network.client(|c| c.write(last, b"x"));
        network.client(|c| c.handle_deadline(last));
        network.server(|c| c.handle_deadline(last));
    }
}

#[test]
fn buffers_and_a_low_water_mark_of_nothing_do_not_stand_still() {
    for config in [
        Config {
            send_buffer: (0, 0),
            ..Config::default()
        },
        Config {
            not_sent_low_water: Some(0),
            ..Config::default()
        },
    ] {
        let mut network = Network::connected(1, path(10), &config);
        let bytes = pattern(50_000);
        let arrived = network.transfer(0, &bytes, Duration::from_hours(1));
        assert!(arrived == bytes, "{}", arrived.len());
    }
}

#[test]
fn keep_alive_without_a_time_waits_for_one() {
    let config = Config {
        timer_wheel: false,
        ..Config::default()
    };
    let mut network = Network::connected(1, path(10), &config);
    network.run(Duration::from_secs(1));
    let now = network.now;
    let none = KeepAlive {
        idle: Duration::ZERO,
        interval: Duration::ZERO,
        probes: 0,
    };
    for _ in 0..3 {
        network.client(|c| {
            c.set_keep_alive(now, Some(none));
            let due = c.next_deadline();
            assert!(due.is_some_and(|due| due > now), "{due:?} at {now:?}");
        });
    }
}

#[test]
fn an_answer_to_a_syn_is_repeated_for_hours_and_then_no_more() {
    for timer_wheel in [false, true] {
        let config = largest(Algorithm::Cubic, timer_wheel);
        let [client, server] = ["10.0.0.1", "10.0.0.2"].map(|address| address.parse().unwrap());
        let mut now = Instant::from_millis(10_000);
        let mut opens = Endpoint::new(client, Config::default(), 1);
        let mut host = Endpoint::new(server, config, 2);
        host.listen(80, 1);
        opens.connect(now, (server, 80).into()).unwrap();
        let syn = opens.poll_transmit().unwrap();
        host.receive(now, &syn).unwrap();
        let mut answers = 0;
        while let Some(due) = host.next_deadline() {
            assert!(due > now, "{due:?} after {now:?}");
            now = due;
            host.handle_deadline(now);
            while host.poll_transmit().is_some() {
                answers += 1;
            }
            assert!(answers <= 256, "it goes on for ever");
        }
        assert_eq!(answers, 256);
    }
}
