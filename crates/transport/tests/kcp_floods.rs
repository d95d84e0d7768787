//! What a peer of KCP can make a conversation keep: no more than its windows.

use lagometer_kcp::{Command, Header};
use lagometer_transport::ByteStream as _;
use lagometer_transport::kcp::{Stream, StreamProfile};
use lagometer_units::Time;

const CONVERSATION: u32 = 7;
const HEADER_BYTES: usize = lagometer_kcp::HEADER_BYTES;

fn segment(sequence: u32) -> [u8; HEADER_BYTES] {
    Header {
        conversation: CONVERSATION,
        command: Command::Push,
        fragment: 0,
        window: 128,
        timestamp: 0,
        sequence,
        unacknowledged: 0,
        length: 0,
    }
    .to_bytes()
}

/// The segments that are acknowledged once the stream flushes.
fn acknowledged(stream: &mut Stream, now: Time) -> Vec<u32> {
    let mut sequences = Vec::new();
    stream.send(now, &mut |datagram| {
        for header in datagram.chunks_exact(HEADER_BYTES) {
            assert_eq!(header[4], 82, "an acknowledgement");
            let sequence = header[12..16].try_into().unwrap();
            sequences.push(u32::from_le_bytes(sequence));
        }
    });
    sequences
}

#[test]
fn a_segment_repeated_without_end_is_acknowledged_a_bounded_number_of_times() {
    for profile in [StreamProfile::KcpGo, StreamProfile::Tuned] {
        let mut stream = Stream::new(CONVERSATION, profile, Time::ZERO);
        let flood = segment(1).repeat(50);
        for _ in 0..2000 {
            stream.input(Time::ZERO, &flood, &mut |_| {});
        }
        let after_flood = acknowledged(&mut stream, Time::ZERO);
        assert!((1..=1024).contains(&after_flood.len()), "{profile:?}");
        // What is sent once more is acknowledged.
        stream.input(Time::ZERO, &segment(0), &mut |_| {});
        assert_eq!(acknowledged(&mut stream, Time::ZERO), [0], "{profile:?}");
    }
}

#[test]
fn a_window_that_arrives_three_times_before_a_flush_is_acknowledged_as_often() {
    for (profile, window) in [(StreamProfile::KcpGo, 32), (StreamProfile::Tuned, 256)] {
        let mut stream = Stream::new(CONVERSATION, profile, Time::ZERO);
        for _ in 0..3 {
            // The first is missing: kcp-go says of what is in order nothing by itself.
            for sequence in 1..window {
                stream.input(Time::ZERO, &segment(sequence), &mut |_| {});
            }
        }
        let sequences = acknowledged(&mut stream, Time::ZERO);
        for sequence in 1..window {
            let times = sequences.iter().filter(|&&it| it == sequence).count();
            assert_eq!(times, 3, "{profile:?}: {sequence}");
        }
    }
}
