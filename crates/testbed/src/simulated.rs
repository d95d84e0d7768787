//! Lanes in virtual time, each with a link of its own: packets on their way in the
//! order in which they arrive, the counts of what was sent, and a capture of it.

use std::cell::RefCell;
use std::io::Write;
use std::ops::Sub;
use std::rc::Rc;
use std::time::Duration;

use lagometer_capture::PacketFile;
use lagometer_capture::pcapng::interface_of;
use lagometer_link::{Direction, Fate, InFlight, Link, Reason};
use lagometer_transport::Encapsulation;
use lagometer_units::Time;

use crate::lane_packet;

/// What lies between the ends of several lanes in virtual time.
#[derive(Debug, Default)]
pub struct Simulated {
    /// The instant that is played. Whoever drives the lanes moves it on.
    pub now: Time,
    /// Packets on their way, each of the connection with that number.
    pub in_flight: InFlight<usize>,
    sent: PathStats,
    sent_before_measuring: PathStats,
    capture: Rc<RefCell<Option<Capture>>>,
}

/// A capture of lanes in virtual time that is being written.
pub type Capture = PacketFile<Box<dyn Write + Send>>;

/// Who puts a packet on a link.
#[derive(Clone, Copy, Debug)]
pub struct Sender {
    /// The connection that the packet arrives for.
    pub connection: usize,
    /// The number of its lane in a capture.
    pub lane: u32,
}

/// What went over the links of all lanes while it was measured.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct PathStats {
    /// From clients to servers.
    pub up: DirectionStats,
    /// From servers to clients.
    pub down: DirectionStats,
}

/// One direction of it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DirectionStats {
    /// IP packets that were sent.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
    /// How many of the packets never arrived.
    pub lost: u64,
    /// How many of them because a link's queue was full.
    pub full: u64,
    /// How long packets waited in links' queues, all together.
    pub waited: Duration,
}

impl Sub for DirectionStats {
    type Output = Self;

    fn sub(self, before: Self) -> Self {
        Self {
            packets: self.packets - before.packets,
            bytes: self.bytes - before.bytes,
            lost: self.lost - before.lost,
            full: self.full - before.full,
            waited: self.waited.saturating_sub(before.waited),
        }
    }
}

impl Simulated {
    /// Nothing is on its way, at [`Time::ZERO`]. What will be sent, and what becomes of
    /// it, is written into `capture` while there is one.
    #[must_use]
    pub fn new(capture: Rc<RefCell<Option<Capture>>>) -> Self {
        Self {
            capture,
            ..Self::default()
        }
    }

    /// What is sent from now on is measured.
    pub fn begin_measuring(&mut self) {
        self.sent_before_measuring = self.sent;
    }

    /// What was sent since measuring began.
    #[must_use]
    pub fn measured(&self) -> PathStats {
        let (all, before) = (self.sent, self.sent_before_measuring);
        PathStats {
            up: all.up - before.up,
            down: all.down - before.down,
        }
    }

    /// Puts a packet, as an endpoint handed it out, on a lane's `link`.
    pub fn send(
        &mut self,
        link: &mut Link,
        from: Sender,
        direction: Direction,
        encapsulation: Encapsulation,
        packet: &[u8],
    ) {
        let bytes = packet.len() + encapsulation.header_bytes() as usize;
        let way = match direction {
            Direction::Up => &mut self.sent.up,
            Direction::Down => &mut self.sent.down,
        };
        way.packets += 1;
        way.bytes += bytes as u64;
        let fate = link.offer(direction, self.now, bytes);
        if matches!(fate, Fate::Delivered { .. }) {
            way.waited += link.waits(direction, self.now);
        } else {
            way.lost += 1;
            way.full += u64::from(fate == Fate::Dropped(Reason::QueueFull));
        }
        if let Some(capture) = &mut *self.capture.borrow_mut() {
            let lane = from.lane as usize;
            let packet = lane_packet(lane, direction, encapsulation, packet);
            let interface = interface_of(lane, direction == Direction::Up);
            let fate = fate.in_words(self.now);
            capture.packet(interface, self.now, &packet, format_args!("{fate}"));
        }
        let mut buffer = self.in_flight.buffer();
        buffer.extend_from_slice(packet);
        self.in_flight
            .settle(from.connection, direction, fate, buffer);
    }
}

#[cfg(test)]
mod tests {
    use lagometer_link::{Profile, Regime};

    use super::*;

    const FROM: Sender = Sender {
        connection: 7,
        lane: 0,
    };

    fn send(network: &mut Simulated, link: &mut Link, direction: Direction) {
        network.send(link, FROM, direction, Encapsulation::UdpIpv4, &[0; 100]);
    }

    #[test]
    fn counts_what_was_sent_since_measuring_began_and_delivers_it_in_order() {
        let text = "summary = \"slow up\"\n[up]\ndelay = \"20 ms\"\n[down]\ndelay = \"10 ms\"\n";
        let profile = Profile::from_text("slow", text).unwrap();
        let mut link = Link::new(&profile, 1, Regime::Time, Time::ZERO);
        let mut network = Simulated::default();
        send(&mut network, &mut link, Direction::Up);
        network.begin_measuring();
        send(&mut network, &mut link, Direction::Up);
        send(&mut network, &mut link, Direction::Down);
        let measured = network.measured();
        assert_eq!((measured.up.packets, measured.down.packets), (1, 1));
        assert_eq!(measured.up.bytes, 128, "with the headers of IP and UDP");
        let arrivals: Vec<_> = std::iter::from_fn(|| network.in_flight.pop_due(Time::MAX))
            .map(|packet| (packet.owner, packet.direction))
            .collect();
        assert_eq!(
            arrivals,
            [(7, Direction::Down), (7, Direction::Up), (7, Direction::Up)]
        );
    }

    #[test]
    fn a_packet_that_never_arrives_counts_as_sent_and_lost() {
        let text = "summary = \"gone\"\n[both]\n[[both.outages]]\nat = \"0 s\"\nfor = \"1 h\"\n";
        let profile = Profile::from_text("gone", text).unwrap();
        let mut link = Link::new(&profile, 1, Regime::Time, Time::ZERO);
        let mut network = Simulated::default();
        send(&mut network, &mut link, Direction::Up);
        let up = network.measured().up;
        assert_eq!((up.packets, up.lost, up.full), (1, 1, 0));
        assert_eq!(network.in_flight.next_arrival(), None);
    }
}
