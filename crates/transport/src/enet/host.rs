//! An ENet host with a single peer, driven as an [`Endpoint`].

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::Duration;

use lagometer_units::Time;
use rusty_enet::consts::{PEER_FREE_RELIABLE_WINDOWS, PEER_RELIABLE_WINDOW_SIZE};
use rusty_enet::{Event, Host, HostSettings, Packet, PacketKind, Peer, PeerID, crc32};

use super::timers::Timers;
use super::wire::{Command, Wire, commands};
use super::{Packets, Settings};
use crate::arrivals::Arrivals;
use crate::byte_queue::ByteQueue;
use crate::{Closed, Delivery, Endpoint, Message, Offer, Refused, State, Transport, seed};

/// ENet takes the instant 0 for "never", so its clock starts later.
const CLOCK_STARTS_AT_MS: u64 = 1000;

/// The one peer a host has room for.
const PEER: PeerID = PeerID(0);

/// The channel on which messages travel.
const CHANNEL: u8 = 0;

/// The channel for unreliable messages beside reliable ones.
const UNRELIABLE_CHANNEL: u8 = 1;

/// What is charged for a message beyond its bytes while it is in ENet's
/// hands, so that a flood of tiny ones is bounded too.
const MESSAGE_COST_BYTES: usize = 256;

/// One side of an ENet connection.
pub(super) struct Enet {
    host: Host<Wire>,
    settings: Settings,
    clock_ms: Arc<AtomicU64>,
    timers: Timers,
    state: State,
    is_client: bool,
    peer_said_goodbye: bool,
    /// What ENet holds of messages we gave it, in bytes.
    charged_bytes: Arc<AtomicUsize>,
    arrived: ByteQueue<Message>,
    /// When reliable commands arrived, by how many came before on their
    /// channel.
    arrivals: Arrivals,
    outgoing: ByteQueue,
}

/// A message in ENet's hands, charged for until ENet lets go of it.
struct Charged {
    bytes: Vec<u8>,
    account: Arc<AtomicUsize>,
}

impl Enet {
    /// The side that connects, with its request on the way.
    pub(super) fn client(settings: &Settings, seed: u64, start: Time) -> Self {
        let bandwidths = (
            settings.client_in_bytes_per_s,
            settings.client_out_bytes_per_s,
        );
        let mut client = Self::new(settings, bandwidths, seed::derive(seed, 1), start);
        client.is_client = true;
        let peer = client
            .host
            .connect((), usize::from(settings.channels), 0)
            .expect("the only peer of a new host is free");
        configure(peer, settings);
        client.service(start, None);
        client
    }

    /// The side that is connected to.
    pub(super) fn server(settings: &Settings, seed: u64, start: Time) -> Self {
        let bandwidths = (
            settings.server_in_bytes_per_s,
            settings.server_out_bytes_per_s,
        );
        Self::new(settings, bandwidths, seed::derive(seed, 2), start)
    }

    fn new(settings: &Settings, (incoming, outgoing): (u32, u32), seed: u64, start: Time) -> Self {
        let clock_ms = Arc::new(AtomicU64::new(enet_ms(start)));
        let clock = Arc::clone(&clock_ms);
        let mut host = Host::new(
            Wire::default(),
            HostSettings {
                peer_limit: 1,
                channel_limit: usize::from(settings.channels),
                incoming_bandwidth_limit: Some(incoming).filter(|&limit| limit != 0),
                outgoing_bandwidth_limit: Some(outgoing).filter(|&limit| limit != 0),
                compressor: None,
                checksum: settings.checksum.then(|| Box::new(crc32) as Box<_>),
                time: Box::new(move || Duration::from_millis(clock.load(Ordering::Relaxed))),
                seed: Some(seed as u32),
            },
        )
        .expect("the checked settings are all within ENet's ranges");
        host.set_mtu(settings.mtu.bytes() as u16)
            .expect("the checked MTU is within ENet's range");
        host.set_maximum_packet_size(settings.max_message.bytes() as usize)
            .expect("the checked size is not zero");
        host.set_maximum_waiting_data(settings.receive_buffer.bytes() as usize)
            .expect("the checked size is not zero");
        Self {
            host,
            settings: settings.clone(),
            clock_ms,
            timers: Timers::default(),
            state: State::Connecting,
            is_client: false,
            peer_said_goodbye: false,
            charged_bytes: Arc::new(AtomicUsize::new(0)),
            arrived: ByteQueue::new(settings.receive_buffer.bytes() as usize),
            arrivals: Arrivals::default(),
            outgoing: ByteQueue::new(settings.send_buffer.bytes() as usize),
        }
    }

