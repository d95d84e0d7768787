//! Wakes a loop that sleeps, by a notifier that is set once however often it is woken.

use super::sync::{Arc, AtomicBool, Ordering};

/// What ends the sleep of a loop, as an eventfd does. It is level-triggered: whoever
/// goes to sleep while it is set is awake at once.
pub(in crate::server) trait Notifier {
    /// Sets it, or leaves it set.
    fn notify(&self);
    /// Clears it.
    fn clear(&self);
}

/// Wakes the loop that waits for a notifier. Waking it twice before it looks notifies
/// once.
#[derive(Debug)]
pub(in crate::server) struct Waker<B> {
    inner: Arc<Inner<B>>,
}

#[derive(Debug)]
struct Inner<B> {
    notifier: B,
    /// The notifier is set, or is about to be.
    pending: AtomicBool,
}

impl<B> Clone for Waker<B> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<B: Notifier> Waker<B> {
    pub(in crate::server) fn with(notifier: B) -> Self {
        Self {
            inner: Arc::new(Inner {
                notifier,
                pending: AtomicBool::new(false),
            }),
        }
    }

    /// Wakes the loop, now or at its next sleep. What it is to find has been
    /// left before this call.
    pub(in crate::server) fn wake(&self) {
        if !self.inner.pending.swap(true, Ordering::SeqCst) {
            self.inner.notifier.notify();
        }
    }

    /// The loop has been woken and looks around after this call. The order
    /// matters: cleared first, `pending` could be set and the notifier be cleared. And it
    /// is a swap, not a store, so that it reads what the last wake wrote and
    /// what was left before that wake is seen after it.
    pub(in crate::server) fn silence(&self) {
        self.inner.notifier.clear();
        self.inner.pending.swap(false, Ordering::SeqCst);
    }

    pub(in crate::server) fn notifier(&self) -> &B {
        &self.inner.notifier
    }

    /// Whether both wake the same loop.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}
