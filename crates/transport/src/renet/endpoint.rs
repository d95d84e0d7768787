//! A renet connection and the thin layer beneath it, driven as an
//! [`Endpoint`].

use std::time::Duration;

use lagometer_units::Time;
use renet::{Bytes, ChannelConfig, ConnectionConfig, RenetClient, SendType};

use super::reading::{MESSAGE_SPAN, stretches};
use super::{Channel, Settings};
use crate::arrivals::Arrivals;
use crate::byte_queue::ByteQueue;
use crate::integrity::{CHECK_BYTES, Integrity};
use crate::replay_window::ReplayWindow;
use crate::{Closed, Delivery, Endpoint, Message, Offer, Refused, State, Transport};

/// Checksum and sequence number in front of each datagram.
pub(super) const ENVELOPE_BYTES: usize = CHECK_BYTES + 4;

/// The channel of a connection.
const CHANNEL: u8 = 0;

/// The channel for unreliable messages beside reliable ones.
const UNRELIABLE_CHANNEL: u8 = 1;

/// One side of a renet connection.
pub(super) struct Renet {
    settings: Settings,
    connection: RenetClient,
    outbound: Integrity,
    inbound: Integrity,
    next_sequence: u32,
    seen: ReplayWindow,
    outgoing: ByteQueue,
    /// When messages arrived, a [`MESSAGE_SPAN`] each.
    arrivals: Arrivals,
    /// How far renet's own clock has come.
    updated_at: Time,
    tick_at: Time,
    sent_at: Time,
    last_received: Time,
    state: State,
    is_client: bool,
}

impl Renet {
    /// The side that connects, with its greeting on the way.
    pub(super) fn client(
        settings: &Settings,
        integrity: (Integrity, Integrity),
        start: Time,
    ) -> Self {
        let mut client = Self::new(settings, integrity, start);
        client.is_client = true;
        client.dispatch(start, &[]);
        client
    }

    /// The side that is connected to.
    pub(super) fn server(
        settings: &Settings,
        integrity: (Integrity, Integrity),
        start: Time,
    ) -> Self {
        Self::new(settings, integrity, start)
    }

    fn new(settings: &Settings, (outbound, inbound): (Integrity, Integrity), start: Time) -> Self {
        let channel = ChannelConfig {
            channel_id: CHANNEL,
            max_memory_usage_bytes: settings.channel_memory.bytes() as usize,
            send_type: match settings.channel {
                Channel::ReliableOrdered => SendType::ReliableOrdered {
                    resend_time: settings.resend_time.0,
                },
                Channel::Unreliable => SendType::Unreliable,
            },
        };
        let mut channels = vec![channel.clone()];
        if settings.offer() == Offer::Channels {
            channels.push(ChannelConfig {
                channel_id: UNRELIABLE_CHANNEL,
                send_type: SendType::Unreliable,
                ..channel
            });
        }
        Self {
            settings: settings.clone(),
            connection: RenetClient::new(ConnectionConfig {
                available_bytes_per_tick: settings.available_bytes_per_tick.bytes(),
                server_channels_config: channels.clone(),
                client_channels_config: channels,
            }),
            outbound,
            inbound,
            next_sequence: 0,
            seen: ReplayWindow::new(),
            outgoing: ByteQueue::new(settings.channel_memory.bytes() as usize),
            arrivals: Arrivals::default(),
            updated_at: start,
            tick_at: start + settings.tick.0,
            sent_at: start,
            last_received: start,
            state: State::Connecting,
            is_client: false,
        }
    }

    /// Lets renet's clock come to `now`, which an application does once in a tick. That
    /// is also what is sent again by: were the clock to move with every message, each
    /// would take all with it that a resend time shorter than the round trip has due,
    /// and a burst would be multiplied by what is unacknowledged.
    fn update(&mut self, now: Time) {
        self.connection.update(now.since(self.updated_at));
        self.updated_at = now;
    }

    /// Sends what renet has to send.
    fn flush(&mut self, now: Time) {
        for packet in self.connection.get_packets_to_send() {
            self.dispatch(now, &packet);
        }
    }

    /// Sends a packet of renet's; an empty one is a sign of life.
    fn dispatch(&mut self, now: Time, packet: &[u8]) {
        let mut datagram = Vec::with_capacity(ENVELOPE_BYTES + packet.len());
        datagram.extend_from_slice(&[0; CHECK_BYTES]);
        datagram.extend_from_slice(&self.next_sequence.to_le_bytes());
        datagram.extend_from_slice(packet);
        self.outbound.seal(&mut datagram);
        self.next_sequence = self.next_sequence.wrapping_add(1);
        self.outgoing.push(datagram);
        self.sent_at = now;
    }

    /// Takes over what renet says of the connection.
    fn note_disconnect(&mut self) {
        if let Some(reason) = self.connection.disconnect_reason() {
            self.state = State::Closed(Closed::Failed(reason.to_string()));
        }
    }

    const fn is_closed(&self) -> bool {
        matches!(self.state, State::Closed(_))
    }

    /// When the silence of the peer is too long. A server waits for its first
    /// client without end.
    fn timeout_at(&self) -> Option<Time> {
        let is_awaited = self.is_client || self.state == State::Ready;
        is_awaited.then(|| self.last_received + self.settings.timeout.0)
    }

    /// When a sign of life is due. A server has nobody to send it to before
    /// its first client.
    fn keep_alive_at(&self) -> Option<Time> {
        let has_peer = self.is_client || self.state == State::Ready;
        has_peer.then(|| self.sent_at + self.settings.keep_alive.0)
    }

