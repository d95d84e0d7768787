//! The one trait of a lane's side over real sockets.

use std::time::Duration;

use lagometer_transport::{Driven, Messenger};
use lagometer_units::Time;

/// One side of one lane's connection, with its sockets.
///
/// It is used by one thread at a time, whose owner has the clock. Time never
/// runs backwards between two calls. What goes wrong with a socket ends as
/// [`State::Closed`](lagometer_transport::State::Closed). Neither taking in nor
/// putting out ever sleeps.
pub trait SocketConnection: Messenger + Driven + Send {
    /// When a turn is next due though nothing comes, if ever.
    fn next_deadline(&mut self) -> Option<Time>;

    /// Sleeps until there is something to do for a turn, at most `longest`. It
    /// may return early.
    fn wait(&mut self, longest: Duration);

    /// What the side has done since it was made.
    fn counters(&self) -> Counters;

    /// Shows every datagram of the side to `tap` from now on, and returns whether there
    /// are any: false where a library or the kernel makes the packets out of sight.
    fn show_datagrams_to(&mut self, _tap: Box<dyn DatagramTap>) -> bool {
        false
    }

    /// How bytes get to the wire and back, in a few words, as in
    /// `UDP, gso+gro` or `kernel TCP, cubic`.
    fn path(&self) -> String;
}

/// Sees a side's datagrams as they pass between it and its socket. It must not sleep.
pub trait DatagramTap: Send {
    /// The side hands this one to the kernel.
    fn sent(&mut self, now: Time, datagram: &[u8]);

    /// The kernel had this one for the side.
    fn received(&mut self, now: Time, datagram: &[u8]);
}

/// A side that may move to the thread that plays it.
pub type BoxedConnection = Box<dyn SocketConnection>;

impl dyn SocketConnection + '_ {
    /// A turn without an application: the connection is being made, or kept.
    pub fn turn(&mut self, now: Time) {
        self.take_in(now);
        self.put_out(now);
    }
}

/// What a side has done since it was made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// System calls that moved data or looked for it, failed ones included;
    /// 0 where a library makes them out of sight.
    pub system_calls: u64,
    /// Datagrams, or pieces of a stream, handed to the kernel.
    pub packets_sent: u64,
    /// Their bytes, without the headers that the kernel adds.
    pub bytes_sent: u64,
    /// Datagrams, or pieces of a stream, taken from the kernel.
    pub packets_received: u64,
    /// Their bytes.
    pub bytes_received: u64,
    /// Datagrams the kernel would not take and that are lost: too large for
    /// the path, or no memory.
    pub packets_lost: u64,
    /// CPU time of threads that a library runs of its own, beside the thread
    /// that uses the side.
    pub library_cpu: Duration,
}

impl Counters {
    /// What was done after `earlier`.
    #[must_use]
    pub fn since(&self, earlier: &Self) -> Self {
        Self {
            system_calls: self.system_calls - earlier.system_calls,
            packets_sent: self.packets_sent - earlier.packets_sent,
            bytes_sent: self.bytes_sent - earlier.bytes_sent,
            packets_received: self.packets_received - earlier.packets_received,
            bytes_received: self.bytes_received - earlier.bytes_received,
            packets_lost: self.packets_lost - earlier.packets_lost,
            library_cpu: self.library_cpu.saturating_sub(earlier.library_cpu),
        }
    }
}
