//! Traffic from a capture: pcapng or pcap.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use lagometer_link::Direction;
use pcap_parser::nom;
use pcap_parser::traits::PcapNGPacketBlock as _;
use pcap_parser::{
    Block, InterfaceDescriptionBlock, LegacyPcapBlock, PcapError, PcapHeader, parse_block_be,
    parse_block_le, parse_pcap_frame, parse_pcap_frame_be, parse_pcap_frame_modified,
    parse_pcap_header,
};

use super::packet::{Framing, Packet};
use super::{BadTraffic, Choice, MOST_MESSAGES, Origin, RecordedMessage, Traffic};

/// What files of either form begin with, in either order of bytes.
const MAGICS: [[u8; 4]; 7] = [
    [0x0a, 0x0d, 0x0d, 0x0a],
    [0xa1, 0xb2, 0xc3, 0xd4],
    [0xd4, 0xc3, 0xb2, 0xa1],
    [0xa1, 0xb2, 0x3c, 0x4d],
    [0x4d, 0x3c, 0xb2, 0xa1],
    [0xa1, 0xb2, 0xcd, 0x34],
    [0x34, 0xcd, 0xb2, 0xa1],
];

/// The part of a pcap file's word that is the link type. Those above say whether packets end
/// with a frame check sequence, and how long it is; sizes are read from headers, so that it
/// does not matter (<https://www.tcpdump.org/manpages/pcap-savefile.5.html>).
const LINK_TYPE_BITS: i32 = 0x03ff_ffff;

/// How far packets may stand out of order: several queues of a network card are read one
/// after the other, but none is so far behind.
const OUT_OF_ORDER: Duration = Duration::from_secs(1);

/// Whether a file is a capture by its first bytes.
pub(super) fn is_one(bytes: &[u8]) -> bool {
    MAGICS.iter().any(|magic| bytes.starts_with(magic))
}

/// A datagram of a capture.
#[derive(Clone, Copy, Debug)]
struct Datagram {
    at_ns: u64,
    from: SocketAddr,
    to: SocketAddr,
    bytes: u32,
}

/// What was found in a capture so far.
#[derive(Debug, Default)]
struct Found {
    packets: usize,
    tcp: usize,
    datagrams: Vec<Datagram>,
    newest_ns: u64,
}

/// Reads a capture.
pub(super) fn read(bytes: &[u8], choice: &Choice) -> Result<Traffic, BadTraffic> {
    let mut found = Found::default();
    if bytes.starts_with(&MAGICS[0]) {
        read_pcapng(bytes, &mut found)?;
    } else {
        read_pcap(bytes, &mut found)?;
    }
    found.into_traffic(choice)
}

fn read_pcap(bytes: &[u8], found: &mut Found) -> Result<(), BadTraffic> {
    let (mut rest, header) = parse_pcap_header(bytes).map_err(|error| found.bad(&error))?;
    let framing = framing_of(header.network.0 & LINK_TYPE_BITS)?;
    let per_second = if header.is_nanosecond_precision() {
        1_000_000_000
    } else {
        1_000_000
    };
    while !rest.is_empty() {
        let (behind, frame) = frame(&header, rest).map_err(|error| found.bad(&error))?;
        rest = behind;
        let ticks = u64::from(frame.ts_sec) * per_second + u64::from(frame.ts_usec);
        let packet = frame.data.get(..frame.caplen as usize);
        found.add(
            nanos(ticks, per_second),
            framing,
            packet.unwrap_or(frame.data),
        )?;
    }
    Ok(())
}

type Parsed<'a, T> = Result<(&'a [u8], T), nom::Err<PcapError<&'a [u8]>>>;

fn frame<'a>(header: &PcapHeader, bytes: &'a [u8]) -> Parsed<'a, LegacyPcapBlock<'a>> {
    if header.is_modified_format() {
        parse_pcap_frame_modified(bytes)
    } else if header.is_bigendian() {
        parse_pcap_frame_be(bytes)
    } else {
        parse_pcap_frame(bytes)
    }
}

/// An interface of a pcapng file: what its packets begin with, and how many units its
/// times count in a second.
struct Interface {
    link_type: i32,
    per_second: u64,
}

fn read_pcapng(bytes: &[u8], found: &mut Found) -> Result<(), BadTraffic> {
    let mut rest = bytes;
    let mut is_big_endian = false;
    let mut interfaces: Vec<Interface> = Vec::new();
    while !rest.is_empty() {
        let parsed = if is_big_endian {
            parse_block_be(rest)
        } else {
            parse_block_le(rest)
        };
        let (behind, block) = parsed.map_err(|error| found.bad(&error))?;
        match &block {
            Block::SectionHeader(section) => {
                is_big_endian = section.big_endian();
                interfaces.clear();
            }
            Block::InterfaceDescription(interface) => interfaces.push(Interface {
                link_type: interface.linktype.0,
                per_second: per_second(interface).ok_or_else(|| found.damaged())?,
            }),
            Block::EnhancedPacket(packet) => {
                let interface = interfaces.get(packet.if_id as usize);
                let interface = interface.ok_or_else(|| found.damaged())?;
                let ticks = u64::from(packet.ts_high) << 32 | u64::from(packet.ts_low);
                let framing = framing_of(interface.link_type)?;
                let at = nanos(ticks, interface.per_second);
                found.add(at, framing, packet.packet_data())?;
            }
            // These have no times: nothing can be said of when they were sent.
            Block::SimplePacket(_) => return Err(found.damaged()),
            _ => {}
        }
        rest = behind;
    }
    Ok(())
}

