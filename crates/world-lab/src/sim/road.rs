//! One player's way to the gateway: both ends of its transport, and its link.

use std::ops::Sub;

use lagometer_client::{Outbox, Session};
use lagometer_gateway::carrier::Writing;
use lagometer_gateway::core::{CloseReason, ConnKey, ConnectionManager};
use lagometer_link::{Arrival, Direction, Fate, Link, Reason};
use lagometer_transport::{ByteStream, Carrier};
use lagometer_units::Time;
use lagometer_world::Peer;

use super::flight::{Flight, Flights};
use super::half::{Local, Remote};
use super::{RoadTally, WayTally};

/// A player's road.
pub(super) struct Road {
    /// Whose it is.
    seat: usize,
    pub(super) link: Link,
    local: Local,
    remote: Remote,
    /// The gateway could not write all that waits for the player.
    is_blocked: bool,
    /// The gateway reads nothing of the player for now.
    pub(super) is_paused: bool,
    /// When each end is due, the player's first.
    pub(super) noted: [Option<Time>; 2],
}

/// What a road is played with: the rest of the world.
pub(super) struct Weather<'a> {
    pub(super) now: Time,
    pub(super) flights: &'a mut Flights,
    pub(super) tally: &'a mut Tally,
}

/// What all roads together carried.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Tally {
    so_far: RoadTally,
    before: RoadTally,
    pub(super) measured: RoadTally,
}

impl Tally {
    /// What comes from now on is measured.
    pub(super) fn begin(&mut self) {
        self.before = self.so_far;
    }

    /// What was measured ends here.
    pub(super) fn end(&mut self) {
        self.measured = RoadTally {
            up: self.so_far.up - self.before.up,
            down: self.so_far.down - self.before.down,
        };
    }
}

impl Sub for WayTally {
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

impl Road {
    pub(super) fn new(seat: usize, link: Link, (local, remote): (Local, Remote)) -> Self {
        Self {
            seat,
            link,
            local,
            remote,
            is_blocked: false,
            is_paused: false,
            noted: [None; 2],
        }
    }

    /// Takes in a packet that has arrived. Whether the end it came to can have
    /// something to read.
    pub(super) fn arrive(&mut self, flight: &Flight, weather: &mut Weather<'_>) -> bool {
        let Self {
            seat,
            link,
            local,
            remote,
            ..
        } = self;
        let (stream, back) = match flight.direction {
            Direction::Up => (remote.stream(), Direction::Down),
            Direction::Down => (local.stream(), Direction::Up),
        };
        let Some(stream) = stream else {
            return true;
        };
        // A kernel checks the UDP checksum and drops what fails it; TCP checks
        // its own.
        if flight.damaged && stream.carrier() == Carrier::Udp {
            return false;
        }
        let overhead = overhead(stream);
        let now = weather.now;
        stream.input(now, &flight.bytes, &mut |packet| {
            weather.send(link, *seat, back, overhead, packet);
        });
        true
    }

    /// Does what is due at one end.
    pub(super) fn tick(&mut self, direction: Direction, weather: &mut Weather<'_>) {
        self.drive(direction, weather, |stream, now, output| {
            stream.tick(now, output);
        });
    }

    /// Sends what one end has written.
    pub(super) fn send(&mut self, direction: Direction, weather: &mut Weather<'_>) {
        self.drive(direction, weather, |stream, now, output| {
            stream.send(now, output);
        });
    }

    /// Hands the player what has arrived, and sends what it says to it. How
    /// many bytes it was, and how many it said.
    pub(super) fn serve_player(
        &mut self,
        session: &mut Session,
        peer: &mut Peer,
        weather: &mut Weather<'_>,
    ) -> Result<(u64, u64), String> {
        let read = self.local.read(weather.now, session, peer)?;
        let said = self.write_player(session.outbox(), weather)?;
        Ok((read, said))
    }

