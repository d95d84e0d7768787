//! The dissectors by themselves: their fields against the bytes of captures, and
//! captures that are damaged.

#[cfg(target_os = "linux")]
mod gateway;

use std::fs;
use std::path::Path;

use lagometer_capture::{UdpHeaders, checksum, logged_packets, pcapng, taken_off};
use lagometer_protocol::{Compressor, FrameBuilder, MessagePack};

use crate::{captured, dissected, fields, tshark};

fn half(bytes: &[u8], at: usize) -> u64 {
    u64::from(u16::from_be_bytes([bytes[at], bytes[at + 1]]))
}

fn little(bytes: &[u8], at: usize, length: usize) -> u64 {
    let bytes = bytes[at..at + length].iter().rev();
    bytes.fold(0, |number, &byte| number << 8 | u64::from(byte))
}

fn hex(byte: u8) -> String {
    format!("{byte:02x}")
}

/// The numbers in a column, which has one for each segment or command of a packet.
fn numbers(column: &str) -> Vec<u64> {
    let number = |text: &str| match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16).unwrap(),
        None => text.parse().unwrap(),
    };
    column
        .split(',')
        .filter(|text| !text.is_empty())
        .map(number)
        .collect()
}

#[test]
fn kcp_is_read_as_it_was_sent() {
    if !tshark() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let play = ["--lanes", "kcp", "--for", "5s", "--network", "loss-5"];
    let (_, capture) = captured(folder.path(), &play);
    let names = [
        "kcp.conv",
        "kcp.cmd",
        "kcp.frg",
        "kcp.wnd",
        "kcp.ts",
        "kcp.sn",
        "kcp.una",
        "kcp.len",
        "kcp.data",
        "kcp.first_frame",
    ];
    let rows = fields(&capture, "frame", &names);
    let log = fs::read(&capture).unwrap();
    let mut segments = 0;
    let mut again = 0;
    for (row, packet) in rows.iter().zip(logged_packets(&log)) {
        let datagram = taken_off(packet.bytes).unwrap();
        let mut expected = vec![Vec::new(); 8];
        let mut payloads = String::new();
        let mut at = 0;
        while at < datagram.len() {
            let header = &datagram[at..];
            let parts = [
                (0, 4),
                (4, 1),
                (5, 1),
                (6, 2),
                (8, 4),
                (12, 4),
                (16, 4),
                (20, 4),
            ];
            for (column, (from, length)) in expected.iter_mut().zip(parts) {
                column.push(little(header, from, length));
            }
            let length = little(header, 20, 4) as usize;
            for byte in &header[24..24 + length] {
                payloads += &hex(*byte);
            }
            at += 24 + length;
            segments += 1;
        }
        let found: Vec<_> = row[..8].iter().map(|column| numbers(column)).collect();
        assert_eq!(found, expected);
        assert_eq!(row[8].replace([',', ':'], ""), payloads);
        again += numbers(&row[9]).len();
    }
    assert!(segments > 300, "{segments}");
    assert!(
        again > 3,
        "5 % of packets were lost, and {again} segments sent again"
    );
}

#[test]
fn forward_error_correction_around_kcp_is_read() {
    if !tshark() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let (_, capture) = captured(folder.path(), &["--lanes", "kcp-go-fec", "--for", "2s"]);
    let names = ["kcp.fec.seqid", "kcp.fec.type", "kcp.fec.size"];
    let log = fs::read(&capture).unwrap();
    let rows = fields(&capture, "kcp.fec.seqid", &names);
    assert_eq!(rows.len(), logged_packets(&log).count());
    for (row, packet) in rows.iter().zip(logged_packets(&log)) {
        let datagram = taken_off(packet.bytes).unwrap();
        let mut expected = vec![little(datagram, 0, 4), little(datagram, 4, 2)];
        if expected[1] == 0xf1 {
            expected.push(little(datagram, 6, 2));
        }
        let found: Vec<u64> = row.iter().flat_map(|column| numbers(column)).collect();
        assert_eq!(found, expected);
    }
    assert!(rows.iter().any(|row| row[1] == "0x00f2"), "parity");
}

