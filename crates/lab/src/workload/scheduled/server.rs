//! The server's end of messages by a schedule: sends its own, and notes when the client's
//! came.

use lagometer_link::Direction;
use lagometer_transport::Messenger;
use lagometer_units::Time;

use super::Script;
use super::sender::Sender;
use crate::workload::{Misdeliveries, Received, RemoteArrival, ServerApplication, Stream};

/// A server that sends by a schedule and is sent to by one.
#[derive(Debug)]
pub struct ScheduledServer {
    script: Script,
    /// When the schedule begins, once that is known.
    start: Option<Time>,
    sender: Sender,
    received: Received,
    /// Of the client's messages when they came, of its own when the transport took them.
    arrivals: Vec<RemoteArrival>,
}

impl ScheduledServer {
    /// A server that waits to receive when its schedule begins.
    #[must_use]
    pub const fn new(script: Script) -> Self {
        Self {
            script,
            start: None,
            sender: Sender::new(Direction::Down),
            received: Received::new(),
            arrivals: Vec::new(),
        }
    }

    fn receive(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        let mut any = false;
        while let Some(message) = side.receive(now) {
            any = true;
            let number = self.script.read(Direction::Up, &message.bytes).ok();
            if let Some(number) = self.received.note(number) {
                self.arrivals.push(RemoteArrival {
                    blocked: message.blocked,
                    ..RemoteArrival::new(number, now)
                });
            }
        }
        any
    }
}

impl ServerApplication for ScheduledServer {
    fn begin(&mut self, start: Time) {
        self.start = Some(start);
    }

    fn turn(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        let received = self.receive(now, side);
        let Some(start) = self.start else {
            return received;
        };
        let arrivals = &mut self.arrivals;
        let sent = self
            .sender
            .send(&self.script, (start, now), side, |number, record| {
                let intended = start + record.intended.since(Time::ZERO);
                arrivals.push(RemoteArrival {
                    stream: Stream::Taken,
                    number,
                    at: now,
                    blocked: record.refused.then(|| now.since(intended)),
                });
            });
        received || sent
    }

    fn next_send(&self) -> Option<Time> {
        self.sender.next(&self.script, self.start?)
    }

    fn arrivals(&self) -> &[RemoteArrival] {
        &self.arrivals
    }

    fn payload_bytes(&self) -> u64 {
        self.sender.payload_bytes()
    }

    fn misdeliveries(&self) -> Misdeliveries {
        self.received.misdeliveries()
    }
}
