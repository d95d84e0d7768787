//! The local end's loops of the bandwidth tests: send as fast as the system
//! takes it.

use std::io;
use std::net::{TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lagometer_socket::udp::{Options, Outgoing, Socket};

use crate::calls;
use crate::payload::Payload;

/// Messages between two looks at the clock, where each takes a system call.
const MESSAGES: u64 = 32;

/// Datagrams handed over at once.
const BATCH: usize = 512;

/// Bytes of a batch at most: more would leave the cache before they are read.
const BATCH_BYTES: usize = 512 << 10;

/// Bytes of one large write to a stream.
const WRITE_BYTES: usize = 128 << 10;

/// How long one wait for room lasts at most.
const LOOK: Duration = Duration::from_millis(50);

/// What was sent.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Sent {
    /// Whole messages that the system took.
    pub(super) messages: u64,
    /// How long that took.
    pub(super) span: Duration,
    /// How they were handed over.
    pub(super) method: String,
}

/// Datagrams in a batch of messages of `size` bytes.
#[must_use]
pub(super) const fn batch(size: usize) -> usize {
    let fit = BATCH_BYTES / size;
    if fit < 1 {
        1
    } else if fit > BATCH {
        BATCH
    } else {
        fit
    }
}

/// Messages in one large write to a stream.
#[must_use]
pub(super) const fn write_batch(size: usize) -> usize {
    let fit = WRITE_BYTES / size;
    if fit < 1 { 1 } else { fit }
}

/// One system call for each datagram.
///
/// # Errors
///
/// What the system says.
pub(super) fn datagrams(
    socket: &UdpSocket,
    payload: &mut Payload,
    span: Duration,
    over: &AtomicBool,
) -> io::Result<Sent> {
    let began = Instant::now();
    let mut messages = 0;
    // A message keeps its number until the system takes one.
    loop {
        match calls::send(socket, payload.message(messages)) {
            Ok(_) => messages += 1,
            Err(error) if is_passing(&error) => {}
            Err(error) => return Err(error),
        }
        if messages.is_multiple_of(MESSAGES) && is_over(began, span, over) {
            break;
        }
    }
    Ok(Sent {
        messages,
        span: began.elapsed(),
        method: "one send each".to_owned(),
    })
}

/// Many datagrams for each system call. The payload's rotation must be
/// [`batch`] of its size.
///
/// # Errors
///
/// What the system says.
pub(super) fn batches(
    socket: UdpSocket,
    payload: &Payload,
    span: Duration,
    over: &AtomicBool,
) -> io::Result<Sent> {
    let mut socket = Socket::from_std(socket, &Options::default())?;
    let batch = batch(payload.size());
    let mut outgoing = Outgoing::new(batch);
    let began = Instant::now();
    let mut number = 0;
    while !is_over(began, span, over) {
        for _ in 0..batch {
            // The same place of the batch holds the same stretch of the
            // pattern each time, so that only the header is written.
            outgoing.fill(None, |buffer| {
                if buffer.len() == payload.size() {
                    payload.renumber(number, buffer);
                } else {
                    buffer.resize(payload.size(), 0);
                    payload.write(number, buffer);
                }
                true
            });
            number += 1;
        }
        while !socket.send(&mut outgoing)? {
            if is_over(began, span, over) {
                break;
            }
            socket.wait_ready(true, Some(LOOK))?;
        }
    }
    let counters = socket.counters();
    let path = socket.path();
    Ok(Sent {
        messages: counters.sent_datagrams,
        span: began.elapsed(),
        method: if path.gso {
            "segmentation offload (GSO, GRO)".to_owned()
        } else if path.batches {
            "sendmmsg, recvmmsg".to_owned()
        } else {
            "one send each".to_owned()
        },
    })
}

/// Messages on a stream: `together` of them in each write. The payload's
/// rotation must be a multiple of that, or that one.
///
/// # Errors
///
/// What the system says.
pub(super) fn stream(
    stream: &TcpStream,
    payload: &mut Payload,
    together: usize,
    span: Duration,
    over: &AtomicBool,
) -> io::Result<Sent> {
    let began = Instant::now();
    let mut number = 0_u64;
    if together <= 1 {
        loop {
            write_whole(stream, payload.message(number))?;
            number += 1;
            if number.is_multiple_of(MESSAGES) && is_over(began, span, over) {
                break;
            }
        }
    } else {
        let size = payload.size();
        let mut bytes = vec![0; together * size];
        for (place, message) in bytes.chunks_exact_mut(size).enumerate() {
            payload.write(place as u64, message);
        }
        while !is_over(began, span, over) {
            for message in bytes.chunks_exact_mut(size) {
                payload.renumber(number, message);
                number += 1;
            }
            write_whole(stream, &bytes)?;
        }
    }
    Ok(Sent {
        messages: number,
        span: began.elapsed(),
        method: if together <= 1 {
            "one write each".to_owned()
        } else {
            format!("{together} in a write")
        },
    })
}

/// Writes all of `bytes`, in as many calls as the system takes.
#[inline]
fn write_whole(stream: &TcpStream, mut bytes: &[u8]) -> io::Result<()> {
    while !bytes.is_empty() {
        match calls::send(stream, bytes) {
            Ok(written) => bytes = &bytes[written..],
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[inline]
fn is_over(began: Instant, span: Duration, over: &AtomicBool) -> bool {
    over.load(Ordering::Relaxed) || began.elapsed() >= span
}

/// The buffer is full, or the remote end's socket was gone for a moment.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted | io::ErrorKind::ConnectionRefused
    )
}
