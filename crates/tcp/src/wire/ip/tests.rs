use super::{Ecn, IpHeader, ParseError, build_packet, icmp_too_big, parse_packet, too_big};
use crate::Seq;
use crate::wire::{Flags, Segment, TcpOptions};

fn segment() -> Segment<'static> {
    Segment {
        source_port: 1000,
        destination_port: 80,
        seq: Seq(7),
        ack: Seq(9),
        flags: Flags::ACK.with(Flags::PSH),
        window: 500,
        options: TcpOptions {
            timestamps: Some((1, 2)),
            ..TcpOptions::default()
        },
        payload: b"hello",
    }
}

fn headers() -> [IpHeader; 2] {
    [("10.0.0.1", "10.0.0.2"), ("fd00::1", "fd00::2")].map(|(source, destination)| IpHeader {
        source: source.parse().unwrap(),
        destination: destination.parse().unwrap(),
        ecn: Ecn::Capable0,
    })
}

#[test]
fn a_packet_of_either_family_comes_back() {
    for header in headers() {
        let packet = build_packet(&header, 3, &segment(), (b"hel", b"lo"));
        assert_eq!(parse_packet(&packet), Ok((header, segment())));
    }
}

#[test]
fn a_flipped_bit_anywhere_changes_nothing_silently() {
    for header in headers() {
        let packet = build_packet(&header, 3, &segment(), (b"hello", b""));
        for bit in 0..packet.len() * 8 {
            let mut damaged = packet.clone();
            damaged[bit / 8] ^= 1 << (bit % 8);
            // What no checksum covers (traffic class, flow label and hop limit
            // of IPv6) may be read; the segment must be the same.
            if let Ok((_, read)) = parse_packet(&damaged) {
                assert_eq!(read, segment(), "bit {bit}");
            }
        }
    }
}

#[test]
fn every_truncation_is_refused() {
    for header in headers() {
        let packet = build_packet(&header, 3, &segment(), (b"hello", b""));
        for length in 0..packet.len() {
            assert!(parse_packet(&packet[..length]).is_err(), "{length}");
        }
    }
}

#[test]
fn fragments_and_other_protocols_are_named() {
    let packet = build_packet(&headers()[0], 3, &segment(), (b"hello", b""));
    assert_eq!(parse_packet(&[0x50; 40]), Err(ParseError::Version(5)));
    let icmp = icmp_too_big("10.0.0.9".parse().unwrap(), &packet, 1400).unwrap();
    assert_eq!(parse_packet(&icmp), Err(ParseError::Protocol(1)));
}

#[test]
fn a_router_quotes_the_packet_that_was_too_big() {
    for (header, router) in headers().into_iter().zip(["10.0.0.9", "fd00::9"]) {
        let packet = build_packet(&header, 3, &segment(), (b"hello", b""));
        let message = icmp_too_big(router.parse().unwrap(), &packet, 1400).unwrap();
        let read = too_big(&message).unwrap();
        assert_eq!((read.mtu, read.seq), (1400, Seq(7)));
        assert_eq!(read.local, (header.source, 1000).into());
        assert_eq!(read.remote, (header.destination, 80).into());
        for length in 0..message.len() {
            assert_eq!(too_big(&message[..length]), None);
        }
    }
}
