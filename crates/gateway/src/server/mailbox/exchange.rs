//! The queues of a loop that takes from one inbox and gives to several others,
//! and may take nothing while one of them has no room.

use std::collections::VecDeque;
use std::time::Duration;

use super::queue::{Item, Queue};
use super::sync::Arc;
use super::waker::{Notifier, Waker};

/// One loop's inbox and outboxes.
#[derive(Debug)]
pub(in crate::server) struct Exchange<In, Out, B> {
    inbox: Arc<Queue<In, B>>,
    outboxes: Vec<Outbox<Out, B>>,
    /// The loop's own.
    waker: Waker<B>,
}

/// The way to one of the others.
#[derive(Debug)]
struct Outbox<Out, B> {
    queue: Arc<Queue<Out, B>>,
    /// What found no room there yet.
    unsent: VecDeque<Out>,
}

impl<In: Item, Out: Item, B: Notifier> Exchange<In, Out, B> {
    pub(in crate::server) fn new(
        inbox: Arc<Queue<In, B>>,
        outboxes: Vec<Arc<Queue<Out, B>>>,
        waker: Waker<B>,
    ) -> Self {
        let outboxes = outboxes.into_iter().map(|queue| Outbox {
            queue,
            unsent: VecDeque::new(),
        });
        Self {
            inbox,
            outboxes: outboxes.collect(),
            waker,
        }
    }

    /// Takes all that has come into `into`, which is empty, unless something
    /// still waits to be delivered: then what waits is bounded, and the inbox
    /// fills up until its producers wait too. Returns whether it took.
    pub(in crate::server) fn take(&mut self, into: &mut VecDeque<In>) -> bool {
        self.deliver();
        let may_take = !self.is_blocked();
        if may_take {
            self.inbox.take(into);
        }
        may_take
    }

    /// Posts an item; [`deliver`](Self::deliver) hands it over.
    pub(in crate::server) fn post(&mut self, to: usize, item: Out) {
        if let Some(outbox) = self.outboxes.get_mut(to) {
            outbox.unsent.push_back(item);
        }
    }

    /// Hands over as much as there is room for.
    pub(in crate::server) fn deliver(&mut self) {
        for Outbox { queue, unsent } in &mut self.outboxes {
            queue.offer(unsent, &self.waker);
        }
    }

    /// How long the loop may sleep: not at all with items that it may take, and
    /// otherwise until `due` or until it is woken. A loop that is blocked has
    /// nothing to do at `due`.
    pub(in crate::server) fn rest(&self, due: Option<Duration>) -> Option<Duration> {
        if self.is_blocked() {
            None
        } else if self.inbox.depth() > 0 {
            Some(Duration::ZERO)
        } else {
            due
        }
    }

    /// How many items wait to be taken.
    pub(in crate::server) fn depth(&self) -> usize {
        self.inbox.depth()
    }

    /// Whether something waits that found no room.
    pub(in crate::server) fn is_blocked(&self) -> bool {
        self.outboxes.iter().any(|outbox| !outbox.unsent.is_empty())
    }
}
