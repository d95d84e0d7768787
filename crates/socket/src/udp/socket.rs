//! A UDP socket that sends and receives many datagrams by one system call, and waits for more.

use std::io;
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::fd::{AsFd, BorrowedFd};
use rustix::io::Errno;

use super::incoming::Incoming;
use super::obstacle::Obstacle;
use super::outgoing::{Outgoing, Run};
use super::path::{Counters, Offload, Path};
use super::system::{self, Transmission};

/// Times in a row that the kernel may report an absent peer in place of
/// taking the same datagram.
const TIMEOUT: u32 = 2;

/// How a socket is made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// What it may use.
    pub offload: Offload,
    /// Bytes that may wait to be read, as the kernel counts them: about twice
    /// the payload. Where the system permits less, less.
    pub receive_buffer: usize,
    /// Bytes that may wait to be sent, likewise.
    pub send_buffer: usize,
}

impl Default for Options {
    /// Everything the kernel offers, and 4 MiB each way.
    fn default() -> Self {
        Self {
            offload: Offload::Full,
            receive_buffer: 4 << 20,
            send_buffer: 4 << 20,
        }
    }
}

/// Asks for so many bytes that may wait to be read, in any socket: beyond the system's
/// limit where the process may, else within it. What is not granted shows as loss.
pub fn enlarge_receive_buffer(socket: &UdpSocket, bytes: usize) {
    system::enlarge_receive_buffer(socket.as_fd(), bytes);
}

/// A UDP socket that sends and receives many datagrams at once and never
/// blocks but in [`wait_readable`](Self::wait_readable) and
/// [`wait_ready`](Self::wait_ready).
///
/// That nobody listens at the other end (`ECONNREFUSED` and its siblings) is
/// no failure of the socket: it is counted, and life goes on.
#[derive(Debug)]
pub struct Socket {
    inner: UdpSocket,
    peer: Option<SocketAddr>,
    path: Path,
    /// The longest datagram that the kernel cuts from larger writes on the
    /// way to the peers met so far.
    longest_segment: usize,
    /// Reports of an absent peer since the kernel last took a datagram.
    complaints: u32,
    counters: Counters,
    transmission: Transmission,
}

