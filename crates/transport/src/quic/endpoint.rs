//! One side of a QUIC connection behind [`Endpoint`].

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Instant;

use bytes::{Bytes, BytesMut};
use lagometer_units::Time;
use quinn_proto::{
    Connection, ConnectionError, ConnectionHandle, DatagramEvent, Event, Incoming, QlogStream,
    VarInt,
};

use super::mapping::{self, Mapping};
use super::settings::Settings;
use super::tls::SERVER_NAME;
use super::wiring::{self, CLIENT, SERVER};
use crate::entropy::Entropy;
use crate::origin::{to_instant, to_time};
use crate::{Closed, Delivery, Endpoint, Message, Refused, State};

/// One side of a QUIC connection.
pub(super) struct QuicEndpoint {
    endpoint: quinn_proto::Endpoint,
    connection: Option<(ConnectionHandle, Connection)>,
    /// Carries messages as the settings say.
    mapping: Box<dyn Mapping>,
    /// Carries unreliable messages beside reliable ones.
    datagrams: Option<Box<dyn Mapping>>,
    entropy: Entropy,
    peer: SocketAddr,
    /// Datagrams of the endpoint itself: refusals and resets.
    responses: VecDeque<Vec<u8>>,
    /// Whether anything has happened since the connection last had nothing
    /// to transmit. Asking it costs more than most events do.
    may_transmit: bool,
    state: State,
}

/// Which sequence of the seed each side draws from.
const CLIENT_STREAM: u64 = 1;
const SERVER_STREAM: u64 = 2;

/// More responses than this in one go are more than an honest peer provokes.
const MAX_RESPONSES: usize = 8;

/// The application's reason for closing, as sent to the peer.
const VIOLATION: VarInt = VarInt::from_u32(1);

impl QuicEndpoint {
    /// The side that opens the connection, which begins at once, and writes what it does
    /// into `log`.
    pub(super) fn client(
        settings: &Settings,
        seed: u64,
        start: Time,
        log: Option<QlogStream>,
    ) -> Self {
        let mut entropy = Entropy::new(seed, CLIENT_STREAM);
        let config = Arc::new(wiring::endpoint(settings, &mut entropy));
        let client = wiring::client(settings, &mut entropy, log);
        let mut endpoint = quinn_proto::Endpoint::new(config, None, true, None);
        let connection = entropy
            .lend(|| endpoint.connect(to_instant(start), client, SERVER, SERVER_NAME))
            .expect("the name, the address and the version are constants that suit");
        let mut this = Self::new(settings, endpoint, entropy, SERVER);
        this.connection = Some(connection);
        this
    }

    /// The side that waits for a client.
    pub(super) fn server(settings: &Settings, seed: u64, log: Option<QlogStream>) -> Self {
        let mut entropy = Entropy::new(seed, SERVER_STREAM);
        let config = Arc::new(wiring::endpoint(settings, &mut entropy));
        let server = Arc::new(wiring::server(settings, &mut entropy, log));
        let endpoint = quinn_proto::Endpoint::new(config, Some(server), true, None);
        Self::new(settings, endpoint, entropy, CLIENT)
    }

    fn new(
        settings: &Settings,
        endpoint: quinn_proto::Endpoint,
        entropy: Entropy,
        peer: SocketAddr,
    ) -> Self {
        Self {
            endpoint,
            connection: None,
            mapping: mapping::of(settings),
            datagrams: mapping::datagrams_beside(settings),
            entropy,
            peer,
            responses: VecDeque::new(),
            may_transmit: true,
            state: State::Connecting,
        }
    }

    fn accept(&mut self, now: Instant, incoming: Incoming) {
        if self.connection.is_some() {
            self.endpoint.ignore(incoming);
            return;
        }
        let mut response = Vec::new();
        let accepted = self.entropy.lend(|| {
            self.endpoint
                .accept(incoming, now, &mut response, None)
                .map_err(Box::new)
        });
        match accepted {
            Ok(connection) => self.connection = Some(connection),
            Err(error) if error.response.is_some() => self.respond(response),
            // Damaged on the way: the client sends it again.
            Err(_) => {}
        }
    }

    /// Sends a message by the mapping for this delivery.
    fn send_by(&mut self, delivery: Delivery, message: &[u8]) -> Result<(), Refused> {
        let (State::Ready, Some((_, connection))) = (&self.state, &mut self.connection) else {
            return Err(Refused::NotOpen);
        };
        let mapping = match &mut self.datagrams {
            Some(datagrams) if delivery == Delivery::Unreliable => datagrams,
            _ => &mut self.mapping,
        };
        mapping.send(connection, message)?;
        self.may_transmit = true;
        Ok(())
    }

    /// What the connection has of messages.
    fn may_receive(&self) -> bool {
        let mut mappings = self.datagrams.iter().chain([&self.mapping]);
        mappings.any(|mapping| mapping.may_receive())
    }

