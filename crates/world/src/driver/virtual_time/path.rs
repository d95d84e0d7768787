//! One player's way to the gateway: both ends of its transport, and its link.

use lagometer_client::{Outbox, Session};
use lagometer_gateway::core::{CloseReason, ConnKey, ConnectionManager};
use lagometer_gateway::stream_transport::Writing;
use lagometer_link::{Direction, Link, PacketInFlight};
use lagometer_testbed::{Sender, Simulated};
use lagometer_transport::{ByteStream, Encapsulation};
use lagometer_units::Time;

use super::half::{Local, PlayerEndError, Remote};
use crate::Peer;

/// A player's path.
pub(super) struct PlayerPath {
    sender: Sender,
    pub(super) link: Link,
    ends: Ends,
    /// The gateway could not write all that waits for the player.
    is_blocked: bool,
    /// The gateway reads nothing of the player for now.
    pub(super) is_paused: bool,
    /// The gateway has dropped the connection, and the player has not noticed.
    pub(super) is_dropped: bool,
    /// When each end is due, the player's first.
    pub(super) noted: [Option<Time>; 2],
}

/// The player's end and the gateway's.
struct Ends {
    local: Local,
    remote: Remote,
}

impl PlayerPath {
    pub(super) fn new(
        connection: usize,
        player: u32,
        link: Link,
        (local, remote): (Local, Remote),
    ) -> Self {
        Self {
            sender: Sender {
                connection,
                lane: player,
            },
            link,
            ends: Ends { local, remote },
            is_blocked: false,
            is_paused: false,
            is_dropped: false,
            noted: [None; 2],
        }
    }

    /// Takes in a packet that has arrived. Whether the end it came to can have
    /// something to read.
    pub(super) fn arrive(
        &mut self,
        packet: &PacketInFlight<usize>,
        network: &mut Simulated,
    ) -> bool {
        let back = packet.direction.opposite();
        if self.is_dropped && packet.direction == Direction::Up {
            return false;
        }
        let Some(stream) = self.ends.sender(back) else {
            return true;
        };
        // A kernel checks the UDP checksum and drops what fails it; TCP checks
        // its own.
        if packet.damaged && stream.encapsulation() == Encapsulation::UdpIpv4 {
            return false;
        }
        self.drive(back, network, |stream, now, output| {
            stream.input(now, &packet.bytes, output);
        });
        true
    }

    /// Does what is due at one end.
    pub(super) fn tick(&mut self, direction: Direction, network: &mut Simulated) {
        self.drive(direction, network, |stream, now, output| {
            stream.tick(now, output);
        });
    }

    /// Sends what one end has written.
    pub(super) fn send(&mut self, direction: Direction, network: &mut Simulated) {
        self.drive(direction, network, |stream, now, output| {
            stream.send(now, output);
        });
    }

    /// Hands the player what has arrived, and sends what it says to it. How
    /// many bytes it was, and how many it said.
    ///
    /// # Errors
    ///
    /// [`PlayerEndError`] where the connection is over.
    pub(super) fn serve_player(
        &mut self,
        session: &mut Session,
        peer: &mut Peer,
        network: &mut Simulated,
    ) -> Result<(u64, u64), PlayerEndError> {
        let read = self.ends.local.read(network.now, session, peer)?;
        let said = self.write_player(session.outbox(), network)?;
        Ok((read, said))
    }

    /// Sends what the player says, as far as there is room.
    ///
    /// # Errors
    ///
    /// [`PlayerEndError`] where the connection is over.
    pub(super) fn write_player(
        &mut self,
        outbox: &mut Outbox,
        network: &mut Simulated,
    ) -> Result<u64, PlayerEndError> {
        let said = self.ends.local.write(network.now, outbox)?;
        if said > 0 || self.ends.local.speaks_by_itself() {
            self.send(Direction::Up, network);
        }
        Ok(said)
    }

    /// Hands the gateway what has arrived, and goes on writing where there was
    /// no room before. Why the connection is over, if it is.
    pub(super) fn serve_gateway(
        &mut self,
        side: &mut ConnectionManager,
        key: ConnKey,
        scratch: &mut Vec<u8>,
        network: &mut Simulated,
    ) -> Option<CloseReason> {
        if !self.is_paused
            && let Some(why) = self.ends.remote.read(network.now, side, key)
        {
            return Some(why);
        }
        if self.is_blocked {
            return self.write_on(side, key, scratch, network);
        }
        if self.ends.remote.speaks_by_itself() {
            self.send(Direction::Down, network);
        }
        None
    }

    /// Writes what waits for the player, unless it waits for room.
    pub(super) fn write_gateway(
        &mut self,
        side: &mut ConnectionManager,
        key: ConnKey,
        scratch: &mut Vec<u8>,
        network: &mut Simulated,
    ) -> Option<CloseReason> {
        if self.is_blocked {
            return None;
        }
        self.write_on(side, key, scratch, network)
    }

