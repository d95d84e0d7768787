//! The KCP endpoint: what it adds to the engine.

mod kcp_support;

use std::time::Duration;

use kcp_oracle::dice::Dice;
use kcp_support::lane::Lane;
use lagometer_transport::kcp::{KcpEndpoint, Settings, Side, pair};
use lagometer_transport::{Closed, Endpoint, Refused, State};
use lagometer_units::{Size, Span, Time};

const MS: Duration = Duration::from_millis(1);

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn presets() -> [(&'static str, Settings); 10] {
    [
        ("best", Settings::best()),
        ("turbo", Settings::turbo()),
        ("default", Settings::library_default()),
        ("go-default", Settings::kcp_go_default()),
        ("go-game", Settings::kcp_go_game()),
        ("2015-early", Settings::early_2015()),
        ("2015-late", Settings::late_2015()),
        ("test-default", Settings::test_cpp(0, 0, false)),
        ("normal", Settings::test_cpp(0, 0, true)),
        ("fast", Settings::test_cpp_fast()),
    ]
}

/// An echo of `count` messages, one every 50 ms; round trips in milliseconds.
fn echo<F: FnMut(usize, Time, &[u8]) -> bool>(lane: &mut Lane<F>, count: u64) -> Vec<f64> {
    lane.echoes = true;
    for index in 0..count {
        lane.run_until(at(50 * index + 20));
        let mut message = vec![0; 500];
        message[..8].copy_from_slice(&index.to_le_bytes());
        lane.send(0, &message);
    }
    lane.run_until(at(50 * count + 20_000));
    let round_trip = |(index, (came, message)): (usize, &(Time, lagometer_transport::Message))| {
        assert_eq!(message.bytes[..8], (index as u64).to_le_bytes());
        assert_eq!(message.bytes.len(), 500);
        came.since(at(50 * index as u64 + 20)).as_secs_f64() * 1e3
    };
    lane.received[0]
        .iter()
        .enumerate()
        .map(round_trip)
        .collect()
}

#[test]
fn every_preset_delivers_everything_in_order_under_loss() {
    for (name, settings) in presets() {
        let mut dice = Dice::new(3);
        let mut lane = Lane::new(&settings, 20 * MS, |_, _, _: &[u8]| dice.percent(10));
        let trips = echo(&mut lane, 200);
        assert_eq!(trips.len(), 200, "{name}");
        assert_eq!(lane.ends[0].state(), State::Ready, "{name}");
    }
}

#[test]
fn immediate_flushes_leave_nothing_but_the_path() {
    let mut lane = Lane::new(&Settings::default(), 20 * MS, |_, _, _: &[u8]| false);
    let trips = echo(&mut lane, 100);
    assert!(
        trips.iter().all(|trip| (40.0..40.001).contains(trip)),
        "{trips:?}"
    );
    // One datagram with the message, one with echo and acknowledgement, one
    // with the acknowledgement of the echo.
    assert_eq!(lane.datagrams.len(), 300);
}

#[test]
fn without_them_each_way_waits_for_the_clock() {
    let mut lane = Lane::new(&Settings::turbo(), 20 * MS, |_, _, _: &[u8]| false);
    let trips = echo(&mut lane, 100);
    let mean = trips.iter().sum::<f64>() / 100.0;
    assert!((45.0..60.0).contains(&mean), "{mean}");
}

#[test]
fn an_idle_end_sleeps_and_keeps_its_phase() {
    let settings = Settings::turbo();
    let lane = |idle: u64| {
        let mut lane = Lane::new(&settings, 20 * MS, |_, _, _: &[u8]| false);
        lane.run_until(at(idle));
        let woken = lane.wakes;
        lane.send(0, b"wake up");
        lane.run_until(at(idle + 1_000));
        (woken, lane.datagrams[0].0)
    };
    // One first update each.
    assert_eq!(lane(3_004), (2, at(3_010)));
    assert_eq!(lane(600_009), (2, at(600_010)));
    assert_eq!(lane(600_011), (2, at(600_020)));
}

#[test]
fn sleeping_changes_nothing_on_the_wire() {
    for (name, settings) in presets() {
        let play = |awake: bool| {
            let mut dice = Dice::new(5);
            let mut traffic = Dice::new(6);
            let mut lane = Lane::new(&settings, 20 * MS, |_, _, _: &[u8]| dice.percent(10));
            for step in 0..20_000_u64 {
                lane.run_until(at(step));
                if awake {
                    // A driver that wakes both ends every millisecond.
                    for side in [0, 1] {
                        lane.ends[side].handle_deadline(at(step));
                        lane.drain(side);
                    }
                }
                if traffic.below(300) == 0 {
                    lane.send(traffic.below(2) as usize, &[1; 500]);
                }
            }
            lane.datagrams
        };
        assert_eq!(play(false), play(true), "{name}");
    }
}

#[test]
fn a_silent_peer_is_a_dead_link() {
    let settings = Settings {
        dead_link: 5,
        ..Settings::default()
    };
    let mut lane = Lane::new(&settings, 20 * MS, |_, now, _: &[u8]| now > at(1_000));
    lane.send(0, b"one");
    lane.run_until(at(1_001));
    lane.send(0, b"two");
    lane.run_until(at(30_000));
    assert_eq!(lane.received[1].len(), 1);
    assert_eq!(lane.ends[0].state(), State::Closed(Closed::DeadLink));
    assert_eq!(lane.ends[0].next_deadline(), None);
    assert_eq!(lane.ends[0].send(lane.now, b"three"), Err(Refused::NotOpen));
    assert_eq!(lane.ends[1].state(), State::Ready, "it had nothing to send");
}

/// By the silence, however seldom the segments are sent again, and not by what waited
/// before the peer's last datagram came.
#[test]
fn a_peer_is_given_up_after_its_timeout_and_not_before() {
    for settings in [Settings::library_default(), Settings::game()] {
        let mut lane = Lane::new(&settings, 20 * MS, |_, now, _: &[u8]| now > at(10_000));
        lane.send(0, b"one");
        lane.run_until(at(10_001));
        assert_eq!(lane.received[1].len(), 1);
        assert_eq!(
            lane.ends[0].state(),
            State::Ready,
            "an idle end waits for nobody"
        );
        lane.send(0, b"two");
        lane.run_until(at(40_000));
        assert_eq!(lane.ends[0].state(), State::Ready);
        lane.run_until(at(40_002));
        assert_eq!(lane.ends[0].state(), State::Closed(Closed::DeadLink));
        assert_eq!(lane.ends[0].next_deadline(), None);
        assert_eq!(lane.ends[1].state(), State::Ready, "it had nothing to send");
    }
}

#[test]
fn an_application_that_does_not_look_goes_on_for_ever() {
    let settings = Settings {
        peer_timeout: Span::ZERO,
        ..Settings::turbo()
    };
    let mut lane = Lane::new(&settings, 20 * MS, |_, now, _: &[u8]| now < at(60_000));
    lane.send(0, b"deadline");
    lane.run_until(at(200_000));
    assert_eq!(lane.received[1].len(), 1);
}

#[test]
fn what_is_too_large_is_refused_and_what_just_fits_arrives() {
    let mut lane = Lane::new(&Settings::default(), 5 * MS, |_, _, _: &[u8]| false);
    let limit = 127 * 1376;
    let refused = lane.ends[0].send(lane.now, &vec![1; limit + 1]);
    let expected = Refused::TooLarge {
        size_bytes: limit + 1,
        limit_bytes: limit,
    };
    assert_eq!(refused, Err(expected));
    lane.send(0, &vec![1; limit]);
    lane.send(0, &[]);
    lane.run_until(at(1_000));
    let lengths: Vec<usize> = lane.received[1]
        .iter()
        .map(|(_, m)| m.bytes.len())
        .collect();
    assert_eq!(lengths, [limit, 0]);
}

#[test]
fn a_peer_s_small_window_limits_messages() {
    let (mut client, _) = pair(&Settings::early_2015(), 7, at(0)).unwrap();
    assert_eq!(client.send(at(0), &vec![1; 32 * 1376]), Ok(()));
    let refused = client.send(at(0), &vec![1; 32 * 1376 + 1]);
    assert!(
        matches!(refused, Err(Refused::TooLarge { limit_bytes, .. }) if limit_bytes == 32 * 1376)
    );
}

#[test]
fn a_peer_that_does_not_read_fills_the_queue_and_no_more() {
    let settings = Settings {
        send_queue_limit: 500,
        ..Settings::default()
    };
    let mut lane = Lane::new(&settings, 5 * MS, |_, _, _: &[u8]| false);
    lane.reads[1] = false;
    let mut sent = 0;
    for step in 0..2_000 {
        lane.run_until(at(step));
        for _ in 0..2 {
            match lane.ends[0].send(lane.now, &[7; 1_000]) {
                Ok(()) => sent += 1,
                Err(refused) => assert_eq!(refused, Refused::BufferFull),
            }
        }
        lane.drain(0);
    }
    assert_eq!(sent, 500 + 256, "queue and window");
    lane.reads[1] = true;
    lane.drain(1);
    lane.run_until(at(60_000));
    assert_eq!(lane.received[1].len(), sent);
}

#[test]
fn blocking_is_reported_to_the_nanosecond() {
    // The first transmission of the second message is lost.
    let mut pushes = 0;
    let mut lane = Lane::new(&Settings::default(), 20 * MS, |side, _, bytes: &[u8]| {
        let push = side == 0 && bytes[4] == 81;
        pushes += u32::from(push);
        push && pushes == 2
    });
    for (index, millis) in [(0_u8, 0), (1, 50), (2, 60), (3, 70)] {
        lane.run_until(Time::from_micros(millis * 1_000 + 123));
        lane.send(0, &[index; 100]);
    }
    lane.run_until(at(5_000));
    let received = &lane.received[1];
    let blocked: Vec<_> = received.iter().map(|(_, m)| m.blocked.unwrap()).collect();
    let freed = received[1].0;
    assert!(freed > at(90), "the second was resent: {freed}");
    assert_eq!(blocked[..2], [Duration::ZERO; 2]);
    assert_eq!(blocked[2], freed.since(Time::from_micros(80_123)));
    let third = freed.since(Time::from_micros(90_123));
    assert_eq!(blocked[3], third);
}

#[test]
fn a_stream_keeps_messages_apart() {
    let settings = Settings {
        stream: true,
        mtu: Size(100),
        ..Settings::turbo()
    };
    let mut dice = Dice::new(9);
    let mut lane = Lane::new(&settings, 20 * MS, |_, _, _: &[u8]| dice.percent(10));
    let mut sizes = Dice::new(10);
    let messages: Vec<Vec<u8>> = (0..300)
        .map(|index| {
            vec![index as u8; sizes.below(if index % 50 == 0 { 30_000 } else { 60 }) as usize]
        })
        .collect();
    for (index, message) in messages.iter().enumerate() {
        lane.run_until(at(7 * index as u64));
        lane.send(0, message);
    }
    lane.run_until(at(60_000));
    let received: Vec<_> = lane.received[1]
        .iter()
        .map(|(_, m)| m.bytes.clone())
        .collect();
    assert_eq!(received, messages);
    assert!(
        lane.received[1]
            .iter()
            .all(|(_, message)| message.blocked.is_some())
    );
}

#[test]
fn a_stream_peer_that_announces_too_much_is_broken() {
    let common = Settings {
        stream: true,
        ..Settings::default()
    };
    let short = Settings {
        stream_message_limit: Size(1_000),
        ..common.clone()
    };
    let mut sender = KcpEndpoint::new(&common, Side::Client, 7, at(0)).unwrap();
    let mut receiver = KcpEndpoint::new(&short, Side::Server, 7, at(0)).unwrap();
    sender.send(at(0), &[1; 1_001]).unwrap();
    let mut buffer = Vec::new();
    sender.handle_deadline(at(0));
    while sender.poll_datagram(at(0), &mut buffer) {
        receiver.handle_datagram(at(1), &buffer);
    }
    assert_eq!(receiver.receive(at(1)), None);
    assert!(matches!(receiver.state(), State::Closed(Closed::Failed(_))));
}

#[test]
fn the_echo_server_of_2015_lets_messages_go_one_by_one() {
    // A hole of one lost message, with three behind it when it is filled.
    let release = |settings: &Settings| {
        let mut pushes = 0;
        let mut lane = Lane::new(settings, 100 * MS, |side, _, bytes: &[u8]| {
            let push = side == 0 && bytes[4] == 81;
            pushes += u32::from(push);
            push && pushes == 1
        });
        for index in 0..6 {
            lane.run_until(at(20 * index));
            lane.send(0, &[1; 100]);
        }
        lane.run_until(at(10_000));
        let mut instants: Vec<_> = lane.received[1].iter().map(|(came, _)| *came).collect();
        instants.dedup();
        (lane.received[1].len(), instants.len())
    };
    let slow = Settings::early_2015();
    let mut mended = slow.clone();
    mended.server.one_receive_per_datagram = None;
    let (all, at_once) = release(&mended);
    assert_eq!((all, at_once), (6, 1), "all wait for the first");
    let (all, instants) = release(&slow);
    assert!(instants > 1, "{all} in {instants} goes");
}

#[test]
fn acknowledgements_may_go_out_alone_and_at_once() {
    let settings = Settings {
        ack_no_delay: true,
        ..Settings::turbo()
    };
    let mut lane = Lane::new(&settings, 20 * MS, |_, _, _: &[u8]| false);
    lane.run_until(at(1_003));
    lane.send(0, b"hello");
    lane.run_until(at(2_000));
    let sent: Vec<_> = lane
        .datagrams
        .iter()
        .map(|(when, side, _)| (*when, *side))
        .collect();
    assert_eq!(sent, [(at(1_010), 0), (at(1_030), 1)]);
    assert_eq!(lane.datagrams[1].2[4], 82);
}

#[test]
fn garbage_is_survived_and_carries_nothing() {
    let mut dice = Dice::new(11);
    for round in 0..300 {
        let (mut client, mut server) = pair(&Settings::default(), 7, at(0)).unwrap();
        let mut buffer = Vec::new();
        for step in 0..100 {
            let now = at(step * 3);
            let length = dice.below(100) as usize;
            let mut bytes: Vec<u8> = (0..length).map(|_| dice.any() as u8).collect();
            if dice.percent(50) && length >= 24 {
                // As hostile as the format permits.
                bytes[..4].copy_from_slice(&7_u32.to_le_bytes());
                bytes[4] = 81 + dice.below(4) as u8;
                bytes[20..24].copy_from_slice(&dice.below(80).to_le_bytes()[..4]);
            }
            server.handle_datagram(now, &bytes);
            client.handle_datagram(now, &bytes);
            let _ = client.send(now, &[round as u8; 10]);
            while server.receive(now).is_some() {}
            for end in [&mut client, &mut server] {
                if end.next_deadline().is_some_and(|due| due <= now) {
                    end.handle_deadline(now);
                }
                while end.poll_datagram(now, &mut buffer) {}
            }
        }
    }
}
