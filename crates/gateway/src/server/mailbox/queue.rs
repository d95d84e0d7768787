//! A bounded queue from one or more threads to one other.
//!
//! Whole batches cross under one lock. A producer is never made to wait: what
//! finds no room stays with it, and it is woken once there is some. What waits is bounded
//! by its number and by its bytes: a message may be as long as a peer makes it.

use std::collections::VecDeque;

use crate::core::burst_queue::shrink;

use super::sync::{Mutex, MutexGuard, PoisonError};
use super::waker::{Notifier, Waker};

/// What a queue holds.
pub(in crate::server) trait Item {
    /// How many bytes it carries that a peer chose the number of.
    fn payload_bytes(&self) -> usize;
}

/// How much may wait in a queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) struct Capacity {
    /// Items.
    pub(in crate::server) items: usize,
    /// Once what waits has so many bytes nothing more is taken in, so at most one item
    /// lies beyond it.
    pub(in crate::server) bytes: usize,
}

#[cfg(test)]
impl Capacity {
    /// So many items, however long they are.
    pub(in crate::server) const fn of_items(items: usize) -> Self {
        Self {
            items,
            bytes: usize::MAX,
        }
    }
}

/// From one or more threads to one other.
#[derive(Debug)]
pub(in crate::server) struct Queue<T, B> {
    state: Mutex<State<T, B>>,
    capacity: Capacity,
    consumer: Waker<B>,
}

#[derive(Debug)]
struct State<T, B> {
    items: VecDeque<T>,
    /// The bytes of all of them.
    bytes: usize,
    /// Those who were turned away and are to be woken, each once.
    refused: Vec<Waker<B>>,
}

impl<T: Item, B: Notifier> Queue<T, B> {
    /// An empty queue; `consumer` is woken when something has come.
    pub(in crate::server) fn new(capacity: Capacity, consumer: Waker<B>) -> Self {
        Self {
            state: Mutex::new(State {
                items: VecDeque::new(),
                bytes: 0,
                refused: Vec::new(),
            }),
            capacity,
            consumer,
        }
    }

    /// Moves as many items as there is room for out of `batch`. What remains
    /// in it is to be offered again: `producer` is woken for that.
    pub(in crate::server) fn offer(&self, batch: &mut VecDeque<T>, producer: &Waker<B>) {
        if batch.is_empty() {
            return;
        }
        let moved = {
            let mut state = self.lock();
            let waiting = state.items.len();
            while state.items.len() < self.capacity.items
                && state.bytes < self.capacity.bytes
                && let Some(item) = batch.pop_front()
            {
                state.bytes += item.payload_bytes();
                state.items.push_back(item);
            }
            let moved = state.items.len() - waiting;
            // Who offers again and again is noted once: the list is no longer
            // than there are producers.
            if !batch.is_empty() && !state.refused.iter().any(|noted| noted.is(producer)) {
                state.refused.push(producer.clone());
            }
            moved
        };
        if moved > 0 {
            self.consumer.wake();
        }
        shrink(batch, moved + batch.len());
    }

    /// Takes everything, in order, into `into`, which is empty.
    pub(in crate::server) fn take(&self, into: &mut VecDeque<T>) {
        debug_assert!(into.is_empty(), "what is in it would go behind");
        let refused = {
            let mut state = self.lock();
            std::mem::swap(&mut state.items, into);
            state.bytes = 0;
            std::mem::take(&mut state.refused)
        };
        for producer in refused {
            producer.wake();
        }
        // The two lists change places with every call: each has its turn.
        shrink(into, into.len());
    }

    /// How many items wait.
    pub(in crate::server) fn depth(&self) -> usize {
        self.lock().items.len()
    }

    fn lock(&self) -> MutexGuard<'_, State<T, B>> {
        // No step under the lock can stop half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
