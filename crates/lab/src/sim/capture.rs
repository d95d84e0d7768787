//! A capture of the testbed `sim`: the packets of one seed's lanes with their fates,
//! in the order of their instants, as pcapng.
//!
//! Lanes are played a slice at a time, on any thread. Each hands over what it put on
//! its link in a slice; a packet is written when no lane can have an earlier one any
//! more. So the file is the same however the play is sliced, and no more than a slice
//! of each lane is kept in memory.
//!
//! Instants are counted from 1970, where the clocks of all lanes start. Each lane has
//! the addresses and ports that the testbed `emu` would give it.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::{Mutex, MutexGuard, PoisonError};

use lagometer_capture::pcapng::{self, interface_of};
use lagometer_capture::{LogSummary, UdpHeaders, checksum};
use lagometer_link::{Direction, Fate};
use lagometer_testbed::lane_ports;
use lagometer_transport::Encapsulation;
use lagometer_units::Time;

/// Bytes that are written to the file at a time.
const CHUNK_BYTES: usize = 256 * 1024;

/// A packet of a lane, as it was put on the link.
#[derive(Clone, Debug)]
pub(crate) struct CapturedPacket {
    pub(crate) at: Time,
    pub(crate) direction: Direction,
    pub(crate) fate: Fate,
    pub(crate) encapsulation: Encapsulation,
    /// What the endpoint handed out.
    pub(crate) datagram: Vec<u8>,
}

/// A capture that is being written. Threads share it.
pub struct SimCapture<'a> {
    state: Mutex<State<'a>>,
}

struct State<'a> {
    out: &'a mut (dyn Write + Send),
    lanes: Vec<Waiting>,
    chunk: Vec<u8>,
    chunk_packets: u64,
    packets: u64,
    missing: u64,
    failure: Option<io::Error>,
}

/// What a lane has handed over and is not yet written.
#[derive(Default)]
struct Waiting {
    packets: VecDeque<CapturedPacket>,
    /// Nothing earlier than this comes any more.
    until: Time,
}

impl<'a> SimCapture<'a> {
    /// Begins a capture of lanes of these names into `out`.
    pub fn new<'n>(
        out: &'a mut (dyn Write + Send),
        lanes: impl Iterator<Item = &'n str> + Clone,
    ) -> Self {
        let mut chunk = Vec::with_capacity(CHUNK_BYTES);
        pcapng::beginning(&mut chunk, lanes.clone());
        Self {
            state: Mutex::new(State {
                out,
                lanes: lanes.map(|_| Waiting::default()).collect(),
                chunk,
                chunk_packets: 0,
                packets: 0,
                missing: 0,
                failure: None,
            }),
        }
    }

    /// Writes what is left and says what became of the capture, which is called `path`.
    /// After a writer's first error nothing more is written.
    pub fn finish(self, path: &Path) -> LogSummary {
        let state = self.state.into_inner();
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        for lane in &mut state.lanes {
            lane.until = Time::MAX;
        }
        state.write_settled();
        state.write_chunk();
        if state.failure.is_none() {
            state.failure = state.out.flush().err();
        }
        LogSummary {
            path: path.to_owned(),
            packets: state.packets,
            missing: state.missing,
            failure: state.failure.map(|why| why.to_string()),
        }
    }

    /// Takes what lane number `lane` put on its link; what it hands over later is not
    /// from before `until`.
    pub(crate) fn take(&self, lane: usize, mut packets: Vec<CapturedPacket>, until: Time) {
        // On a link with a discipline they leave its queue in another order than they
        // came.
        packets.sort_by_key(|packet| packet.at);
        let mut state = self.lock();
        if let Some(waiting) = state.lanes.get_mut(lane) {
            let is_in_order =
                waiting.packets.back().map(|last| last.at) <= packets.first().map(|first| first.at);
            waiting.packets.extend(packets);
            if !is_in_order {
                waiting
                    .packets
                    .make_contiguous()
                    .sort_by_key(|packet| packet.at);
            }
            waiting.until = waiting.until.max(until);
        }
        state.write_settled();
    }

    fn lock(&self) -> MutexGuard<'_, State<'a>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State<'_> {
    /// Writes every packet that none can come before; of one instant in the order of
    /// the lanes.
    fn write_settled(&mut self) {
        let until = self.lanes.iter().map(|lane| lane.until).min();
        let until = until.unwrap_or(Time::MAX);
        loop {
            let lanes = self.lanes.iter().enumerate();
            let next = lanes.filter_map(|(lane, it)| Some((it.packets.front()?.at, lane)));
            let Some((at, lane)) = next.min() else { return };
            if at >= until && until != Time::MAX {
                return;
            }
            if let Some(packet) = self.lanes[lane].packets.pop_front() {
                self.write(lane, &packet);
            }
        }
    }

    fn write(&mut self, lane: usize, packet: &CapturedPacket) {
        if self.failure.is_some() {
            self.missing += 1;
            return;
        }
        pcapng::packet(
            &mut self.chunk,
            interface_of(lane, packet.direction == Direction::Up),
            packet.at.as_nanos(),
            &on_the_wire(lane, packet),
            format_args!("{}", packet.fate.in_words(packet.at)),
        );
        self.chunk_packets += 1;
        if self.chunk.len() >= CHUNK_BYTES {
            self.write_chunk();
        }
    }

    fn write_chunk(&mut self) {
        let packets = std::mem::take(&mut self.chunk_packets);
        if self.failure.is_none() {
            self.failure = self.out.write_all(&self.chunk).err();
        }
        match self.failure {
            None => self.packets += packets,
            Some(_) => self.missing += packets,
        }
        self.chunk.clear();
    }
}

