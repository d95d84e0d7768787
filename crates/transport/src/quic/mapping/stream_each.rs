//! A stream of its own for every message.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use quinn_proto::{Connection, Dir, ReadError, StreamEvent, StreamId};

use super::{Mapping, Violation};
use crate::{Message, Refused};

pub(super) struct StreamEach {
    max_message: usize,
    max_unfinished: usize,
    /// Streams whose messages flow control kept back in part. While one is
    /// here no other message is taken.
    unwritten: VecDeque<(StreamId, Bytes)>,
    /// Streams on which something may have arrived.
    readable: BTreeSet<StreamId>,
    /// What has been read of messages that have not arrived whole.
    partial: BTreeMap<StreamId, Vec<u8>>,
    partial_bytes: usize,
}

/// What reading one stream came to.
enum Read {
    Whole(Vec<u8>),
    Partial(Vec<u8>),
    Abandoned,
}

impl StreamEach {
    pub(super) fn new(max_message: usize, max_unfinished: usize) -> Self {
        Self {
            max_message,
            max_unfinished,
            unwritten: VecDeque::new(),
            readable: BTreeSet::new(),
            partial: BTreeMap::new(),
            partial_bytes: 0,
        }
    }

    /// Writes what was kept back. Whether nothing is left.
    fn flush(&mut self, connection: &mut Connection) -> bool {
        while let Some((id, bytes)) = self.unwritten.front_mut() {
            let mut stream = connection.send_stream(*id);
            if !bytes.is_empty() {
                use quinn_proto::WriteError::{Blocked, ClosedStream, Stopped};
                match stream.write_chunks(std::slice::from_mut(bytes)) {
                    Ok(_) if !bytes.is_empty() => return false,
                    Err(Blocked) => return false,
                    Ok(_) | Err(ClosedStream | Stopped(_)) => {}
                }
            }
            // Fails only for a stream the peer has stopped, and that is over.
            let _ = stream.finish();
            self.unwritten.pop_front();
        }
        true
    }

    fn read(&mut self, connection: &mut Connection, id: StreamId) -> Result<Read, Violation> {
        let mut bytes = self.partial.remove(&id).unwrap_or_default();
        self.partial_bytes -= bytes.len();
        let mut stream = connection.recv_stream(id);
        let Ok(mut chunks) = stream.read(true) else {
            return Ok(Read::Abandoned);
        };
        loop {
            let room = self.max_message - bytes.len();
            // One byte more than there is room for shows a message too large.
            match chunks.next(room.saturating_add(1)) {
                Ok(Some(chunk)) if chunk.bytes.len() > room => {
                    return Err(Violation::MessageTooLarge {
                        limit_bytes: self.max_message,
                    });
                }
                Ok(Some(chunk)) => bytes.extend_from_slice(&chunk.bytes),
                Ok(None) => return Ok(Read::Whole(bytes)),
                Err(ReadError::Reset(_)) => return Ok(Read::Abandoned),
                Err(ReadError::Blocked) => return Ok(Read::Partial(bytes)),
            }
        }
    }
}

impl Mapping for StreamEach {
    fn send(&mut self, connection: &mut Connection, message: &[u8]) -> Result<(), Refused> {
        Refused::if_larger(message, self.max_message)?;
        if !self.flush(connection) {
            return Err(Refused::BufferFull);
        }
        let id = connection
            .streams()
            .open(Dir::Uni)
            .ok_or(Refused::BufferFull)?;
        self.unwritten
            .push_back((id, Bytes::copy_from_slice(message)));
        self.flush(connection);
        Ok(())
    }

    fn receive(&mut self, connection: &mut Connection) -> Result<Option<Message>, Violation> {
        while let Some(id) = self.readable.pop_first() {
            match self.read(connection, id)? {
                Read::Whole(bytes) => {
                    return Ok(Some(Message {
                        bytes,
                        // No message waits for another.
                        blocked: Some(Duration::ZERO),
                    }));
                }
                Read::Partial(bytes) => {
                    self.partial_bytes += bytes.len();
                    if self.partial_bytes > self.max_unfinished {
                        return Err(Violation::TooMuchUnfinished {
                            limit_bytes: self.max_unfinished,
                        });
                    }
                    self.partial.insert(id, bytes);
                }
                Read::Abandoned => {}
            }
        }
        Ok(None)
    }

    fn handle(&mut self, connection: &mut Connection, event: StreamEvent) {
        match event {
            StreamEvent::Opened { dir } => {
                while let Some(id) = connection.streams().accept(dir) {
                    self.readable.insert(id);
                }
            }
            StreamEvent::Readable { id } => {
                self.readable.insert(id);
            }
            StreamEvent::Writable { .. } | StreamEvent::Available { .. } => {
                self.flush(connection);
            }
            StreamEvent::Finished { .. } | StreamEvent::Stopped { .. } => {}
        }
    }

    fn may_receive(&self) -> bool {
        !self.readable.is_empty()
    }
}
