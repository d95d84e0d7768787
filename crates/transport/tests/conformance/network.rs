//! A small network in virtual time with one endpoint at each side.

use std::collections::BTreeMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use lagometer_transport::{Delivery, Encapsulation, Endpoint, Pair, Refused, Spec, State};
use lagometer_units::Time;

use crate::dice::Dice;
use crate::messages::numbers_of;

/// Wake-ups and datagrams that one virtual second may cost before the
/// endpoints are taken to be chasing their own tails.
const STEPS_PER_SECOND: u64 = 50_000;

/// Steps that one message may cost on top, which some carry in four datagrams.
const STEPS_PER_MESSAGE: u64 = 16;

/// Steps that are allowed in any case.
const STEPS_IN_HAND: u64 = 200_000;

/// One of the two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) enum Side {
    Client,
    Server,
}

impl Side {
    pub(crate) const BOTH: [Self; 2] = [Self::Client, Self::Server];

    pub(crate) fn other(self) -> Self {
        match self {
            Self::Client => Self::Server,
            Self::Server => Self::Client,
        }
    }
}

/// How the network treats datagrams, in both directions alike.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Path {
    pub(crate) delay: Duration,
    /// Up to so much more, evenly distributed; datagrams overtake each other.
    pub(crate) jitter: Duration,
    pub(crate) loss: f64,
    pub(crate) duplication: f64,
    /// Share of datagrams in which a burst of up to 15 bits is flipped. Where
    /// UDP carries them its checksum catches that, and they are lost.
    pub(crate) damage: f64,
}

impl Path {
    pub(crate) const CLEAN: Self = Self {
        delay: Duration::from_millis(20),
        jitter: Duration::ZERO,
        loss: 0.0,
        duplication: 0.0,
        damage: 0.0,
    };

    pub(crate) const BAD: Self = Self {
        delay: Duration::from_millis(30),
        jitter: Duration::from_millis(20),
        loss: 0.05,
        duplication: 0.03,
        damage: 0.02,
    };

    pub(crate) const CUT: Self = Self {
        loss: 1.0,
        ..Self::CLEAN
    };
}

/// Both endpoints, what is on the way between them, and what has arrived.
pub(crate) struct Network {
    pub(crate) now: Time,
    pub(crate) path: Path,
    /// Messages that have arrived at each side, in order.
    pub(crate) arrived: [Vec<Vec<u8>>; 2],
    /// When each of them did.
    pub(crate) arrived_at: [Vec<Time>; 2],
    /// How long each of them says that it was blocked.
    pub(crate) blocked: [Vec<Option<Duration>>; 2],
    /// Whether the application at each side reads what arrives.
    pub(crate) reads: [bool; 2],
    /// Real datagrams that were sent to each side, for making garbage of.
    pub(crate) samples: [Vec<Vec<u8>>; 2],
    /// Their sizes, all of them.
    pub(crate) sizes: Vec<usize>,
    /// Datagrams sent.
    pub(crate) datagrams: u64,
    start: Time,
    pair: Pair,
    encapsulation: Encapsulation,
    is_ordered: bool,
    repeats_bytes: bool,
    dice: Dice,
    /// By arrival, then in the order in which they were sent.
    flying: BTreeMap<(Time, u64), (Side, Vec<u8>)>,
    launched: u64,
    digest: DefaultHasher,
    steps: u64,
    /// Messages that endpoints took.
    messages: u64,
}

impl Network {
    /// A network that begins at an instant of the seed's choice.
    pub(crate) fn new(spec: &Spec, path: Path, seed: u64) -> Self {
        let start = Time::from_nanos(seed * 1_234_567_891_011);
        Self {
            now: start,
            start,
            path,
            arrived: [Vec::new(), Vec::new()],
            arrived_at: [Vec::new(), Vec::new()],
            blocked: [Vec::new(), Vec::new()],
            reads: [true, true],
            samples: [Vec::new(), Vec::new()],
            sizes: Vec::new(),
            datagrams: 0,
            pair: spec.pair(seed, start),
            encapsulation: spec.encapsulation(),
            is_ordered: spec.properties().ordered,
            repeats_bytes: repeats_bytes(spec),
            dice: Dice::new(seed),
            flying: BTreeMap::new(),
            launched: 0,
            digest: DefaultHasher::new(),
            steps: 0,
            messages: 0,
        }
    }

    /// A network on which both ends have become ready.
    pub(crate) fn connected(spec: &Spec, path: Path, seed: u64) -> Self {
        let mut network = Self::new(spec, path, seed);
        for _ in 0..600 {
            if Side::BOTH.map(|side| network.state(side)) == [State::Ready, State::Ready] {
                return network;
            }
            network.run_for(Duration::from_millis(100));
        }
        panic!(
            "not connected after a minute: client {:?}, server {:?}",
            network.state(Side::Client),
            network.state(Side::Server)
        );
    }

