//! Where the bus between nodes leaves what it brings.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};

use crate::nodes::BusEvent;

use super::poller::Waker;

/// Frames beyond so many bytes are dropped: they come again. Routes send each other far
/// less before they wait for an answer.
const MOST_BYTES: usize = 256 << 20;

/// The inbox of a node, which whatever carries frames puts them into from any thread.
#[derive(Clone, Debug)]
pub struct NodeInbox(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    waiting: Mutex<Waiting>,
    waker: Waker,
}

#[derive(Debug, Default)]
struct Waiting {
    events: VecDeque<BusEvent>,
    bytes: usize,
}

impl NodeInbox {
    pub(super) fn new(waker: Waker) -> Self {
        Self(Arc::new(Inner {
            waiting: Mutex::default(),
            waker,
        }))
    }

    /// Leaves something for the node, and wakes it. A frame is dropped where too much
    /// waits already.
    pub fn put(&self, event: BusEvent) {
        let bytes = match &event {
            BusEvent::Frame(frame) => frame.len(),
            _ => 0,
        };
        {
            let mut waiting = self
                .0
                .waiting
                .lock()
                .unwrap_or_else(PoisonError::into_inner);
            if bytes > 0 && waiting.bytes + bytes > MOST_BYTES {
                return;
            }
            waiting.bytes += bytes;
            waiting.events.push_back(event);
        }
        self.0.waker.wake();
    }

    /// Takes everything, in order.
    pub(super) fn take(&self) -> VecDeque<BusEvent> {
        let mut waiting = self
            .0
            .waiting
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        waiting.bytes = 0;
        std::mem::take(&mut waiting.events)
    }
}
