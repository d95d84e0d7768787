//! One lane as the router sees it: its link, and what becomes of a packet.

use lagometer_link::{Direction, Fate};
use lagometer_units::Time;

use crate::address::LaneAddresses;
use crate::audit::DirectionCounters;
use crate::ip::Header;
use crate::lane_link::{LaneLink, PathFate};

/// A lane's addresses and its own state of the link.
#[derive(Debug)]
pub(crate) struct Lane {
    addresses: LaneAddresses,
    link: LaneLink,
}

/// What is to be done with a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It is not one of the lane's; nobody asks for it.
    LeftOut,
    /// The link has spoken.
    Fated(Fate),
    /// It is on a path, which reports its fate later.
    OnPath,
}

impl Lane {
    pub(crate) const fn new(addresses: LaneAddresses, link: LaneLink) -> Self {
        Self { addresses, link }
    }

    /// Goes on with another link.
    pub(crate) fn set_link(&mut self, link: LaneLink) {
        self.link = link;
    }

    /// What becomes of the packet with this `number`, which came at `now` and wants to
    /// go in `direction`, where the hosts' devices take `mtu` bytes.
    pub(crate) fn consider(
        &mut self,
        direction: Direction,
        now: Time,
        (number, packet): (u64, &[u8]),
        mtu: usize,
        book: &mut DirectionCounters,
    ) -> Outcome {
        let Some(header) = Header::read(packet).filter(|_| packet.len() <= mtu) else {
            book.malformed += 1;
            return Outcome::LeftOut;
        };
        let (up, down) = (
            self.addresses.is_up(header.source, header.destination),
            self.addresses.is_up(header.destination, header.source),
        );
        let belongs = match direction {
            Direction::Up => up,
            Direction::Down => down,
        };
        if !belongs {
            book.foreign += 1;
            return Outcome::LeftOut;
        }
        let link = match &mut self.link {
            LaneLink::Own(link) => link,
            LaneLink::Shared(sender) => {
                sender.offer(now, direction, number, packet);
                return Outcome::OnPath;
            }
        };
        let fate = link.offer(direction, now, packet.len());
        book.offered(packet.len(), &fate);
        if matches!(fate, Fate::Delivered { .. }) {
            book.waits(link.waits(direction, now));
        }
        Outcome::Fated(fate)
    }

    /// When its path must be looked after, if it is on one.
    pub(crate) fn next_deadline(&self) -> Option<Time> {
        match &self.link {
            LaneLink::Own(_) => None,
            LaneLink::Shared(sender) => sender.path().next_deadline(),
        }
    }

    /// Looks after its path.
    pub(crate) fn handle_deadline(&self, now: Time) {
        if let LaneLink::Shared(sender) = &self.link {
            sender.path().handle_deadline(now);
        }
    }

    /// The next fate that its path reports, of whichever lane.
    pub(crate) fn poll_fate(&self) -> Option<PathFate> {
        match &self.link {
            LaneLink::Own(_) => None,
            LaneLink::Shared(sender) => sender.path().poll(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::audit::AuditCounters;
    use lagometer_link::{Link, Profile, Regime};

    fn packet(source: [u8; 4], destination: [u8; 4], length: u16) -> Vec<u8> {
        let mut packet = vec![0; usize::from(length)];
        packet[0] = 0x45;
        packet[2..4].copy_from_slice(&length.to_be_bytes());
        packet[12..16].copy_from_slice(&source);
        packet[16..20].copy_from_slice(&destination);
        packet
    }

    #[test]
    fn only_the_lanes_own_whole_packets_meet_its_link() {
        let text = "summary = \"a\"\n[both]\ndelay = \"10 ms\"\n";
        let profile = Profile::from_text("test", text).unwrap();
        let link = Link::new(&profile, 1, Regime::Time, Time::ZERO);
        let mut lane = Lane::new(LaneAddresses::of(3), link.into());
        let mut audit_counters = AuditCounters::new(1, Time::ZERO);
        let book = &mut audit_counters.lanes[0][0];
        let (local, remote) = ([10, 77, 3, 1], [10, 77, 3, 2]);
        let mut consider = |direction, packet: &[u8]| {
            lane.consider(direction, Time::ZERO, (1, packet), 1500, book)
        };
        assert!(matches!(
            consider(Direction::Up, &packet(local, remote, 100)),
            Outcome::Fated(Fate::Delivered { .. })
        ));
        for (direction, foreign) in [
            (Direction::Down, packet(local, remote, 100)),
            (Direction::Up, packet(local, [224, 0, 0, 22], 100)),
            (Direction::Up, packet([10, 77, 4, 1], remote, 100)),
            (Direction::Up, packet(local, remote, 1501)),
            (Direction::Up, packet(local, remote, 100)[..99].to_vec()),
        ] {
            assert_eq!(consider(direction, &foreign), Outcome::LeftOut);
        }
        let book = &audit_counters.lanes[0][0];
        assert_eq!((book.foreign, book.malformed), (3, 2));
    }

    #[test]
    fn what_waits_in_the_links_queue_is_written_down() {
        let text =
            "summary = \"a\"\n[both]\ndelay = \"10 ms\"\nrate = \"1 Mbit/s\"\nqueue = \"400 ms\"\n";
        let profile = Profile::from_text("narrow", text).unwrap();
        let link = Link::new(&profile, 1, Regime::Time, Time::ZERO);
        let mut lane = Lane::new(LaneAddresses::of(3), link.into());
        let mut audit_counters = AuditCounters::new(1, Time::ZERO);
        let book = &mut audit_counters.lanes[0][0];
        let packet = packet([10, 77, 3, 1], [10, 77, 3, 2], 1250);
        for _ in 0..3 {
            lane.consider(Direction::Up, Time::ZERO, (1, &packet), 1500, book);
        }
        // Each takes ten milliseconds to be sent.
        assert_eq!(book.waited, Duration::from_millis(10 + 20));
    }
}