/// The packet with the addresses of its lane.
fn on_the_wire(lane: usize, packet: &CapturedPacket) -> Vec<u8> {
    let [client, server] = addresses(lane);
    let (from, to) = match packet.direction {
        Direction::Up => (client, server),
        Direction::Down => (server, client),
    };
    if packet.encapsulation == Encapsulation::Ip {
        return with_addresses(packet.datagram.clone(), from, to);
    }
    let [of_client, of_server] = lane_ports(lane as u8);
    let ports = match packet.direction {
        Direction::Up => (of_client, of_server),
        Direction::Down => (of_server, of_client),
    };
    let [from, to] = [(from, ports.0), (to, ports.1)].map(SocketAddr::from);
    UdpHeaders::new(from, to).packet(&packet.datagram)
}

/// The client's and the server's address in a lane.
fn addresses(lane: usize) -> [Ipv4Addr; 2] {
    let [high, low] = (lane as u16).to_be_bytes();
    [1, 2].map(|host| Ipv4Addr::new(10, 77_u8.wrapping_add(high), low, host))
}

/// Puts other addresses into a packet of TCP over IPv4, whose checksums stay as right
/// or wrong as they are. All lanes have the same ones in memory. Others are left alone.
fn with_addresses(mut packet: Vec<u8>, from: Ipv4Addr, to: Ipv4Addr) -> Vec<u8> {
    const TCP: u8 = 6;
    const ADDRESSES: std::ops::Range<usize> = 12..20;
    const IP_CHECKSUM: usize = 10;
    const TCP_CHECKSUM: usize = 16;
    let header_bytes = usize::from(packet.first().map_or(0, |first| first & 0x0f)) * 4;
    let is_tcp_v4 = packet.first().is_some_and(|first| first >> 4 == 4)
        && packet.get(9) == Some(&TCP)
        && header_bytes >= ADDRESSES.end
        && packet.len() >= header_bytes + TCP_CHECKSUM + 2;
    if !is_tcp_v4 {
        return packet;
    }
    let new: Vec<u8> = [from.octets(), to.octets()].concat();
    let sum_of = |addresses: &[u8]| u32::from(!checksum(&[addresses]));
    let (before, after) = (sum_of(&packet[ADDRESSES]), sum_of(&new));
    packet[ADDRESSES].copy_from_slice(&new);
    for at in [IP_CHECKSUM, header_bytes + TCP_CHECKSUM] {
        // RFC 1624, equation 3.
        let old = u16::from_be_bytes([packet[at], packet[at + 1]]);
        let mut sum = u32::from(!old) + (0xffff - before) + after;
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        packet[at..at + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    }
    packet
}

#[cfg(test)]
mod tests {
    use lagometer_capture::{logged_packets, taken_off};
    use lagometer_link::Reason;

    use super::*;

    fn packet(at_ms: u64, datagram: &[u8]) -> CapturedPacket {
        CapturedPacket {
            at: Time::from_millis(at_ms),
            direction: Direction::Up,
            fate: Fate::Dropped(Reason::Loss),
            encapsulation: Encapsulation::UdpIpv4,
            datagram: datagram.to_vec(),
        }
    }

    #[test]
    fn packets_are_written_in_the_order_of_their_instants_however_lanes_are_sliced() {
        let whole = |steps: &[(usize, &[u64], u64)]| {
            let mut file = Vec::new();
            let capture = SimCapture::new(&mut file, ["a", "b"].into_iter());
            for &(lane, instants, until) in steps {
                let packets = instants.iter().map(|&at| packet(at, &at.to_be_bytes()));
                capture.take(lane, packets.collect(), Time::from_millis(until));
            }
            assert_eq!(capture.finish(Path::new("x")).packets, 6);
            file
        };
        let at_once = whole(&[(0, &[1, 3, 5], 6), (1, &[2, 3, 9], 9)]);
        let sliced = whole(&[(1, &[3, 2], 4), (0, &[1], 2), (0, &[3, 5], 5), (1, &[9], 9)]);
        assert!(at_once == sliced);
        let read = logged_packets(&at_once);
        let order: Vec<_> = read
            .map(|it| (it.epoch_ns / 1_000_000, it.interface))
            .collect();
        assert_eq!(order, [(1, 0), (2, 2), (3, 0), (3, 2), (5, 0), (9, 2)]);
    }

    #[test]
    fn a_packet_waits_until_no_lane_can_have_an_earlier_one() {
        let mut file = Vec::new();
        let capture = SimCapture::new(&mut file, ["a", "b"].into_iter());
        capture.take(
            0,
            vec![packet(1, b"x"), packet(7, b"y")],
            Time::from_millis(9),
        );
        assert_eq!(capture.lock().chunk_packets, 0);
        capture.take(1, Vec::new(), Time::from_millis(7));
        assert_eq!(capture.lock().chunk_packets, 1);
        capture.take(1, Vec::new(), Time::from_millis(8));
        assert_eq!(capture.lock().chunk_packets, 2);
    }

    #[test]
    fn a_writer_that_fails_is_told_of_at_the_end() {
        struct Full;
        impl Write for Full {
            fn write(&mut self, _: &[u8]) -> io::Result<usize> {
                Err(io::ErrorKind::StorageFull.into())
            }
            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }
        let mut full = Full;
        let capture = SimCapture::new(&mut full, ["a"].into_iter());
        capture.take(0, vec![packet(1, &[0; CHUNK_BYTES])], Time::from_millis(2));
        capture.take(0, vec![packet(3, b"x")], Time::from_millis(4));
        let end = capture.finish(Path::new("x"));
        assert_eq!((end.packets, end.missing), (0, 2));
        assert!(end.failure.is_some());
    }

    #[test]
    fn each_lane_has_addresses_of_its_own() {
        assert_eq!(addresses(3)[1], Ipv4Addr::new(10, 77, 3, 2));
        assert_eq!(addresses(256)[0], Ipv4Addr::new(10, 78, 0, 1));
        let sent = packet(0, b"hello");
        let on_wire = on_the_wire(3, &sent);
        assert_eq!(on_wire[12..20], [10, 77, 3, 1, 10, 77, 3, 2]);
        assert_eq!(taken_off(&on_wire), Some(&b"hello"[..]));
    }

    #[test]
    fn other_addresses_leave_the_checksums_of_tcp_as_they_are() {
        let spec = lagometer_transport::Spec::preset("tcp-cubic").unwrap();
        let mut pair = spec.pair(1, Time::ZERO);
        let mut segment = Vec::new();
        assert!(pair.client.poll_datagram(Time::ZERO, &mut segment));
        for damage in [0, 1] {
            let mut before = segment.clone();
            *before.last_mut().unwrap() ^= damage;
            let after = with_addresses(before.clone(), addresses(9)[0], addresses(9)[1]);
            assert_eq!(after[12..20], [10, 77, 9, 1, 10, 77, 9, 2]);
            let sums = |packet: &[u8]| {
                let length = ((packet.len() - 20) as u16).to_be_bytes();
                let tcp = checksum(&[&packet[12..20], &[0, 6], &length, &packet[20..]]);
                [checksum(&[&packet[..20]]), tcp]
            };
            assert_eq!(sums(&after), sums(&before));
            assert_eq!(sums(&after)[1] == 0, damage == 0);
        }
    }
}