    fn write_on(
        &mut self,
        side: &mut ConnectionManager,
        key: ConnKey,
        scratch: &mut Vec<u8>,
        network: &mut Simulated,
    ) -> Option<CloseReason> {
        let (written, writing) = self.ends.remote.write(network.now, side, key, scratch);
        self.is_blocked = writing == Writing::Blocked;
        if written {
            self.send(Direction::Down, network);
        }
        (writing == Writing::Broken).then_some(CloseReason::TransportFailed)
    }

    /// When one end is due.
    pub(super) fn next_deadline(&mut self, direction: Direction, now: Time) -> Option<Time> {
        if self.is_dropped && direction == Direction::Down {
            return None;
        }
        self.ends.sender(direction)?.next_deadline(now)
    }

    /// Lets the end that sends in `direction` do something that may send.
    fn drive(
        &mut self,
        direction: Direction,
        network: &mut Simulated,
        act: impl FnOnce(&mut dyn ByteStream, Time, &mut dyn FnMut(&[u8])),
    ) {
        let Some(stream) = self.ends.sender(direction) else {
            return;
        };
        let encapsulation = stream.encapsulation();
        let now = network.now;
        act(stream, now, &mut |packet| {
            let link = &mut self.link;
            network.send(link, self.sender, direction, encapsulation, packet);
        });
    }
}

impl Ends {
    /// The stream of the end that sends in `direction`; none once its handshake
    /// has failed.
    fn sender(&mut self, direction: Direction) -> Option<&mut dyn ByteStream> {
        match direction {
            Direction::Up => self.local.stream(),
            Direction::Down => self.remote.stream(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lagometer_gateway::core::{ConnectionSettings, Peer as Kind};
    use lagometer_link::catalogue;

    use super::*;
    use crate::driver::virtual_time::half;
    use crate::{PlayerTransport, player_link};

    /// A path and the gateway's end of it, by themselves.
    struct PathUnderTest {
        path: PlayerPath,
        side: ConnectionManager,
        key: ConnKey,
        network: Simulated,
    }

    impl PathUnderTest {
        fn new(transport: PlayerTransport) -> Self {
            let mut side = ConnectionManager::new(ConnectionSettings::default());
            let key = side.open(Time::ZERO, Kind::Client, None).unwrap();
            let ends = half::pair(transport, 1, 1, Time::ZERO).unwrap();
            let link = player_link(&catalogue::named("lan").unwrap(), 1, 0, Time::MAX);
            Self {
                path: PlayerPath::new(0, 0, link, ends),
                side,
                key,
                network: Simulated::default(),
            }
        }

        fn pass(&mut self, time: Duration) {
            let until = self.network.now + time;
            self.with_path(|path, network| path.send(Direction::Up, network));
            loop {
                let now = self.network.now;
                let path = &mut self.path;
                let due = Direction::BOTH.map(|direction| path.next_deadline(direction, now));
                let ticks = due.into_iter().flatten();
                // What is due at once has been done.
                let ticks = ticks.map(|at| at.max(now + Duration::from_micros(1)));
                let Some(next) = ticks.chain(self.network.in_flight.next_arrival()).min() else {
                    break;
                };
                if next > until {
                    break;
                }
                self.network.now = next;
                while let Some(packet) = self.network.in_flight.pop_due(next) {
                    self.with_path(|path, network| path.arrive(&packet, network));
                }
                for direction in Direction::BOTH {
                    self.with_path(|path, network| path.tick(direction, network));
                }
                self.serve();
            }
            self.network.now = until;
        }

        fn with_path<T>(&mut self, act: impl FnOnce(&mut PlayerPath, &mut Simulated) -> T) -> T {
            act(&mut self.path, &mut self.network)
        }

        fn serve(&mut self) {
            let over = self.path.serve_gateway(
                &mut self.side,
                self.key,
                &mut Vec::new(),
                &mut self.network,
            );
            assert_eq!(over, None);
        }

        fn received(&self) -> u64 {
            self.side.counters().of(Kind::Client).bytes_in
        }
    }

    #[test]
    fn what_a_paused_player_sends_waits_until_it_is_resumed() {
        for transport in [PlayerTransport::TCP_CUBIC, PlayerTransport::KCP] {
            let mut tested = PathUnderTest::new(transport);
            tested.pass(Duration::from_secs(1));
            // The beginning of a frame.
            let sent = [&b"CH\0\xff\0"[..], &[0; 200]].concat();
            tested.path.is_paused = true;
            let stream = tested.path.ends.local.stream().unwrap();
            assert_eq!(stream.write(tested.network.now, &sent), sent.len());
            tested.pass(Duration::from_secs(1));
            assert_eq!(tested.received(), 0, "{transport:?}");
            tested.path.is_paused = false;
            tested.serve();
            assert_eq!(tested.received(), sent.len() as u64, "{transport:?}");
        }
    }
}