#[test]
fn enet_is_read_as_it_was_sent() {
    if !tshark() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let play = ["--lanes", "enet", "--for", "5s", "--network", "loss-5"];
    let (_, capture) = captured(folder.path(), &play);
    let names = [
        "enet.peer",
        "enet.sent_time",
        "enet.command",
        "enet.channel",
        "enet.seq",
        "enet.ack.seq",
        "enet.length",
        "enet.data",
        "enet.first_frame",
    ];
    let rows = fields(&capture, "frame", &names);
    let log = fs::read(&capture).unwrap();
    // By the kind of command: bytes before its payload, and where its length is.
    let layout = |kind| match kind {
        1 | 4 => (8, None),
        2 => (48, None),
        3 => (44, None),
        5 => (4, None),
        6 => (6, Some(4)),
        10 => (12, None),
        _ => panic!("no command {kind} is expected of this lane"),
    };
    let (mut reliable, mut again) = (0, 0);
    for (row, packet) in rows.iter().zip(logged_packets(&log)) {
        let datagram = taken_off(packet.bytes).unwrap();
        let mut expected = vec![Vec::new(); 7];
        expected[0].push(half(datagram, 0) & 0x0fff);
        let mut at = 2;
        if datagram[0] >= 0x80 {
            expected[1].push(half(datagram, 2));
            at = 4;
        }
        let mut payloads = String::new();
        while at < datagram.len() {
            let command = &datagram[at..];
            let kind = u64::from(command[0] & 0x0f);
            expected[2].push(kind);
            expected[3].push(u64::from(command[1]));
            expected[4].push(half(command, 2));
            let (size, length_at) = layout(kind);
            if kind == 1 {
                expected[5].push(half(command, 4));
            }
            let length = length_at.map_or(0, |at| half(command, at));
            if length_at.is_some() {
                expected[6].push(length);
                reliable += 1;
            }
            for byte in &command[size..size + length as usize] {
                payloads += &hex(*byte);
            }
            at += size + length as usize;
        }
        let found: Vec<_> = row[..7].iter().map(|column| numbers(column)).collect();
        assert_eq!(found, expected);
        assert_eq!(row[7].replace([',', ':'], ""), payloads);
        again += numbers(&row[8]).len();
    }
    assert!(reliable > 150, "{reliable}");
    assert!(again > 3, "{again}");
}

/// A capture that is made up.
struct MadeUp {
    bytes: Vec<u8>,
    packets: u64,
}

impl MadeUp {
    fn new() -> Self {
        let mut bytes = Vec::new();
        pcapng::beginning(&mut bytes, ["made up"].into_iter());
        Self { bytes, packets: 0 }
    }

    fn packet(&mut self, packet: &[u8]) {
        self.packets += 1;
        let at = self.packets * 1_000_000;
        pcapng::packet(&mut self.bytes, 0, at, packet, format_args!(""));
    }

    fn udp(&mut self, ports: [u16; 2], datagram: &[u8]) {
        let [from, to] = ports.map(|port| ([10, 77, 0, 1], port).into());
        let packet = UdpHeaders::new(from, to).packet(datagram);
        self.packet(&packet);
    }

    /// A segment of TCP with these ports, at this place of its stream.
    fn tcp(&mut self, ports: [u16; 2], at: u32, payload: &[u8]) {
        let mut packet = vec![0; 40];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&(40 + payload.len() as u16).to_be_bytes());
        packet[8..10].copy_from_slice(&[64, 6]);
        packet[12..20].copy_from_slice(&[10, 77, 0, 1, 10, 77, 0, 2]);
        let sum = checksum(&[&packet[..20]]);
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet[20..22].copy_from_slice(&ports[0].to_be_bytes());
        packet[22..24].copy_from_slice(&ports[1].to_be_bytes());
        packet[24..28].copy_from_slice(&at.to_be_bytes());
        packet[32..36].copy_from_slice(&[0x50, 0x18, 0xff, 0xff]);
        packet.extend_from_slice(payload);
        self.packet(&packet);
    }

    fn write(&self, folder: &Path) -> std::path::PathBuf {
        let path = folder.join("made-up.pcapng");
        fs::write(&path, &self.bytes).unwrap();
        path
    }
}

