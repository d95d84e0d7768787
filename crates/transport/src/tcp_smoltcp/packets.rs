//! The network card given to smoltcp: packets in, packets out, no network.
//! And as much reading of packets as the endpoint needs.

use std::collections::VecDeque;

use lagometer_units::Time;
use smoltcp::phy::{self, ChecksumCapabilities, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use smoltcp::wire::{
    IpProtocol, Ipv4Packet, Ipv4Repr, TcpControl, TcpPacket, TcpRepr, TcpSeqNumber,
};

/// Packets that wait on either side of smoltcp.
#[derive(Debug)]
pub(super) struct Card {
    /// The packet smoltcp shall receive next.
    pub(super) incoming: Option<Vec<u8>>,
    /// What smoltcp has sent, oldest first.
    pub(super) outgoing: VecDeque<Vec<u8>>,
    /// The number after the last that was ever sent.
    sent_until: Option<TcpSeqNumber>,
    mtu_bytes: usize,
}

impl Card {
    pub(super) const fn new(mtu_bytes: usize) -> Self {
        Self {
            incoming: None,
            outgoing: VecDeque::new(),
            sent_until: None,
            mtu_bytes,
        }
    }
}

impl phy::Device for Card {
    type RxToken<'a> = Received;
    type TxToken<'a> = Outlet<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(Received, Outlet<'_>)> {
        let packet = self.incoming.take()?;
        Some((Received(packet), Outlet(self)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<Outlet<'_>> {
        Some(Outlet(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = self.mtu_bytes;
        capabilities
    }
}

/// A packet on its way into smoltcp.
pub(super) struct Received(Vec<u8>);

impl phy::RxToken for Received {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

/// Where smoltcp puts a packet.
pub(super) struct Outlet<'a>(&'a mut Card);

impl phy::TxToken for Outlet<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut packet = vec![0; len];
        let outcome = write(&mut packet);
        mend_acknowledgement(&mut packet, &mut self.0.sent_until);
        self.0.outgoing.push_back(packet);
        outcome
    }
}

/// Gives a bare acknowledgement the sequence number it must have: the next to
/// be sent for the first time (RFC 9293, 3.10.7.4).
///
/// After a timeout smoltcp 0.14 steps its own count back to what it sends
/// again and puts that into acknowledgements too. The peer has seen that
/// number, takes the segment for an old one and ignores what it acknowledges.
/// When both sides are in that state, as happens in an echo, neither learns
/// anything any more and the connection hangs until it times out.
fn mend_acknowledgement(packet: &mut [u8], sent_until: &mut Option<TcpSeqNumber>) {
    let Ok(mut ip) = Ipv4Packet::new_checked(packet) else {
        return;
    };
    if ip.next_header() != IpProtocol::Tcp {
        return;
    }
    let (source, destination) = (ip.src_addr().into(), ip.dst_addr().into());
    let Ok(mut tcp) = TcpPacket::new_checked(ip.payload_mut()) else {
        return;
    };
    let end = tcp.seq_number() + tcp.segment_len();
    let frontier = sent_until.map_or(end, |until| until.max(end));
    *sent_until = Some(frontier);
    if tcp.segment_len() == 0 && !tcp.rst() && tcp.seq_number() != frontier {
        tcp.set_seq_number(frontier);
        tcp.fill_checksum(&source, &destination);
    }
}

/// What a TCP segment tells about the stream it belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Segment {
    /// Whether it opens the stream; its data then begin one number later.
    pub(super) is_syn: bool,
    /// Whether it ends the connection at once.
    pub(super) is_reset: bool,
    /// The number of its first byte.
    pub(super) sequence: u32,
    /// Bytes of data.
    pub(super) length: usize,
}

/// Reads a packet, if it is an undamaged TCP segment in one piece.
pub(super) fn segment(packet: &[u8]) -> Option<Segment> {
    let checks = ChecksumCapabilities::default();
    let ip = Ipv4Packet::new_checked(packet).ok()?;
    let ip_repr = Ipv4Repr::parse(&ip, &checks).ok()?;
    if ip_repr.next_header != IpProtocol::Tcp || ip.more_frags() || ip.frag_offset() != 0 {
        return None;
    }
    let tcp = TcpPacket::new_checked(ip.payload()).ok()?;
    let (source, destination) = (ip_repr.src_addr.into(), ip_repr.dst_addr.into());
    let repr = TcpRepr::parse(&tcp, &source, &destination, &checks).ok()?;
    Some(Segment {
        is_syn: repr.control == TcpControl::Syn,
        is_reset: repr.control == TcpControl::Rst,
        sequence: repr.seq_number.0.cast_unsigned(),
        length: repr.payload.len(),
    })
}

/// The instant on smoltcp's clock, which counts whole microseconds.
pub(super) fn smoltcp_instant(now: Time) -> Instant {
    Instant::from_micros(i64::try_from(now.as_micros()).unwrap_or(i64::MAX))
}

/// The instant on ours.
pub(super) fn time(instant: Instant) -> Time {
    Time::from_micros(u64::try_from(instant.total_micros()).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn packet(sequence: i32, payload: &[u8], control: TcpControl) -> Vec<u8> {
        let (source, destination) = ([10, 0, 0, 1].into(), [10, 0, 0, 2].into());
        let tcp = TcpRepr {
            src_port: 1,
            dst_port: 2,
            control,
            seq_number: TcpSeqNumber(sequence),
            ack_number: Some(TcpSeqNumber(77)),
            window_len: 1000,
            window_scale: None,
            max_seg_size: None,
            sack_permitted: false,
            sack_ranges: [None; 3],
            timestamp: None,
            payload,
        };
        let ip = Ipv4Repr {
            src_addr: source,
            dst_addr: destination,
            next_header: IpProtocol::Tcp,
            payload_len: tcp.buffer_len(),
            hop_limit: 64,
        };
        let checks = ChecksumCapabilities::default();
        let mut bytes = vec![0; ip.buffer_len() + tcp.buffer_len()];
        ip.emit(&mut Ipv4Packet::new_unchecked(&mut bytes), &checks);
        let mut segment = TcpPacket::new_unchecked(&mut bytes[ip.buffer_len()..]);
        tcp.emit(&mut segment, &source.into(), &destination.into(), &checks);
        bytes
    }

    #[test]
    fn a_stale_acknowledgement_gets_the_number_it_must_have() {
        let mut sent_until = None;
        let sequence_of = |mut packet: Vec<u8>, sent_until: &mut Option<_>| {
            mend_acknowledgement(&mut packet, sent_until);
            segment(&packet).expect("its checksums are right").sequence
        };
        let data = packet(1000, b"hello", TcpControl::None);
        assert_eq!(sequence_of(data.clone(), &mut sent_until), 1000);
        let bare = packet(900, b"", TcpControl::None);
        assert_eq!(sequence_of(bare, &mut sent_until), 1005);
        assert_eq!(sequence_of(data, &mut sent_until), 1000, "data keep theirs");
        let reset = packet(900, b"", TcpControl::Rst);
        assert_eq!(sequence_of(reset, &mut sent_until), 900, "as do resets");
    }

    proptest! {
        #[test]
        fn no_packet_makes_it_panic(mut packet in prop::collection::vec(any::<u8>(), 0..80)) {
            let _ = segment(&packet);
            // The same as an IPv4 packet with TCP in it, as far as it goes.
            if let Some(first) = packet.first_mut() {
                *first = 0x45;
            }
            if let Some(protocol) = packet.get_mut(9) {
                *protocol = 6;
            }
            let _ = segment(&packet);
        }
    }
}
