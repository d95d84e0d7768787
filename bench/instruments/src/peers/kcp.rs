//! The C reference of KCP over plain sockets, flushed as well as it can be. It flushes after each batch of sends and of input, reads and writes
//! one datagram for each call and never sleeps, so that nothing but the engine
//! and the plain system calls holds it back. It checks no payload.

use std::net::UdpSocket;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use kcp_oracle::Oracle;
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};

use crate::raw::pin;

/// What is compared.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Case {
    pub(crate) mtu: u16,
    pub(crate) window: u16,
}

const HEADER_BYTES: usize = 24;
/// As our own sockets ask for.
const BUFFER_BYTES: usize = 16 << 20;

/// Carries full segments from processor 0 to processor 1 for `duration`.
/// Returns the megabits received in each second.
pub(crate) fn mbit_per_s(case: Case, duration: Duration) -> f64 {
    let (sender, receiver) = (socket(), socket());
    sender.connect(receiver.local_addr().unwrap()).unwrap();
    receiver.connect(sender.local_addr().unwrap()).unwrap();
    let (stop, total) = (AtomicBool::new(false), AtomicU64::new(0));
    let origin = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| {
            pin(Some(1));
            receive(case, &receiver, origin, &stop, &total);
        });
        scope.spawn(|| {
            pin(Some(0));
            send(case, &sender, origin, &stop);
        });
        // The first tenth is the way to full speed.
        thread::sleep(duration / 10);
        let (began, before) = (Instant::now(), total.load(Ordering::Relaxed));
        thread::sleep(duration);
        let bytes = total.load(Ordering::Relaxed) - before;
        let rate = bytes as f64 * 8.0 / began.elapsed().as_secs_f64() / 1e6;
        stop.store(true, Ordering::Relaxed);
        rate
    })
}

fn socket() -> UdpSocket {
    let socket = UdpSocket::bind("127.0.0.1:0").unwrap();
    socket.set_nonblocking(true).unwrap();
    let _ = set_socket_recv_buffer_size_force(&socket, BUFFER_BYTES)
        .or_else(|_| set_socket_recv_buffer_size(&socket, BUFFER_BYTES));
    socket
}

fn engine(case: Case) -> Oracle {
    let mut engine = Oracle::new(7);
    engine.nodelay(1, 10, 2, 1);
    engine.wndsize(i32::from(case.window), i32::from(case.window));
    assert_eq!(engine.setmtu(i32::from(case.mtu)), 0);
    engine
}

fn send(case: Case, socket: &UdpSocket, origin: Instant, stop: &AtomicBool) {
    let mut engine = engine(case);
    let message = vec![7; usize::from(case.mtu) - HEADER_BYTES];
    let mut datagram = vec![0; 1 << 16];
    let waiting = i32::from(case.window) * 2;
    while !stop.load(Ordering::Relaxed) {
        let output = |bytes: &[u8]| drop(socket.send(bytes));
        engine.update(millis(origin), output);
        let mut changed = false;
        while engine.waitsnd() < waiting {
            engine.send(&message);
            changed = true;
        }
        for _ in 0..64 {
            let Ok(bytes) = socket.recv(&mut datagram) else {
                break;
            };
            engine.input(&datagram[..bytes]);
            changed = true;
        }
        if changed {
            engine.set_current(millis(origin));
            engine.flush(output);
        }
    }
}

fn receive(
    case: Case,
    socket: &UdpSocket,
    origin: Instant,
    stop: &AtomicBool,
    received: &AtomicU64,
) {
    let mut engine = engine(case);
    let mut datagram = vec![0; 1 << 16];
    let mut message = vec![0; 1 << 16];
    let mut total = 0;
    while !stop.load(Ordering::Relaxed) {
        let output = |bytes: &[u8]| drop(socket.send(bytes));
        engine.update(millis(origin), output);
        let mut changed = false;
        for _ in 0..64 {
            let Ok(bytes) = socket.recv(&mut datagram) else {
                break;
            };
            engine.input(&datagram[..bytes]);
            changed = true;
            while let Ok(bytes @ 1..) = u64::try_from(engine.recv(&mut message)) {
                total += bytes;
            }
        }
        if changed {
            engine.set_current(millis(origin));
            engine.flush(output);
            received.store(total, Ordering::Relaxed);
        }
    }
}

fn millis(origin: Instant) -> u32 {
    origin.elapsed().as_millis() as u32
}
