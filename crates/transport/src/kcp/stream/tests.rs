//! A stream between two sides in memory, and on its own.

use super::*;

/// Carries everything both sides have for each other until `until_ms`, a
/// datagram a millisecond later; every `lost_of`-th of the first side's is
/// lost.
fn carry(sides: &mut [Stream; 2], until_ms: u64, lost_of: usize) -> Vec<u8> {
    let (mut arrived, mut sent) = (Vec::new(), 0_usize);
    let mut on_the_way: [Vec<Vec<u8>>; 2] = Default::default();
    for ms in 0..until_ms {
        let now = Time::from_millis(ms);
        let due = std::mem::take(&mut on_the_way);
        for (to, datagrams) in [1, 0].into_iter().zip(due) {
            for datagram in datagrams {
                sides[to].input(now, &datagram, &mut |_| {});
            }
        }
        for (from, side) in sides.iter_mut().enumerate() {
            if side.next_deadline(now).is_some() {
                side.tick(now, &mut |datagram| {
                    sent += 1;
                    if from == 1 || lost_of == 0 || sent % lost_of != 0 {
                        on_the_way[from].push(datagram.to_vec());
                    }
                });
            }
        }
        sides[1].read(&mut |bytes| arrived.extend_from_slice(bytes));
    }
    arrived
}

#[test]
fn bytes_arrive_in_order_whatever_is_lost() {
    for profile in [StreamProfile::KcpGo, StreamProfile::Tuned] {
        let side = || Stream::new(7, profile, Time::ZERO);
        let mut sides = [side(), side()];
        let bytes: Vec<u8> = (0..20_000_u32).map(|n| n as u8).collect();
        assert_eq!(sides[0].write(Time::ZERO, &bytes), bytes.len());
        assert_eq!(carry(&mut sides, 20_000, 5), bytes, "{profile:?}");
    }
}

#[test]
fn flushes_that_send_again_are_counted_and_those_that_need_not_are_not() {
    for profile in [StreamProfile::KcpGo, StreamProfile::Tuned] {
        let side = || Stream::new(7, profile, Time::ZERO);
        for (lost_of, any) in [(0, false), (5, true)] {
            let mut sides = [side(), side()];
            sides[0].write(Time::ZERO, &vec![7; 20_000]);
            carry(&mut sides, 20_000, lost_of);
            let resending = sides[0].resending_flushes();
            assert_eq!(resending > 0, any, "{profile:?}: {resending}");
            assert_eq!(sides[1].resending_flushes(), 0, "it sent nothing");
        }
    }
}

#[test]
fn what_the_window_has_no_room_for_is_not_taken() {
    let mut side = Stream::new(7, StreamProfile::Tuned, Time::ZERO);
    let segment = side.segment_bytes;
    let bytes = vec![0; segment * 300];
    assert_eq!(side.write(Time::ZERO, &bytes), segment * 256);
    assert_eq!(side.write(Time::ZERO, &bytes), 0);
}

#[test]
fn a_kcp_go_session_takes_one_frame_whole_and_then_none_while_its_window_is_full() {
    let mut side = Stream::new(7, StreamProfile::KcpGo, Time::ZERO);
    assert_eq!(
        side.write(Time::ZERO, &vec![0; 100_000]),
        LONGEST_WRITE_BYTES
    );
    assert_eq!(side.write(Time::ZERO, &[0; 1]), 0);
}

#[test]
fn a_limit_is_for_all_writes_together_until_it_is_lifted() {
    for profile in [StreamProfile::KcpGo, StreamProfile::Tuned] {
        let mut side = Stream::new(7, profile, Time::ZERO);
        let written = |side: &mut Stream, bytes: usize| side.write(Time::ZERO, &vec![0; bytes]);
        side.limit_writes(Some(100));
        let taken = [30, 60, 25, 1].map(|bytes| written(&mut side, bytes));
        assert_eq!(taken, [30, 60, 10, 0], "{profile:?}");
        side.limit_writes(None);
        assert_eq!(written(&mut side, 25), 25, "{profile:?}");
    }
}