/// Messages as a gateway and its peers send them, and the bodies among them that repeat.
const MESSAGES: &[MessagePack<'_>] = &[
    MessagePack {
        channel_id: 0,
        broadcast: 0,
        stub_id: 1,
        msg_type: 1,
        body: b"\x0a\x06player\x12\x05token",
    },
    MessagePack {
        channel_id: 70_000,
        broadcast: 4,
        stub_id: 0,
        msg_type: 8,
        body: b"\x0a\x08\x0a\x06a/Type",
    },
    MessagePack {
        channel_id: 3,
        broadcast: 0,
        stub_id: 0,
        msg_type: 100,
        body: &[b'x'; 300],
    },
];

/// A frame for each message, the last one compressed, and then one with all of them.
fn frames() -> Vec<Vec<u8>> {
    let mut compressor = Compressor::default();
    let mut builder = FrameBuilder::new();
    let mut frames = Vec::new();
    for (number, message) in MESSAGES.iter().enumerate() {
        builder.push(message).unwrap();
        let frame = if number == 2 {
            builder.finish_compressed(&mut compressor)
        } else {
            builder.finish()
        };
        frames.push(frame.unwrap().to_vec());
        builder.clear();
    }
    for message in MESSAGES {
        builder.push(message).unwrap();
    }
    frames.push(builder.finish().unwrap().to_vec());
    frames
}

/// A PUSH of KCP's.
fn push(conversation: u32, number: u32, payload: &[u8]) -> Vec<u8> {
    let mut segment = conversation.to_le_bytes().to_vec();
    segment.extend([81, 0, 128, 0]);
    segment.extend(7_u32.to_le_bytes());
    segment.extend(number.to_le_bytes());
    segment.extend(0_u32.to_le_bytes());
    segment.extend((payload.len() as u32).to_le_bytes());
    segment.extend(payload);
    segment
}

const OF_MESSAGES: [&str; 5] = [
    "channeld.channel",
    "channeld.broadcast",
    "channeld.stub",
    "channeld.type",
    "channeld.body",
];

/// What the columns of [`OF_MESSAGES`] must be: every message twice.
fn expected() -> ([Vec<u64>; 4], String) {
    let twice = || MESSAGES.iter().chain(MESSAGES);
    let bodies = twice().flat_map(|message| message.body);
    (
        [
            twice().map(|it| u64::from(it.channel_id)).collect(),
            twice().map(|it| u64::from(it.broadcast)).collect(),
            twice().map(|it| u64::from(it.stub_id)).collect(),
            twice().map(|it| u64::from(it.msg_type)).collect(),
        ],
        bodies.map(|byte| hex(*byte)).collect(),
    )
}

/// The columns of all rows, one after the other.
fn joined(rows: &[Vec<String>]) -> ([Vec<u64>; 4], String) {
    let column = |at: usize| rows.iter().flat_map(|row| numbers(&row[at])).collect();
    let bodies: String = rows
        .iter()
        .map(|row| row[4].replace([',', ':'], ""))
        .collect();
    ([column(0), column(1), column(2), column(3)], bodies)
}