    /// Sends what the player says, as far as there is room.
    pub(super) fn write_player(
        &mut self,
        outbox: &mut Outbox,
        weather: &mut Weather<'_>,
    ) -> Result<u64, String> {
        let said = self.local.write(weather.now, outbox)?;
        if said > 0 || self.local.speaks_by_itself() {
            self.send(Direction::Up, weather);
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
        weather: &mut Weather<'_>,
    ) -> Option<CloseReason> {
        if !self.is_paused
            && let Some(why) = self.remote.read(weather.now, side, key)
        {
            return Some(why);
        }
        if self.is_blocked {
            return self.write_on(side, key, scratch, weather);
        }
        if self.remote.speaks_by_itself() {
            self.send(Direction::Down, weather);
        }
        None
    }

    /// Writes what waits for the player, unless it waits for room.
    pub(super) fn write_gateway(
        &mut self,
        side: &mut ConnectionManager,
        key: ConnKey,
        scratch: &mut Vec<u8>,
        weather: &mut Weather<'_>,
    ) -> Option<CloseReason> {
        if self.is_blocked {
            return None;
        }
        self.write_on(side, key, scratch, weather)
    }

    fn write_on(
        &mut self,
        side: &mut ConnectionManager,
        key: ConnKey,
        scratch: &mut Vec<u8>,
        weather: &mut Weather<'_>,
    ) -> Option<CloseReason> {
        let (written, writing) = self.remote.write(weather.now, side, key, scratch);
        self.is_blocked = writing == Writing::Blocked;
        if written {
            self.send(Direction::Down, weather);
        }
        (writing == Writing::Broken).then_some(CloseReason::TransportFailed)
    }

    /// When one end is due.
    pub(super) fn next_deadline(&mut self, direction: Direction, now: Time) -> Option<Time> {
        let stream = match direction {
            Direction::Up => self.local.stream(),
            Direction::Down => self.remote.stream(),
        };
        stream?.next_deadline(now)
    }

    /// Lets the end that sends in `direction` do something that may send.
    fn drive(
        &mut self,
        direction: Direction,
        weather: &mut Weather<'_>,
        act: impl FnOnce(&mut dyn ByteStream, Time, &mut dyn FnMut(&[u8])),
    ) {
        let Self {
            seat,
            link,
            local,
            remote,
            ..
        } = self;
        let stream = match direction {
            Direction::Up => local.stream(),
            Direction::Down => remote.stream(),
        };
        let Some(stream) = stream else {
            return;
        };
        let overhead = overhead(stream);
        let now = weather.now;
        act(stream, now, &mut |packet| {
            weather.send(link, *seat, direction, overhead, packet);
        });
    }
}

/// Bytes of headers below what the stream hands out.
fn overhead(stream: &dyn ByteStream) -> usize {
    stream.carrier().header_bytes() as usize
}

impl Weather<'_> {
    /// Puts a packet on a player's link.
    fn send(
        &mut self,
        link: &mut Link,
        seat: usize,
        direction: Direction,
        overhead: usize,
        packet: &[u8],
    ) {
        let bytes = packet.len() + overhead;
        let way = match direction {
            Direction::Up => &mut self.tally.so_far.up,
            Direction::Down => &mut self.tally.so_far.down,
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
        for Arrival { at, damage } in fate.arrivals() {
            let mut buffer = self.flights.buffer(packet);
            if let Some(damage) = damage {
                damage.apply(&mut buffer);
            }
            self.flights
                .push(at, seat, direction, damage.is_some(), buffer);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use lagometer_gateway::core::{ConnectionSettings, Peer as Kind};
    use lagometer_link::catalogue;

    use super::*;
    use crate::sim::half;
    use crate::{PlayerTransport, player_link};

    /// A road and the gateway's end of it, by themselves.
    struct Alone {
        road: Road,
        side: ConnectionManager,
        key: ConnKey,
        flights: Flights,
        tally: Tally,
        now: Time,
    }

    impl Alone {
        fn new(transport: PlayerTransport) -> Self {
            let mut side = ConnectionManager::new(ConnectionSettings::default());
            let key = side.open(Time::ZERO, Kind::Client, None).unwrap();
            let ends = half::pair(transport, 1, 1, Time::ZERO).unwrap();
            let link = player_link(&catalogue::named("lan").unwrap(), 1, 0, Time::MAX);
            Self {
                road: Road::new(0, link, ends),
                side,
                key,
                flights: Flights::default(),
                tally: Tally::default(),
                now: Time::ZERO,
            }
        }

        fn pass(&mut self, time: Duration) {
            let until = self.now + time;
            self.on_road(|road, weather| road.send(Direction::Up, weather));
            loop {
                let now = self.now;
                let road = &mut self.road;
                let due = Direction::BOTH.map(|direction| road.next_deadline(direction, now));
                let ticks = due.into_iter().flatten();
                // What is due at once has been done.
                let ticks = ticks.map(|at| at.max(now + Duration::from_micros(1)));
                let Some(next) = ticks.chain(self.flights.next_arrival()).min() else {
                    break;
                };
                if next > until {
                    break;
                }
                self.now = next;
                while let Some(flight) = self.flights.pop_due(next) {
                    self.on_road(|road, weather| road.arrive(&flight, weather));
                }
                for direction in Direction::BOTH {
                    self.on_road(|road, weather| road.tick(direction, weather));
                }
                self.serve();
            }
            self.now = until;
        }

        fn on_road<T>(&mut self, act: impl FnOnce(&mut Road, &mut Weather<'_>) -> T) -> T {
            let mut weather = Weather {
                now: self.now,
                flights: &mut self.flights,
                tally: &mut self.tally,
            };
            act(&mut self.road, &mut weather)
        }

        fn serve(&mut self) {
            let mut weather = Weather {
                now: self.now,
                flights: &mut self.flights,
                tally: &mut self.tally,
            };
            let over =
                self.road
                    .serve_gateway(&mut self.side, self.key, &mut Vec::new(), &mut weather);
            assert_eq!(over, None);
        }

        fn received(&self) -> u64 {
            self.side.counters().of(Kind::Client).bytes_in
        }
    }

    #[test]
    fn what_a_paused_player_sends_waits_until_it_is_resumed() {
        for transport in [PlayerTransport::TcpCubic, PlayerTransport::Kcp] {
            let mut alone = Alone::new(transport);
            alone.pass(Duration::from_secs(1));
            // The beginning of a frame.
            let sent = [&b"CH\0\xff\0"[..], &[0; 200]].concat();
            alone.road.is_paused = true;
            let stream = alone.road.local.stream().unwrap();
            assert_eq!(stream.write(alone.now, &sent), sent.len());
            alone.pass(Duration::from_secs(1));
            assert_eq!(alone.received(), 0, "{transport:?}");
            alone.road.is_paused = false;
            alone.serve();
            assert_eq!(alone.received(), sent.len() as u64, "{transport:?}");
        }
    }
}
