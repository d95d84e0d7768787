//! A seeded network with the datagrams that are on their way through it.

use std::time::Duration;

use lagometer_link::{Direction, Fate, InFlight, Link, Profile, Regime, catalogue};
use lagometer_units::{Encapsulation, Time};
use thiserror::Error;

/// The most bytes of datagrams on their way at once: a link without a limit to its
/// queue must not fill the memory of the game that it is tested with.
const MOST_BYTES: usize = 64 << 20;

/// How long a network lasts. What it does at an instant follows from all that it did
/// before: a clock that jumps by years would have to be waited for.
const LASTS: Duration = Duration::from_hours(24 * 30);

/// What a datagram on its way takes beside its bytes, about.
const ENTRY_BYTES: usize = 96;

/// The longest payload of a UDP datagram over IPv4 (RFC 768, RFC 791).
pub(crate) const LONGEST_DATAGRAM_BYTES: usize = 65_507;

/// Why there is no such network.
#[derive(Debug, Error)]
pub(crate) enum NoNetwork {
    /// Not the name of a network that comes with the library.
    #[error(
        "there is no network `{0}`: give a name of `lagometer list networks`, or a description in TOML"
    )]
    Unknown(String),
    /// A description that cannot be read.
    #[error(transparent)]
    Bad(#[from] lagometer_units::BadInput),
    /// Its queue is shared with other traffic, or managed.
    #[error(
        "the network has {0}, which only whole runs play: leave that out of the description, or play it by `lagometer run`"
    )]
    NotAlone(&'static str),
}

/// What becomes of a datagram that is sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sent {
    /// It arrives, once or twice.
    OnItsWay,
    /// It never arrives, and the sender is not notified.
    Lost,
    /// It is larger than the path takes, and the sender is notified (`EMSGSIZE`).
    TooLarge,
    /// So much is on its way that no more is kept.
    NoRoom,
    /// The network has ended.
    Ended,
}

/// A network between a player (who sends up) and a server (who sends down).
#[derive(Debug)]
pub(crate) struct Network {
    link: Link,
    /// The instant of the program's clock at which it begins. The link's own clock
    /// begins there, too.
    start: Time,
    /// Those on their way, by direction.
    on_the_way: [InFlight<()>; 2],
    /// The instant that each direction was last seen.
    latest: [Time; 2],
    /// What those on their way take of memory.
    held_bytes: usize,
}

impl Network {
    /// The network of that name or description, with the dice of `seed`, which begins at
    /// `start` of the program's clock; what is earlier is taken as that.
    pub(crate) fn new(description: &str, seed: u64, start: Time) -> Result<Self, NoNetwork> {
        let profile = profile(description)?;
        if !profile.cross().is_empty() {
            return Err(NoNetwork::NotAlone("other traffic (`[[cross]]`)"));
        }
        if profile.has_managed_queue() {
            return Err(NoNetwork::NotAlone("a managed queue"));
        }
        Ok(Self {
            link: Link::new(&profile, seed, Regime::Time, Time::ZERO),
            start,
            on_the_way: Default::default(),
            latest: [Time::ZERO; 2],
            held_bytes: 0,
        })
    }

    /// Puts a datagram on the network, which counts the headers of UDP and IPv4 with
    /// it. What is damaged on the way is lost, as UDP's checksum has it.
    pub(crate) fn send(&mut self, direction: Direction, now: Time, datagram: &[u8]) -> Sent {
        if datagram.len() > LONGEST_DATAGRAM_BYTES {
            return Sent::TooLarge;
        }
        if self.held_bytes + ENTRY_BYTES + datagram.len() > MOST_BYTES {
            return Sent::NoRoom;
        }
        let Some(now) = self.advance(direction, now) else {
            return Sent::Ended;
        };
        let packet_bytes = datagram.len() + Encapsulation::UdpIpv4.header_bytes() as usize;
        let fate = self.link.offer(direction, now, packet_bytes);
        if let Fate::Refused { .. } = fate {
            return Sent::TooLarge;
        }
        let on_the_way = &mut self.on_the_way[direction.index()];
        let mut arrives = false;
        for arrival in fate.arrivals().filter(|it| it.damage.is_none()) {
            let mut bytes = on_the_way.buffer();
            bytes.extend_from_slice(datagram);
            self.held_bytes += ENTRY_BYTES + bytes.len();
            on_the_way.push(arrival.at, (), direction, false, bytes);
            arrives = true;
        }
        if arrives { Sent::OnItsWay } else { Sent::Lost }
    }

    /// The datagram that is due next in that direction at `now`; it stays until it is
    /// [taken](Self::take).
    pub(crate) fn due(&mut self, direction: Direction, now: Time) -> Option<&[u8]> {
        let now = self.advance(direction, now)?;
        self.on_the_way[direction.index()]
            .peek_due(now)
            .map(|it| it.bytes.as_slice())
    }

    /// The datagram that was due was read.
    pub(crate) fn take(&mut self, direction: Direction) {
        let now = self.latest[direction.index()];
        let on_the_way = &mut self.on_the_way[direction.index()];
        if let Some(packet) = on_the_way.pop_due(now) {
            self.held_bytes -= ENTRY_BYTES + packet.bytes.len();
            on_the_way.recycle(packet.bytes);
        }
    }

    /// When the next datagram of any direction arrives.
    pub(crate) fn next_arrival(&self) -> Option<Time> {
        self.on_the_way
            .iter()
            .filter_map(InFlight::next_arrival)
            .min()
            .map(|at| self.start + at.since(Time::ZERO))
    }

    /// How many datagrams are on their way in that direction, copies included.
    pub(crate) fn waiting(&self, direction: Direction) -> usize {
        self.on_the_way[direction.index()].len()
    }