impl Socket {
    /// A socket at `local`, open to all.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn bind(local: SocketAddr, options: &Options) -> io::Result<Self> {
        Self::from_std(UdpSocket::bind(local)?, options)
    }

    /// A socket at any address, for `peer` alone.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn connected(peer: SocketAddr, options: &Options) -> io::Result<Self> {
        let any: SocketAddr = match peer {
            SocketAddr::V4(_) => (Ipv4Addr::UNSPECIFIED, 0).into(),
            SocketAddr::V6(_) => (Ipv6Addr::UNSPECIFIED, 0).into(),
        };
        let mut socket = Self::bind(any, options)?;
        socket.connect(peer)?;
        Ok(socket)
    }

    /// Takes over a socket that is bound already, connected or not.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn from_std(socket: UdpSocket, options: &Options) -> io::Result<Self> {
        socket.set_nonblocking(true)?;
        system::make_room(socket.as_fd(), options);
        let full = options.offload == Offload::Full;
        let path = Path {
            gso: full && system::can_cut(socket.as_fd()),
            gro: full && system::join_received(socket.as_fd(), true).is_ok(),
            batches: options.offload != Offload::Plain && system::HAS_BATCHES,
        };
        Ok(Self {
            peer: socket.peer_addr().ok(),
            inner: socket,
            path,
            longest_segment: system::MOST_RUN_BYTES,
            complaints: 0,
            counters: Counters::default(),
            transmission: Transmission::default(),
        })
    }

    /// From now on the socket is for `peer` alone.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn connect(&mut self, peer: SocketAddr) -> io::Result<()> {
        self.inner.connect(peer)?;
        self.peer = Some(peer);
        Ok(())
    }

    /// The address the socket has.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    /// Who the socket is for, if for one alone.
    #[must_use]
    pub const fn peer(&self) -> Option<SocketAddr> {
        self.peer
    }

    /// What the socket uses. Use that turns out not to work is given up, so
    /// that this is certain once datagrams have passed.
    #[must_use]
    pub const fn path(&self) -> Path {
        self.path
    }

    /// What has been done so far.
    #[must_use]
    pub const fn counters(&self) -> Counters {
        self.counters
    }

    /// Sends what waits, as much as the kernel takes. Returns whether nothing
    /// is left; otherwise the kernel is full, and the rest keeps waiting.
    ///
    /// A datagram that the kernel would never take (too long for the path, or
    /// no way to the address) is counted and dropped, as the network would.
    ///
    /// # Errors
    ///
    /// What the system says, when the socket itself does not work.
    pub fn send(&mut self, outgoing: &mut Outgoing) -> io::Result<bool> {
        while !outgoing.is_empty() {
            self.counters.send_calls += 1;
            let taken = if self.path.batches {
                self.send_runs(outgoing)
            } else {
                self.send_first(outgoing)
            };
            match taken {
                Ok((datagrams, bytes)) => {
                    self.complaints = 0;
                    self.counters.sent_datagrams += datagrams as u64;
                    self.counters.sent_bytes += bytes as u64;
                    outgoing.advance(datagrams);
                }
                Err(why) => match system::obstacle(&why) {
                    Obstacle::Full => return Ok(false),
                    Obstacle::Again => {}
                    other => self.yield_to(other, outgoing, why)?,
                },
            }
        }
        Ok(true)
    }

    /// Receives what is there, at most as much as `incoming` holds, in place
    /// of what it held. Returns how many reads that were; with none nothing
    /// is there.
    ///
    /// # Errors
    ///
    /// What the system says, when the socket itself does not work.
    pub fn receive(&mut self, incoming: &mut Incoming) -> io::Result<usize> {
        for _ in 0..=TIMEOUT {
            self.counters.receive_calls += 1;
            match self.receive_once(incoming) {
                Ok(reads) => {
                    self.counters.received_datagrams += incoming.datagrams() as u64;
                    self.counters.received_bytes += incoming.bytes() as u64;
                    return Ok(reads);
                }
                Err(why) => match system::obstacle(&why) {
                    Obstacle::Full => break,
                    Obstacle::Again => {}
                    Obstacle::Unreachable => self.counters.unreachable += 1,
                    Obstacle::NoSuchCall if self.path.batches => self.go_plain(),
                    _ => return Err(why),
                },
            }
        }
        incoming.clear();
        Ok(0)
    }

    /// Waits until something can be read, at most for `timeout`. Returns
    /// whether something can.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn wait_readable(&self, timeout: Option<Duration>) -> io::Result<bool> {
        self.wait(PollFlags::IN, timeout)
    }

    /// Waits until something can be read, or sent too where `sending`, at most
    /// for `timeout`. Returns whether something can.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn wait_ready(&self, sending: bool, timeout: Option<Duration>) -> io::Result<bool> {
        let writable = if sending {
            PollFlags::OUT
        } else {
            PollFlags::empty()
        };
        self.wait(PollFlags::IN | writable, timeout)
    }

    fn wait(&self, flags: PollFlags, timeout: Option<Duration>) -> io::Result<bool> {
        let timeout = timeout.and_then(|timeout| Timespec::try_from(timeout).ok());
        let mut sockets = [PollFd::new(&self.inner, flags)];
        match poll(&mut sockets, timeout.as_ref()) {
            Ok(ready) => Ok(ready > 0),
            Err(Errno::INTR) => Ok(false),
            Err(why) => Err(why.into()),
        }
    }

    /// Sends all runs of `outgoing` that share a call. Returns how many
    /// datagrams and bytes left.
    fn send_runs(&mut self, outgoing: &Outgoing) -> io::Result<(usize, usize)> {
        let longest = if self.path.gso {
            self.longest_segment
        } else {
            0
        };
        let runs = || outgoing.runs(longest);
        let taken = self.transmission.send(self.inner.as_fd(), runs())?;
        Ok(runs()
            .take(taken)
            .fold((0, 0), |(datagrams, bytes), run: Run<'_>| {
                (datagrams + run.datagrams(), bytes + run.bytes())
            }))
    }

    fn send_first(&self, outgoing: &Outgoing) -> io::Result<(usize, usize)> {
        let Some(datagram) = outgoing.first_bytes() else {
            return Ok((0, 0));
        };
        let bytes = match outgoing.first_to() {
            Some(to) => self.inner.send_to(datagram, to)?,
            None => self.inner.send(datagram)?,
        };
        Ok((1, bytes))
    }

    /// Gets out of the way of what keeps the first datagram from leaving.
    fn yield_to(
        &mut self,
        obstacle: Obstacle,
        outgoing: &mut Outgoing,
        why: io::Error,
    ) -> io::Result<()> {
        let cut = self.first_cut(outgoing);
        match (obstacle, cut) {
            (Obstacle::NoSuchCall, _) if self.path.batches => self.go_plain(),
            // The device cannot fill in checksums, which cutting needs.
            (Obstacle::NoOffload, Some(_)) => self.path.gso = false,
            // The path's MTU is less than a datagram and its headers: the
            // kernel cuts no datagram that it would have to fragment.
            (Obstacle::TooLong | Obstacle::Invalid, Some(segment)) => {
                self.longest_segment = segment - 1;
            }
            (Obstacle::TooLong, None) => self.give_up_first(outgoing),
            (Obstacle::Unreachable, _) => {
                self.counters.unreachable += 1;
                self.complaints += 1;
                if self.complaints >= TIMEOUT {
                    self.complaints = 0;
                    self.give_up_first(outgoing);
                }
            }
            _ => return Err(why),
        }
        Ok(())
    }

    /// Gives up all but one datagram for each call.
    fn go_plain(&mut self) {
        self.path = Path {
            gso: false,
            gro: false,
            batches: false,
        };
        // A kernel that cannot turn it off never turned it on.
        let _ = system::join_received(self.inner.as_fd(), false);
    }

    /// The size of the datagrams that the first write is cut into, if it is
    /// cut.
    fn first_cut(&self, outgoing: &Outgoing) -> Option<usize> {
        if !(self.path.gso && self.path.batches) {
            return None;
        }
        let first = outgoing.runs(self.longest_segment).next()?;
        (first.datagrams() > 1).then(|| first.segment_bytes())
    }

    fn give_up_first(&mut self, outgoing: &mut Outgoing) {
        self.counters.refused_datagrams += 1;
        outgoing.advance(1);
    }

    fn receive_once(&self, incoming: &mut Incoming) -> io::Result<usize> {
        if !self.path.batches {
            let (bytes, from) = self.inner.recv_from(incoming.first_memory())?;
            incoming.put_one(bytes, from);
            return Ok(1);
        }
        let names = self.peer.is_none();
        let (reception, memory) = incoming.parts();
        let reads = reception.receive(self.inner.as_fd(), memory, names)?;
        incoming.take_over(self.peer);
        Ok(reads)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.inner.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_kernel_without_the_calls_is_served_datagram_by_datagram() {
        let any = "127.0.0.1:0".parse().unwrap();
        let mut there = Socket::bind(any, &Options::default()).unwrap();
        let mut here = Socket::connected(there.local_addr().unwrap(), &Options::default()).unwrap();
        let mut outgoing = Outgoing::new(4);
        outgoing.push(b"one", None);
        outgoing.push(b"two", None);
        let why = io::ErrorKind::Unsupported.into();
        here.yield_to(Obstacle::NoSuchCall, &mut outgoing, why)
            .unwrap();
        assert_eq!(here.path().to_string(), "plain");
        assert!(here.send(&mut outgoing).unwrap());
        assert_eq!(here.counters().send_calls, 2);
        assert!(there.wait_readable(Some(Duration::from_secs(5))).unwrap());
        let mut incoming = Incoming::new(4);
        let mut came = Vec::new();
        while came.len() < 2 {
            there.receive(&mut incoming).unwrap();
            came.extend(incoming.iter().map(|datagram| datagram.bytes.to_vec()));
        }
        assert_eq!(came, [b"one", b"two"]);
    }
}
