//! The queues and wakers under a model checker: their source once more, with
//! mutexes and atomics whose interleavings are tried out.
//!
//! A loop that sleeps for ever while something waits for it is a deadlock to
//! the checker, which prints the steps that lead there.

#![allow(clippy::duplicate_mod)] // That is what this is for.

use std::collections::VecDeque;
use std::time::Duration;

use loom::sync::{Condvar, Mutex};
use loom::thread;

#[path = "exchange.rs"]
mod exchange;
#[path = "queue.rs"]
mod queue;
#[path = "waker.rs"]
mod waker;

mod sync {
    pub(super) use loom::sync::atomic::{AtomicBool, Ordering};
    pub(super) use loom::sync::{Arc, Mutex, MutexGuard};
    pub(super) use std::sync::PoisonError;
}

use exchange::Exchange;
use queue::{Capacity, Item, Queue};
use sync::Arc;
use waker::{Notifier, Waker};

/// Of one item.
const ONE: Capacity = Capacity::of_items(1);

impl Item for u32 {
    fn payload_bytes(&self) -> usize {
        0
    }
}

/// What an eventfd in a poller is to a loop.
#[derive(Debug)]
struct ModelNotifier {
    is_set: Mutex<bool>,
    changed: Condvar,
}

impl ModelNotifier {
    fn waker() -> Waker<Self> {
        Waker::with(Self {
            is_set: Mutex::new(false),
            changed: Condvar::new(),
        })
    }

    /// Sleeps until it is set. Without a limit, for no deadline may stand in for
    /// a wake-up that was lost; not at all where `rest` says so.
    fn sleep(&self, rest: Option<Duration>) {
        let mut is_set = self.is_set.lock().unwrap();
        while !*is_set && rest.is_none() {
            is_set = self.changed.wait(is_set).unwrap();
        }
    }
}

impl Notifier for ModelNotifier {
    fn notify(&self) {
        *self.is_set.lock().unwrap() = true;
        self.changed.notify_one();
    }

    fn clear(&self) {
        *self.is_set.lock().unwrap() = false;
    }
}

/// Tries the interleavings of `run` that have at most three preemptions: all
/// known mistakes of this kind need one or two.
fn check(run: impl Fn() + Send + Sync + 'static) {
    let mut model = loom::model::Builder::new();
    model.preemption_bound = Some(3);
    model.check(run);
}

/// The loops of a gateway: a connection loop that asks `questions` times, and a
/// channel loop that gives `answers` to each, over queues of one place.
fn ask_and_answer(questions: u32, answers: u32) {
    let (asking, answering) = (ModelNotifier::waker(), ModelNotifier::waker());
    let inbox = Arc::new(Queue::new(ONE, answering.clone()));
    let outbox = Arc::new(Queue::new(ONE, asking.clone()));
    let channels = {
        let (inbox, outbox) = (Arc::clone(&inbox), Arc::clone(&outbox));
        thread::spawn(move || {
            let mut exchange = Exchange::new(inbox, vec![outbox], answering.clone());
            let (mut arrived, mut answered) = (VecDeque::new(), 0);
            // As the channel loop: sleep, silence, take, post, deliver.
            while answered < questions || exchange.rest(Some(Duration::ZERO)).is_none() {
                answering.notifier().sleep(exchange.rest(None));
                answering.silence();
                if exchange.take(&mut arrived) {
                    for question in arrived.drain(..) {
                        answered += 1;
                        (0..answers).for_each(|_| exchange.post(0, question));
                    }
                }
                exchange.deliver();
            }
            assert_eq!(exchange.depth(), 0, "all was taken");
        })
    };
    let mut unsent: VecDeque<u32> = (0..questions).collect();
    let (mut taken, mut received) = (VecDeque::new(), Vec::new());
    loop {
        // As a connection loop: what came is taken in every turn.
        outbox.take(&mut taken);
        received.extend(taken.drain(..));
        inbox.offer(&mut unsent, &asking);
        if unsent.is_empty() && received.len() as u32 == questions * answers {
            break;
        }
        asking.notifier().sleep(None);
        asking.silence();
    }
    assert!(received.is_sorted(), "{received:?}");
    channels.join().unwrap();
}

#[test]
fn no_interleaving_leaves_a_loop_asleep_before_a_full_inbox() {
    check(|| ask_and_answer(2, 2));
}

#[test]
fn no_interleaving_loses_the_wake_up_of_a_producer_that_found_no_room() {
    check(|| ask_and_answer(3, 1));
    // No answer comes that would wake it as well.
    check(|| ask_and_answer(3, 0));
}

#[test]
fn no_interleaving_of_two_producers_loses_an_item() {
    check(|| {
        let consumer = ModelNotifier::waker();
        let queue = Arc::new(Queue::new(ONE, consumer.clone()));
        let producers = [0_u32, 1].map(|item| {
            let queue = Arc::clone(&queue);
            thread::spawn(move || {
                let own = ModelNotifier::waker();
                let mut batch = VecDeque::from([item]);
                loop {
                    queue.offer(&mut batch, &own);
                    if batch.is_empty() {
                        return;
                    }
                    own.notifier().sleep(None);
                    own.silence();
                }
            })
        });
        let (mut taken, mut seen) = (VecDeque::new(), 0);
        while seen < 2 {
            consumer.notifier().sleep(None);
            consumer.silence();
            queue.take(&mut taken);
            seen += taken.drain(..).count();
        }
        for producer in producers {
            producer.join().unwrap();
        }
    });
}
