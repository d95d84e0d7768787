//! The one trait that every transport implements, and the words it speaks in.

use std::time::Duration;

use lagometer_units::Time;
use thiserror::Error;

use crate::Delivery;

/// One side of one transport connection, without sockets, clocks or threads.
///
/// The driver calls [`handle_datagram`](Self::handle_datagram),
/// [`handle_deadline`](Self::handle_deadline) and [`send`](Self::send) as
/// events occur, and after each of them drains [`receive`](Self::receive) and
/// [`poll_datagram`](Self::poll_datagram) until both are empty, then asks for
/// [`next_deadline`](Self::next_deadline). Time never runs backwards between
/// two calls.
pub trait Endpoint {
    /// Hands over one message to carry to the peer.
    ///
    /// # Errors
    ///
    /// [`Refused`] when the endpoint cannot take it now or ever; the message
    /// is then not carried, and the caller may offer it again.
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

    /// Hands in one datagram from the wire. Whatever it holds, the endpoint
    /// neither panics nor grows without bound.
    fn handle_datagram(&mut self, now: Time, datagram: &[u8]);

    /// Writes the next datagram for the wire into `buffer`, replacing what it
    /// held. Returns whether there was one; without one `buffer` is left in
    /// an unspecified state.
    fn poll_datagram(&mut self, now: Time, buffer: &mut Vec<u8>) -> bool;

    /// When [`handle_deadline`](Self::handle_deadline) must next be called, if
    /// nothing else happens before.
    fn next_deadline(&mut self) -> Option<Time>;

    /// Notifies the endpoint that its deadline has come.
    fn handle_deadline(&mut self, now: Time);

    /// Whether messages can be sent, and if not, why.
    fn state(&self) -> State;
}

/// A message that arrived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Message {
    /// What the peer's application handed over, whole.
    pub bytes: Vec<u8>,
    /// How long the message lay complete at this endpoint, kept back only
    /// because an earlier one was missing (head-of-line blocking). `None`
    /// where the transport does not know.
    pub blocked: Option<Duration>,
}

impl AsRef<[u8]> for Message {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

/// Where an endpoint is in its life.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// The handshake has not finished.
    Connecting,
    /// Messages can be sent.
    Ready,
    /// Nothing more will be carried.
    Closed(Closed),
}

/// Why an endpoint closed.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Closed {
    /// The peer did not answer for too long.
    #[error("the peer stopped answering")]
    DeadLink,
    /// The peer said goodbye.
    #[error("the peer closed the connection")]
    ByPeer,
    /// The transport gave up for a reason of its own.
    #[error("the transport failed: {0}")]
    Failed(String),
}

/// Why a message was not taken.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Refused {
    /// The send buffer is full; it may be offered again later.
    #[error("the send buffer is full")]
    BufferFull,
    /// The endpoint is still connecting or already closed.
    #[error("the connection is not open")]
    NotOpen,
    /// The transport cannot carry a message of this size.
    #[error("a message of {size_bytes} bytes is larger than the {limit_bytes} the transport takes")]
    TooLarge {
        /// The size of the message.
        size_bytes: usize,
        /// The largest message that would be taken.
        limit_bytes: usize,
    },
}

impl Refused {
    /// Refuses a message of more than `limit_bytes`, the most its transport takes:
    /// what every transport answers, whatever plays it.
    ///
    /// # Errors
    ///
    /// [`Refused::TooLarge`] with both sizes.
    pub const fn if_larger(message: &[u8], limit_bytes: usize) -> Result<(), Self> {
        if message.len() > limit_bytes {
            return Err(Self::TooLarge {
                size_bytes: message.len(),
                limit_bytes,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::Refused;

    #[test]
    fn a_message_is_refused_from_one_byte_above_the_limit_on() {
        assert_eq!(Refused::if_larger(&[0; 4], 4), Ok(()));
        let refused = Refused::if_larger(&[0; 5], 4).unwrap_err();
        assert_eq!(
            refused.to_string(),
            "a message of 5 bytes is larger than the 4 the transport takes"
        );
    }
}
