//! UDT's epoll, over one socket.

use std::sync::Arc;
use std::time::Duration;

use crate::udt::error::Error;
use crate::udt::foreign;
use crate::udt::socket::Socket;

/// As in Linux's epoll.
const READABLE: i32 = 0x1;
const WRITABLE: i32 = 0x4;
const BROKEN: i32 = 0x8;

/// UDT's epoll, watching one socket.
///
/// Release 4.11 does not notice when a socket that does not wait has been read
/// empty: its epoll then says "readable" for ever, and whoever trusts it spins.
/// [`Poll::read_empty`] mends that by leaving the socket and watching it anew,
/// which looks at the socket as it is.
#[derive(Debug)]
pub struct Poll {
    id: i32,
    socket: Arc<Socket>,
    writing: bool,
}

/// What a socket is ready for. A broken connection is ready for both.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ready {
    /// Something can be received, or accepted.
    pub readable: bool,
    /// Something can be sent, or the connection has been made.
    pub writable: bool,
}

impl Poll {
    /// Watches `socket` for something to read.
    ///
    /// # Errors
    ///
    /// [`Error`] when UDT cannot make an epoll, or the socket is closed.
    pub fn new(socket: Arc<Socket>) -> Result<Self, Error> {
        let poll = Self {
            id: foreign::poll_new()?,
            socket,
            writing: false,
        };
        poll.watch()?;
        Ok(poll)
    }

    /// Whether to watch for room to write, too.
    ///
    /// # Errors
    ///
    /// [`Error`] when the socket is closed.
    pub fn watch_writing(&mut self, writing: bool) -> Result<(), Error> {
        if self.writing == writing {
            return Ok(());
        }
        self.writing = writing;
        self.watch_anew()
    }

    /// Notes that a read has found nothing: see the type's text.
    ///
    /// # Errors
    ///
    /// [`Error`] when the socket is closed.
    pub fn read_empty(&self) -> Result<(), Error> {
        self.watch_anew()
    }

    /// Waits until the socket is ready, at most for `timeout`, which UDT keeps
    /// to its step of ten milliseconds. Nothing is ready when it ends.
    ///
    /// # Errors
    ///
    /// [`Error`] when the poll cannot wait.
    pub fn wait(&self, timeout: Duration) -> Result<Ready, Error> {
        let timeout_ms = i64::try_from(timeout.as_millis()).unwrap_or(i64::MAX);
        match foreign::poll_wait(self.id, timeout_ms) {
            Ok((readable, writable)) => Ok(Ready { readable, writable }),
            Err(error) if error.would_block() => Ok(Ready::default()),
            Err(error) => Err(error),
        }
    }

    fn watch_anew(&self) -> Result<(), Error> {
        foreign::poll_remove(self.id, self.socket.id())?;
        self.watch()
    }

    fn watch(&self) -> Result<(), Error> {
        let writable = if self.writing { WRITABLE } else { 0 };
        foreign::poll_add(self.id, self.socket.id(), READABLE | BROKEN | writable)
    }
}

impl Drop for Poll {
    fn drop(&mut self) {
        // The socket may be closed already; then it has left by itself.
        let _ = foreign::poll_remove(self.id, self.socket.id());
        foreign::poll_release(self.id);
    }
}
