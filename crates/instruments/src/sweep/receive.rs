//! The remote end's loops of the bandwidth tests: take what comes, check every
//! byte, count.

use std::io;
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use lagometer_platform::let_reads_end;
use lagometer_remote::Stop;
use lagometer_socket::MidPageBuffer;
use lagometer_socket::tcp::gather;
use lagometer_socket::udp::{Incoming, Options, Socket, enlarge_receive_buffer};

use super::receive_tracker::{Found, ReceiveTracker};
use crate::calls;
use crate::payload::{Payload, StreamCheck};

/// Datagrams between two looks at the clock, where each takes a system call.
const DATAGRAMS: u64 = 32;

/// How long one wait lasts at most.
const LOOK: Duration = Duration::from_millis(50);

/// Reads that one call fills at most, each of up to 64 KiB.
const READS: usize = 8;

/// Bytes that one read of a stream asks for at most: few enough that they are
/// compared where the system's copy left them, in the nearer caches.
const STREAM_BYTES: usize = 64 << 10;

/// Bytes of a stream that the receiver sleeps for: several reads. Woken for
/// each message it would cost the sender more than the message does.
const WAKE_BYTES: usize = 256 << 10;

/// Bytes that may wait in a socket for datagrams, as the system counts them:
/// a sender on the same processor fills it for a whole time slice before the
/// receiver runs.
const WAITING_BYTES: usize = 4 << 20;

/// One system call for each datagram, until `stop`; `arrivals` shows others
/// that something still comes.
///
/// # Errors
///
/// What the system says.
pub(super) fn datagrams(
    socket: &UdpSocket,
    payload: Payload,
    stop: &Stop,
    arrivals: &AtomicU64,
) -> io::Result<Found> {
    enlarge_receive_buffer(socket, WAITING_BYTES);
    let_reads_end(socket)?;
    let mut buffer = MidPageBuffer::new((payload.size() + 1).max(64));
    let mut tracker = ReceiveTracker::new(payload);
    let mut span = Seen::default();
    while !stop.is_raised() {
        match calls::receive(socket, &mut buffer) {
            Ok(length) if !stop.is_raised() => tracker.take(&buffer[..length]),
            Err(error) if !is_passing(&error) => return Err(error),
            _ => continue,
        }
        let count = tracker.arrivals();
        if count % DATAGRAMS == 1 {
            span.now();
        }
        arrivals.store(count, Ordering::Relaxed);
    }
    Ok(tracker.found(span.nanos()))
}

/// Many datagrams for each system call, until `stop`.
///
/// # Errors
///
/// What the system says.
pub(super) fn batches(
    socket: UdpSocket,
    payload: Payload,
    stop: &Stop,
    arrivals: &AtomicU64,
) -> io::Result<Found> {
    let mut socket = Socket::from_std(socket, &Options::default())?;
    let mut incoming = Incoming::new(READS);
    let mut tracker = ReceiveTracker::new(payload);
    let mut span = Seen::default();
    while !stop.is_raised() {
        if socket.receive(&mut incoming)? == 0 {
            socket.wait_readable(Some(LOOK))?;
            continue;
        }
        for datagram in incoming.iter() {
            tracker.take(datagram.bytes);
        }
        span.now();
        arrivals.store(tracker.arrivals(), Ordering::Relaxed);
    }
    Ok(tracker.found(span.nanos()))
}

/// A stream to its end.
///
/// # Errors
///
/// What the system says.
pub(super) fn stream(stream: &TcpStream, payload: Payload) -> io::Result<Found> {
    // A system that has no such thing wakes it more often.
    let _ = gather(stream, WAKE_BYTES);
    let mut buffer = MidPageBuffer::new(STREAM_BYTES);
    let mut check = StreamCheck::new(payload);
    let mut span = Seen::default();
    let mut corrupt = 0;
    loop {
        let length = match calls::receive(stream, &mut buffer) {
            Ok(0) => break,
            Ok(length) => length,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            // The local end is gone; what came before counts.
            Err(error) if error.kind() == io::ErrorKind::ConnectionReset => break,
            Err(error) => return Err(error),
        };
        // Behind a wrong byte nothing more can be verified.
        if corrupt == 0 && check.take(&buffer[..length]).is_err() {
            corrupt = 1;
        }
        span.now();
    }
    Ok(Found {
        received: check.messages(),
        disordered: 0,
        corrupt,
        span_ns: span.nanos(),
    })
}

/// The first and the last arrival.
#[derive(Clone, Copy, Debug, Default)]
struct Seen {
    first: Option<Instant>,
    last: Option<Instant>,
}

impl Seen {
    #[inline]
    fn now(&mut self) {
        let now = Instant::now();
        self.first.get_or_insert(now);
        self.last = Some(now);
    }

    fn nanos(self) -> u64 {
        let span = self.first.zip(self.last).map(|(first, last)| last - first);
        span.map_or(0, |span| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX))
    }
}

/// Nothing was there, or the local end's socket was gone for a moment: Windows calls that
/// a reset.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock
            | io::ErrorKind::TimedOut
            | io::ErrorKind::Interrupted
            | io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionReset
    )
}
