//! Rules that came out of holding this stack against the kernel packet by
//! packet, each with the kernel's function.

mod support;

use std::net::SocketAddr;
use std::time::Duration;

use lagometer_tcp::wire::{Ecn, Flags, IpHeader, SackBlock, Segment, TcpOptions, parse_packet};
use lagometer_tcp::{Config, Connection, Event, Instant, Seq, State};
use support::{Network, path, pattern, warm};

#[test]
fn the_first_window_of_an_answer_leaves_room_for_time_stamps() {
    // Linux 6.1 `tcp_openreq_init_rwin`, and `tcp_connect_init` without it.
    let network = Network::connected(1, path(10), &Config::default());
    let windows = [0, 1].map(|from| {
        let mut seen = network.trace.iter().filter(|seen| seen.from == from);
        seen.next().map(|seen| seen.window)
    });
    assert_eq!(windows, [Some(64_240), Some(65_160)]);
}

fn at(host: u8, port: u16) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, host], port))
}

/// A SYN to port 80.
fn syn(options: TcpOptions) -> Segment<'static> {
    Segment {
        source_port: 40_000,
        destination_port: 80,
        seq: Seq(1),
        ack: Seq(0),
        flags: Flags::SYN,
        window: 5_840,
        options,
        payload: &[],
    }
}

#[test]
fn a_scale_of_0_is_answered_with_a_scale() {
    // Linux 6.1 `tcp_synack_options`: what counts is that scaling was offered.
    let config = Config {
        receive_buffer: (8_000, 8_000),
        tune_receive_buffer: false,
        ..Config::default()
    };
    let answer = |window_scale| {
        let syn = syn(TcpOptions {
            mss: Some(1_460),
            window_scale,
            ..TcpOptions::default()
        });
        let (local, remote) = (at(2, 80), at(1, 40_000));
        let mut server =
            Connection::accept(&config, local, remote, &syn, 1, Instant::from_millis(10)).unwrap();
        let packet = server.poll_transmit().unwrap();
        let (header, segment) = parse_packet(&packet).unwrap();
        assert_eq!(header.ecn, Ecn::NotCapable);
        segment.options.window_scale
    };
    assert_eq!(answer(Some(0)), Some(0));
    assert_eq!(answer(None), None);
}

#[test]
fn a_fin_is_acknowledged_late_for_an_answer_may_carry_it() {
    // Linux 6.1 `tcp_fin`.
    let mut network = Network::connected(1, path(10), &Config::default());
    network.write(0, b"hello");
    network.run(Duration::from_secs(1));
    network.read(1);
    network.trace.clear();
    let now = network.now;
    network.client(|c| c.finish(now));
    network.run(Duration::from_millis(20));
    let from_server =
        |network: &Network| network.trace.iter().filter(|seen| seen.from == 1).count();
    assert_eq!(from_server(&network), 0);
    network.run(Duration::from_millis(200));
    assert_eq!(from_server(&network), 1);
}

#[test]
fn what_was_held_back_leaves_with_nodelay_although_corked() {
    // Linux 6.1 `__tcp_sock_set_nodelay`: TCP_NAGLE_PUSH outweighs a cork until
    // the next write.
    let mut network = warm(&Config::default());
    let now = network.now;
    network.client(|c| c.set_cork(now, true));
    network.write(0, b"held");
    network.collect();
    network.trace.clear();
    network.client(|c| c.set_nodelay(now, true));
    network.collect();
    assert_eq!(network.data_of(0).len(), 1);
    network.trace.clear();
    network.write(0, b"held again");
    network.collect();
    assert!(network.data_of(0).is_empty());
}

#[test]
fn a_syn_that_comes_again_starts_the_timer_of_its_answer_anew() {
    // Linux 6.1 `tcp_check_req`, `inet_rtx_syn_ack`.
    let (local, remote) = (at(2, 80), at(1, 40_000));
    let syn = syn(TcpOptions::default());
    let header = IpHeader {
        source: remote.ip(),
        destination: local.ip(),
        ecn: Ecn::NotCapable,
    };
    let config = Config {
        timer_wheel: false,
        ..Config::default()
    };
    let begin = Instant::from_millis(10);
    let mut server = Connection::accept(&config, local, remote, &syn, 1, begin).unwrap();
    assert_eq!(server.next_deadline(), Some(Instant::from_millis(1_010)));
    server.receive(Instant::from_millis(900), &header, &syn);
    let mut answers = 0;
    while let Some(packet) = server.poll_transmit() {
        let (_, segment) = parse_packet(&packet).unwrap();
        assert!(segment.has(Flags::SYN) && segment.has(Flags::ACK));
        answers += 1;
    }
    assert_eq!(answers, 2);
    assert_eq!(server.next_deadline(), Some(Instant::from_millis(1_900)));
    assert_eq!(server.counters().timeouts, 0);
}