    fn respond(&mut self, response: Vec<u8>) {
        if self.responses.len() < MAX_RESPONSES {
            self.responses.push_back(response);
        }
    }

    /// Carries events between connection, endpoint and mapping until there
    /// are none.
    fn settle(&mut self) {
        let Some((handle, connection)) = &mut self.connection else {
            return;
        };
        self.may_transmit = true;
        loop {
            if let Some(event) = connection.poll_endpoint_events() {
                if let Some(event) = self.endpoint.handle_event(*handle, event) {
                    self.entropy.lend(|| connection.handle_event(event));
                }
            } else if let Some(event) = connection.poll() {
                match event {
                    Event::Connected => self.state = State::Ready,
                    Event::ConnectionLost { reason } => {
                        // The first reason is the one that counts.
                        if !matches!(self.state, State::Closed(_)) {
                            self.state = State::Closed(why(&reason));
                        }
                    }
                    Event::Stream(event) => self.mapping.handle(connection, event),
                    Event::DatagramReceived => match &mut self.datagrams {
                        Some(datagrams) => datagrams.datagrams_arrived(),
                        None => self.mapping.datagrams_arrived(),
                    },
                    Event::HandshakeDataReady | Event::DatagramsUnblocked => {}
                }
            } else {
                return;
            }
        }
    }
}

impl Endpoint for QuicEndpoint {
    fn send(&mut self, _now: Time, message: &[u8]) -> Result<(), Refused> {
        self.send_by(Delivery::Reliable, message)
    }

    fn send_as(&mut self, _now: Time, delivery: Delivery, message: &[u8]) -> Result<(), Refused> {
        self.send_by(delivery, message)
    }

    fn receive(&mut self, now: Time) -> Option<Message> {
        // What was delivered before the peer left is still handed out; what
        // follows a violation is not.
        if !self.may_receive() || matches!(self.state, State::Closed(Closed::Failed(_))) {
            return None;
        }
        let (_, connection) = self.connection.as_mut()?;
        // Reading may grant the peer credit, of which it must be notified.
        self.may_transmit = true;
        if let Some(datagrams) = &mut self.datagrams
            && let Ok(Some(message)) = datagrams.receive(connection)
        {
            return Some(message);
        }
        match self.mapping.receive(connection) {
            Ok(message) => message,
            Err(violation) => {
                let reason = violation.to_string();
                connection.close(to_instant(now), VIOLATION, Bytes::from(reason.clone()));
                self.state = State::Closed(Closed::Failed(reason));
                None
            }
        }
    }

    fn handle_datagram(&mut self, now: Time, datagram: &[u8]) {
        let now = to_instant(now);
        let mut response = Vec::new();
        let event = self.endpoint.handle(
            now,
            self.peer,
            None,
            None,
            BytesMut::from(datagram),
            &mut response,
        );
        match event {
            Some(DatagramEvent::ConnectionEvent(to, event)) => {
                if let Some((handle, connection)) = &mut self.connection
                    && *handle == to
                {
                    self.entropy.lend(|| connection.handle_event(event));
                }
            }
            Some(DatagramEvent::NewConnection(incoming)) => self.accept(now, incoming),
            Some(DatagramEvent::Response(_)) => self.respond(response),
            None => return,
        }
        self.settle();
    }

    fn poll_datagram(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool {
        if let Some(response) = self.responses.pop_front() {
            *buffer = response;
            return true;
        }
        if !self.may_transmit {
            return false;
        }
        let Some((_, connection)) = &mut self.connection else {
            return false;
        };
        buffer.clear();
        let now = to_instant(now);
        self.may_transmit = self
            .entropy
            .lend(|| connection.poll_transmit(now, 1, buffer))
            .is_some();
        self.may_transmit
    }

    fn next_deadline(&mut self) -> Option<Time> {
        let (_, connection) = self.connection.as_mut()?;
        connection.poll_timeout().map(to_time)
    }

    fn handle_deadline(&mut self, now: Time) {
        if let Some((_, connection)) = &mut self.connection {
            let now = to_instant(now);
            self.entropy.lend(|| connection.handle_timeout(now));
            self.settle();
        }
    }

    fn state(&self) -> State {
        self.state.clone()
    }
}

fn why(reason: &ConnectionError) -> Closed {
    match reason {
        ConnectionError::TimedOut => Closed::DeadLink,
        ConnectionError::ConnectionClosed(_)
        | ConnectionError::ApplicationClosed(_)
        | ConnectionError::Reset => Closed::ByPeer,
        ConnectionError::VersionMismatch
        | ConnectionError::TransportError(_)
        | ConnectionError::LocallyClosed
        | ConnectionError::CidsExhausted => Closed::Failed(reason.to_string()),
    }
}