#[test]
fn the_gateways_frames_are_read_however_tcp_cuts_them() {
    if !tshark() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let stream = frames().concat();
    for piece in [stream.len(), 7, 100] {
        let mut capture = MadeUp::new();
        let mut at = 1;
        for bytes in stream.chunks(piece) {
            capture.tcp([50_000, 12_108], at, bytes);
            at += bytes.len() as u32;
        }
        let path = capture.write(folder.path());
        let rows = fields(&path, "channeld", &OF_MESSAGES);
        assert_eq!(joined(&rows), expected(), "in pieces of {piece}");
        let names = dissected(&path, &[]);
        for name in ["AUTH", "CHANNEL_DATA_UPDATE", "user 100"] {
            assert!(names.contains(name), "{names}");
        }
    }
}

#[test]
fn the_gateways_frames_are_read_from_kcp_out_of_order_and_sent_again() {
    if !tshark() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let stream = frames().concat();
    let pieces: Vec<&[u8]> = stream.chunks(90).collect();
    let mut capture = MadeUp::new();
    // The second comes last, and each comes twice.
    let order = (0..pieces.len()).filter(|&at| at != 1).chain([1]);
    for number in order {
        for _ in 0..2 {
            let segment = push(9, number as u32, pieces[number]);
            capture.udp([21_256, 21_000], &segment);
        }
    }
    let path = capture.write(folder.path());
    let rows = fields(&path, "channeld.type", &OF_MESSAGES);
    assert_eq!(joined(&rows), expected());
}

#[test]
fn damaged_datagrams_and_streams_raise_no_error_in_a_dissector() {
    if !tshark() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let connect = [&[0x8f, 0xff, 0, 5, 0x82, 255, 0, 1][..], &[1; 44]].concat();
    let fragment = [&[0x80, 0, 0, 5, 0x88, 0, 0, 9, 0, 3, 0, 4][..], &[1; 20]].concat();
    let shard = [&[1, 0, 0, 0, 0xf1, 0, 30, 0][..], &push(3, 0, b"wxyz")].concat();
    let frames = frames();
    let datagrams = [
        [push(3, 0, b"abc"), push(3, 1, b"")].concat(),
        push(4, 0, &frames[3]),
        push(5, 0, &frames[2]),
        shard,
        [&[2, 0, 0, 0, 0xf2, 0][..], &[7; 30]].concat(),
        [&b"lgC1"[..], &[3; 16]].concat(),
        connect,
        fragment,
        [&[0x40, 1][..], &[9; 20]].concat(),
    ];
    let mut random = 1_u64;
    let mut draw = |below: usize| {
        // Knuth's MMIX.
        random = random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) as usize % below
    };
    let mut capture = MadeUp::new();
    for round in 0..2000_u16 {
        let which = draw(datagrams.len() + frames.len());
        let of_udp = datagrams.get(which);
        let mut bytes = of_udp
            .unwrap_or_else(|| &frames[which - datagrams.len()])
            .clone();
        for _ in 0..=draw(4) {
            if bytes.is_empty() {
                break;
            }
            let at = draw(bytes.len());
            match draw(3) {
                0 => bytes[at] = [0, 1, 0x7f, 0x80, 0xff][draw(5)],
                1 => bytes.truncate(at),
                _ => bytes.insert(at, draw(256) as u8),
            }
        }
        if of_udp.is_some() {
            capture.udp([21_256, 24_000 + which as u16], &bytes);
        } else {
            capture.tcp([30_000 + round, 24_500], 1, &bytes);
        }
    }
    let path = capture.write(folder.path());
    let last_kcp = 24_005;
    let ways = [
        String::new(),
        format!("udp.port==24000-{last_kcp},kcp"),
        format!("udp.port=={}-24008,enet", last_kcp + 1),
        "tcp.port==24500,channeld".to_owned(),
    ];
    let mut malformed = 0;
    for way in &ways {
        let decode: &[&str] = if way.is_empty() { &[] } else { &["-d", way] };
        let printed = dissected(&path, &[&["-V"][..], decode].concat());
        malformed += printed.matches("[Group: Malformed]").count();
    }
    assert!(malformed > 500, "what is damaged is said: {malformed}");
}
