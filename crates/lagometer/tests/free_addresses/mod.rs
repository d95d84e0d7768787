//! Addresses for processes that a test starts and that cannot be asked where they listen.

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicU32, Ordering};

/// The first of the ports, and how many: below those that the system chooses from
/// (`net.ipv4.ip_local_port_range`), so that nobody's connection takes one before it is
/// listened at.
const PORTS: (u16, u16) = (20_000, 12_000);

/// Addresses nobody listens on, each given away once in this process.
pub(crate) fn free_addresses<const N: usize>() -> [SocketAddr; N] {
    static TAKEN: AtomicU32 = AtomicU32::new(0);
    let (first, many) = PORTS;
    let next = || {
        let nth = std::process::id().wrapping_add(TAKEN.fetch_add(1, Ordering::Relaxed));
        let port = first + (nth % u32::from(many)) as u16;
        SocketAddr::from((Ipv4Addr::LOCALHOST, port))
    };
    let mut free = std::iter::repeat_with(next).filter(|at| TcpListener::bind(at).is_ok());
    std::array::from_fn(|_| free.next().expect("one of thousands is free"))
}
