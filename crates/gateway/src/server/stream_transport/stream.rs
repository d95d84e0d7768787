//! Streams of bytes: TCP as it is, and TLS.

#[cfg_attr(target_os = "linux", path = "stream/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "stream/elsewhere.rs")]
mod system;

use std::io::{self, IoSlice, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::Duration;

use lagometer_units::Time;
use rustls::{ServerConnection, StreamOwned};
use socket2::{Domain, SockRef, Socket, Type};

use crate::core::{CloseReason, ConnKey, ConnectionManager};

use crate::stream_transport::{reading_failed, writing_failed};

use super::metered::Metered;
use super::{Reading, Writing};

/// TLS on the gateway's side of a TCP connection.
pub(in crate::server) type SecureStream = StreamOwned<ServerConnection, Metered>;

/// Slices one vectored write takes. More make no difference that can be
/// measured: by then the copying into the kernel is all the cost.
const SLICES: usize = 64;

/// How the kernel is to treat a TCP connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::server) struct TcpOptions {
    /// The most bytes the kernel takes before they are sent; what waits beyond
    /// stays with the gateway, which can still merge it.
    pub(in crate::server) unsent_at_most: Option<u32>,
    /// The congestion control's name; the system's own if there is none.
    pub(in crate::server) congestion_control: Option<String>,
    /// After so long without a word from the peer's kernel it counts as gone.
    pub(in crate::server) dead_after: Option<Duration>,
}

/// Prepares a socket that was accepted.
pub(in crate::server) fn tcp_options(stream: &TcpStream, options: &TcpOptions) -> io::Result<()> {
    stream.set_nonblocking(true)?;
    stream.set_nodelay(true)?;
    let socket = SockRef::from(stream);
    if let Some(bytes) = options.unsent_at_most {
        system::limit_unsent(&socket, bytes)?;
    }
    if let Some(name) = &options.congestion_control {
        system::set_congestion_control(&socket, name)?;
    }
    if let Some(dead_after) = options.dead_after {
        let probe = (dead_after / 3).max(Duration::from_secs(1));
        system::keep_alive(&socket, probe, dead_after)?;
    }
    Ok(())
}

/// Whether the system gives that congestion control to a socket of ours.
pub(in crate::server) fn try_congestion_control(name: &str) -> io::Result<()> {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
    system::set_congestion_control(&SockRef::from(&socket), name)
}

/// Reads once, into `buffer`, hands on what came, and returns how many bytes that
/// were.
pub(super) fn read_once(
    mut stream: impl Read,
    buffer: &mut [u8],
    take: impl FnOnce(&[u8]),
) -> (Reading, usize) {
    match stream.read(buffer) {
        Ok(0) => (Reading::Ended(CloseReason::PeerClosed), 0),
        Ok(bytes) => {
            take(&buffer[..bytes]);
            (Reading::More, bytes)
        }
        Err(error) => (reading_failed(&error), 0),
    }
}

/// Reads once from a socket: what leaves room in `buffer` was all there is.
pub(super) fn read_socket(
    stream: &TcpStream,
    buffer: &mut [u8],
    take: impl FnOnce(&[u8]),
) -> Reading {
    match read_once(stream, buffer, take) {
        (Reading::More, bytes) if bytes < buffer.len() => Reading::Done,
        (reading, _) => reading,
    }
}

/// Writes the shared slices of an outbox as they lie, without a copy of ours.
pub(super) fn write_shared(
    now: Time,
    stream: &TcpStream,
    side: &mut ConnectionManager,
    key: ConnKey,
) -> Writing {
    loop {
        let (result, offered, all) = {
            let mut slices = [IoSlice::new(&[]); SLICES];
            let (mut count, mut offered, mut all) = (0, 0, true);
            for slice in side.output(key) {
                if count == SLICES {
                    all = false;
                    break;
                }
                slices[count] = IoSlice::new(slice);
                offered += slice.len();
                count += 1;
            }
            if offered == 0 {
                return Writing::Done;
            }
            (system::write_slices(stream, &slices[..count]), offered, all)
        };
        match result {
            Ok(written) => {
                side.wrote(now, key, written);
                if written < offered {
                    return Writing::Blocked;
                }
                if all && side.waiting(key) == 0 {
                    return Writing::Done;
                }
            }
            Err(error) => return writing_failed(now, &error, side, key),
        }
    }
}

/// Writes an outbox through TLS, and what TLS still holds of before.
pub(super) fn write_secure(
    now: Time,
    stream: &mut SecureStream,
    side: &mut ConnectionManager,
    key: ConnKey,
) -> Writing {
    loop {
        // A slice at a time: TLS copies it into records anyway.
        let Some(result) = side.output(key).next().map(|slice| stream.write(slice)) else {
            break;
        };
        match result {
            Ok(0) => return Writing::Blocked,
            Ok(written) => side.wrote(now, key, written),
            Err(error) => return writing_failed(now, &error, side, key),
        }
    }
    match stream.flush() {
        Ok(()) => Writing::Done,
        Err(error) => writing_failed(now, &error, side, key),
    }
}

/// Ends a stream in order. What the peer has sent and nobody will read would
/// turn the end into a reset that may overtake our last bytes: it is read away.
pub(super) fn hang_up(mut stream: &TcpStream) {
    let _ = stream.shutdown(Shutdown::Write);
    let mut unread = [0; 4096];
    for _ in 0..16 {
        match stream.read(&mut unread) {
            Ok(bytes) if bytes > 0 => {}
            _ => break,
        }
    }
}
