//! Waking a loop that sleeps.

use super::sync::{Arc, AtomicBool, Ordering};

/// What a sleeping loop hears. It keeps ringing until it is hushed: whoever goes
/// to sleep while it rings is awake at once.
pub(in crate::server) trait Bell {
    /// Begins to ring, or goes on.
    fn ring(&self);
    /// Is silent from here on.
    fn hush(&self);
}

/// Wakes the loop that listens to a bell. Waking it twice before it looks rings
/// once.
#[derive(Debug)]
pub(in crate::server) struct Waker<B> {
    inner: Arc<Inner<B>>,
}

#[derive(Debug)]
struct Inner<B> {
    bell: B,
    /// The bell rings, or is about to.
    rung: AtomicBool,
}

impl<B> Clone for Waker<B> {
    fn clone(&self) -> Self {
        Self {
            inner: Arc::clone(&self.inner),
        }
    }
}

impl<B: Bell> Waker<B> {
    pub(in crate::server) fn with(bell: B) -> Self {
        Self {
            inner: Arc::new(Inner {
                bell,
                rung: AtomicBool::new(false),
            }),
        }
    }

    /// Wakes the loop, now or at its next sleep. What it is to find has been
    /// left before this call.
    pub(in crate::server) fn wake(&self) {
        if !self.inner.rung.swap(true, Ordering::SeqCst) {
            self.inner.bell.ring();
        }
    }

    /// The loop has been woken and looks around after this call. The order
    /// matters: cleared first, `rung` could be set and the ring be hushed. And it
    /// is a swap, not a store, so that it reads what the last wake wrote and
    /// what was left before that wake is seen after it.
    pub(in crate::server) fn silence(&self) {
        self.inner.bell.hush();
        self.inner.rung.swap(false, Ordering::SeqCst);
    }

    pub(in crate::server) fn bell(&self) -> &B {
        &self.inner.bell
    }

    /// Whether both wake the same loop.
    pub(super) fn is(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.inner, &other.inner)
    }
}
