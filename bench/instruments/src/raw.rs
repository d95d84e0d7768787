//! The limit: the same system calls with nothing around them.
//!
//! Connected sockets, one message on its way, no check of what comes, no clock
//! but one look every few hundred echoes, and the calls go straight to the
//! kernel, past the C library. Two threads of one process, as ours when it
//! starts its own remote end.

use std::io::ErrorKind;
use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{RecvFlags, SendFlags};
use rustix::thread::{CpuSet, sched_setaffinity};

use crate::command::Placement;

/// How a raw loop waits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Waiting {
    /// In the system call.
    Asleep,
    /// By calling again and again.
    Spinning,
}

/// Echoes between two looks at the clock.
const ECHOES: u64 = 256;

/// Echoes a second of `size` bytes over UDP.
pub(crate) fn udp_echo(
    placement: Placement,
    waiting: Waiting,
    size: usize,
    span: Duration,
) -> Result<f64, String> {
    let text = |error: std::io::Error| error.to_string();
    let server = UdpSocket::bind("127.0.0.1:0").map_err(text)?;
    let client = UdpSocket::bind("127.0.0.1:0").map_err(text)?;
    server
        .connect(client.local_addr().map_err(text)?)
        .map_err(text)?;
    client
        .connect(server.local_addr().map_err(text)?)
        .map_err(text)?;
    for socket in [&server, &client] {
        socket
            .set_nonblocking(waiting == Waiting::Spinning)
            .map_err(text)?;
    }
    let [server_cpu, client_cpu] = placement.cpus();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(server_cpu);
            let mut buffer = vec![0; 1 << 16];
            while let Ok(length) = received(&server, &mut buffer, &over) {
                if over.load(Ordering::Relaxed) || sent(&server, &buffer[..length]).is_err() {
                    break;
                }
            }
        });
        let rate = scope.spawn(|| {
            pin(client_cpu);
            let mut buffer = vec![0; 1 << 16];
            let message = vec![7; size];
            let began = Instant::now();
            let mut echoes = 0;
            let rate = loop {
                for _ in 0..ECHOES {
                    sent(&client, &message)?;
                    received(&client, &mut buffer, &over)?;
                }
                echoes += ECHOES;
                let passed = began.elapsed();
                if passed >= span {
                    break echoes as f64 / passed.as_secs_f64();
                }
            };
            Ok::<f64, std::io::Error>(rate)
        });
        let rate = rate.join().map_err(|_| "the raw loop failed".to_owned());
        over.store(true, Ordering::Relaxed);
        // Wakes the server's last wait.
        let _ = client.send(&[0]);
        rate?.map_err(text)
    })
}

#[inline]
fn sent(socket: &UdpSocket, message: &[u8]) -> std::io::Result<usize> {
    Ok(rustix::net::send(socket, message, SendFlags::NOSIGNAL)?)
}

#[inline]
fn received(socket: &UdpSocket, buffer: &mut [u8], over: &AtomicBool) -> std::io::Result<usize> {
    loop {
        let received = rustix::net::recv(socket, &mut *buffer, RecvFlags::empty());
        match received.map_err(std::io::Error::from) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => {
                if over.load(Ordering::Relaxed) {
                    return Ok(0);
                }
            }
            other => return other.map(|(length, _)| length),
        }
    }
}

/// Keeps the calling thread on a processor, where one is named.
pub(crate) fn pin(cpu: Option<u32>) {
    if let Some(cpu) = cpu {
        let mut set = CpuSet::new();
        set.set(cpu as usize);
        // Where there is no such processor the row is of the others.
        let _ = sched_setaffinity(None, &set);
    }
}
