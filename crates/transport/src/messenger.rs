//! What an application needs of its side of a connection, whoever drives it.

use lagometer_units::Time;

use crate::{Delivery, Endpoint, Message, Refused, State};

/// A connection's side as an application sees it: it takes messages, gives
/// messages back and says how it is. Every [`Endpoint`] is one, and so is a
/// side that owns its sockets; the same application speaks over both.
pub trait Messenger {
    /// Hands over one message to carry to the peer.
    ///
    /// # Errors
    ///
    /// [`Refused`] when it cannot be taken now or ever; the message is then
    /// not carried, and the caller may offer it again.
    fn send(&mut self, now: Time, message: &[u8]) -> Result<(), Refused>;

    /// The same with a promise of its own, as far as the transport's
    /// [`Offer`](crate::Offer) goes: where that is one kind of message, this is it.
    ///
    /// # Errors
    ///
    /// As for [`send`](Self::send).
    fn send_as(&mut self, now: Time, _delivery: Delivery, message: &[u8]) -> Result<(), Refused> {
        self.send(now, message)
    }

    /// Takes out the next message that has arrived, if any.
    fn receive(&mut self, now: Time) -> Option<Message>;

    /// Whether messages can be sent, and if not, why.
    fn state(&self) -> State;
}

impl<E: Endpoint + ?Sized> Messenger for E {
    fn send(&mut self, now: Time, message: &[u8]) -> Result<(), Refused> {
        Endpoint::send(self, now, message)
    }

    fn send_as(&mut self, now: Time, delivery: Delivery, message: &[u8]) -> Result<(), Refused> {
        Endpoint::send_as(self, now, delivery, message)
    }

    fn receive(&mut self, now: Time) -> Option<Message> {
        Endpoint::receive(self, now)
    }

    fn state(&self) -> State {
        Endpoint::state(self)
    }
}