    /// Calls ENet until it has nothing more to say, with `datagram` waiting
    /// in its socket.
    fn service(&mut self, now: Time, datagram: Option<&[u8]>) {
        if matches!(self.state, State::Closed(_)) {
            return;
        }
        let now_ms = enet_ms(now);
        self.clock_ms.store(now_ms, Ordering::Relaxed);
        self.host.socket_mut().incoming = datagram.map(<[u8]>::to_vec);
        let timeout_before_ms = self.first_timeout_ms();
        while let Some(event) = match self.host.service() {
            Ok(event) => event,
            Err(never) => match never {},
        } {
            match event {
                Event::Connect { peer, .. } => {
                    configure(peer, &self.settings);
                    if self.is_client {
                        configure_throttle(peer, &self.settings);
                    }
                    self.state = State::Ready;
                }
                Event::Disconnect { .. } => {
                    self.state = State::Closed(if self.peer_said_goodbye {
                        Closed::ByPeer
                    } else {
                        Closed::DeadLink
                    });
                }
                Event::Receive {
                    packet, channel_id, ..
                } => {
                    let bytes = packet.data().to_vec();
                    if channel_id != CHANNEL {
                        let blocked = Some(Duration::ZERO);
                        self.arrived.push(Message { bytes, blocked });
                        continue;
                    }
                    // A message takes one number for each of its fragments.
                    let numbers = bytes.len().div_ceil(self.settings.fragment_bytes()).max(1);
                    let blocked = (self.settings.packets == Packets::Reliable)
                        .then(|| self.arrivals.delivered(numbers as u64, now));
                    self.arrived.push(Message { bytes, blocked });
                }
            }
        }
        self.timers.serviced(now_ms);
        // The round trip time may have changed between ENet's two rounds of
        // sending; the shorter timeout is never late.
        let first_timeout_ms = self.first_timeout_ms().min(timeout_before_ms);
        for datagram in std::mem::take(&mut self.host.socket_mut().outgoing) {
            for command in commands(&datagram, self.settings.checksum) {
                self.timers.sent(command, now_ms, first_timeout_ms);
            }
            self.outgoing.push(datagram);
        }
    }

    /// Notes when the reliable command with this number came, if ENet takes
    /// it (`enet_peer_queue_incoming_command`). ENet counts from 1.
    fn note_arrival(&mut self, sequence: u16, now: Time) {
        let windows = PEER_FREE_RELIABLE_WINDOWS * PEER_RELIABLE_WINDOW_SIZE;
        let place = self
            .arrivals
            .place_of(u32::from(sequence.wrapping_sub(1)), 16);
        if place < self.arrivals.delivered_until() + u64::from(windows) {
            self.arrivals.received(place..place + 1, now);
        }
    }

    /// How long ENet waits for the acknowledgement of a command it sends now
    /// for the first time (`enet_protocol_check_outgoing_commands`).
    fn first_timeout_ms(&self) -> u64 {
        let peer = self.host.peer(PEER);
        let timeout = peer.round_trip_time() + 4 * peer.round_trip_time_variance();
        timeout.as_millis() as u64
    }

