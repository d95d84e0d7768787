//! What a working thread is asked to do.

use std::sync::atomic::{AtomicU8, Ordering};

use lagometer_remote::Stop;

/// One order, which holds until another is given.
#[derive(Debug, Default)]
pub(super) struct Signal {
    order: AtomicU8,
    stop: Option<Stop>,
}

/// What to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Order {
    /// Offer messages, and carry them.
    Go,
    /// Carry what has been taken, offer nothing more.
    Drain,
    /// End.
    Stop,
}

impl Signal {
    /// Go, until `stop` is raised.
    pub(super) fn until(stop: &Stop) -> Self {
        Self {
            order: AtomicU8::default(),
            stop: Some(stop.clone()),
        }
    }

    /// Gives an order.
    pub(super) fn give(&self, order: Order) {
        self.order.store(order as u8, Ordering::Release);
    }

    /// The order that holds.
    pub(super) fn order(&self) -> Order {
        if self.stop.as_ref().is_some_and(Stop::is_raised) {
            return Order::Stop;
        }
        match self.order.load(Ordering::Acquire) {
            0 => Order::Go,
            1 => Order::Drain,
            _ => Order::Stop,
        }
    }
}
