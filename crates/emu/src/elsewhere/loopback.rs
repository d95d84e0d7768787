//! Addresses of a relay where 127.0.0.1 is the only one of the loopback network that a
//! program can count on.

use std::net::Ipv4Addr;

/// Ports of a process: four for each lane that there can be.
const PORTS: u16 = 1024;
/// How many processes have ports of their own. Those after them share these, and who
/// comes second gets `EADDRINUSE`.
const PROCESSES: u16 = 30;
/// Below it are the services', above the last port those that systems give out.
const FIRST: u16 = 18_432;

/// The address of lane number `lane` in this process, and the first of its four ports.
pub(super) fn of(process: u32, lane: u8) -> (Ipv4Addr, u16) {
    // Process ids are multiples of four on Windows.
    let own = (process / 4 % u32::from(PROCESSES)) as u16;
    let first_port = FIRST + own * PORTS + u16::from(lane) * 4;
    (Ipv4Addr::LOCALHOST, first_port)
}
