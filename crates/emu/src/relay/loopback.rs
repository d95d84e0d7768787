//! Addresses of a relay where every address of the loopback network is one of its own.

use std::net::Ipv4Addr;

/// The address of lane number `lane` in this process, and the first of its four ports:
/// of the loopback network's 2^24 addresses the one that ends in the process id and the
/// lane.
pub(super) const fn of(process: u32, lane: u8) -> (Ipv4Addr, u16) {
    let [_, _, high, low] = process.to_be_bytes();
    // 127.0.0.1 and its neighbours are left to others.
    (Ipv4Addr::new(127, high | 0x80, low, lane), 7000)
}
