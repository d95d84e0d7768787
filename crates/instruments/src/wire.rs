//! One message out, one message in: what the echo's loops need of a socket,
//! over UDP and TCP, asleep or spinning while they wait.
//!
//! On Linux the sockets block without a time-out, because the timer that a time-out
//! arms and disarms would cost a fiftieth of an echo. What has to end a wait
//! is an [`Unblock`] on another thread.

mod datagrams;
mod stream;

use std::io;
use std::net::{Shutdown, TcpStream, UdpSocket};
use std::sync::{Arc, OnceLock};

use serde::{Deserialize, Serialize};

pub use datagrams::Datagrams;
pub use stream::Messages;

/// How an end waits for a message.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Waiting {
    /// Asleep in the system call.
    #[default]
    Asleep,
    /// Asking again and again.
    Spinning,
    /// Asking again and again, and giving the processor to the other end in
    /// between, where both share it.
    Yielding,
}

/// A socket that carries whole messages to one peer and back.
pub trait Wire {
    /// Sends one message.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn send(&mut self, message: &[u8]) -> io::Result<()>;

    /// Waits for one message. Spinning wires, and others outside Linux, return
    /// [`WouldBlock`](io::ErrorKind::WouldBlock) now and then, so that their
    /// user can look at the clock.
    ///
    /// # Errors
    ///
    /// What the system says; [`UnexpectedEof`](io::ErrorKind::UnexpectedEof)
    /// where the peer has closed the stream.
    fn receive(&mut self) -> io::Result<&[u8]>;

    /// Sends the message that was received last back as it is.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn send_back(&mut self) -> io::Result<()>;
}

/// Ends the waiting on a socket from another thread.
#[derive(Clone, Debug, Default)]
pub struct Unblock {
    socket: Arc<OnceLock<Shared>>,
}

#[derive(Debug)]
enum Shared {
    Udp(UdpSocket),
    Tcp(TcpStream),
}

impl Unblock {
    /// For a UDP socket.
    ///
    /// # Errors
    ///
    /// The system has no more descriptors.
    pub fn udp(&self, socket: &UdpSocket) -> io::Result<()> {
        let _ = self.socket.set(Shared::Udp(socket.try_clone()?));
        Ok(())
    }

    /// For a TCP stream.
    ///
    /// # Errors
    ///
    /// The system has no more descriptors.
    pub fn tcp(&self, stream: &TcpStream) -> io::Result<()> {
        let _ = self.socket.set(Shared::Tcp(stream.try_clone()?));
        Ok(())
    }

    /// Has every read of the socket, now and later, return at once: with
    /// nothing over UDP, with the stream's end over TCP. Nothing happens where
    /// there is no socket yet.
    pub fn now(&self) {
        // A socket that is not connected any more has nobody waiting on it.
        match self.socket.get() {
            Some(Shared::Udp(socket)) => {
                let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
            }
            Some(Shared::Tcp(stream)) => {
                let _ = stream.shutdown(Shutdown::Both);
            }
            None => {}
        }
    }
}

/// Asks `attempt` again and again while there is nothing, a bounded number of
/// times.
fn spin<T>(waiting: Waiting, mut attempt: impl FnMut() -> io::Result<T>) -> io::Result<T> {
    /// Attempts between two looks at the clock: some microseconds.
    const ATTEMPTS: usize = 64;
    for _ in 1..ATTEMPTS {
        match attempt() {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => match waiting {
                Waiting::Asleep => return Err(error),
                // The call itself is pause enough.
                Waiting::Spinning => {}
                Waiting::Yielding => std::thread::yield_now(),
            },
            other => return other,
        }
    }
    attempt()
}
