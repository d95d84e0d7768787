//! How many datagrams the kernel's loopback carries.

use std::net::{Ipv4Addr, UdpSocket};
use std::time::{Duration, Instant};

/// As many as are sent before they are received, so that none finds a full
/// buffer.
const BATCH: u32 = 32;

/// Datagrams of eight bytes that one thread sends and receives in a second,
/// one system call each, nobody being woken; `None` without loopback.
pub(super) fn datagrams_per_second(span: Duration) -> Option<f64> {
    let receiver = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    let sender = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).ok()?;
    sender.connect(receiver.local_addr().ok()?).ok()?;
    receiver.connect(sender.local_addr().ok()?).ok()?;
    receiver
        .set_read_timeout(Some(Duration::from_secs(1)))
        .ok()?;
    let began = Instant::now();
    let mut datagrams = 0_u32;
    while began.elapsed() < span {
        for _ in 0..BATCH {
            sender.send(&[0; 8]).ok()?;
        }
        for _ in 0..BATCH {
            receiver.recv(&mut [0; 16]).ok()?;
        }
        datagrams += BATCH;
    }
    Some((f64::from(datagrams) / began.elapsed().as_secs_f64()).round())
}