#[test]
fn a_poll_that_finds_no_room_is_notified_of_room() {
    // Linux 6.1 `tcp_poll`: it sets `SOCK_NOSPACE`, as a write that fails does.
    let config = Config {
        send_buffer: (40_000, 40_000),
        tune_send_buffer: false,
        ..Config::default()
    };
    let mut network = Network::connected(1, path(10), &config);
    while network.client(Connection::poll_event).is_some() {}
    assert!(network.client(Connection::poll_writable));
    assert_eq!(network.write(0, &pattern(35_000)), 35_000);
    assert!(!network.client(Connection::poll_writable));
    assert_eq!(network.client(Connection::poll_event), None);
    let limit = network.now + Duration::from_secs(1);
    let is_notified = network.run_until(limit, |network| {
        network.client(Connection::poll_event) == Some(Event::Writable)
    });
    assert!(is_notified);
    assert!(network.client(Connection::poll_writable));
}

#[test]
fn a_timer_that_one_of_its_tick_arms_waits_a_tick_less_in_the_wheel() {
    // Linux 6.1 `forward_timer_base`: while timers run, the wheel has turned on. 504
    // ticks would wait in buckets of 64, 503 wait in those of 8.
    let config = Config {
        hz: 252,
        ..Config::default()
    };
    let start = Instant::from_millis(40);
    let mut client = Connection::connect(&config, at(1, 40_000), at(2, 80), 1, start);
    let mut ticks = Vec::new();
    for _ in 0..2 {
        let deadline = client.next_deadline().unwrap();
        client.handle_deadline(deadline);
        ticks.push(deadline.as_nanos() * 252 / 1_000_000_000);
    }
    assert_eq!(client.counters().timeouts, 2);
    assert_eq!(ticks, [264, 776]);
}

#[test]
fn small_packets_that_follow_each_other_measure_a_path_that_grew_longer() {
    // Linux 6.1 `tcp_clean_rtx_queue`: only the answer to a packet after which nothing
    // else arrived may have waited for a timer.
    let mut network = Network::connected(1, path(20), &Config::default());
    let now = network.now;
    network.client(|c| c.set_nodelay(now, true));
    network.server(|c| c.set_nodelay(now, true));
    let play = |network: &mut Network, seconds: u64| {
        for _ in 0..seconds * 100 {
            for end in 0..2 {
                network.read(end);
                network.write(end, &[0; 100]);
                network.run(Duration::from_millis(5));
            }
        }
    };
    play(&mut network, 1);
    assert_eq!(network.client(|c| c.flow().min_rtt_us), 40_000);
    network.path = path(50);
    // The window of the minimum is five minutes. An answer leaves with the data that
    // is written 5 ms later.
    play(&mut network, 301);
    assert_eq!(network.client(|c| c.flow().min_rtt_us), 105_000);
}

/// What the server may answer, while nothing of it is sent: that `packets` arrived
/// in order after `una`, and one range beyond, counted in packets.
struct Answers {
    una: Seq,
    mss: u32,
    ports: (u16, u16),
    seq: Seq,
    header: IpHeader,
}

impl Answers {
    fn new(network: &mut Network) -> Self {
        let (una, mss) = network.client(|c| (c.flow().una, c.flow().mss));
        let (header, to) = network.client(|c| {
            let header = IpHeader {
                source: c.remote().ip(),
                destination: c.local().ip(),
                ecn: Ecn::NotCapable,
            };
            (header, c.local().port())
        });
        let (from, seq) = network.server(|c| (c.local().port(), c.flow().next));
        Self {
            una,
            mss,
            ports: (from, to),
            seq,
            header,
        }
    }

    fn give(&self, network: &mut Network, packets: u32, beyond: Option<(u32, u32)>) {
        let now = network.now;
        let mut options = TcpOptions::default();
        if let Some((start, end)) = beyond {
            options.sack.push(SackBlock {
                start: self.una + start * self.mss,
                end: self.una + end * self.mss,
            });
        }
        let segment = Segment {
            source_port: self.ports.0,
            destination_port: self.ports.1,
            seq: self.seq,
            ack: self.una + packets * self.mss,
            flags: Flags::ACK,
            window: 500,
            options,
            payload: &[],
        };
        network.client(|c| c.receive(now, &self.header, &segment));
    }
}

