//! An endpoint over a connected UDP socket.

use std::io;
use std::time::Duration;

use lagometer_transport::{
    BoxedEndpoint, Closed, Delivery, Driven, Message, Messenger, Refused, State,
};
use lagometer_units::Time;

use crate::connection::{Counters, DatagramTap, SocketConnection};
use crate::drained::Drained;
use crate::udp::{Incoming, Outgoing, Socket};

/// One side of a lane whose transport is an
/// [`Endpoint`](lagometer_transport::Endpoint): the driver that gives it a
/// socket.
pub struct EndpointConnection {
    socket: Socket,
    endpoint: BoxedEndpoint,
    /// When the endpoint wants to be called, as it last said.
    deadline: Option<Time>,
    incoming: Incoming,
    outgoing: Outgoing,
    drained: Drained,
    failure: Option<String>,
    tap: Option<Box<dyn DatagramTap>>,
}

/// Reads in one call, each a datagram or a run of them.
const READS: usize = 8;

/// Calls to receive before others are made to send: a flood from the peer
/// must not silence this side.
const CALLS_AT_ONCE: usize = 8;

/// Datagrams that are handed to the kernel together.
const SENDS: usize = 32;

impl EndpointConnection {
    /// Drives `endpoint` over `socket`, which is connected to its peer.
    #[must_use]
    pub fn new(socket: Socket, mut endpoint: BoxedEndpoint) -> Self {
        Self {
            socket,
            deadline: endpoint.next_deadline(),
            endpoint,
            incoming: Incoming::new(READS),
            outgoing: Outgoing::new(SENDS),
            drained: Drained::default(),
            failure: None,
            tap: None,
        }
    }

    /// Hands the endpoint what has come.
    fn receive_all(&mut self, now: Time) -> io::Result<()> {
        if self.drained.is_known_at(now) {
            return Ok(());
        }
        for _ in 0..CALLS_AT_ONCE {
            let reads = self.socket.receive(&mut self.incoming)?;
            for datagram in self.incoming.iter() {
                if let Some(tap) = &mut self.tap {
                    tap.received(now, datagram.bytes);
                }
                self.endpoint.handle_datagram(now, datagram.bytes);
            }
            // A call that leaves room has taken all there was.
            if reads < READS {
                self.drained.note_at(now);
                break;
            }
        }
        Ok(())
    }

    /// Puts out what the endpoint has, until it or the socket has enough.
    fn send_all(&mut self, now: Time) -> io::Result<()> {
        loop {
            let mut poll = |buffer: &mut Vec<u8>| {
                let has_one = self.endpoint.poll_datagram(now, buffer);
                if let Some(tap) = self.tap.as_mut().filter(|_| has_one) {
                    tap.sent(now, buffer);
                }
                has_one
            };
            while self.outgoing.fill(None, &mut poll) {}
            let was_full = self.outgoing.is_full();
            if !self.socket.send(&mut self.outgoing)? || !was_full {
                return Ok(());
            }
        }
    }
}

impl Messenger for EndpointConnection {
    fn send(&mut self, now: Time, message: &[u8]) -> Result<(), Refused> {
        self.endpoint.send(now, message)
    }

    fn send_as(&mut self, now: Time, delivery: Delivery, message: &[u8]) -> Result<(), Refused> {
        self.endpoint.send_as(now, delivery, message)
    }

    fn receive(&mut self, now: Time) -> Option<Message> {
        self.endpoint.receive(now)
    }

    fn state(&self) -> State {
        match &self.failure {
            Some(what) => State::Closed(Closed::Failed(what.clone())),
            None => self.endpoint.state(),
        }
    }
}

impl Driven for EndpointConnection {
    fn take_in(&mut self, now: Time) {
        if self.failure.is_some() {
            return;
        }
        let taken = self.receive_all(now);
        if self.deadline.take_if(|deadline| *deadline <= now).is_some() {
            self.endpoint.handle_deadline(now);
        }
        self.failure = taken.err().map(|error| error.to_string());
    }

    fn put_out(&mut self, now: Time) {
        if self.failure.is_some() {
            return;
        }
        self.failure = self.send_all(now).err().map(|error| error.to_string());
        self.deadline = self.endpoint.next_deadline();
    }
}

impl SocketConnection for EndpointConnection {
    fn next_deadline(&mut self) -> Option<Time> {
        // Messages that were received or sent since the last turn change it.
        self.deadline = self.endpoint.next_deadline();
        self.deadline
    }

    fn wait(&mut self, longest: Duration) {
        if self.failure.is_some() {
            std::thread::sleep(longest);
            return;
        }
        // What is wrong with the socket is reported by the next attempt to use it.
        let ready = self
            .socket
            .wait_ready(!self.outgoing.is_empty(), Some(longest));
        self.drained.note_wait(matches!(ready, Ok(false)));
    }

    fn counters(&self) -> Counters {
        let socket = self.socket.counters();
        Counters {
            system_calls: socket.calls(),
            packets_sent: socket.sent_datagrams,
            bytes_sent: socket.sent_bytes,
            packets_received: socket.received_datagrams,
            bytes_received: socket.received_bytes,
            packets_lost: socket.refused_datagrams,
            library_cpu: Duration::ZERO,
        }
    }

    fn show_datagrams_to(&mut self, tap: Box<dyn DatagramTap>) -> bool {
        self.tap = Some(tap);
        true
    }

    fn path(&self) -> String {
        format!("UDP, {}", self.socket.path())
    }
}