/// How many units an interface's times count in a second: a power of ten, or of two where
/// the highest bit is set.
fn per_second(interface: &InterfaceDescriptionBlock<'_>) -> Option<u64> {
    let exponent = u32::from(interface.if_tsresol & 0x7f);
    if interface.if_tsresol & 0x80 == 0 {
        10_u64.checked_pow(exponent)
    } else {
        1_u64.checked_shl(exponent)
    }
}

fn nanos(ticks: u64, per_second: u64) -> u64 {
    let nanos = u128::from(ticks) * 1_000_000_000 / u128::from(per_second.max(1));
    u64::try_from(nanos).unwrap_or(u64::MAX)
}

fn framing_of(link_type: i32) -> Result<Framing, BadTraffic> {
    Framing::of(link_type).ok_or(BadTraffic::LinkType { link_type })
}

impl Found {
    /// Why what comes next cannot be read.
    fn bad(&self, error: &nom::Err<PcapError<&[u8]>>) -> BadTraffic {
        match error {
            nom::Err::Incomplete(_) => BadTraffic::CutShort {
                packet: self.packets + 1,
            },
            nom::Err::Error(_) | nom::Err::Failure(_) => self.damaged(),
        }
    }

    const fn damaged(&self) -> BadTraffic {
        BadTraffic::Damaged {
            packet: self.packets + 1,
        }
    }

    fn add(&mut self, at_ns: u64, framing: Framing, packet: &[u8]) -> Result<(), BadTraffic> {
        self.packets += 1;
        let behind = Duration::from_nanos(self.newest_ns.saturating_sub(at_ns));
        if behind > OUT_OF_ORDER {
            return Err(BadTraffic::PacketBackwards {
                packet: self.packets,
                seconds: behind,
            });
        }
        self.newest_ns = self.newest_ns.max(at_ns);
        match framing.read(packet) {
            Packet::Udp { from, to, bytes } => self.datagrams.push(Datagram {
                at_ns,
                from,
                to,
                bytes,
            }),
            Packet::Tcp => self.tcp += 1,
            Packet::Other => {}
        }
        if self.datagrams.len() > MOST_MESSAGES {
            return Err(BadTraffic::TooMany);
        }
        Ok(())
    }

    /// The conversation that is meant.
    fn into_traffic(mut self, choice: &Choice) -> Result<Traffic, BadTraffic> {
        if self.packets == 0 {
            return Err(BadTraffic::Empty);
        }
        if self.datagrams.is_empty() {
            return Err(BadTraffic::NoUdp {
                packets: self.packets,
                tcp: self.tcp,
            });
        }
        self.datagrams.sort_by_key(|datagram| datagram.at_ns);
        let (client, server) = self.ends(choice)?;
        let mut ways = [Vec::new(), Vec::new()];
        let mut first = None;
        for datagram in &self.datagrams {
            let direction = match (datagram.from, datagram.to) {
                ends if ends == (client, server) => Direction::Up,
                ends if ends == (server, client) => Direction::Down,
                _ => continue,
            };
            let first = *first.get_or_insert(datagram.at_ns);
            ways[direction.index()].push(RecordedMessage {
                at: Duration::from_nanos(datagram.at_ns - first),
                bytes: datagram.bytes,
            });
        }
        let origin = Origin {
            ends: Some((client, server)),
            left_out: self.packets - ways.iter().map(Vec::len).sum::<usize>(),
        };
        Traffic::of(ways, origin)
    }

    /// The client and the server of the conversation with the most packets among those that
    /// are meant; of several with as many, that of the first packet.
    fn ends(&self, choice: &Choice) -> Result<(SocketAddr, SocketAddr), BadTraffic> {
        // By both ends in one order: how many packets there are, and who sent the first.
        let mut conversations: BTreeMap<[SocketAddr; 2], (usize, usize, SocketAddr)> =
            BTreeMap::new();
        for (number, datagram) in self.datagrams.iter().enumerate() {
            let mut ends = [datagram.from, datagram.to];
            ends.sort_unstable();
            let conversation = conversations
                .entry(ends)
                .or_insert((0, number, datagram.from));
            conversation.0 += 1;
        }
        let is_meant = |client: SocketAddr, server: SocketAddr| {
            choice.client.is_none_or(|pattern| pattern.is(client))
                && choice.server.is_none_or(|pattern| pattern.is(server))
        };
        let as_meant = conversations.iter().filter_map(|(&[one, other], &known)| {
            let (_, _, opened_by) = known;
            let answerer = if opened_by == one { other } else { one };
            let ways = [(opened_by, answerer), (answerer, opened_by)];
            let meant = ways
                .into_iter()
                .find(|&(client, server)| is_meant(client, server))?;
            Some((known.0, std::cmp::Reverse(known.1), meant))
        });
        if let Some((_, _, ends)) = as_meant.max_by_key(|&(packets, first, _)| (packets, first)) {
            return Ok(ends);
        }
        let largest = conversations.iter().max_by_key(|(_, known)| known.0);
        let asked = [choice.client, choice.server]
            .map(|pattern| pattern.map_or_else(|| "any".to_owned(), |pattern| pattern.to_string()));
        Err(BadTraffic::NotThere {
            asked: asked.join(" and "),
            largest: largest.map_or_else(String::new, |([one, other], known)| {
                format!("{one} and {other} ({} packets)", known.0)
            }),
        })
    }
}
