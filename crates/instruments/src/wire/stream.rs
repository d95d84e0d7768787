//! Messages of one known size on a TCP stream.

use std::io;
use std::net::TcpStream;

use lagometer_socket::MidPageBuffer;

use super::{Waiting, Wire, spin};
use crate::calls;

/// A TCP stream on which every message has the same size. Small messages are
/// sent at once (`TCP_NODELAY`).
#[derive(Debug)]
pub struct Messages {
    stream: TcpStream,
    waiting: Waiting,
    /// One message.
    buffer: MidPageBuffer,
    filled: usize,
}

impl Messages {
    /// Over `stream`, with messages of `size` bytes.
    ///
    /// # Errors
    ///
    /// The system does not let it be set up.
    pub fn new(stream: TcpStream, size: usize, waiting: Waiting) -> io::Result<Self> {
        stream.set_nodelay(true)?;
        stream.set_nonblocking(waiting != Waiting::Asleep)?;
        Ok(Self {
            stream,
            waiting,
            buffer: MidPageBuffer::new(size),
            filled: 0,
        })
    }
}

impl Wire for Messages {
    #[inline]
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        send(&self.stream, message)
    }

    #[inline]
    fn receive(&mut self) -> io::Result<&[u8]> {
        while self.filled < self.buffer.len() {
            let rest = &mut self.buffer[self.filled..];
            let length = if self.waiting == Waiting::Asleep {
                calls::receive(&self.stream, rest)?
            } else {
                spin(self.waiting, || calls::receive(&self.stream, rest))?
            };
            if length == 0 {
                return Err(io::ErrorKind::UnexpectedEof.into());
            }
            self.filled += length;
        }
        self.filled = 0;
        Ok(&self.buffer)
    }

    #[inline]
    fn send_back(&mut self) -> io::Result<()> {
        send(&self.stream, &self.buffer)
    }
}

#[inline]
fn send(stream: &TcpStream, mut message: &[u8]) -> io::Result<()> {
    while !message.is_empty() {
        match calls::send(stream, message) {
            Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
            Ok(written) => message = &message[written..],
            // The peer reads on, and the buffer empties.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}
