//! A network in memory between two hosts: delay, rate and queue, loss, bursts,
//! reordering, duplication and MTU, all by a seed.
#![allow(dead_code)]

pub(crate) mod forge;
pub(crate) mod icmp;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

use lagometer_tcp::wire::{Flags, Segment, is_ecn_capable, mark_congestion, parse_packet};
use lagometer_tcp::{Config, Connection, ConnectionId, Endpoint, Instant, Seq};
use lagometer_units::SplitMix64;

/// Numbers from a seed.
pub(crate) struct Random(pub(crate) SplitMix64);

impl Random {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    pub(crate) fn next(&mut self) -> u64 {
        self.0.next_u64()
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit.max(1)
    }

    /// True once in `1 / share` calls.
    pub(crate) fn chance(&mut self, share: f64) -> bool {
        (self.next() >> 11) as f64 / ((1_u64 << 53) as f64) < share
    }
}

/// What a path does, in both directions.
#[derive(Clone, Debug)]
pub(crate) struct Path {
    /// One way.
    pub(crate) delay: Duration,
    /// Bytes a second; none for no limit.
    pub(crate) rate: Option<u64>,
    /// Bytes of queue before the rate.
    pub(crate) queue: u64,
    pub(crate) loss: f64,
    /// The share of losses that begin a burst, and the burst's packets.
    pub(crate) burst: u64,
    pub(crate) duplicate: f64,
    pub(crate) reorder: f64,
    pub(crate) mtu: usize,
    /// Marks what is capable of ECN, over IPv6, whose header has no checksum.
    pub(crate) mark: bool,
}

impl Default for Path {
    fn default() -> Self {
        Self {
            delay: Duration::from_millis(20),
            rate: None,
            queue: 1 << 20,
            loss: 0.0,
            burst: 1,
            duplicate: 0.0,
            reorder: 0.0,
            mtu: 65_535,
            mark: false,
        }
    }
}

/// A packet that one side sent, as it was seen leaving.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Seen {
    pub(crate) at: Instant,
    /// 0 for the client, 1 for the server.
    pub(crate) from: usize,
    pub(crate) seq: Seq,
    pub(crate) ack: Seq,
    pub(crate) length: usize,
    pub(crate) flags: Flags,
    pub(crate) window: u16,
    pub(crate) sacks: usize,
}

