//! What moves one end of a lane along, whoever owns the sockets.

use std::io;
use std::time::Duration;

use lagometer_transport::{Closed, Message, Refused};
use lagometer_units::Time;

/// One end of a lane: takes messages, gives messages back, and does its I/O
/// when it is asked to.
pub(super) trait Mover {
    /// Why the connection is over, if it is.
    fn closed(&self) -> Option<Closed>;

    /// Whether messages can be sent.
    fn is_ready(&self) -> bool;

    /// Hands over a message.
    fn offer(&mut self, now: Time, message: &[u8]) -> Result<(), Refused>;

    /// Takes in what has come and hands its messages to `take`. Returns
    /// whether anything came.
    fn take_in(&mut self, now: Time, take: &mut dyn FnMut(Message)) -> io::Result<bool>;

    /// Puts out what waits for the wire, as much as goes.
    fn put_out(&mut self, now: Time) -> io::Result<Drained>;

    /// Whether the socket takes more; without that nothing need be offered.
    fn is_clear(&self) -> bool;

    /// Something was done.
    fn was_busy(&mut self);

    /// Nothing was to be done at `now`, nor will there be before `until`
    /// unless something comes.
    fn rest(&mut self, now: Time, until: Option<Time>) -> io::Result<()>;

    /// What was done so far.
    fn totals(&self) -> Totals;
}

/// What was handed over for the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Drained {
    pub(super) datagrams: u64,
    pub(super) bytes: u64,
}

/// What an end has done so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Totals {
    /// How the bytes went through the kernel.
    pub(super) path: String,
    /// System calls.
    pub(super) calls: u64,
    /// Datagrams sent.
    pub(super) datagrams: u64,
    /// Processor time of threads beside the one that moves it.
    pub(super) library_cpu: Duration,
}
