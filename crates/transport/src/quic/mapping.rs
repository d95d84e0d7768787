//! How messages become QUIC's streams or datagrams, and come back whole.

mod datagram;
mod one_stream;
mod stream_each;

use quinn_proto::{Connection, StreamEvent};
use thiserror::Error;

use super::settings::{MessageMapping, Settings};
use crate::{Message, Refused, Transport};

/// A mapping of messages onto streams or datagrams of an established connection.
pub(super) trait Mapping: Send {
    /// Hands one message to the connection.
    fn send(&mut self, connection: &mut Connection, message: &[u8]) -> Result<(), Refused>;

    /// Takes the next whole message from the connection.
    fn receive(&mut self, connection: &mut Connection) -> Result<Option<Message>, Violation>;

    /// Takes note of what the connection says of a stream.
    fn handle(&mut self, connection: &mut Connection, event: StreamEvent);

    /// Whether [`receive`](Self::receive) might find something.
    fn may_receive(&self) -> bool;

    /// Takes note that datagrams have arrived.
    fn datagrams_arrived(&mut self) {}
}

/// The mapping that `settings` ask for.
pub(super) fn of(settings: &Settings) -> Box<dyn Mapping> {
    let largest = settings.largest_message_bytes();
    match settings.mapping {
        MessageMapping::OneStream => Box::new(one_stream::OneStream::new(largest)),
        MessageMapping::StreamEach => Box::new(stream_each::StreamEach::new(
            largest,
            settings.receive_window.0 as usize,
        )),
        MessageMapping::Datagram => {
            Box::new(datagram::Datagram::new(largest, settings.datagram_overflow))
        }
    }
}

/// What carries unreliable messages where `settings` offer them beside streams.
pub(super) fn datagrams_beside(settings: &Settings) -> Option<Box<dyn Mapping>> {
    let mapping = || datagram::Datagram::new(settings.datagram_bytes(), settings.datagram_overflow);
    settings
        .offer()
        .has_reliable()
        .then(|| Box::new(mapping()) as Box<_>)
}

/// What a peer did that ends the connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub(super) enum Violation {
    /// It announced a message, or sent more of one, than is allowed.
    #[error("the peer sent a message of more than {limit_bytes} bytes")]
    MessageTooLarge {
        /// The largest allowed.
        limit_bytes: usize,
    },
    /// It left too many messages half sent.
    #[error("the peer has more than {limit_bytes} bytes of unfinished messages under way")]
    TooMuchUnfinished {
        /// The most allowed.
        limit_bytes: usize,
    },
    /// It ended the stream that lasts as long as the connection.
    #[error("the peer ended the stream of messages")]
    StreamEnded,
}
