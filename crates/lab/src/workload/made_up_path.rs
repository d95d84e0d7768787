//! A made-up path between the two ends of a workload, for tests: 20 ms long, and the test
//! says what becomes of each message.

use std::collections::VecDeque;
use std::time::Duration;

use lagometer_transport::{Delivery, Message, Messenger, Refused, State};
use lagometer_units::Time;

/// How long a message takes.
const DELAY: Duration = Duration::from_millis(20);

/// One way of the path.
#[derive(Default)]
pub(super) struct Way {
    /// What is on its way: each message and when it arrives.
    passing: VecDeque<(Time, Vec<u8>)>,
    /// Everything that was sent: how it was to be delivered, and its bytes.
    pub(super) sent: Vec<(Delivery, usize)>,
}

impl Way {
    /// The bytes of everything that was sent.
    pub(super) fn sizes(&self) -> Vec<usize> {
        self.sent.iter().map(|&(_, bytes)| bytes).collect()
    }
}

/// One end of the path.
pub(super) struct End<'a> {
    pub(super) out: &'a mut Way,
    pub(super) into: &'a mut Way,
    /// How many arrive of a message with this delivery, sent after so many others.
    pub(super) copies: &'a dyn Fn(Delivery, usize) -> usize,
    /// Whether it takes nothing now.
    pub(super) is_full: bool,
}

impl Messenger for End<'_> {
    fn send(&mut self, _: Time, _: &[u8]) -> Result<(), Refused> {
        unreachable!("each message says how it is to be delivered")
    }

    fn send_as(&mut self, now: Time, delivery: Delivery, message: &[u8]) -> Result<(), Refused> {
        if self.is_full {
            return Err(Refused::BufferFull);
        }
        for _ in 0..(self.copies)(delivery, self.out.sent.len()) {
            self.out.passing.push_back((now + DELAY, message.to_vec()));
        }
        self.out.sent.push((delivery, message.len()));
        Ok(())
    }

    fn receive(&mut self, now: Time) -> Option<Message> {
        let is_due = self.into.passing.front().is_some_and(|&(at, _)| at <= now);
        let (_, bytes) = is_due.then(|| self.into.passing.pop_front())??;
        Some(Message {
            bytes,
            blocked: None,
        })
    }

    fn state(&self) -> State {
        State::Ready
    }
}
