//! Packets on their way, in order of arrival, and the memory they use.

use lagometer_units::Time;

use crate::{Arrival, Arrivals, Direction, Fate};

/// One packet on its way, which belongs to `owner`: the connection or lane,
/// where several share a queue.
#[derive(Debug)]
pub struct PacketInFlight<T> {
    /// What the caller knows the packet by.
    pub owner: T,
    /// Where it goes.
    pub direction: Direction,
    /// Its bits were changed on the way.
    pub damaged: bool,
    /// What the host that sent it handed out.
    pub bytes: Vec<u8>,
}

/// All packets on their way, and the buffers of those that arrived, to be used
/// again. Packets that arrive at one instant come in the order in which they
/// were pushed.
#[derive(Debug)]
pub struct InFlight<T> {
    packets: Arrivals<PacketInFlight<T>>,
    spare: Vec<Vec<u8>>,
}

impl<T> Default for InFlight<T> {
    fn default() -> Self {
        Self {
            packets: Arrivals::default(),
            spare: Vec::new(),
        }
    }
}

impl<T: Copy> InFlight<T> {
    /// Lets a packet have its `fate`: what gets through of it, once or twice, arrives
    /// when the link said and with the damage that it takes on the way.
    pub fn settle(&mut self, owner: T, direction: Direction, fate: Fate, bytes: Vec<u8>) {
        let Fate::Delivered { first, copy } = fate else {
            self.recycle(bytes);
            return;
        };
        if let Some(copy) = copy {
            let mut twin = self.buffer();
            twin.extend_from_slice(&bytes);
            self.send_off(copy, owner, direction, twin);
        }
        self.send_off(first, owner, direction, bytes);
    }

    fn send_off(&mut self, arrival: Arrival, owner: T, direction: Direction, mut bytes: Vec<u8>) {
        if let Some(damage) = arrival.damage {
            damage.apply(&mut bytes);
        }
        self.push(
            arrival.at,
            owner,
            direction,
            arrival.damage.is_some(),
            bytes,
        );
    }
}

impl<T> InFlight<T> {
    /// When the next packet arrives.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Time> {
        self.packets.next_arrival()
    }

    /// Lets a packet arrive at `at`.
    pub fn push(
        &mut self,
        at: Time,
        owner: T,
        direction: Direction,
        damaged: bool,
        bytes: Vec<u8>,
    ) {
        let packet = PacketInFlight {
            owner,
            direction,
            damaged,
            bytes,
        };
        self.packets.push(at, packet);
    }

    /// The next packet that has arrived by `now`.
    pub fn pop_due(&mut self, now: Time) -> Option<PacketInFlight<T>> {
        self.packets.pop_due(now)
    }

    /// The same, left where it is.
    #[must_use]
    pub fn peek_due(&self, now: Time) -> Option<&PacketInFlight<T>> {
        self.packets.peek_due(now)
    }

    /// An empty buffer, used before if there is one.
    pub fn buffer(&mut self) -> Vec<u8> {
        self.spare.pop().unwrap_or_default()
    }

    /// Takes a buffer back for [`buffer`](Self::buffer).
    pub fn recycle(&mut self, mut buffer: Vec<u8>) {
        buffer.clear();
        self.spare.push(buffer);
    }

    /// How many packets are on their way.
    #[must_use]
    pub fn len(&self) -> usize {
        self.packets.len()
    }

    /// Nothing is on its way.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.packets.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_arrives_whole_when_it_is_due() {
        let mut in_flight = InFlight::default();
        in_flight.push(Time::from_millis(3), 7, Direction::Up, true, vec![1, 2]);
        assert_eq!(in_flight.next_arrival(), Some(Time::from_millis(3)));
        assert!(in_flight.pop_due(Time::from_millis(2)).is_none());
        let packet = in_flight.pop_due(Time::from_millis(3)).unwrap();
        assert_eq!((packet.owner, packet.bytes), (7, vec![1, 2]));
        assert_eq!((packet.direction, packet.damaged), (Direction::Up, true));
        assert!(in_flight.is_empty());
        assert_eq!(in_flight.next_arrival(), None);
    }

    #[test]
    fn a_packet_arrives_as_often_as_its_fate_says() {
        let arrival = |millis| Arrival {
            at: Time::from_millis(millis),
            damage: None,
        };
        let mut in_flight = InFlight::default();
        let lost = Fate::Dropped(crate::Reason::Loss);
        in_flight.settle(0, Direction::Up, lost, vec![1]);
        let doubled = Fate::Delivered {
            first: arrival(1),
            copy: Some(arrival(2)),
        };
        in_flight.settle(7, Direction::Down, doubled, vec![1, 2]);
        for millis in [1, 2] {
            let packet = in_flight.pop_due(Time::from_millis(millis)).unwrap();
            assert_eq!((packet.owner, packet.bytes), (7, vec![1, 2]));
        }
        assert!(in_flight.is_empty());
    }

    #[test]
    fn a_buffer_that_comes_back_is_empty() {
        let mut in_flight: InFlight<()> = InFlight::default();
        in_flight.recycle(vec![1, 2, 3]);
        assert!(in_flight.buffer().is_empty());
    }
}
