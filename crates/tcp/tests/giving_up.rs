//! How long a connection asks a silent peer, how often, and when it gives up: keep-alive,
//! closed windows, shrunk windows and what its application has closed, as Linux has it.

mod support;

use std::time::Duration;

use lagometer_tcp::wire::Flags;
use lagometer_tcp::{CloseReason, Config, Instant, KeepAlive, State};
use support::{Network, ms, pattern, warm};

const KEEP_ALIVE: KeepAlive = KeepAlive {
    idle: Duration::from_secs(10),
    interval: Duration::from_secs(2),
    probes: 3,
};

/// Timers that fire at their tick, so that times can be reckoned.
fn exact() -> Config {
    Config {
        timer_wheel: false,
        ..Config::default()
    }
}

/// Nothing arrives anywhere any more.
fn cut(network: &mut Network) {
    network.trace.clear();
    network.drop_if = Some(Box::new(|_, _| true));
}

/// When the client sent segments without data of these flags.
fn bare(network: &Network, flags: Flags) -> Vec<Instant> {
    let of_client = network.trace.iter().filter(|seen| seen.from == 0);
    of_client
        .filter(|seen| seen.length == 0 && seen.flags.0 & flags.0 == flags.0)
        .map(|seen| seen.at)
        .collect()
}

fn gaps(times: &[Instant]) -> Vec<u64> {
    times.windows(2).map(|pair| ms(pair[1] - pair[0])).collect()
}

fn end_of(network: &mut Network) -> Option<CloseReason> {
    let client = network.client;
    network.hosts[0]
        .with(client, |c| c.close_reason())
        .unwrap_or(Some(CloseReason::TimedOut))
}

/// RFC 9293, section 3.8.4, and Linux 6.1 `tcp_keepalive_timer`: the first probe comes after
/// `idle`, each other after `interval`, and with one more interval a reset.
#[test]
fn keep_alive_probes_at_its_interval_and_as_often_as_it_says() {
    let config = Config {
        keep_alive: Some(KEEP_ALIVE),
        ..exact()
    };
    let mut network = warm(&config);
    network.write(0, b"x");
    network.run(Duration::from_secs(1));
    // The peer's acknowledgement leaves last, and is here 40 ms later.
    let last_received = network.trace.last().unwrap().at + Duration::from_millis(40);
    cut(&mut network);
    network.run(Duration::from_mins(1));
    let sent = bare(&network, Flags::ACK);
    // Three probes and the reset.
    assert_eq!(gaps(&sent), [2_000, 2_000, 2_000]);
    assert_eq!(bare(&network, Flags::RST), sent[3..]);
    assert!((10_000..=10_001).contains(&ms(sent[0] - last_received)));
    assert_eq!(end_of(&mut network), Some(CloseReason::TimedOut));
}

/// With `TCP_USER_TIMEOUT` the number of probes does not count, but there is one at least.
#[test]
fn keep_alive_asks_once_before_a_user_timeout_ends_the_connection() {
    let config = Config {
        keep_alive: Some(KEEP_ALIVE),
        user_timeout: Some(Duration::from_secs(5)),
        ..exact()
    };
    let mut network = warm(&config);
    cut(&mut network);
    network.run(Duration::from_mins(1));
    assert_eq!(gaps(&bare(&network, Flags::ACK)), [2_000]);
    assert_eq!(bare(&network, Flags::RST).len(), 1);
    assert_eq!(end_of(&mut network), Some(CloseReason::TimedOut));
}

/// Linux 6.1 `keepalive_time_elapsed`: the time since the last data counts, too, and data
/// that acknowledges nothing new is no acknowledgement.
#[test]
fn data_that_acknowledges_nothing_new_is_a_sign_of_life() {
    let config = Config {
        keep_alive: Some(KEEP_ALIVE),
        ..exact()
    };
    let mut network = warm(&config);
    for _ in 0..8 {
        network.write(1, b"state");
        network.run(Duration::from_secs(4));
        assert_eq!(network.read(0), b"state");
    }
    let next = network
        .trace
        .iter()
        .rfind(|seen| seen.from == 0)
        .unwrap()
        .seq;
    let is_probe = |seen: &&support::Seen| seen.from == 0 && seen.seq == next - 1;
    assert_eq!(network.trace.iter().filter(is_probe).count(), 0);
}

/// The server never reads, the client fills its window; what the server then says is lost.
fn with_a_closed_window(config: &Config) -> Network {
    let mut network = warm(config);
    let bytes = pattern(3_000_000);
    let (mut written, filled) = (0, network.now + Duration::from_secs(20));
    while network.now < filled && network.client(|c| c.send_window()) > 0 {
        written += network.write(0, &bytes[written..]);
        network.run(Duration::from_millis(10));
    }
    assert_eq!(network.client(|c| c.send_window()), 0);
    assert_eq!(network.client(|c| c.info().unacked), 0);
    cut(&mut network);
    network
}