type Filter = Box<dyn FnMut(usize, &Segment<'_>) -> bool>;

/// Two hosts and the path between them.
pub(crate) struct Network {
    pub(crate) now: Instant,
    pub(crate) path: Path,
    pub(crate) hosts: [Endpoint; 2],
    pub(crate) client: ConnectionId,
    pub(crate) server: Option<ConnectionId>,
    /// Packets that left, if recorded.
    pub(crate) trace: Vec<Seen>,
    pub(crate) drop_if: Option<Filter>,
    /// The longest a packet waited in the queue.
    pub(crate) worst_queue: Duration,
    in_flight: BTreeMap<(Instant, u64), (usize, Vec<u8>)>,
    order: u64,
    random: Random,
    free_at: [Instant; 2],
    burst_left: [u64; 2],
}

pub(crate) const PORT: u16 = 80;

impl Network {
    pub(crate) fn new(seed: u64, path: Path, client: &Config, server: &Config) -> Self {
        Self::between(["10.0.0.1", "10.0.0.2"], seed, path, client, server)
    }

    pub(crate) fn between(
        addresses: [&str; 2],
        seed: u64,
        path: Path,
        client: &Config,
        server: &Config,
    ) -> Self {
        let now = Instant::from_millis(10_000);
        let [a, b] = addresses.map(|address| address.parse().unwrap());
        let mut hosts = [
            Endpoint::new(a, client.clone(), seed),
            Endpoint::new(b, server.clone(), seed ^ 0xffff),
        ];
        hosts[1].listen(PORT, 16);
        let client = hosts[0].connect(now, SocketAddr::new(b, PORT)).unwrap();
        Self {
            now,
            path,
            hosts,
            client,
            server: None,
            trace: Vec::new(),
            drop_if: None,
            worst_queue: Duration::ZERO,
            in_flight: BTreeMap::new(),
            order: 0,
            random: Random::new(seed),
            free_at: [now; 2],
            burst_left: [0; 2],
        }
    }

    /// A network whose connection is established.
    pub(crate) fn connected(seed: u64, path: Path, config: &Config) -> Self {
        let mut network = Self::new(seed, path, config, config);
        let limit = network.now + Duration::from_mins(1);
        network.run_until(limit, |network| network.server.is_some());
        assert!(network.server.is_some(), "the handshake ends");
        network
    }

    pub(crate) fn client<R>(&mut self, action: impl FnOnce(&mut Connection) -> R) -> R {
        self.hosts[0].with(self.client, action).unwrap()
    }

    pub(crate) fn server<R>(&mut self, action: impl FnOnce(&mut Connection) -> R) -> R {
        self.hosts[1].with(self.server.unwrap(), action).unwrap()
    }

    pub(crate) fn write(&mut self, from: usize, bytes: &[u8]) -> usize {
        let now = self.now;
        if from == 0 {
            self.client(|c| c.write(now, bytes))
        } else {
            self.server(|c| c.write(now, bytes))
        }
    }

    pub(crate) fn read(&mut self, at: usize) -> Vec<u8> {
        let now = self.now;
        let read = |c: &mut Connection| {
            let mut out = vec![0; c.readable()];
            let length = c.read(now, &mut out);
            out.truncate(length);
            out
        };
        if at == 0 {
            self.client(read)
        } else {
            self.server(read)
        }
    }

    fn send(&mut self, from: usize, mut packet: Vec<u8>) {
        if self.path.mark && is_ecn_capable(&packet) {
            mark_congestion(&mut packet);
        }
        if let Ok((_, segment)) = parse_packet(&packet) {
            self.trace.push(Seen {
                at: self.now,
                from,
                seq: segment.seq,
                ack: segment.ack,
                length: segment.payload.len(),
                flags: segment.flags,
                window: segment.window,
                sacks: segment.options.sack.as_slice().len(),
            });
            if let Some(filter) = &mut self.drop_if
                && filter(from, &segment)
            {
                return;
            }
        }
        if packet.len() > self.path.mtu {
            return;
        }
        if self.burst_left[from] > 0 {
            self.burst_left[from] -= 1;
            return;
        }
        if self.random.chance(self.path.loss) {
            self.burst_left[from] = self.random.below(self.path.burst);
            return;
        }
        let mut arrival = self.now;
        if let Some(rate) = self.path.rate {
            let begin = self.free_at[from].max(self.now);
            let waited = begin - self.now;
            if waited.as_nanos() as u64 * rate / 1_000_000_000 > self.path.queue {
                return;
            }
            self.worst_queue = self.worst_queue.max(waited);
            let took = packet.len() as u64 * 1_000_000_000 / rate;
            arrival = begin + Duration::from_nanos(took);
            self.free_at[from] = arrival;
        }
        arrival = arrival + self.path.delay;
        if self.random.chance(self.path.reorder) {
            let more = self.random.below(self.path.delay.as_nanos() as u64 + 1);
            arrival = arrival + Duration::from_nanos(more);
        }
        if self.random.chance(self.path.duplicate) {
            self.in_flight
                .insert((arrival, self.order), (from, packet.clone()));
            self.order += 1;
        }
        self.in_flight.insert((arrival, self.order), (from, packet));
        self.order += 1;
    }

    /// Hands a packet to a host as if it had come over the path.
    pub(crate) fn inject(&mut self, to: usize, packet: &[u8]) {
        let _ = self.hosts[to].receive(self.now, packet);
        self.collect();
    }

    /// Puts what the hosts have to send on the path.
    pub(crate) fn collect(&mut self) {
        for from in 0..2 {
            while let Some(packet) = self.hosts[from].poll_transmit() {
                self.send(from, packet);
            }
        }
        if self.server.is_none() {
            self.server = self.hosts[1].accept(PORT);
        }
    }

    /// The next time at which anything happens.
    pub(crate) fn next_event(&self) -> Option<Instant> {
        let arrival = self.in_flight.keys().next().map(|(at, _)| *at);
        [
            arrival,
            self.hosts[0].next_deadline(),
            self.hosts[1].next_deadline(),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    /// Goes on by one event, no further than `limit`; false at the limit.
    pub(crate) fn step(&mut self, limit: Instant) -> bool {
        self.collect();
        let Some(at) = self.next_event().filter(|at| *at <= limit) else {
            self.now = limit;
            return false;
        };
        self.now = self.now.max(at);
        while let Some(entry) = self.in_flight.first_entry()
            && entry.key().0 <= self.now
        {
            let (from, packet) = entry.remove();
            let _ = self.hosts[1 - from].receive(self.now, &packet);
            self.collect();
        }
        for host in 0..2 {
            self.hosts[host].handle_deadline(self.now);
        }
        self.collect();
        true
    }

    pub(crate) fn run_until(
        &mut self,
        limit: Instant,
        mut done: impl FnMut(&mut Self) -> bool,
    ) -> bool {
        while !done(self) {
            if !self.step(limit) {
                return done(self);
            }
        }
        true
    }

    pub(crate) fn run(&mut self, time: Duration) {
        let limit = self.now + time;
        while self.step(limit) {}
    }

    /// Sends `bytes` from one side, which the other reads at once; what arrived
    /// within `time`.
    pub(crate) fn transfer(&mut self, from: usize, bytes: &[u8], time: Duration) -> Vec<u8> {
        let limit = self.now + time;
        let mut written = 0;
        let mut received = Vec::new();
        loop {
            if written < bytes.len() {
                written += self.write(from, &bytes[written..]);
            }
            received.extend(self.read(1 - from));
            if received.len() >= bytes.len() || !self.step(limit) {
                received.extend(self.read(1 - from));
                return received;
            }
        }
    }

    /// Data packets that one side sent since the trace was cleared.
    pub(crate) fn data_of(&self, from: usize) -> Vec<Seen> {
        self.trace
            .iter()
            .filter(|seen| seen.from == from && seen.length > 0)
            .copied()
            .collect()
    }
}

/// Bytes that show where they belong.
pub(crate) fn pattern(length: usize) -> Vec<u8> {
    let mut random = Random::new(length as u64);
    let mut bytes = Vec::with_capacity(length + 8);
    while bytes.len() < length {
        bytes.extend_from_slice(&random.next().to_le_bytes());
    }
    bytes.truncate(length);
    bytes
}

/// A digest of everything two hosts put on the wire.
pub(crate) fn digest(trace: &[Seen]) -> u64 {
    let mut hash: u64 = 0xcbf2_9ce4_8422_2325;
    for seen in trace {
        for value in [
            seen.at.as_nanos(),
            seen.from as u64,
            u64::from(seen.seq.0),
            u64::from(seen.ack.0),
            seen.length as u64,
            u64::from(seen.flags.0),
            u64::from(seen.window),
            seen.sacks as u64,
        ] {
            for byte in value.to_le_bytes() {
                hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
            }
        }
    }
    hash
}

/// A path with so many milliseconds one way.
pub(crate) fn path(one_way_ms: u64) -> Path {
    Path {
        delay: Duration::from_millis(one_way_ms),
        ..Path::default()
    }
}

pub(crate) fn ms(duration: Duration) -> u64 {
    duration.as_millis() as u64
}

/// A connection with a measured round trip of 80 ms and nothing in flight.
pub(crate) fn warm(config: &Config) -> Network {
    let mut network = Network::connected(1, path(40), config);
    let bytes = pattern(100_000);
    assert!(network.transfer(0, &bytes, Duration::from_secs(10)) == bytes);
    network.run(Duration::from_secs(1));
    network.trace.clear();
    network
}

/// Drops the data packets of the client with these numbers, counted from now.
pub(crate) fn drop_data(network: &mut Network, numbers: Vec<usize>) {
    let mut count = 0;
    network.drop_if = Some(Box::new(move |from, segment| {
        if from != 0 || segment.payload.is_empty() {
            return false;
        }
        count += 1;
        numbers.contains(&(count - 1))
    }));
}
