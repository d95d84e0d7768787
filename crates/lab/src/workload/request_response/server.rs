//! The server's end: answers each request after a while.

use std::collections::VecDeque;
use std::time::Duration;

use lagometer_transport::Messenger;
use lagometer_units::Time;

use super::RequestResponse;
use super::pieces::{Incoming, Outgoing};
use crate::plan::Plan;
use crate::workload::game::{Codec, Kind};
use crate::workload::{LaneWorkload, Misdeliveries, RemoteArrival, ServerApplication};

/// A server that answers.
#[derive(Debug)]
pub struct RequestServer {
    terms: RequestResponse,
    seed: u64,
    /// So many requests there are at most.
    most: u64,
    incoming: Incoming,
    arrivals: Vec<RemoteArrival>,
    /// Requests that are thought about, each with when its answer is ready.
    thinking: VecDeque<(Time, u32)>,
    outgoing: Outgoing,
}

impl RequestServer {
    /// A server that waits for requests.
    #[must_use]
    pub fn new(terms: RequestResponse, plan: &Plan) -> Self {
        let codec = Codec::new(plan.seed);
        Self {
            seed: plan.seed,
            most: terms.remembered(plan.duration, Duration::ZERO),
            incoming: Incoming::new(codec, Kind::Inputs),
            arrivals: Vec::new(),
            thinking: VecDeque::new(),
            outgoing: Outgoing::new(codec, Kind::Snapshot, terms.delivery.into()),
            terms,
        }
    }
}

impl ServerApplication for RequestServer {
    fn turn(&mut self, now: Time, side: &mut dyn Messenger) -> bool {
        let mut any = false;
        while let Some(message) = side.receive(now) {
            any = true;
            let bytes = self.terms.request.bytes() as usize;
            let bytes_of = |number: u32| (u64::from(number) < self.most).then_some(bytes);
            if let Some(number) = self.incoming.take(&message.bytes, bytes_of) {
                self.arrivals.push(RemoteArrival {
                    blocked: message.blocked,
                    ..RemoteArrival::new(number, now)
                });
                let ready = now + self.terms.think.duration();
                self.thinking.push_back((ready, number));
            }
        }
        while let Some(&(ready, number)) = self.thinking.front()
            && ready <= now
        {
            self.thinking.pop_front();
            let bytes = self.terms.response_bytes(self.seed, number);
            self.outgoing.push(number, bytes);
        }
        self.outgoing.send(now, side, |_, _| ()) || any
    }

    fn next_send(&self) -> Option<Time> {
        self.thinking.front().map(|&(ready, _)| ready)
    }

    fn arrivals(&self) -> &[RemoteArrival] {
        &self.arrivals
    }

    fn payload_bytes(&self) -> u64 {
        self.outgoing.payload_bytes()
    }

    fn misdeliveries(&self) -> Misdeliveries {
        self.incoming.misdeliveries()
    }
}
