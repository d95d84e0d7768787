//! What a socket makes use of, and what that has cost.

use std::fmt;

/// How much of what the kernel offers a socket may use.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Offload {
    /// All that works: segmentation and receive offload, several datagrams
    /// for each call.
    #[default]
    Full,
    /// Several datagrams for each call, each on its own within it.
    Batches,
    /// One datagram for each call, as most programs do it.
    Plain,
}

/// What a socket uses, as far as it has found out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Path {
    /// Runs of datagrams leave as one write (`UDP_SEGMENT`).
    pub gso: bool,
    /// Runs of datagrams arrive as one read (`UDP_GRO`).
    pub gro: bool,
    /// Several writes and reads share a call (`sendmmsg`, `recvmmsg`).
    pub batches: bool,
}

impl fmt::Display for Path {
    /// As in `gso+gro`, `mmsg`, `plain`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match (self.gso, self.gro, self.batches) {
            (true, true, _) => "gso+gro",
            (true, false, _) => "gso",
            (false, true, _) => "gro",
            (false, false, true) => "mmsg",
            (false, false, false) => "plain",
        })
    }
}

/// What a socket has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Calls into the kernel to send, those that sent nothing included.
    pub send_calls: u64,
    /// Datagrams that the kernel took.
    pub sent_datagrams: u64,
    /// Their payload in bytes.
    pub sent_bytes: u64,
    /// Calls into the kernel to receive, those that found nothing included.
    pub receive_calls: u64,
    /// Datagrams that came.
    pub received_datagrams: u64,
    /// Their payload in bytes.
    pub received_bytes: u64,
    /// Times the kernel reported that the peer, or the way to it, was not
    /// there. An answer to something sent earlier; nothing more is known.
    pub unreachable: u64,
    /// Datagrams given up because the kernel takes none so long, or none to
    /// that address.
    pub refused_datagrams: u64,
}

impl Counters {
    /// Calls into the kernel, both ways.
    #[must_use]
    pub const fn calls(&self) -> u64 {
        self.send_calls + self.receive_calls
    }
}