/// As if its timer had gone off all the while, though nobody was woken.
#[test]
fn a_kcp_go_session_that_was_idle_keeps_to_the_times_at_which_its_timer_would_have_gone_off() {
    let mut side = Stream::new(7, StreamProfile::KcpGo, Time::ZERO);
    side.tick(Time::ZERO, &mut |_| {});
    assert_eq!(side.next_deadline(Time::from_millis(20)), None);
    for (after_ms, deadline_ms) in [(1_234, 1_300), (1_250, 1_300), (1_300, 1_300)] {
        let now = Time::from_millis(after_ms);
        side.write(now, b"x");
        assert_eq!(
            side.next_deadline(now),
            Some(Time::from_millis(deadline_ms))
        );
    }
}

/// The clock that stands in its datagrams is that of the moment they are sent at, whoever
/// asks for them.
#[test]
fn what_is_sent_out_of_turn_bears_the_time_at_which_it_is_sent() {
    for profile in [StreamProfile::KcpGo, StreamProfile::Tuned] {
        let mut side = Stream::new(7, profile, Time::ZERO);
        side.tick(Time::ZERO, &mut |_| {});
        let now = Time::from_millis(1_234);
        side.write(now, b"x");
        let mut stamps = Vec::new();
        side.send(now, &mut |datagram| {
            let segment = split_segment(7, datagram).unwrap().unwrap();
            stamps.push(segment.header.timestamp);
        });
        assert_eq!(stamps, [1_234], "{profile:?}");
    }
}

#[test]
fn what_is_held_counts_buffers_that_are_kept_and_the_datagram_under_construction() {
    let mut sides = [(); 2].map(|()| Stream::new(7, StreamProfile::Tuned, Time::ZERO));
    let (fresh, bytes) = (sides[1].held_bytes(), vec![7; 100_000]);
    // An acknowledgement is put together in a buffer of its own, which is kept.
    let mut datagrams = Vec::new();
    sides[0].tick(Time::ZERO, &mut |_| {});
    sides[0].write(Time::ZERO, b"x");
    sides[0].send(Time::ZERO, &mut |datagram| {
        datagrams.push(datagram.to_vec());
    });
    sides[1].tick(Time::ZERO, &mut |_| {});
    sides[1].input(Time::ZERO, &datagrams[0], &mut |_| {});
    let came = sides[1].held_bytes();
    sides[1].send(Time::ZERO, &mut |_| {});
    let answered = sides[1].held_bytes();
    assert!(
        answered >= came + HEADER_BYTES && answered < came + 10_000,
        "{answered} and {came}"
    );
    sides = [(); 2].map(|()| Stream::new(7, StreamProfile::Tuned, Time::ZERO));
    sides[0].write(Time::ZERO, &bytes);
    assert_eq!(carry(&mut sides, 1_000, 0), bytes);
    // All was read: what is left is what the next segments are put into.
    assert_eq!(sides[1].unread_bytes(), 0);
    let kept = sides[1].held_bytes();
    assert!(
        kept > fresh + 90_000 && kept < fresh + 200_000,
        "{kept} and {fresh}"
    );
}

#[test]
fn asking_again_does_not_put_a_deadline_off() {
    let mut side = Stream::new(7, StreamProfile::KcpGo, Time::ZERO);
    assert_eq!(side.next_deadline(Time::ZERO), Some(Time::ZERO));
    side.tick(Time::ZERO, &mut |_| {});
    side.write(Time::ZERO, b"x");
    let deadlines = [1, 20, 60, 99].map(|ms| side.next_deadline(Time::from_millis(ms)));
    assert_eq!(deadlines, [Some(Time::from_millis(100)); 4]);
}

#[test]
fn only_what_can_be_a_beginning_opens_a_conversation() {
    let mut side = Stream::new(0x0102_0304, StreamProfile::Tuned, Time::ZERO);
    side.write(Time::ZERO, b"x");
    let mut datagrams = Vec::new();
    side.send(Time::ZERO, &mut |datagram| {
        datagrams.push(datagram.to_vec());
    });
    let first = &datagrams[0];
    assert_eq!(Stream::conversation_of(first), Some(0x0102_0304));
    assert!(Stream::opens(first));
    assert_eq!(Stream::conversation_of(b"short"), None);
    assert!(!Stream::opens(b"short"));
    assert!(!Stream::opens(&first[..24]), "cut off");
    let with = |at: usize, byte: u8| {
        let mut changed = first.clone();
        changed[at] = byte;
        changed
    };
    assert!(!Stream::opens(&with(13, 1)), "a segment of later on");
    assert!(!Stream::opens(&with(4, 82)), "an acknowledgement");
    let empty = &with(20, 0)[..24];
    assert!(!Stream::opens(empty), "24 bytes that say nothing");
}

