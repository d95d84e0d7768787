//! A connection's side as what carries a protocol with frames of its own: a
//! stream of bytes, over datagrams, without sockets, clocks or threads.

use lagometer_units::Time;

use crate::{Encapsulation, State};

/// One side of a connection that carries bytes in order.
///
/// What it has for the wire goes to the `output` of the call that made it
/// send. Time never runs backwards between two calls. After each call the
/// driver asks for [`next_deadline`](Self::next_deadline) anew.
pub trait ByteStream {
    /// Takes as many of `bytes` as there is room for and says how many that
    /// were. They leave with [`send`](Self::send).
    fn write(&mut self, now: Time, bytes: &[u8]) -> usize;

    /// Sends what was written, as far as the peer and the path permit it.
    fn send(&mut self, now: Time, output: &mut dyn FnMut(&[u8]));

    /// Hands what has arrived in order to `take`, piece by piece, and forgets
    /// it. What that makes ready to be sent leaves with the next call.
    fn read(&mut self, take: &mut dyn FnMut(&[u8]));

    /// Takes in a datagram from the wire. Whatever it holds, nothing panics
    /// nor grows without bound.
    fn input(&mut self, now: Time, datagram: &[u8], output: &mut dyn FnMut(&[u8]));

    /// When [`tick`](Self::tick) must be called, if nothing happens before.
    fn next_deadline(&mut self, now: Time) -> Option<Time>;

    /// Does what is due.
    fn tick(&mut self, now: Time, output: &mut dyn FnMut(&[u8]));

    /// Whether bytes are carried, and if not, why.
    fn state(&self) -> State;

    /// What carries the datagrams.
    fn encapsulation(&self) -> Encapsulation;
}

impl<S: ByteStream + ?Sized> ByteStream for Box<S> {
    fn write(&mut self, now: Time, bytes: &[u8]) -> usize {
        (**self).write(now, bytes)
    }

    fn send(&mut self, now: Time, output: &mut dyn FnMut(&[u8])) {
        (**self).send(now, output);
    }

    fn read(&mut self, take: &mut dyn FnMut(&[u8])) {
        (**self).read(take);
    }

    fn input(&mut self, now: Time, datagram: &[u8], output: &mut dyn FnMut(&[u8])) {
        (**self).input(now, datagram, output);
    }

    fn next_deadline(&mut self, now: Time) -> Option<Time> {
        (**self).next_deadline(now)
    }

    fn tick(&mut self, now: Time, output: &mut dyn FnMut(&[u8])) {
        (**self).tick(now, output);
    }

    fn state(&self) -> State {
        (**self).state()
    }

    fn encapsulation(&self) -> Encapsulation {
        (**self).encapsulation()
    }
}
