//! An endpoint over a UDP socket, moved along as fast as the socket goes.

use std::io;
use std::time::Duration;

use lagometer_platform::yield_thread;
use lagometer_socket::udp::{Incoming, Outgoing, Socket};
use lagometer_transport::{BoxedEndpoint, Closed, Message, Refused, State};
use lagometer_units::Time;

use super::mover::{Drained, Mover, Totals};

/// Datagrams that wait for the socket at most.
const OUTGOING: usize = 192;
/// Reads that share a call: enough for a batch, few enough that what they
/// hold stays in the processor's caches.
const INCOMING: usize = 8;
/// How long an idle pump keeps looking before it sleeps. A sleeping thread is
/// woken tens of microseconds late, and a window's worth of traffic is over by
/// then.
const LOOK: Duration = Duration::from_micros(100);
/// The longest sleep, so that a request to stop is soon noticed.
const SLEEP: Duration = Duration::from_millis(20);
/// A sleep ends late by about so much, so shorter waits are spent looking.
const OVERSLEEP: Duration = Duration::from_micros(200);

/// An endpoint, its socket, and what is between them.
pub(super) struct Pump {
    endpoint: BoxedEndpoint,
    socket: Socket,
    outgoing: Outgoing,
    incoming: Incoming,
    idle_since: Option<Time>,
    /// Whether it looks for a while before it sleeps, and in place of short sleeps.
    looks: bool,
}

impl Pump {
    /// One that sleeps until something is due, or where it `looks`, as soon as
    /// that pays.
    pub(super) fn new(endpoint: BoxedEndpoint, socket: Socket, looks: bool) -> Self {
        Self {
            endpoint,
            socket,
            outgoing: Outgoing::new(OUTGOING),
            incoming: Incoming::new(INCOMING),
            idle_since: None,
            looks,
        }
    }
}

impl Mover for Pump {
    fn closed(&self) -> Option<Closed> {
        match self.endpoint.state() {
            State::Closed(why) => Some(why),
            State::Connecting | State::Ready => None,
        }
    }

    fn is_ready(&self) -> bool {
        self.endpoint.state() == State::Ready
    }

    fn take_in(&mut self, now: Time, take: &mut dyn FnMut(Message)) -> io::Result<bool> {
        let came = self.socket.receive(&mut self.incoming)? > 0;
        for datagram in self.incoming.iter() {
            self.endpoint.handle_datagram(now, datagram.bytes);
            while let Some(message) = self.endpoint.receive(now) {
                take(message);
            }
        }
        if self.endpoint.next_deadline().is_some_and(|due| due <= now) {
            self.endpoint.handle_deadline(now);
            while let Some(message) = self.endpoint.receive(now) {
                take(message);
            }
        }
        Ok(came)
    }

    fn put_out(&mut self, now: Time) -> io::Result<Drained> {
        let mut drained = Drained::default();
        loop {
            let mut any = false;
            let endpoint = &mut self.endpoint;
            while self.outgoing.fill(None, |buffer| {
                let is_there = endpoint.poll_datagram(now, buffer);
                if is_there {
                    drained.datagrams += 1;
                    drained.bytes += buffer.len() as u64;
                }
                is_there
            }) {
                any = true;
            }
            let is_clear = self.socket.send(&mut self.outgoing)?;
            if !any || !is_clear {
                return Ok(drained);
            }
        }
    }

    fn is_clear(&self) -> bool {
        self.outgoing.is_empty()
    }

    fn was_busy(&mut self) {
        self.idle_since = None;
    }

    fn rest(&mut self, now: Time, until: Option<Time>) -> io::Result<()> {
        let since = *self.idle_since.get_or_insert(now);
        let until = [until, self.endpoint.next_deadline()]
            .into_iter()
            .flatten()
            .min();
        let wait = until.map_or(SLEEP, |until| until.since(now).min(SLEEP));
        if self.looks && (now.since(since) < LOOK || wait < OVERSLEEP) {
            yield_thread();
            return Ok(());
        }
        self.socket
            .wait_ready(!self.outgoing.is_empty(), Some(wait))?;
        Ok(())
    }

    fn offer(&mut self, now: Time, message: &[u8]) -> Result<(), Refused> {
        self.endpoint.send(now, message)
    }

    fn totals(&self) -> Totals {
        let counters = self.socket.counters();
        Totals {
            path: self.socket.path().to_string(),
            calls: counters.calls(),
            datagrams: counters.sent_datagrams,
            library_cpu: Duration::ZERO,
        }
    }
}