#[test]
fn a_peer_is_proven_by_the_time_in_its_acknowledgement_alone() {
    let accept = || Stream::with_clock(7, &Config::kcp_go(), Time::ZERO, 0xdead_beef);
    let acknowledge = |side: &mut Stream, timestamp: u32| {
        side.tick(Time::ZERO, &mut |_| {});
        side.write(Time::ZERO, b"x");
        side.send(Time::ZERO, &mut |_| {});
        let header = lagometer_kcp::Header {
            conversation: 7,
            command: Command::Acknowledge,
            fragment: 0,
            window: 32,
            timestamp,
            sequence: 0,
            unacknowledged: 1,
            length: 0,
        };
        side.input(Time::from_millis(50), &header.to_bytes(), &mut |_| {});
        side.is_peer_proven()
    };
    for foreseen in [0, 50, 0xdead_bef0, 0xdead_beee] {
        assert!(!acknowledge(&mut accept(), foreseen));
    }
    assert!(acknowledge(&mut accept(), 0xdead_beef));
}

/// The cumulative number in its data took the segment away, which was never sent again:
/// one lost acknowledgement, and the peer could not be proven any more.
#[test]
fn a_peer_whose_first_acknowledgement_was_lost_is_asked_again_until_it_is_proven() {
    for config in [Config::kcp_go(), StreamProfile::Tuned.config()] {
        let mut accepting = Stream::with_clock(7, &config, Time::ZERO, 0xdead_beef);
        let mut peer = Stream::with_config(7, &config, Time::ZERO);
        accepting.write(Time::ZERO, b"answer");
        let mut lost_acknowledgements = 0;
        for ms in 0..3_000 {
            let now = Time::from_millis(ms);
            let mut datagrams = Vec::new();
            accepting.tick(now, &mut |datagram| datagrams.push(datagram.to_vec()));
            for datagram in datagrams {
                peer.input(now, &datagram, &mut |_| {});
            }
            if ms % 100 == 50 {
                peer.write(now, b"question");
            }
            let mut datagrams = Vec::new();
            peer.tick(now, &mut |datagram| datagrams.push(datagram.to_vec()));
            for datagram in datagrams {
                // The first two that acknowledge it, with all that is in them.
                let first = split_segment(7, &datagram).unwrap().unwrap();
                if first.header.command == Command::Acknowledge && lost_acknowledgements < 2 {
                    lost_acknowledgements += 1;
                    continue;
                }
                accepting.input(now, &datagram, &mut |_| {});
            }
        }
        assert_eq!(lost_acknowledgements, 2);
        assert!(accepting.is_peer_proven());
    }
}

#[test]
fn a_segment_that_waits_long_makes_its_acknowledgement_no_easier_to_guess() {
    let mut right = Vec::new();
    for guess_ms in (0..20_000).step_by(50) {
        let mut side = Stream::with_clock(7, &Config::kcp_go(), Time::ZERO, 0xdead_0000);
        side.write(Time::ZERO, b"x");
        let mut sent = 0;
        for ms in (0..20_000).step_by(10) {
            side.tick(Time::from_millis(ms), &mut |_| sent += 1);
        }
        assert!(sent > 3, "{sent}");
        let header = lagometer_kcp::Header {
            conversation: 7,
            command: Command::Acknowledge,
            fragment: 0,
            window: 32,
            timestamp: 0xdead_0000 + guess_ms,
            sequence: 0,
            unacknowledged: 0,
            length: 0,
        };
        side.input(Time::from_secs(20), &header.to_bytes(), &mut |_| {});
        right.extend(side.is_peer_proven().then_some(guess_ms));
    }
    assert!(right.len() <= 2, "{right:?}");
}
