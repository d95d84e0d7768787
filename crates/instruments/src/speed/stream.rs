//! Both ends of a lane over the kernel's TCP.

use std::io::{self, IoSlice, Read as _, Write as _};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use lagometer_platform::yield_thread;
use lagometer_socket::MidPageBuffer;
use lagometer_socket::tcp::{congestion, gather};

use super::datagrams::Terms;
use super::gauge::{CpuGauge, Gauge};
use super::pace::Pace;
use super::payload::Payload;
use super::receive_tracker::{Counts, ReceiveTracker};
use super::signal::{Order, Signal};
use super::{Ended, Failed};
use crate::clock::Clock;

/// Bytes of one write where nothing else is asked: many pieces of the block,
/// which itself stays in the caches.
const WRITE_BYTES: usize = 1 << 20;
/// Bytes of one read, few enough that they are compared where the system's
/// copy left them, in the nearer caches.
const READ_BYTES: usize = 64 << 10;
/// Bytes that a sleeping reader waits for: several reads. Woken for each
/// segment it would sleep again at once, and its waking costs the sender more
/// than the segment.
const WAKE_BYTES: usize = 512 << 10;
/// How long a write or a read may block before the order is looked at.
const LOOK: Duration = Duration::from_millis(50);
/// Waits shorter than this are spent looking at the clock: a sleep would end
/// later.
const OVERSLEEP: Duration = Duration::from_micros(200);

/// Sends until it is asked to stop, then says goodbye.
pub(super) fn send(
    mut stream: TcpStream,
    terms: &Terms,
    clock: Clock,
    gauge: &Gauge,
    signal: &Signal,
) -> Result<Ended, Failed> {
    stream.set_nodelay(true)?;
    stream.set_write_timeout(Some(LOOK))?;
    let payload = Payload::new(terms.seed);
    let start = clock.now();
    let mut cpu = CpuGauge::start(start);
    let pace = Pace::new(terms.every, start, start + terms.duration);
    let paced = terms.every.is_some_and(|every| !every.is_zero());
    let write_bytes = if paced {
        terms.chunk_bytes
    } else {
        WRITE_BYTES.max(terms.chunk_bytes)
    };
    let mut pieces: Vec<IoSlice<'_>> = Vec::new();
    let (mut written, mut calls) = (0_u64, 0);
    // Of the chunk under way.
    let mut left = 0;
    let mut chunks = 0;
    while signal.order() == Order::Go {
        let now = clock.now();
        if left == 0 {
            if pace.is_over(now, chunks) {
                break;
            }
            if !pace.permits(now, chunks) {
                rest(pace.next_due(chunks).map_or(LOOK, |due| due.since(now)));
                continue;
            }
            left = write_bytes;
            chunks += 1;
        }
        payload.stream(written, left, &mut pieces);
        calls += 1;
        let bytes = match stream.write_vectored(&pieces) {
            Ok(bytes) => bytes,
            Err(why) if is_timeout(&why) => 0,
            Err(why) => return Err(why.into()),
        };
        left -= bytes;
        written += bytes as u64;
        let counts = Counts {
            messages: written / terms.chunk_bytes as u64,
            bytes: written,
            ..Counts::default()
        };
        gauge.show(counts, now);
        cpu.look(now, gauge);
    }
    stream.shutdown(Shutdown::Write)?;
    cpu.finish(gauge, Duration::ZERO);
    let sent = written / terms.chunk_bytes as u64;
    let intended = pace.total().unwrap_or(sent).max(sent);
    while signal.order() != Order::Stop {
        std::thread::sleep(Duration::from_millis(2));
    }
    Ok(Ended {
        path: path(&stream),
        calls,
        datagrams: 0,
        intended,
        refused: 0,
    })
}

/// Receives, and checks what comes, until the sender's goodbye or the order to
/// stop.
pub(super) fn receive(
    mut stream: TcpStream,
    terms: &Terms,
    clock: Clock,
    gauge: &Gauge,
    signal: &Signal,
) -> Result<Ended, Failed> {
    stream.set_read_timeout(Some(LOOK))?;
    // A system that has no such thing wakes it more often.
    let _ = gather(&stream, WAKE_BYTES);
    let payload = Payload::new(terms.seed);
    let mut cpu = CpuGauge::start(clock.now());
    let mut tracker = ReceiveTracker::default();
    let mut memory = MidPageBuffer::new(READ_BYTES);
    let (mut position, mut calls) = (0_u64, 0);
    while signal.order() != Order::Stop {
        calls += 1;
        let bytes = match stream.read(&mut memory) {
            Ok(0) => break,
            Ok(bytes) => bytes,
            Err(why) if is_timeout(&why) => continue,
            Err(why) => return Err(why.into()),
        };
        if payload.check_stream(position, &memory[..bytes]) {
            tracker.enter_stream(bytes);
        } else {
            tracker.enter_damaged();
        }
        position += bytes as u64;
        let counts = Counts {
            messages: position / terms.chunk_bytes as u64,
            ..tracker.counts()
        };
        let now = clock.now();
        gauge.show(counts, now);
        cpu.look(now, gauge);
    }
    cpu.finish(gauge, Duration::ZERO);
    Ok(Ended {
        path: path(&stream),
        calls,
        datagrams: 0,
        intended: 0,
        refused: 0,
    })
}

/// As in `tcp, cubic`.
fn path(stream: &TcpStream) -> String {
    congestion(stream).unwrap_or_else(|| "tcp".to_owned())
}

fn rest(wait: Duration) {
    if wait < OVERSLEEP {
        yield_thread();
    } else {
        std::thread::sleep(wait.min(LOOK).saturating_sub(OVERSLEEP / 2));
    }
}

/// Whether a call only took as long as it may.
fn is_timeout(why: &io::Error) -> bool {
    matches!(
        why.kind(),
        io::ErrorKind::WouldBlock | io::ErrorKind::TimedOut | io::ErrorKind::Interrupted
    )
}