    /// Hands renet a message for a channel.
    fn send_on(&mut self, now: Time, channel: u8, message: &[u8]) -> Result<(), Refused> {
        if self.state != State::Ready {
            return Err(Refused::NotOpen);
        }
        let limit_bytes = self.settings.largest_message_bytes();
        Refused::if_larger(message, limit_bytes)?;
        if !self.connection.can_send_message(channel, message.len()) {
            return Err(Refused::BufferFull);
        }
        self.connection
            .send_message(channel, Bytes::copy_from_slice(message));
        if self.settings.flush_on_send {
            self.flush(now);
        }
        Ok(())
    }
}

impl Endpoint for Renet {
    fn send(&mut self, now: Time, message: &[u8]) -> Result<(), Refused> {
        self.send_on(now, CHANNEL, message)
    }

    fn send_as(&mut self, now: Time, delivery: Delivery, message: &[u8]) -> Result<(), Refused> {
        let is_beside =
            delivery == Delivery::Unreliable && self.settings.offer() == Offer::Channels;
        let channel = if is_beside {
            UNRELIABLE_CHANNEL
        } else {
            CHANNEL
        };
        self.send_on(now, channel, message)
    }

    fn receive(&mut self, now: Time) -> Option<Message> {
        if self.settings.offer() == Offer::Channels
            && let Some(bytes) = self.connection.receive_message(UNRELIABLE_CHANNEL)
        {
            return Some(Message {
                bytes: bytes.to_vec(),
                blocked: Some(Duration::ZERO),
            });
        }
        let bytes = self.connection.receive_message(CHANNEL)?.to_vec();
        let blocked = Some(self.arrivals.delivered(MESSAGE_SPAN, now));
        Some(Message { bytes, blocked })
    }

    fn handle_datagram(&mut self, now: Time, datagram: &[u8]) {
        if self.is_closed() {
            return;
        }
        let Some(body) = self.inbound.open(datagram) else {
            return;
        };
        let Some((sequence, packet)) = body.split_first_chunk() else {
            return;
        };
        if !self.seen.accept(u32::from_le_bytes(*sequence)) {
            return;
        }
        self.last_received = now;
        if self.state == State::Connecting {
            self.state = State::Ready;
            self.connection.set_connected();
            self.dispatch(now, &[]);
        }
        if packet.is_empty() {
            return;
        }
        for stretch in stretches(packet) {
            self.arrivals.received(stretch, now);
        }
        self.connection.process_packet(packet);
        self.note_disconnect();
    }

    fn poll_datagram(&mut self, _now: Time, buffer: &mut Vec<u8>) -> bool {
        self.outgoing.pop_into(buffer)
    }

    fn next_deadline(&mut self) -> Option<Time> {
        if self.is_closed() {
            return None;
        }
        let tick_at = (self.state == State::Ready).then_some(self.tick_at);
        [tick_at, self.keep_alive_at(), self.timeout_at()]
            .into_iter()
            .flatten()
            .min()
    }

    fn handle_deadline(&mut self, now: Time) {
        let has_come = |deadline: Option<Time>| deadline.is_some_and(|at| at <= now);
        if self.is_closed() {
            return;
        }
        if has_come(self.timeout_at()) {
            self.state = State::Closed(Closed::DeadLink);
            return;
        }
        if self.tick_at <= now {
            // Ticks stay on their grid however late this one is.
            let tick = self.settings.tick.0;
            let missed = now.since(self.tick_at).as_nanos() / tick.as_nanos();
            self.tick_at += tick * (missed as u32 + 1);
            self.update(now);
            self.flush(now);
            self.note_disconnect();
        }
        if has_come(self.keep_alive_at()) {
            self.dispatch(now, &[]);
        }
    }

    fn state(&self) -> State {
        self.state.clone()
    }
}

#[cfg(test)]
mod tests {
    use lagometer_units::Span;

    use super::*;
    use crate::Pair;

    /// What an end has to send.
    fn sent(end: &mut dyn Endpoint, now: Time) -> Vec<Vec<u8>> {
        let mut datagram = Vec::new();
        std::iter::from_fn(|| {
            end.poll_datagram(now, &mut datagram)
                .then(|| datagram.clone())
        })
        .collect()
    }

    /// A pair that has greeted each other.
    fn connected(settings: &Settings) -> Pair {
        let start = Time::ZERO;
        let mut pair = settings.pair(1, start);
        for datagram in sent(&mut *pair.client, start) {
            pair.server.handle_datagram(start, &datagram);
        }
        for datagram in sent(&mut *pair.server, start) {
            pair.client.handle_datagram(start, &datagram);
        }
        assert_eq!(pair.client.state(), State::Ready);
        sent(&mut *pair.client, start);
        pair
    }

    /// However short the resend time is: were all that is due sent with every message,
    /// a burst would be multiplied by itself.
    #[test]
    fn between_two_ticks_a_message_leaves_once_and_at_the_tick_again() {
        let mut pair = connected(&Settings {
            resend_time: Span::from_millis(1),
            ..Settings::RELIABLE
        });
        let mut datagrams = 0;
        for number in 1..=50 {
            let now = Time::from_nanos(number * 200_000);
            pair.client.send(now, &[7; 1000]).unwrap();
            datagrams += sent(&mut *pair.client, now).len();
        }
        assert_eq!(datagrams, 50, "within 10 ms, ten times the resend time");
        let tick = Time::from_millis(16);
        pair.client.handle_deadline(tick);
        assert_eq!(sent(&mut *pair.client, tick).len(), 50);
    }
}