    /// Hands ENet a message for a channel.
    fn send_on(
        &mut self,
        now: Time,
        channel: u8,
        kind: PacketKind,
        message: &[u8],
    ) -> Result<(), Refused> {
        if self.state != State::Ready {
            return Err(Refused::NotOpen);
        }
        let limit_bytes = self.settings.largest_message_bytes();
        Refused::if_larger(message, limit_bytes)?;
        let charged_bytes = self.charged_bytes.load(Ordering::Relaxed);
        let buffer_bytes = self.settings.send_buffer.bytes() as usize;
        if charged_bytes != 0 && charged_bytes + message.len() + MESSAGE_COST_BYTES > buffer_bytes {
            return Err(Refused::BufferFull);
        }
        let packet = Packet::new(Charged::boxed(message, &self.charged_bytes), kind);
        self.host
            .peer_mut(PEER)
            .send(channel, &packet)
            .map_err(|_| Refused::NotOpen)?;
        drop(packet);
        self.service(now, None);
        Ok(())
    }
}

impl Endpoint for Enet {
    fn send(&mut self, now: Time, message: &[u8]) -> Result<(), Refused> {
        let kind = match self.settings.packets {
            Packets::Reliable => PacketKind::Reliable,
            Packets::Unreliable => PacketKind::Unreliable { sequenced: true },
            Packets::Unsequenced => PacketKind::Unreliable { sequenced: false },
        };
        self.send_on(now, CHANNEL, kind, message)
    }

    fn send_as(&mut self, now: Time, delivery: Delivery, message: &[u8]) -> Result<(), Refused> {
        if delivery == Delivery::Unreliable && self.settings.offer() == Offer::Channels {
            let kind = PacketKind::Unreliable { sequenced: true };
            return self.send_on(now, UNRELIABLE_CHANNEL, kind, message);
        }
        self.send(now, message)
    }

    fn receive(&mut self, _now: Time) -> Option<Message> {
        self.arrived.pop()
    }

    fn handle_datagram(&mut self, now: Time, datagram: &[u8]) {
        if !self.arrived.has_room_for(datagram.len()) {
            return;
        }
        let now_ms = enet_ms(now);
        for command in commands(datagram, self.settings.checksum) {
            self.timers.received(command, now_ms);
            match command {
                Command::Reliable {
                    channel: CHANNEL,
                    sequence,
                } => self.note_arrival(sequence, now),
                Command::Disconnect => self.peer_said_goodbye = true,
                _ => {}
            }
        }
        self.service(now, Some(datagram));
    }

    fn poll_datagram(&mut self, _now: Time, buffer: &mut Vec<u8>) -> bool {
        self.outgoing.pop_into(buffer)
    }

    fn next_deadline(&mut self) -> Option<Time> {
        let ping_interval_ms = match self.state {
            State::Connecting => None,
            State::Ready => Some(self.settings.ping_interval.0.as_millis() as u64),
            State::Closed(_) => return None,
        };
        let due_ms = self.timers.next_ms(ping_interval_ms);
        let due = Time::from_millis(due_ms - CLOCK_STARTS_AT_MS);
        Some(due.round_up_to(self.settings.service_interval.0))
    }

    fn handle_deadline(&mut self, now: Time) {
        // Between the points of the service grid ENet would not be called.
        if self.next_deadline().is_some_and(|deadline| deadline <= now) {
            self.service(now, None);
        }
    }

    fn state(&self) -> State {
        self.state.clone()
    }
}

/// The instant on ENet's clock, which counts whole milliseconds.
fn enet_ms(now: Time) -> u64 {
    now.as_millis() + CLOCK_STARTS_AT_MS
}

/// What each side sets for itself.
fn configure(peer: &mut Peer<Wire>, settings: &Settings) {
    peer.set_timeout(
        settings.timeout_limit,
        settings.timeout_minimum.0.as_millis() as u32,
        settings.timeout_maximum.0.as_millis() as u32,
    );
    peer.set_ping_interval(settings.ping_interval.0.as_millis() as u32);
}

