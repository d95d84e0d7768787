//! All messages on one stream in each direction, each behind its length.

use bytes::Bytes;
use quinn_proto::{Connection, Dir, ReadError, StreamEvent, StreamId};

use super::{Mapping, Violation};
use crate::{Message, Refused};

/// Bytes of the length in front of each message: 32 bits, little-endian.
const LENGTH_BYTES: usize = 4;

pub(super) struct OneStream {
    max_message: usize,
    outgoing: Option<StreamId>,
    /// The rest of the last message, which flow control kept back. At most
    /// one message waits here; the next is refused until it has gone.
    unwritten: Bytes,
    incoming: Option<StreamId>,
    may_receive: bool,
    /// The length of the message being read, once it is known.
    length: Option<usize>,
    /// What has been read of the message, or of its length before that.
    partial: Vec<u8>,
}

impl OneStream {
    pub(super) fn new(max_message: usize) -> Self {
        Self {
            max_message,
            outgoing: None,
            unwritten: Bytes::new(),
            incoming: None,
            may_receive: false,
            length: None,
            partial: Vec::new(),
        }
    }

    /// Writes what was kept back. Whether nothing is left.
    fn flush(&mut self, connection: &mut Connection) -> bool {
        if let Some(id) = self.outgoing
            && !self.unwritten.is_empty()
        {
            // Whatever the reason it is not taken now, an event will say
            // when it may be; a stopped stream stays full for ever.
            let _ = connection
                .send_stream(id)
                .write_chunks(std::slice::from_mut(&mut self.unwritten));
        }
        self.unwritten.is_empty()
    }
}

impl Mapping for OneStream {
    fn send(&mut self, connection: &mut Connection, message: &[u8]) -> Result<(), Refused> {
        Refused::if_larger(message, self.max_message)?;
        if self.outgoing.is_none() {
            self.outgoing = connection.streams().open(Dir::Uni);
        }
        if self.outgoing.is_none() || !self.flush(connection) {
            return Err(Refused::BufferFull);
        }
        let mut framed = Vec::with_capacity(LENGTH_BYTES + message.len());
        // Settings allow no message whose length 32 bits cannot hold.
        framed.extend_from_slice(&(message.len() as u32).to_le_bytes());
        framed.extend_from_slice(message);
        self.unwritten = framed.into();
        self.flush(connection);
        Ok(())
    }

    fn receive(&mut self, connection: &mut Connection) -> Result<Option<Message>, Violation> {
        let Some(id) = self.incoming else {
            self.may_receive = false;
            return Ok(None);
        };
        let mut stream = connection.recv_stream(id);
        // Reading is what grants the peer new credit, so nothing is read
        // before it is asked for.
        let mut chunks = stream.read(true).map_err(|_| Violation::StreamEnded)?;
        loop {
            let missing = self.length.unwrap_or(LENGTH_BYTES) - self.partial.len();
            if missing > 0 {
                match chunks.next(missing) {
                    Ok(Some(chunk)) => self.partial.extend_from_slice(&chunk.bytes),
                    Ok(None) | Err(ReadError::Reset(_)) => return Err(Violation::StreamEnded),
                    Err(ReadError::Blocked) => {
                        self.may_receive = false;
                        return Ok(None);
                    }
                }
            } else if self.length.take().is_some() {
                return Ok(Some(Message {
                    bytes: std::mem::take(&mut self.partial),
                    blocked: None,
                }));
            } else {
                let length = self
                    .partial
                    .drain(..)
                    .rev()
                    .fold(0, |length, byte| (length << 8) | usize::from(byte));
                if length > self.max_message {
                    return Err(Violation::MessageTooLarge {
                        limit_bytes: self.max_message,
                    });
                }
                self.length = Some(length);
            }
        }
    }

    fn handle(&mut self, connection: &mut Connection, event: StreamEvent) {
        match event {
            StreamEvent::Opened { dir } => {
                if let Some(id) = connection.streams().accept(dir) {
                    self.incoming = Some(id);
                    self.may_receive = true;
                }
            }
            StreamEvent::Readable { .. } => self.may_receive = true,
            StreamEvent::Writable { .. } | StreamEvent::Available { .. } => {
                self.flush(connection);
            }
            StreamEvent::Finished { .. } | StreamEvent::Stopped { .. } => {}
        }
    }

    fn may_receive(&self) -> bool {
        self.may_receive
    }
}
