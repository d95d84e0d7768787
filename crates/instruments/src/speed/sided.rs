//! A transport that owns its sockets, moved along likewise.

use std::io;
use std::time::Duration;

use lagometer_socket::BoxedConnection;
use lagometer_transport::{Closed, Message, Refused, State};
use lagometer_units::Time;

use super::mover::{Drained, Mover, Totals};

/// The longest sleep, so that a request to stop is soon noticed.
const SLEEP: Duration = Duration::from_millis(20);

/// A side and what it was handed since it last moved.
pub(super) struct Sided {
    side: BoxedConnection,
    handed: Drained,
}

impl Sided {
    pub(super) fn new(side: BoxedConnection) -> Self {
        Self {
            side,
            handed: Drained::default(),
        }
    }
}

impl Mover for Sided {
    fn closed(&self) -> Option<Closed> {
        match self.side.state() {
            State::Closed(why) => Some(why),
            State::Connecting | State::Ready => None,
        }
    }

    fn is_ready(&self) -> bool {
        self.side.state() == State::Ready
    }

    fn offer(&mut self, now: Time, message: &[u8]) -> Result<(), Refused> {
        self.side.send(now, message)?;
        self.handed.datagrams += 1;
        self.handed.bytes += message.len() as u64;
        Ok(())
    }

    fn take_in(&mut self, now: Time, take: &mut dyn FnMut(Message)) -> io::Result<bool> {
        self.side.take_in(now);
        let mut any = false;
        while let Some(message) = self.side.receive(now) {
            any = true;
            take(message);
        }
        Ok(any)
    }

    /// The library queues on its own, within its own limit: what was handed
    /// over counts as gone.
    fn put_out(&mut self, now: Time) -> io::Result<Drained> {
        let handed = std::mem::take(&mut self.handed);
        self.side.put_out(now);
        Ok(handed)
    }

    fn is_clear(&self) -> bool {
        true
    }

    fn was_busy(&mut self) {}

    fn rest(&mut self, now: Time, until: Option<Time>) -> io::Result<()> {
        let until = [until, self.side.next_deadline()]
            .into_iter()
            .flatten()
            .min();
        let wait = until.map_or(SLEEP, |until| until.since(now).min(SLEEP));
        self.side.wait(wait);
        Ok(())
    }

    fn totals(&self) -> Totals {
        let counters = self.side.counters();
        Totals {
            path: self.side.path(),
            calls: counters.system_calls,
            datagrams: counters.packets_sent,
            library_cpu: counters.library_cpu,
        }
    }
}