/// What one side sets for both: ENet sends it to the peer, at the cost of a command
/// that would be pointless where ENet's defaults are kept.
fn configure_throttle(peer: &mut Peer<Wire>, settings: &Settings) {
    let throttle = |settings: &Settings| {
        (
            settings.throttle_interval,
            settings.throttle_acceleration,
            settings.throttle_deceleration,
        )
    };
    if throttle(settings) != throttle(&Settings::RELIABLE) {
        peer.set_throttle(
            settings.throttle_interval.0.as_millis() as u32,
            settings.throttle_acceleration,
            settings.throttle_deceleration,
        );
    }
}

impl Charged {
    fn boxed(message: &[u8], account: &Arc<AtomicUsize>) -> Box<Self> {
        account.fetch_add(message.len() + MESSAGE_COST_BYTES, Ordering::Relaxed);
        Box::new(Self {
            bytes: message.to_vec(),
            account: Arc::clone(account),
        })
    }
}

impl AsRef<[u8]> for Charged {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

impl Drop for Charged {
    fn drop(&mut self) {
        self.account
            .fetch_sub(self.bytes.len() + MESSAGE_COST_BYTES, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeMap;

    /// When what left which side.
    type Log = Vec<(Time, usize, Vec<u8>)>;

    /// Twenty seconds of play on a path with 10 % loss and a silence of
    /// three seconds, with ENet called at its deadlines or every millisecond.
    fn play(settings: &Settings, seed: u64, every_millisecond: bool) -> Log {
        let mut ends = [
            Enet::client(settings, seed, Time::ZERO),
            Enet::server(settings, seed, Time::ZERO),
        ];
        let mut flying: BTreeMap<(u64, u64), (usize, Vec<u8>)> = BTreeMap::new();
        let mut log = Log::new();
        let mut datagram = Vec::new();
        for ms in 0..20_000 {
            let now = Time::from_millis(ms);
            while let Some(entry) = flying.first_entry().filter(|entry| entry.key().0 <= ms) {
                let (to, datagram) = entry.remove();
                ends[to].handle_datagram(now, &datagram);
            }
            for (side, end) in ends.iter_mut().enumerate() {
                if ms % 50 == side as u64 {
                    let _connecting = end.send(now, &[side as u8; 500]);
                }
                if every_millisecond {
                    end.service(now, None);
                } else {
                    assert!(end.next_deadline().is_none_or(|at| at >= now), "late");
                    end.handle_deadline(now);
                }
                while end.receive(now).is_some() {}
                while end.poll_datagram(now, &mut datagram) {
                    let number = log.len() as u64;
                    log.push((now, side, datagram.clone()));
                    let roll = seed::derive(seed, 1000 + number);
                    let is_silent = (8000..11_000).contains(&ms);
                    if !roll.is_multiple_of(10) && !is_silent {
                        let arrival_ms = ms + 30 + roll / 10 % 40;
                        flying.insert((arrival_ms, number), (1 - side, datagram.clone()));
                    }
                }
            }
        }
        log
    }

    #[test]
    fn called_at_its_deadlines_enet_does_what_it_does_when_called_every_millisecond() {
        for settings in [
            Settings::RELIABLE,
            Settings::NO_THROTTLE,
            Settings::UNRELIABLE,
        ] {
            for seed in 0..6 {
                let polled = play(&settings, seed, true);
                assert!(polled.len() > 500, "nothing was played");
                assert!(play(&settings, seed, false) == polled, "seed {seed}");
            }
        }
    }

    #[test]
    fn a_waiting_lane_is_woken_seldom() {
        let mut client = Enet::client(&Settings::RELIABLE, 1, Time::ZERO);
        let mut wakes = 0;
        while let Some(deadline) = client.next_deadline() {
            client.handle_deadline(deadline);
            wakes += 1;
        }
        assert_eq!(client.state(), State::Closed(Closed::DeadLink));
        assert!(wakes < 100, "{wakes} wake-ups until the connection failed");
    }
}
