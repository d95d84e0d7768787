//! What became of datagrams and conversations of KCP, for the metrics.

use std::sync::atomic::{AtomicU64, Ordering};

/// What is counted. The names are those of the metric's label.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::server) enum KcpEvent {
    /// A datagram of no conversation that could not begin one either.
    Ignored,
    /// A conversation began with a peer that was not proven.
    Opened,
    /// An unproven conversation was ended to make room for another.
    Evicted,
    /// A cookie was sent.
    Challenged,
    /// A peer returned its cookie.
    ProvenByCookie,
    /// A peer acknowledged something under the time at which it was sent.
    ProvenByAcknowledgement,
    /// A cookie that was wrong or too old.
    BadCookie,
    /// A datagram was not sent, for the peer was not proven and had been sent
    /// three times what came from it.
    HeldBack,
    /// A proven conversation was replaced by another of the same address.
    Replaced,
    /// A peer was asked for a sign of life.
    Probed,
    /// A peer gave none and was taken for gone.
    Vanished,
}

impl KcpEvent {
    /// All of them with their names, in the order they are counted.
    pub(in crate::server) const ALL: [(Self, &'static str); 11] = [
        (Self::Ignored, "ignored"),
        (Self::Opened, "opened"),
        (Self::Evicted, "evicted"),
        (Self::Challenged, "challenged"),
        (Self::ProvenByCookie, "proven_by_cookie"),
        (Self::ProvenByAcknowledgement, "proven_by_acknowledgement"),
        (Self::BadCookie, "bad_cookie"),
        (Self::HeldBack, "held_back"),
        (Self::Replaced, "replaced"),
        (Self::Probed, "probed"),
        (Self::Vanished, "vanished"),
    ];
}

/// How often each has happened, in all loops together.
#[derive(Debug, Default)]
pub(in crate::server) struct KcpCounters([AtomicU64; KcpEvent::ALL.len()]);

impl KcpCounters {
    pub(in crate::server) fn count(&self, event: KcpEvent) {
        self.0[event as usize].fetch_add(1, Ordering::Relaxed);
    }

    pub(in crate::server) fn of(&self, event: KcpEvent) -> u64 {
        self.0[event as usize].load(Ordering::Relaxed)
    }
}
