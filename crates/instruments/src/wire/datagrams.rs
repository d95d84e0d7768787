//! Messages as datagrams of a connected UDP socket.

use std::io;
use std::net::UdpSocket;

use lagometer_platform::let_reads_end;
use lagometer_socket::MidPageBuffer;

use super::{Waiting, Wire, spin};
use crate::calls;

/// Longer than any datagram.
const LONGEST: usize = 1 << 16;

/// A connected UDP socket.
#[derive(Debug)]
pub struct Datagrams {
    socket: UdpSocket,
    waiting: Waiting,
    buffer: MidPageBuffer,
    /// Bytes of the datagram received last.
    filled: usize,
}

impl Datagrams {
    /// Over `socket`, which is connected.
    ///
    /// # Errors
    ///
    /// The system does not let it be set up.
    pub fn new(socket: UdpSocket, waiting: Waiting) -> io::Result<Self> {
        socket.set_nonblocking(waiting != Waiting::Asleep)?;
        let_reads_end(&socket)?;
        Ok(Self {
            socket,
            waiting,
            buffer: MidPageBuffer::new(LONGEST),
            filled: 0,
        })
    }
}

impl Wire for Datagrams {
    #[inline]
    fn send(&mut self, message: &[u8]) -> io::Result<()> {
        send(&self.socket, message)
    }

    #[inline]
    fn receive(&mut self) -> io::Result<&[u8]> {
        self.filled = 0;
        self.filled = if self.waiting == Waiting::Asleep {
            calls::receive(&self.socket, &mut self.buffer).map_err(as_nothing)?
        } else {
            spin(self.waiting, || {
                calls::receive(&self.socket, &mut self.buffer)
            })?
        };
        Ok(&self.buffer[..self.filled])
    }

    #[inline]
    fn send_back(&mut self) -> io::Result<()> {
        send(&self.socket, &self.buffer[..self.filled])
    }
}

/// Some systems say of a wait that ended by itself that its time was over.
fn as_nothing(error: io::Error) -> io::Error {
    if error.kind() == io::ErrorKind::TimedOut {
        return io::ErrorKind::WouldBlock.into();
    }
    error
}

#[inline]
fn send(socket: &UdpSocket, datagram: &[u8]) -> io::Result<()> {
    loop {
        match calls::send(socket, datagram) {
            Ok(_) => return Ok(()),
            // A full buffer empties by itself.
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => std::thread::yield_now(),
            Err(error) => return Err(error),
        }
    }
}
