//! Bounded queues between threads.
//!
//! Whole batches cross under one lock. A producer is never made to wait: what
//! finds no room stays with it, and it is woken once there is some.

use std::collections::VecDeque;
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::poller::Waker;

/// From one or more threads to one other.
#[derive(Debug)]
pub(super) struct Queue<T> {
    state: Mutex<State<T>>,
    capacity: usize,
    consumer: Waker,
}

#[derive(Debug)]
struct State<T> {
    items: VecDeque<T>,
    /// Those who were turned away and are to be woken.
    refused: Vec<Waker>,
}

impl<T> Queue<T> {
    pub(super) fn new(capacity: usize, consumer: Waker) -> Self {
        Self {
            state: Mutex::new(State {
                items: VecDeque::new(),
                refused: Vec::new(),
            }),
            capacity,
            consumer,
        }
    }

    /// Moves as many items as there is room for out of `batch`. What remains
    /// in it is to be offered again: `producer` is woken for that.
    pub(super) fn offer(&self, batch: &mut VecDeque<T>, producer: &Waker) {
        if batch.is_empty() {
            return;
        }
        let moved = {
            let mut state = self.lock();
            let room = self.capacity.saturating_sub(state.items.len());
            let moved = room.min(batch.len());
            state.items.extend(batch.drain(..moved));
            if !batch.is_empty() {
                state.refused.push(producer.clone());
            }
            moved
        };
        if moved > 0 {
            self.consumer.wake();
        }
    }

    /// Takes everything, in order, into `into`, which is empty.
    pub(super) fn take(&self, into: &mut VecDeque<T>) {
        debug_assert!(into.is_empty(), "what is in it would go behind");
        let refused = {
            let mut state = self.lock();
            std::mem::swap(&mut state.items, into);
            std::mem::take(&mut state.refused)
        };
        for producer in refused {
            producer.wake();
        }
    }

    /// How many items wait.
    pub(super) fn depth(&self) -> usize {
        self.lock().items.len()
    }

    fn lock(&self) -> MutexGuard<'_, State<T>> {
        // No step under the lock can stop half-way.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::server::poller::{Events, Poller};

    #[test]
    fn what_finds_no_room_stays_and_keeps_its_place() {
        let poller = Poller::new().unwrap();
        let waker = Waker::new(&poller, 0).unwrap();
        let queue = Queue::new(3, waker.clone());
        let mut batch: VecDeque<u32> = (0..5).collect();
        queue.offer(&mut batch, &waker);
        assert_eq!(batch, [3, 4]);
        assert_eq!(queue.depth(), 3);
        let mut out = VecDeque::new();
        queue.take(&mut out);
        assert_eq!(out, [0, 1, 2]);
        queue.offer(&mut batch, &waker);
        out.clear();
        queue.take(&mut out);
        assert_eq!(out, [3, 4]);
    }

    #[test]
    fn nothing_is_lost_between_threads() {
        let poller = Poller::new().unwrap();
        let consumer = Waker::new(&poller, 0).unwrap();
        let other = Poller::new().unwrap();
        let producer = Waker::new(&other, 0).unwrap();
        let queue = Queue::new(16, consumer.clone());
        let mut seen = Vec::new();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let mut ready = Events::new();
                let mut batch = VecDeque::new();
                for item in 0..10_000_u32 {
                    batch.push_back(item);
                    queue.offer(&mut batch, &producer);
                    while batch.len() > 8 {
                        other.wait(None, &mut ready).unwrap();
                        producer.silence();
                        queue.offer(&mut batch, &producer);
                    }
                }
                while !batch.is_empty() {
                    other.wait(None, &mut ready).unwrap();
                    producer.silence();
                    queue.offer(&mut batch, &producer);
                }
            });
            let (mut ready, mut out) = (Events::new(), VecDeque::new());
            while seen.len() < 10_000 {
                poller.wait(None, &mut ready).unwrap();
                consumer.silence();
                queue.take(&mut out);
                seen.extend(out.drain(..));
            }
        });
        assert!(seen.iter().copied().eq(0..10_000));
    }
}