#[test]
fn what_an_overtaken_acknowledgement_reports_is_not_counted_as_delivered() {
    // Linux 6.1 `tcp_ack`: `old_ack` marks it as received, and no more.
    let mut network = warm(&Config {
        timestamps: false,
        ..Config::default()
    });
    let answers = Answers::new(&mut network);
    network.write(0, &vec![0; 8 * answers.mss as usize]);
    network.collect();
    let before = network.client(|c| c.flow().delivered);
    answers.give(&mut network, 2, None);
    assert_eq!(network.client(|c| c.flow().delivered), before + 2);
    answers.give(&mut network, 1, Some((3, 4)));
    assert_eq!(network.client(|c| c.flow().sacked_out), 1);
    assert_eq!(network.client(|c| c.flow().delivered), before + 2);
}

#[test]
fn what_times_out_again_after_it_was_thought_found_counts_twice_until_all_arrived() {
    // Linux 6.1 `tcp_retransmit_skb` counts what it sends; `tcp_try_undo_loss` took the
    // mark of a loss from it, not that of its retransmission.
    let config = Config {
        tail_loss_probe: false,
        timestamps: false,
        ..Config::default()
    };
    let mut network = warm(&config);
    let answers = Answers::new(&mut network);
    network.drop_if = Some(Box::new(|_, _| true));
    network.write(0, &vec![0; 3 * answers.mss as usize]);
    let timeouts = |network: &mut Network| network.client(|c| c.counters().timeouts);
    let limit = network.now + Duration::from_mins(1);
    network.run_until(limit, |network| timeouts(network) == 1);
    // F-RTO: the original of the third arrived.
    answers.give(&mut network, 0, Some((2, 3)));
    let limit = network.now + Duration::from_mins(1);
    network.run_until(limit, |network| timeouts(network) == 2);
    let [lost, again, flying] = network.client(|c| {
        let flow = c.flow();
        [flow.lost_out, flow.retransmitted_out, flow.in_flight()]
    });
    assert_eq!([lost, again, flying], [2, 2, 2]);
    answers.give(&mut network, 3, None);
    assert_eq!(network.client(|c| c.flow().retransmitted_out), 0);
}

/// A server that was sent its peer's SYN twice, 100 ms apart, and the end of the
/// handshake then; what the peer sends next, and how it gets there.
fn after_a_repeated_syn() -> (
    Connection,
    Segment<'static>,
    impl Fn(&mut Connection, &Segment<'_>),
) {
    let (local, remote) = (at(2, 80), at(1, 40_000));
    let header = IpHeader {
        source: remote.ip(),
        destination: local.ip(),
        ecn: Ecn::NotCapable,
    };
    let syn = syn(TcpOptions {
        mss: Some(1_460),
        sack_permitted: true,
        ..TcpOptions::default()
    });
    let begin = Instant::from_millis(10_000);
    let config = Config::default();
    let mut server = Connection::accept(&config, local, remote, &syn, 1, begin).unwrap();
    let now = Instant::from_millis(10_100);
    server.receive(now, &header, &syn);
    let ack = Segment {
        seq: syn.seq + 1,
        ack: server.flow().next,
        flags: Flags::ACK,
        options: TcpOptions::default(),
        ..syn
    };
    server.receive(now, &header, &ack);
    let sent = std::iter::from_fn(|| server.poll_transmit()).count();
    assert_eq!((sent, server.state()), (2, State::Established));
    (
        server,
        ack,
        move |server: &mut Connection, segment: &Segment<'_>| {
            server.receive(now, &header, segment);
        },
    )
}

#[test]
fn an_answer_to_a_repeated_syn_holds_none_of_the_connection_back() {
    // Linux 6.1 `tcp_check_req` keeps its time with the request, which ends here.
    let (mut server, ack, give) = after_a_repeated_syn();
    let stale = Segment {
        seq: ack.seq - 100,
        ..ack
    };
    give(&mut server, &stale);
    assert!(server.poll_transmit().is_some());
    give(&mut server, &stale);
    assert!(server.poll_transmit().is_none());
}

#[test]
fn a_duplicate_is_believed_in_after_the_handshake_alone_was_repeated() {
    // Linux 6.1 `tcp_create_openreq_child`: repeated answers to the SYN count among
    // the retransmissions that `tcp_dsack_seen` lets be reported.
    let (mut server, ack, give) = after_a_repeated_syn();
    let begin = server.flow().next;
    server.write(Instant::from_millis(10_100), &[0; 100]);
    let mut options = TcpOptions::default();
    options.sack.push(SackBlock {
        start: begin,
        end: begin + 100,
    });
    let before = server.flow().delivered;
    let twice = Segment {
        ack: begin + 100,
        options,
        ..ack
    };
    give(&mut server, &twice);
    assert_eq!(server.flow().delivered, before + 2);
}