    /// Hands a message over at one side, now.
    pub(crate) fn send(&mut self, side: Side, message: &[u8]) -> Result<(), Refused> {
        let now = self.now;
        let outcome = self.endpoint(side).send(now, message);
        self.messages += u64::from(outcome.is_ok());
        self.drain(side);
        outcome
    }

    /// Hands a message with a promise of its own over at one side, now.
    pub(crate) fn send_as(
        &mut self,
        side: Side,
        delivery: Delivery,
        message: &[u8],
    ) -> Result<(), Refused> {
        let now = self.now;
        let outcome = self.endpoint(side).send_as(now, delivery, message);
        self.messages += u64::from(outcome.is_ok());
        self.drain(side);
        outcome
    }

    /// Hands a datagram to one side, as if it had come out of the network.
    pub(crate) fn inject(&mut self, side: Side, datagram: &[u8]) {
        let now = self.now;
        self.endpoint(side).handle_datagram(now, datagram);
        self.drain(side);
    }

    /// Lets `span` pass.
    pub(crate) fn run_for(&mut self, span: Duration) {
        let end = self.now + span;
        loop {
            for side in Side::BOTH {
                self.drain(side);
            }
            let arrival = self.flying.first_key_value().map(|(&(at, _), _)| at);
            let wakes = Side::BOTH.map(|side| self.endpoint(side).next_deadline());
            let Some(next) = [arrival, wakes[0], wakes[1]].into_iter().flatten().min() else {
                break;
            };
            if next > end {
                break;
            }
            self.count_step();
            self.now = self.now.max(next);
            let now = self.now;
            if arrival == Some(next) {
                let (_, (to, datagram)) = self.flying.pop_first().expect("one arrives now");
                self.inject(to, &datagram);
                continue;
            }
            for side in Side::BOTH {
                if wakes[side as usize] == Some(next) {
                    self.endpoint(side).handle_deadline(now);
                    self.drain(side);
                }
            }
        }
        self.now = end;
    }

    pub(crate) fn state(&self, side: Side) -> State {
        match side {
            Side::Client => self.pair.client.state(),
            Side::Server => self.pair.server.state(),
        }
    }

    /// The numbers of the messages that have arrived at one side, held to
    /// what every transport promises.
    pub(crate) fn numbers_at(&self, side: Side) -> Vec<u32> {
        numbers_of(&self.arrived[side as usize], self.is_ordered)
    }

    /// A digest of every datagram sent: when, by whom, its size, and its
    /// bytes where they repeat.
    pub(crate) fn digest(&self) -> u64 {
        self.digest.finish()
    }

    fn endpoint(&mut self, side: Side) -> &mut dyn Endpoint {
        match side {
            Side::Client => &mut *self.pair.client,
            Side::Server => &mut *self.pair.server,
        }
    }

    /// Takes out whatever one side has to give.
    fn drain(&mut self, side: Side) {
        let now = self.now;
        while self.reads[side as usize] {
            let Some(message) = self.endpoint(side).receive(now) else {
                break;
            };
            self.arrived[side as usize].push(message.bytes);
            self.arrived_at[side as usize].push(now);
            self.blocked[side as usize].push(message.blocked);
        }
        let mut datagram = Vec::new();
        while self.endpoint(side).poll_datagram(now, &mut datagram) {
            self.count_step();
            (now, side, datagram.len()).hash(&mut self.digest);
            if self.repeats_bytes {
                datagram.hash(&mut self.digest);
            }
            self.datagrams += 1;
            self.sizes.push(datagram.len());
            let samples = &mut self.samples[side.other() as usize];
            if samples.len() < 1000 {
                samples.push(datagram.clone());
            }
            self.launch(side.other(), &datagram);
        }
    }

    /// Puts a datagram on the path.
    fn launch(&mut self, to: Side, datagram: &[u8]) {
        let path = self.path;
        let copies = 1 + u32::from(self.dice.comes_up(path.duplication));
        for _ in 0..copies {
            if self.dice.comes_up(path.loss) {
                continue;
            }
            let mut datagram = datagram.to_vec();
            if self.dice.comes_up(path.damage) {
                if self.encapsulation == Encapsulation::UdpIpv4 {
                    continue;
                }
                self.dice.flip_burst(&mut datagram);
            }
            let at = self.now + path.delay + self.dice.up_to(path.jitter);
            self.launched += 1;
            self.flying.insert((at, self.launched), (to, datagram));
        }
    }

    /// Counts one step and fails when there are too many for the time that
    /// has passed and the messages that were sent.
    fn count_step(&mut self) {
        self.steps += 1;
        let budget = STEPS_IN_HAND
            + STEPS_PER_MESSAGE * self.messages
            + STEPS_PER_SECOND * self.now.since(self.start).as_secs();
        assert!(
            self.steps <= budget,
            "live-lock: {} steps by {}",
            self.steps,
            self.now
        );
    }
}

/// Whether a seed decides the very bytes. Where it does not, by transport,
/// it decides all that a result is made of; the module's documentation says
/// what is left to chance.
fn repeats_bytes(spec: &Spec) -> bool {
    spec.transport() != "webrtc-str0m"
}