/// Linux 6.1 `tcp_probe_timer`: `tcp_retries2` probes without an answer, and no more; the
/// time between them doubles.
#[test]
fn a_closed_window_is_probed_as_often_as_retries_allow() {
    let mut network = with_a_closed_window(&Config {
        retries: 4,
        ..exact()
    });
    network.run(Duration::from_mins(10));
    let sent = bare(&network, Flags::ACK);
    assert_eq!(sent.len(), 4);
    let gaps = gaps(&sent);
    for pair in gaps.windows(2) {
        assert!(pair[1].abs_diff(2 * pair[0]) <= 2, "{gaps:?}");
    }
    assert_eq!(end_of(&mut network), Some(CloseReason::TimedOut));
}

/// `TCP_USER_TIMEOUT` counts from the first probe on.
#[test]
fn a_user_timeout_ends_the_probing_of_a_closed_window() {
    let mut network = with_a_closed_window(&Config {
        user_timeout: Some(Duration::from_secs(5)),
        ..exact()
    });
    let is_over = |n: &mut Network| end_of(n).is_some();
    let limit = network.now + Duration::from_mins(10);
    assert!(network.run_until(limit, is_over));
    let first = bare(&network, Flags::ACK)[0];
    assert!(
        (5_000..=5_010).contains(&ms(network.now - first)),
        "{} ms",
        ms(network.now - first)
    );
}

/// Linux 6.1 `tcp_retransmit_timer`: where a peer has taken its window back, retransmissions
/// are probes, and only two of the longest timeouts of silence, 240 s, end them.
#[test]
fn what_a_shrunk_window_holds_up_is_not_given_up_as_what_is_lost() {
    let mut network = warm(&Config {
        retries: 3,
        timestamps: false,
        ..exact()
    });
    // What it says last has a later number than what reported its window before.
    network.write(1, b"x");
    network.run(Duration::from_secs(1));
    let known = network.client(|c| c.counters().timeouts);
    cut(&mut network);
    network.write(0, &pattern(1448));
    network.collect();
    shrink(&mut network);
    assert_eq!(network.client(|c| c.send_window()), 0);
    network.run(Duration::from_secs(230));
    assert_eq!(network.client(|c| c.state()), State::Established);
    assert_eq!(network.client(|c| c.counters().timeouts), known);
    network.run(Duration::from_mins(5));
    assert_eq!(end_of(&mut network), Some(CloseReason::TimedOut));
}

/// The peer says that it has no room any more, and acknowledges nothing.
fn shrink(network: &mut Network) {
    let sent = network.data_of(0)[0];
    let (local, remote) = network.client(|c| (c.local(), c.remote()));
    let mut tcp = Vec::new();
    tcp.extend_from_slice(&remote.port().to_be_bytes());
    tcp.extend_from_slice(&local.port().to_be_bytes());
    tcp.extend_from_slice(&sent.ack.0.to_be_bytes());
    tcp.extend_from_slice(&sent.seq.0.to_be_bytes());
    // No options, ACK, a window of 0.
    tcp.extend_from_slice(&[0x50, Flags::ACK.0, 0, 0, 0, 0, 0, 0]);
    let packet = support::forge::wrap(remote.ip(), local.ip(), tcp);
    network.inject(0, &packet);
}

/// Linux 6.1 `tcp_orphan_retries`: eight retransmissions' time from 200 ms, (2^9 - 1) times
/// 200 ms, ends what its application has closed; at the timeout after that, since each
/// doubles. One that is open has 15, which is a quarter of an hour.
#[test]
fn what_its_application_has_closed_is_given_up_after_eight_timeouts() {
    for is_closed in [true, false] {
        let mut network = warm(&exact());
        let rto = network.client(|c| c.info().rto);
        cut(&mut network);
        network.write(0, b"x");
        network.collect();
        if is_closed {
            let now = network.now;
            network.client(|c| c.close(now));
        }
        let limit = network.now + Duration::from_mins(30);
        let begun = network.now;
        network.run_until(limit, |n| end_of(n).is_some());
        let lasted = (network.now - begun).as_secs_f64();
        let doubled = |times: i32| rto.as_secs_f64() * (2_f64.powi(times) - 1.0);
        // 102.2 s from the first retransmission, or 924.6 s.
        let least = if is_closed { 102.2 } else { 924.6 } + rto.as_secs_f64();
        let most = if is_closed { doubled(9) } else { least + 120.0 } + 1.0;
        assert!((least..=most).contains(&lasted), "{is_closed}: {lasted} s");
    }
}

/// RFC 8985, section 7.3: while the end of one probe is not known there is no other.
#[test]
fn no_second_tail_loss_probe_is_sent_while_one_is_out() {
    let mut network = warm(&exact());
    cut(&mut network);
    network.write(0, &pattern(1448 * 2));
    network.run_until(network.now + Duration::from_secs(1), |n| {
        n.client(|c| c.counters().tail_loss_probes) == 1
    });
    // New data would arm the timer again.
    network.write(0, b"x");
    network.run_until(network.now + Duration::from_secs(1), |n| {
        n.client(|c| c.counters().timeouts) > 0
    });
    assert_eq!(network.client(|c| c.counters().tail_loss_probes), 1);
}
