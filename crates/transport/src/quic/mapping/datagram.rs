//! A DATAGRAM frame for every message. QUIC itself drops packets that arrive
//! twice, so no message is delivered twice.

use std::time::Duration;

use bytes::Bytes;
use quinn_proto::{Connection, SendDatagramError, StreamEvent};

use super::super::settings::DatagramOverflow;
use super::{Mapping, Violation};
use crate::{Message, Refused};

pub(super) struct Datagram {
    largest_message_bytes: usize,
    overflow: DatagramOverflow,
    may_receive: bool,
}

impl Datagram {
    pub(super) fn new(largest_message_bytes: usize, overflow: DatagramOverflow) -> Self {
        Self {
            largest_message_bytes,
            overflow,
            may_receive: false,
        }
    }
}

impl Mapping for Datagram {
    fn send(&mut self, connection: &mut Connection, message: &[u8]) -> Result<(), Refused> {
        let mut datagrams = connection.datagrams();
        // The path may turn out to take less than was stated, but that it
        // takes more is not made use of: what is taken stays the same.
        let limit_bytes = datagrams
            .max_size()
            .unwrap_or(0)
            .min(self.largest_message_bytes);
        let too_large = Refused::TooLarge {
            size_bytes: message.len(),
            limit_bytes,
        };
        if message.len() > limit_bytes {
            return Err(too_large);
        }
        let drop_oldest = self.overflow == DatagramOverflow::DropOldest;
        datagrams
            .send(Bytes::copy_from_slice(message), drop_oldest)
            .map_err(|error| match error {
                SendDatagramError::Blocked(_) => Refused::BufferFull,
                SendDatagramError::TooLarge
                | SendDatagramError::UnsupportedByPeer
                | SendDatagramError::Disabled => too_large,
            })
    }

    fn receive(&mut self, connection: &mut Connection) -> Result<Option<Message>, Violation> {
        let message = connection.datagrams().recv().map(|bytes| Message {
            bytes: bytes.into(),
            blocked: Some(Duration::ZERO),
        });
        self.may_receive = message.is_some();
        Ok(message)
    }

    fn handle(&mut self, _connection: &mut Connection, _event: StreamEvent) {}

    fn may_receive(&self) -> bool {
        self.may_receive
    }

    fn datagrams_arrived(&mut self) {
        self.may_receive = true;
    }
}
