//! Captures made by hand, and logs: what is read of them, and what is refused.

use proptest::prelude::*;

use super::*;

const CLIENT: &str = "10.0.0.2:5000";
const SERVER: &str = "10.0.0.1:7777";

/// An IPv4 packet with a UDP datagram of so many bytes, all of them there.
fn udp(from: &str, to: &str, bytes: u16) -> Vec<u8> {
    let (from, to): (std::net::SocketAddrV4, std::net::SocketAddrV4) =
        (from.parse().unwrap(), to.parse().unwrap());
    let mut packet = vec![0x45, 0];
    packet.extend((28 + bytes).to_be_bytes());
    packet.extend([0, 0, 0, 0, 64, 17, 0, 0]);
    packet.extend(from.ip().octets());
    packet.extend(to.ip().octets());
    packet.extend(from.port().to_be_bytes());
    packet.extend(to.port().to_be_bytes());
    packet.extend((8 + bytes).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(vec![7; usize::from(bytes)]);
    packet
}

/// The same over IPv6, behind an extension header.
fn udp_over_ipv6(bytes: u16) -> Vec<u8> {
    let mut packet = vec![0x60, 0, 0, 0];
    packet.extend((8 + 8 + bytes).to_be_bytes());
    packet.extend([60, 64]);
    packet.extend(std::net::Ipv6Addr::LOCALHOST.octets());
    packet.extend(std::net::Ipv6Addr::LOCALHOST.octets());
    packet.extend([17, 0, 0, 0, 0, 0, 0, 0]);
    packet.extend(5000_u16.to_be_bytes());
    packet.extend(7777_u16.to_be_bytes());
    packet.extend((8 + bytes).to_be_bytes());
    packet.extend([0, 0]);
    packet.extend(vec![7; usize::from(bytes)]);
    packet
}

/// A pcap file of a link type, each packet with its microseconds.
fn pcap(link_type: u32, packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link_type] {
        file.extend(u32::to_le_bytes(word));
    }
    for (at, packet) in packets {
        let bytes = packet.len() as u32;
        for word in [
            (at / 1_000_000) as u32,
            (at % 1_000_000) as u32,
            bytes,
            bytes,
        ] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

/// A pcapng file of raw IP whose times count in so many units a second by its interface's
/// option, each packet with its units.
fn pcapng(resolution: u8, packets: &[(u64, Vec<u8>)]) -> Vec<u8> {
    let block = |kind: u32, body: &[u8]| {
        let length = (12 + body.len().next_multiple_of(4)) as u32;
        let mut block = kind.to_le_bytes().to_vec();
        block.extend(length.to_le_bytes());
        block.extend(body);
        block.resize(length as usize - 4, 0);
        block.extend(length.to_le_bytes());
        block
    };
    let mut section = 0x1a2b_3c4d_u32.to_le_bytes().to_vec();
    section.extend([1, 0, 0, 0]);
    section.extend(u64::MAX.to_le_bytes());
    let mut file = block(0x0a0d_0d0a, &section);
    let interface = [
        101, 0, 0, 0, 0, 0, 0, 0, 9, 0, 1, 0, resolution, 0, 0, 0, 0, 0, 0, 0,
    ];
    file.extend(block(1, &interface));
    for (at, packet) in packets {
        let mut body = 0_u32.to_le_bytes().to_vec();
        body.extend(((at >> 32) as u32).to_le_bytes());
        body.extend((*at as u32).to_le_bytes());
        body.extend((packet.len() as u32).to_le_bytes());
        body.extend((packet.len() as u32).to_le_bytes());
        body.extend(packet);
        file.extend(block(6, &body));
    }
    file
}

/// Three messages of one conversation, and one of another.
fn packets() -> Vec<(u64, Vec<u8>)> {
    vec![
        (1_000_000, udp(CLIENT, SERVER, 40)),
        (1_010_000, udp("10.0.0.2:53", "10.0.0.9:53", 100)),
        (1_020_000, udp(SERVER, CLIENT, 300)),
        (1_040_000, udp(CLIENT, SERVER, 41)),
    ]
}

fn read(file: &[u8]) -> Result<Traffic, BadTraffic> {
    Traffic::read(file, &Choice::default())
}

/// Each way's milliseconds and bytes.
fn messages(traffic: &Traffic) -> [Vec<(u128, u32)>; 2] {
    Direction::BOTH.map(|direction| {
        let way = traffic.way(direction).iter();
        way.map(|message| (message.at.as_millis(), message.bytes))
            .collect()
    })
}

fn expected() -> [Vec<(u128, u32)>; 2] {
    [vec![(0, 40), (40, 41)], vec![(20, 300)]]
}

#[test]
fn every_framing_of_a_packet_is_read() {
    let with = |head: &[u8]| -> Vec<(u64, Vec<u8>)> {
        let each = packets().into_iter();
        each.map(|(at, packet)| (at, [head, &packet].concat()))
            .collect()
    };
    let ethernet = [&[0; 12][..], &[8, 0]].concat();
    let tagged = [&[0; 12][..], &[0x81, 0, 0, 5, 8, 0]].concat();
    let cooked = [&[0; 14][..], &[8, 0]].concat();
    let cooked_2 = [&[8, 0][..], &[0; 18]].concat();
    let null = [2, 0, 0, 0];
    let framings: [(u32, &[u8]); 9] = [
        (1, &ethernet),
        (1, &tagged),
        (101, &[]),
        (228, &[]),
        (12, &[]),
        (113, &cooked),
        (276, &cooked_2),
        (0, &null),
        (108, &null),
    ];
    for (link_type, head) in framings {
        let traffic = read(&pcap(link_type, &with(head))).unwrap();
        assert_eq!(messages(&traffic), expected(), "{link_type}");
    }
}

#[test]
fn times_of_pcapng_count_as_its_interface_says() {
    let scaled = |times: u64| -> Vec<(u64, Vec<u8>)> {
        let each = packets().into_iter();
        each.map(|(at, packet)| (at * times, packet)).collect()
    };
    assert_eq!(messages(&read(&pcapng(6, &scaled(1))).unwrap()), expected());
    assert_eq!(
        messages(&read(&pcapng(9, &scaled(1000))).unwrap()),
        expected()
    );
    // Units of a 1024th of a second: 1 s, and 20 ms and 40 ms later within a unit.
    let units = [(1024, 0), (1045, 2), (1065, 3)];
    let binary = units.map(|(at, which): (u64, usize)| (at, packets()[which].1.clone()));
    let traffic = read(&pcapng(0x80 | 0x0a, &binary)).unwrap();
    assert_eq!(traffic.way(Direction::Down)[0].at.as_micros(), 20_507);
    assert!(matches!(
        read(&pcapng(0x80 | 64, &packets())),
        Err(BadTraffic::Damaged { packet: 1 })
    ));
}

#[test]
fn the_conversation_with_the_most_packets_counts_and_who_sent_first_is_the_client() {
    let traffic = read(&pcap(101, &packets())).unwrap();
    let ends = (CLIENT.parse().unwrap(), SERVER.parse().unwrap());
    assert_eq!(traffic.origin().ends, Some(ends));
    assert_eq!(traffic.origin().left_out, 1);
    assert_eq!(
        traffic.to_string(),
        "2 messages up and 1 down in 0.060 s, client 10.0.0.2:5000, server 10.0.0.1:7777; 1 \
         packets of others are left out"
    );
}

#[test]
fn a_side_that_is_named_is_the_client() {
    let file = pcap(101, &packets());
    let named = |client: Option<&str>, server: Option<&str>| {
        let place = |written: Option<&str>| written.map(|it| it.parse().unwrap());
        let choice = Choice {
            client: place(client),
            server: place(server),
        };
        Traffic::read(&file, &choice)
    };
    let [up, down] = messages(&named(Some("10.0.0.1"), None).unwrap());
    assert_eq!([down, up], expected());
    let [up, _] = messages(&named(None, Some(":53")).unwrap());
    assert_eq!(up, [(0, 100)]);
    let error = named(Some("10.0.0.7"), None).unwrap_err().to_string();
    assert_eq!(
        error,
        "has no UDP between 10.0.0.7 and any; the conversation with the most packets is \
         10.0.0.1:7777 and 10.0.0.2:5000 (3 packets): name one of these as `client`, or leave it out"
    );
}

#[test]
fn sizes_are_those_of_headers_where_a_capture_has_no_more() {
    let cut: Vec<_> = packets()
        .into_iter()
        .map(|(at, packet)| (at, packet[..28].to_vec()))
        .collect();
    assert_eq!(messages(&read(&pcap(101, &cut)).unwrap()), expected());
    let over_ipv6 = vec![(0, udp_over_ipv6(99))];
    assert_eq!(
        messages(&read(&pcap(229, &over_ipv6)).unwrap())[0],
        [(0, 99)]
    );
}

#[test]
fn later_fragments_are_no_messages() {
    let mut fragment = udp(CLIENT, SERVER, 700);
    fragment[7] = 10;
    let mut all = packets();
    all.push((1_050_000, fragment));
    let traffic = read(&pcap(101, &all)).unwrap();
    assert_eq!(messages(&traffic), expected());
    assert_eq!(traffic.origin().left_out, 2);
}

#[test]
fn frame_check_sequences_behind_packets_are_left_out() {
    let framed = |head: &[u8]| -> Vec<(u64, Vec<u8>)> {
        let each = packets().into_iter();
        each.map(|(at, packet)| (at, [head, &packet, &[1, 2, 3, 4]].concat()))
            .collect()
    };
    let ethernet = framed(&[&[0; 12][..], &[8, 0]].concat());
    // In units of two bytes, above a bit that says it is known.
    let fcs_bits = 2 << 28 | 1 << 26;
    let traffic = read(&pcap(1 | fcs_bits, &ethernet)).unwrap();
    assert_eq!(messages(&traffic), expected());
    // In pcapng it is an option of the interface, here in place of the end of options.
    let mut file = pcapng(6, &framed(&[]));
    let end_of_options = file
        .windows(8)
        .position(|it| it == [9, 0, 1, 0, 6, 0, 0, 0]);
    let at = end_of_options.unwrap() + 8;
    file.splice(at..at, [13, 0, 1, 0, 4, 0, 0, 0]);
    let block = 28;
    assert_eq!(file[block..block + 4], [1, 0, 0, 0]);
    let longer = file[block + 4] + 8;
    file[block + 4] = longer;
    file[block + usize::from(longer) - 4] = longer;
    assert_eq!(messages(&read(&file).unwrap()), expected());
}

#[test]
fn captures_that_cannot_be_played_say_why_and_how_to_mend_it() {
    let refused = |file: &[u8]| read(file).unwrap_err().to_string();
    let wifi = pcap(105, &packets());
    assert!(refused(&wifi).starts_with("has packets of link type 105, which is not read"));
    let whole = pcap(101, &packets());
    assert_eq!(
        refused(&whole[..whole.len() - 1]),
        "was cut short within packet 4: keep those before it, as with `editcap -r IN OUT 1-3`, or \
         capture again"
    );
    let mut tcp = packets();
    for (_, packet) in &mut tcp {
        packet[9] = 6;
    }
    assert!(refused(&pcap(101, &tcp)).starts_with("has 4 packets and none of UDP, 4 of TCP"));
    assert!(refused(&pcap(101, &[])).starts_with("has no message"));
    let mut backwards = packets();
    backwards[3].0 = 5_000;
    let why = refused(&pcap(101, &backwards));
    assert!(
        why.starts_with("packet 4 is 1.015 s before one above it"),
        "{why}"
    );
    let late = vec![
        packets()[0].clone(),
        (90_000_000_000, packets()[3].1.clone()),
    ];
    assert_eq!(
        refused(&pcap(101, &late)),
        "is longer than 24 h, the most that is read: cut it"
    );
}

#[test]
fn packets_a_little_out_of_order_are_put_in_order() {
    let mut shuffled = packets();
    shuffled.swap(2, 3);
    assert_eq!(messages(&read(&pcap(101, &shuffled)).unwrap()), expected());
}

#[test]
fn logs_are_read_with_any_separator_head_and_remarks() {
    for text in [
        "seconds,direction,bytes\n1.0,up,40\n1.02,down,300\n1.04,up,41\n",
        "# of a match\n1;up;40\n1.02;Down;300 # a snapshot\n\n1.0400000001;UP;41",
        "1\tup\t40\r\n1.02 down  300\r\n1.04 up 41\r\n",
    ] {
        assert_eq!(
            messages(&read(text.as_bytes()).unwrap()),
            expected(),
            "{text}"
        );
    }
}

#[test]
fn lines_of_a_log_that_say_nothing_are_named() {
    let refused = |text: &str| read(text.as_bytes()).unwrap_err().to_string();
    assert!(refused("0,up,1\n0.1,up\n").starts_with("line 2: has not three columns; a line is"));
    assert!(refused("0,up,1\n-1,up,1\n").starts_with("line 2: `-1` is no time in seconds"));
    assert!(refused("0,up,1\n1e3,up,1\n").starts_with("line 2: `1e3` is no time"));
    assert!(refused("0,left,1\n").starts_with("line 1: `left` is neither `up` nor `down`"));
    assert!(refused("0,up,65508\n").starts_with("line 1: `65508` are no bytes of a message"));
    assert_eq!(
        refused("0.7,up,1\n0.5,up,1\n"),
        "line 2: 0.5 s is before the 0.7 s of a line above: sort the lines by time"
    );
    assert!(refused("").starts_with("has no message"));
    assert!(refused("seconds,direction,bytes\n").starts_with("has no message"));
    assert!(refused("0,up,1\n90000,up,1\n").starts_with("is longer than 24 h"));
    let error = read(b"0,up,1\n\xff\xfe\n").unwrap_err().to_string();
    assert!(
        error.starts_with("line 2: is neither text nor a capture"),
        "{error}"
    );
}

#[test]
fn more_messages_than_memory_is_for_are_refused() {
    let text = "0,up,1\n".repeat(MOST_MESSAGES + 1);
    assert_eq!(read(text.as_bytes()), Err(BadTraffic::TooMany));
}

#[test]
fn repeated_traffic_goes_on_as_it_went() {
    let traffic = read(b"0,up,1\n0.1,up,1\n0.2,down,1\n0.3,up,1\n").unwrap();
    assert_eq!(traffic.length(), Duration::from_millis(400));
    let within = |millis| traffic.messages_within(Duration::from_millis(millis));
    assert_eq!([0, 1, 300, 301, 400, 801].map(within), [0, 1, 3, 4, 4, 9]);
    let one = read(b"5,up,1\n").unwrap();
    assert_eq!(one.length(), Duration::from_secs(1));
}

proptest! {
    #[test]
    fn what_is_written_as_a_log_is_read_as_the_same(
        mut sent in prop::collection::vec((0_u64..80_000_000_000_000, any::<bool>(), 0_u32..65_508), 1..50)
    ) {
        sent.sort_unstable();
        let mut ways = [Vec::new(), Vec::new()];
        let first = sent[0].0;
        for &(at, up, bytes) in &sent {
            let at = Duration::from_nanos(at - first);
            ways[usize::from(!up)].push(RecordedMessage { at, bytes });
        }
        let traffic = Traffic { ways, origin: Origin::default() };
        prop_assert_eq!(read(traffic.to_log().as_bytes()), Ok(traffic));
    }

    #[test]
    fn a_capture_that_is_damaged_anywhere_is_read_or_refused(at: prop::sample::Index, to: u8, ng: bool) {
        let mut file = if ng { pcapng(6, &packets()) } else { pcap(101, &packets()) };
        let place = at.index(file.len());
        file[place] = to;
        let _ = read(&file);
        let _ = read(&file[..place]);
    }

    #[test]
    fn packets_of_any_bytes_are_read_without_harm(bytes: Vec<u8>, link_type in 0_i32..300) {
        if let Some(framing) = packet::Framing::of(link_type) {
            let _ = framing.read(&bytes);
        }
    }
}
