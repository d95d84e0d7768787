//! The devices of a lane inside a host: a TUN device, or one end of a virtual
//! Ethernet pair where there is no TUN.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, UdpSocket};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketType, socket};

use super::Host;
use crate::address::LaneAddresses;
use crate::audit::Tapping;
use crate::device_counters::DeviceCounters;
use crate::error::{Doing, Error};
use crate::netlink::{DeviceSettings, Netlink};
use crate::port::Frames;
use crate::sys::tap::Tap;
use crate::sys::{ethtool, packet, tun};

/// Which of the two hosts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    Local,
    Remote,
}

/// How many packets may wait in a device for the router: at 20,000 packets a
/// second the router may be away for 200 ms before a host loses one.
const QUEUE_PACKETS: usize = 4096;
/// How long the system may take to notice that a device is on.
const ROUTE_TIMEOUT: Duration = Duration::from_secs(5);

impl Host {
    /// Makes lane number `lane`'s TUN device in this host, which is `side`'s,
    /// and returns the descriptor its packets pass through.
    pub(crate) fn add_tun(&self, side: Side, lane: u8, mtu: usize) -> Result<OwnedFd, Error> {
        let name = device_name(lane);
        let doing = format!("making the TUN device {name}");
        self.run(move || {
            let device = tun::create(&name)?;
            turn_on(&name, mtu, true)?;
            add_addresses(&name, side, lane)?;
            Ok::<_, io::Error>(device)
        })?
        .doing(doing)
    }

    /// Makes a virtual Ethernet pair for lane number `lane` between this
    /// host, which is `side`'s, and `middle`, where the router's end of it
    /// is. Returns the socket at that end and what frames to this host start
    /// with.
    pub(crate) fn add_ethernet(
        &self,
        middle: &Self,
        side: Side,
        lane: u8,
        mtu: usize,
    ) -> Result<(OwnedFd, Frames), Error> {
        let name = device_name(lane);
        let doing = format!("making the virtual Ethernet pair {name}");
        let other_name = match side {
            Side::Local => format!("local{lane}"),
            Side::Remote => format!("remote{lane}"),
        };
        let here = self.namespace().doing(doing.clone())?;
        let (pair_name, pair_other_name) = (name.clone(), other_name.clone());
        middle
            .run(move || {
                Netlink::open()?.add_veth(&pair_other_name, &pair_name, here.file().as_fd())
            })?
            .doing(doing.clone())?;
        let hardware = self
            .run(move || {
                turn_offloads_off(&name)?;
                turn_on(&name, mtu, false)?;
                add_addresses(&name, side, lane)?;
                Netlink::open()?.hardware_address(&name)
            })?
            .doing(doing.clone())?;
        let socket = middle
            .run(move || {
                turn_offloads_off(&other_name)?;
                // A packet socket on a device that is off is broken.
                turn_on(&other_name, mtu, false)?;
                packet::open(Netlink::open()?.index(&other_name)?)
            })?
            .doing(doing)?;
        Ok((socket, Frames::to(hardware)))
    }

    /// Waits until this host, which is `side`'s, has routes to its peers in
    /// lane number `lane`: the system attends to the new state of a device in
    /// its own time.
    pub(crate) fn await_routes(&self, side: Side, lane: u8) -> Result<(), Error> {
        self.run(move || {
            let deadline = Instant::now() + ROUTE_TIMEOUT;
            for (_, peer) in ends(side, lane) {
                let family = match peer {
                    IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
                    IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
                };
                let Ok(socket) = UdpSocket::bind((family, 0)) else {
                    // This kernel has no such family.
                    continue;
                };
                // Connecting sends nothing; any port will do.
                while let Err(error) = socket.connect((peer, 9)) {
                    if Instant::now() > deadline {
                        return Err(error);
                    }
                    thread::sleep(Duration::from_millis(1));
                }
            }
            Ok(())
        })?
        .doing(format!("waiting for the device {}", device_name(lane)))
    }

    /// Has the connections that this host, which is `side`'s, opens in lane number `lane`
    /// ask for ECN.
    pub(crate) fn ask_for_ecn(&self, side: Side, lane: u8) -> Result<(), Error> {
        let name = device_name(lane);
        let doing = format!("setting the route of {name} to ask for ECN");
        self.run(move || {
            let mut netlink = Netlink::open()?;
            let index = netlink.index(&name)?;
            for (local, peer) in ends(side, lane) {
                unless_unsupported(local, netlink.ask_for_ecn(index, local, peer))?;
            }
            Ok::<_, io::Error>(())
        })?
        .doing(doing)
    }

    /// Taps this host, which is `side`'s, for the devices of `lanes`, with room for
    /// `frames` packets that have not been read.
    pub(crate) fn tap(
        &self,
        side: Side,
        lanes: Range<u8>,
        frames: usize,
    ) -> Result<Tapping, Error> {
        self.run(move || {
            let mut netlink = Netlink::open()?;
            let lanes = lanes.map(|lane| Ok((netlink.index(&device_name(lane))?, lane)));
            Ok::<_, io::Error>(Tapping {
                lanes: lanes.collect::<io::Result<_>>()?,
                tap: Tap::open(frames)?,
                side,
            })
        })?
        .doing("tapping a host")
    }

    /// What lane number `lane`'s device in this host counted.
    pub(crate) fn counters(&self, lane: u8) -> Result<DeviceCounters, Error> {
        let name = device_name(lane);
        let doing = format!("asking for the counters of the device {name}");
        self.run(move || Netlink::open()?.counters(&name))?
            .doing(doing)
    }
}

fn device_name(lane: u8) -> String {
    format!("lane{lane}")
}

/// The addresses of `side` in lane number `lane`, each with its peer.
fn ends(side: Side, lane: u8) -> [(IpAddr, IpAddr); 2] {
    let addresses = LaneAddresses::of(lane);
    let local_first: [(IpAddr, IpAddr); 2] = [
        (addresses.local_v4.into(), addresses.remote_v4.into()),
        (addresses.local_v6.into(), addresses.remote_v6.into()),
    ];
    match side {
        Side::Local => local_first,
        Side::Remote => local_first.map(|(local, remote)| (remote, local)),
    }
}

fn turn_on(name: &str, mtu: usize, neighbours: bool) -> io::Result<()> {
    Netlink::open()?.turn_on(
        name,
        DeviceSettings {
            mtu,
            queue: QUEUE_PACKETS,
            neighbours,
        },
    )
}

fn add_addresses(name: &str, side: Side, lane: u8) -> io::Result<()> {
    let mut netlink = Netlink::open()?;
    let index = netlink.index(name)?;
    for (local, peer) in ends(side, lane) {
        unless_unsupported(local, netlink.add_address(index, local, peer))?;
    }
    Ok(())
}

/// What was to be done for an address: a kernel without IPv6 still has IPv4 to offer.
fn unless_unsupported(address: IpAddr, done: io::Result<()>) -> io::Result<()> {
    match done {
        Err(error) if address.is_ipv6() && is_unsupported(&error) => Ok(()),
        done => done,
    }
}

fn is_unsupported(error: &io::Error) -> bool {
    error.raw_os_error() == Some(nix::libc::EOPNOTSUPP)
}

fn turn_offloads_off(name: &str) -> io::Result<()> {
    let socket = socket(AddressFamily::INET, SocketType::DGRAM, None)?;
    ethtool::turn_offloads_off(socket.as_fd(), name)
}
