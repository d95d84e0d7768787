//! A TUN device by itself, for those who carry its packets themselves.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

use crate::netlink::{DeviceSettings, Netlink};
use crate::sys::tun::create;

/// Makes a TUN device called `name` in the calling thread's network namespace,
/// with the address `local` and a route to `peer`, and turns it on. Its packets
/// pass through the descriptor, one IP packet for each read or write, never
/// blocking; it is gone when the descriptor is closed. `mtu` is in bytes;
/// `queue` packets may wait to be read, further ones are dropped.
///
/// # Errors
///
/// What the system says: no `/dev/net/tun`, no capability over the namespace, a
/// name that is taken.
pub fn open_tun(
    name: &str,
    local: IpAddr,
    peer: IpAddr,
    mtu: usize,
    queue: usize,
) -> io::Result<OwnedFd> {
    let device = create(name)?;
    let mut netlink = Netlink::open()?;
    let settings = DeviceSettings {
        mtu,
        queue,
        neighbours: false,
    };
    netlink.turn_on(name, settings)?;
    let index = netlink.index(name)?;
    netlink.add_address(index, local, peer)?;
    Ok(device)
}
