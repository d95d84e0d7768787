//! Bounded queues between the threads, and how a thread that sleeps is woken.
//!
//! ```text
//! connection loop ──offer──▶ Queue ──take──▶ channel loop    (its `Exchange`)
//! connection loop ◀──take── Queue ◀──offer── channel loop
//! ```
//!
//! A loop sleeps in one place and each of its turns has the same order: sleep,
//! [`Waker::silence`], look at everything others may have left for it, do it,
//! sleep again. What it may find is in a [`Queue`] or behind another mutex
//! (commands, verdicts of login providers), or an atomic (a report that is
//! asked for). Whoever leaves something does so first and calls
//! [`Waker::wake`] after it.
//!
//! # Why no wake-up is lost
//!
//! 1. *A wake is seen or still to come.* [`Waker::wake`] sets the notifier unless
//!    `pending` says that it is set already; [`Waker::silence`] clears the notifier
//!    first and `pending` after it. So when `silence` returns, every wake that
//!    left the notifier alone happened before the clearing: its cause was left
//!    before that, and the loop looks after it. Every later wake sets the
//!    notifier, and the next sleep ends at once.
//! 2. *Nothing is silenced that is not looked at.* A loop that declines to
//!    take its inbox — the channel loop while a connection loop has no room for
//!    what it has to say — has used up the wake that announced it. So before each
//!    sleep [`Exchange::rest`] looks at the inbox itself: as long as the loop
//!    may take and there is something, it does not sleep. An item that comes
//!    after this look wakes by 1.
//! 3. *Who may not take is woken when it may.* A loop is blocked only while
//!    some queue has refused items of it. The queue noted its waker under the
//!    lock under which it refused, and the next [`Queue::take`] takes the note
//!    under the same lock and wakes it.
//! 4. *That take comes.* The queue that refused is full, so its consumer has
//!    been woken since it last took (1), and a connection loop takes in every
//!    turn, whether it can send or not. There is no circle: the channel loop
//!    waits for connection loops, and they never sleep until the channel loop
//!    has room, but look again after a few milliseconds.
//!
//! `interleavings` runs this very source under a model checker that tries the
//! interleavings of two such loops with queues of one place.

mod exchange;
#[cfg(test)]
mod interleavings;
mod queue;
#[cfg(test)]
mod tests;
mod waker;

/// What the protocol is built of; the model checker has its own.
mod sync {
    pub(super) use std::sync::atomic::{AtomicBool, Ordering};
    pub(super) use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
}

pub(super) use exchange::Exchange;
pub(super) use queue::{Capacity, Item, Queue};
pub(super) use waker::{Notifier, Waker};