    /// The instant on the link's clock, which never goes back; none beyond its end.
    fn advance(&mut self, direction: Direction, now: Time) -> Option<Time> {
        let age = now.since(self.start);
        if age > LASTS {
            return None;
        }
        let latest = &mut self.latest[direction.index()];
        *latest = (Time::ZERO + age).max(*latest);
        Some(*latest)
    }
}

/// A description has lines, keys or tables; a name has none of them.
fn profile(description: &str) -> Result<Profile, NoNetwork> {
    if description.contains(['=', '\n', '[']) {
        return Ok(Profile::from_text("the description", description)?);
    }
    catalogue::named(description).ok_or_else(|| NoNetwork::Unknown(description.to_owned()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drain(network: &mut Network, direction: Direction, now: Time) -> Vec<Vec<u8>> {
        let mut all = Vec::new();
        while let Some(datagram) = network.due(direction, now) {
            all.push(datagram.to_vec());
            network.take(direction);
        }
        all
    }

    #[test]
    fn what_is_sent_arrives_after_the_delay_and_not_before() {
        let text = "summary = \"slow\"\n[both]\ndelay = \"20 ms\"\n";
        let mut network = Network::new(text, 1, Time::ZERO).unwrap();
        let at = Time::from_millis(5);
        assert_eq!(network.send(Direction::Up, at, b"shot"), Sent::OnItsWay);
        assert_eq!(network.next_arrival(), Some(Time::from_millis(25)));
        assert!(drain(&mut network, Direction::Up, Time::from_millis(24)).is_empty());
        assert!(drain(&mut network, Direction::Down, Time::from_millis(25)).is_empty());
        let all = drain(&mut network, Direction::Up, Time::from_millis(25));
        assert_eq!(all, [b"shot"]);
        assert_eq!((network.held_bytes, network.next_arrival()), (0, None));
    }

    #[test]
    fn the_same_seed_loses_the_same_datagrams_and_another_does_not() {
        let play = |seed| {
            let mut network = Network::new("loss-20", seed, Time::ZERO).unwrap();
            (0..500_u64)
                .map(|ms| network.send(Direction::Up, Time::from_millis(ms), &ms.to_le_bytes()))
                .collect::<Vec<_>>()
        };
        assert_eq!(play(7), play(7));
        assert_ne!(play(7), play(8));
        let lost = play(7).iter().filter(|it| **it == Sent::Lost).count();
        assert!((60..140).contains(&lost), "{lost} of 500 at 20 %");
    }

    #[test]
    fn time_that_goes_back_stands_still() {
        let mut network = Network::new("cable", 1, Time::ZERO).unwrap();
        network.send(Direction::Up, Time::from_secs(10), b"late");
        network.send(Direction::Up, Time::ZERO, b"early");
        assert!(network.next_arrival().unwrap() > Time::from_secs(10));
    }

    #[test]
    fn the_programs_clock_may_begin_anywhere_and_what_lies_years_ahead_is_refused() {
        let text = "summary = \"slow\"\n[both]\ndelay = \"20 ms\"\n";
        let epoch = Time::from_secs(1_700_000_000);
        let mut network = Network::new(text, 1, epoch).unwrap();
        assert_eq!(network.send(Direction::Up, epoch, b"now"), Sent::OnItsWay);
        assert_eq!(
            network.next_arrival(),
            Some(epoch + Duration::from_millis(20))
        );
        let later = Time::from_nanos(u64::MAX);
        assert_eq!(network.send(Direction::Up, later, b"never"), Sent::Ended);
        assert_eq!(network.due(Direction::Up, later), None);
        let all = drain(
            &mut network,
            Direction::Up,
            epoch + Duration::from_millis(20),
        );
        assert_eq!(all, [b"now"]);
    }

    #[test]
    fn an_endless_queue_ends_where_memory_would() {
        let text = "summary = \"a hole\"\n[both]\nrate = \"8 kbit/s\"\ndelay = \"1 s\"\n";
        let mut network = Network::new(text, 1, Time::ZERO).unwrap();
        let datagram = vec![0; 60_000];
        let mut sent = 0;
        while network.send(Direction::Up, Time::ZERO, &datagram) == Sent::OnItsWay {
            sent += 1;
        }
        assert_eq!(sent, MOST_BYTES / (ENTRY_BYTES + datagram.len()));
        assert_eq!(
            network.send(Direction::Up, Time::ZERO, &datagram),
            Sent::NoRoom
        );
    }

    #[test]
    fn what_is_larger_than_the_path_is_refused() {
        let mut network = Network::new("mtu-1280", 1, Time::ZERO).unwrap();
        assert_ne!(
            network.send(Direction::Up, Time::ZERO, &[0; 1252]),
            Sent::TooLarge
        );
        let mut network = Network::new("cable", 1, Time::ZERO).unwrap();
        let longer = vec![0; LONGEST_DATAGRAM_BYTES + 1];
        assert_eq!(
            network.send(Direction::Up, Time::ZERO, &longer),
            Sent::TooLarge
        );
    }

    #[test]
    fn what_is_no_network_is_refused_in_one_line() {
        for (description, word) in [
            ("busy-wify", "lagometer list networks"),
            ("", "lagometer list networks"),
            ("[both]\ndelay = 7", "the description"),
            ("summary = \"\"\n[both]\nlos = \"1 %\"", "loss"),
        ] {
            let refused = Network::new(description, 1, Time::ZERO)
                .unwrap_err()
                .to_string();
            assert!(
                refused.contains(word) && !refused.contains('\n'),
                "{refused}"
            );
        }
        let refused = Network::new("home-film", 1, Time::ZERO)
            .unwrap_err()
            .to_string();
        assert!(refused.contains("other traffic"), "{refused}");
    }
}
