//! Setting devices and addresses up over `rtnetlink(7)`, in the network
//! namespace of the thread that opens the socket.
//!
//! The few requests a network of ours needs, and no more: a device's state and
//! size, its addresses, routes to them, pairs of virtual Ethernet devices, counters.

mod message;

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};

use rustix::net::{AddressFamily, RecvFlags, SendFlags, SocketFlags, SocketType};
use rustix::net::{recv, send, socket_with};

use crate::device_counters::{DeviceCounters, SentTotals};
use message::{Message, attribute, messages};

const REQUEST: u16 = 0x01;
const ACKNOWLEDGE: u16 = 0x04;
const CREATE_NEW: u16 = 0x200 | 0x400;
const CREATE_OR_REPLACE: u16 = 0x100 | 0x400;

const KIND_ERROR: u16 = 2;
const KIND_NEW_LINK: u16 = 16;
const KIND_GET_LINK: u16 = 18;
const KIND_NEW_ADDRESS: u16 = 20;
const KIND_NEW_ROUTE: u16 = 24;

/// Bytes of `struct ifinfomsg`.
const LINK_BYTES: usize = 16;
const LINK_HARDWARE_ADDRESS: u16 = 1;
const LINK_NAME: u16 = 3;
const LINK_MTU: u16 = 4;
const LINK_QUEUE: u16 = 13;
const LINK_INFO: u16 = 18;
const LINK_COUNTERS: u16 = 23;
const LINK_FAMILIES: u16 = 26;
const LINK_NAMESPACE: u16 = 28;
const INFO_KIND: u16 = 1;
const INFO_DATA: u16 = 2;
const VETH_PEER: u16 = 1;
const INET6_ADDRESS_GENERATION: u16 = 8;
const GENERATE_NONE: u8 = 1;
const UP: u32 = 0x01;
const NO_NEIGHBOURS: u32 = 0x80;

const ADDRESS_PEER: u16 = 1;
const ADDRESS_LOCAL: u16 = 2;
const ADDRESS_FLAGS: u16 = 8;
const NO_DUPLICATE_DETECTION: u32 = 0x02;

const ROUTE_DESTINATION: u16 = 1;
const ROUTE_DEVICE: u16 = 4;
const ROUTE_PRIORITY: u16 = 6;
const ROUTE_SOURCE: u16 = 7;
const ROUTE_METRICS: u16 = 8;
const METRIC_FEATURES: u16 = 12;
const FEATURE_ECN: u32 = 1;
const MAIN_TABLE: u8 = 254;
/// `RTPROT_STATIC`: by whoever manages the host.
const BY_HAND: u8 = 4;
const TO_A_LINK: u8 = 253;
const UNICAST: u8 = 1;

/// A socket on which devices are set up.
#[derive(Debug)]
pub(crate) struct Netlink {
    socket: OwnedFd,
    sequence: u32,
}

/// What a device is to be like once it is up.
#[derive(Clone, Copy, Debug)]
pub(crate) struct DeviceSettings {
    /// The largest packet, in bytes.
    pub(crate) mtu: usize,
    /// How many packets may wait in it.
    pub(crate) queue: usize,
    /// Whether neighbours are asked for their hardware addresses.
    pub(crate) neighbours: bool,
}

impl Netlink {
    /// Opens a socket in the calling thread's network namespace.
    pub(crate) fn open() -> io::Result<Self> {
        let socket = socket_with(
            AddressFamily::NETLINK,
            SocketType::RAW,
            SocketFlags::CLOEXEC,
            // NETLINK_ROUTE, which is zero and so the default.
            None,
        )?;
        Ok(Self {
            socket,
            sequence: 0,
        })
    }

    /// Gives the device `name` its settings and turns it on. It gets no
    /// address of its own accord.
    pub(crate) fn turn_on(&mut self, name: &str, settings: DeviceSettings) -> io::Result<()> {
        let flags = if settings.neighbours {
            UP
        } else {
            UP | NO_NEIGHBOURS
        };
        let generation = [GENERATE_NONE];
        let message = Message::new(
            KIND_NEW_LINK,
            REQUEST | ACKNOWLEDGE,
            &link_header(0, flags, flags),
        )
        .text(LINK_NAME, name)
        .attribute(LINK_MTU, &(settings.mtu as u32).to_ne_bytes())
        .attribute(LINK_QUEUE, &(settings.queue as u32).to_ne_bytes())
        .nested(LINK_FAMILIES, &[], |families| {
            families.nested(AddressFamily::INET6.as_raw(), &[], |inet6| {
                inet6.attribute(INET6_ADDRESS_GENERATION, &generation)
            })
        });
        self.request(message)
    }

    /// Turns the loopback device on, which the system gives its addresses.
    pub(crate) fn turn_loopback_on(&mut self) -> io::Result<()> {
        let message = Message::new(
            KIND_NEW_LINK,
            REQUEST | ACKNOWLEDGE,
            &link_header(0, UP, UP),
        )
        .text(LINK_NAME, "lo");
        self.request(message)
    }

    /// Gives the device with index `index` the address `local`, with a route
    /// to `peer` through it.
    pub(crate) fn add_address(
        &mut self,
        index: u32,
        local: IpAddr,
        peer: IpAddr,
    ) -> io::Result<()> {
        let (family, bits) = family(local);
        let mut header = [family.as_raw() as u8, bits, 0, 0, 0, 0, 0, 0];
        header[4..].copy_from_slice(&index.to_ne_bytes());
        let message = Message::new(
            KIND_NEW_ADDRESS,
            REQUEST | ACKNOWLEDGE | CREATE_NEW,
            &header,
        )
        .attribute(ADDRESS_LOCAL, &octets(local))
        .attribute(ADDRESS_PEER, &octets(peer))
        .attribute(ADDRESS_FLAGS, &NO_DUPLICATE_DETECTION.to_ne_bytes());
        self.request(message)
    }

    /// Has connections from `local` to `peer` through the device with index `index` ask for
    /// ECN: by a route in place of that of [`add_address`](Self::add_address).
    pub(crate) fn ask_for_ecn(
        &mut self,
        index: u32,
        local: IpAddr,
        peer: IpAddr,
    ) -> io::Result<()> {
        let (family, bits) = family(local);
        let mut header = [0; 12];
        header[0] = family.as_raw() as u8;
        header[1] = bits;
        header[4..8].copy_from_slice(&[MAIN_TABLE, BY_HAND, TO_A_LINK, UNICAST]);
        // IPv4 replaces the route of the same priority, IPv6 prefers the lower figure.
        let priority = u32::from(local.is_ipv6());
        let message = Message::new(
            KIND_NEW_ROUTE,
            REQUEST | ACKNOWLEDGE | CREATE_OR_REPLACE,
            &header,
        )
        .attribute(ROUTE_DESTINATION, &octets(peer))
        .attribute(ROUTE_DEVICE, &index.to_ne_bytes())
        .attribute(ROUTE_PRIORITY, &priority.to_ne_bytes())
        .attribute(ROUTE_SOURCE, &octets(local))
        .nested(ROUTE_METRICS, &[], |metrics| {
            metrics.attribute(METRIC_FEATURES, &FEATURE_ECN.to_ne_bytes())
        });
        self.request(message)
    }

    /// Makes a pair of virtual Ethernet devices: `name` here, `peer` in the
    /// network namespace `namespace`.
    pub(crate) fn add_veth(
        &mut self,
        name: &str,
        peer: &str,
        namespace: BorrowedFd<'_>,
    ) -> io::Result<()> {
        let message = Message::new(
            KIND_NEW_LINK,
            REQUEST | ACKNOWLEDGE | CREATE_NEW,
            &link_header(0, 0, 0),
        )
        .text(LINK_NAME, name)
        .nested(LINK_INFO, &[], |info| {
            info.text(INFO_KIND, "veth").nested(INFO_DATA, &[], |data| {
                data.nested(VETH_PEER, &link_header(0, 0, 0), |veth| {
                    veth.text(LINK_NAME, peer)
                        .attribute(LINK_NAMESPACE, &namespace.as_raw_fd().to_ne_bytes())
                })
            })
        });
        self.request(message)
    }

    /// The index of the device `name`.
    pub(crate) fn index(&mut self, name: &str) -> io::Result<u32> {
        let link = self.link(name)?;
        let index = link.get(4..8).and_then(|bytes| bytes.first_chunk());
        index.copied().map(u32::from_ne_bytes).ok_or_else(cut_short)
    }

    /// The hardware address of the Ethernet device `name`.
    pub(crate) fn hardware_address(&mut self, name: &str) -> io::Result<[u8; 6]> {
        let link = self.link(name)?;
        link.get(LINK_BYTES..)
            .and_then(|attributes| attribute(attributes, LINK_HARDWARE_ADDRESS))
            .and_then(|address| address.try_into().ok())
            .ok_or_else(cut_short)
    }

    /// What the device `name` counted.
    pub(crate) fn counters(&mut self, name: &str) -> io::Result<DeviceCounters> {
        /// Where `struct rtnl_link_stats64` has each figure, counted in
        /// figures.
        const TRANSMIT_PACKETS: usize = 1;
        const TRANSMIT_BYTES: usize = 3;
        const RECEIVE_ERRORS: usize = 4;
        const TRANSMIT_ERRORS: usize = 5;
        const RECEIVE_DROPPED: usize = 6;
        const TRANSMIT_DROPPED: usize = 7;
        let link = self.link(name)?;
        let counters = link
            .get(LINK_BYTES..)
            .and_then(|attributes| attribute(attributes, LINK_COUNTERS))
            .ok_or_else(cut_short)?;
        let figure = |place: usize| {
            let bytes = counters
                .get(place * 8..)
                .and_then(|rest| rest.first_chunk());
            bytes.copied().map(u64::from_ne_bytes).ok_or_else(cut_short)
        };
        Ok(DeviceCounters {
            sent: SentTotals {
                packets: figure(TRANSMIT_PACKETS)?,
                bytes: figure(TRANSMIT_BYTES)?,
            },
            lost_out: figure(TRANSMIT_DROPPED)? + figure(TRANSMIT_ERRORS)?,
            lost_in: figure(RECEIVE_DROPPED)? + figure(RECEIVE_ERRORS)?,
        })
    }

    /// What the system says of the device `name`: `struct ifinfomsg` and its
    /// attributes.
    fn link(&mut self, name: &str) -> io::Result<Vec<u8>> {
        let message =
            Message::new(KIND_GET_LINK, REQUEST, &link_header(0, 0, 0)).text(LINK_NAME, name);
        self.exchange(message, KIND_NEW_LINK)
    }

    fn request(&mut self, message: Message) -> io::Result<()> {
        self.exchange(message, KIND_ERROR).map(drop)
    }

    /// Sends `message` and returns the body of the answer of `kind`, where an
    /// acknowledgement is an error of number zero.
    fn exchange(&mut self, message: Message, kind: u16) -> io::Result<Vec<u8>> {
        self.sequence += 1;
        send(
            &self.socket,
            &message.finish(self.sequence),
            SendFlags::empty(),
        )?;
        let mut answer = vec![0; 32 * 1024];
        loop {
            let (length, _) = recv(&self.socket, answer.as_mut_slice(), RecvFlags::empty())?;
            for received in messages(&answer[..length]) {
                if received.sequence != self.sequence {
                    continue;
                }
                if received.kind == KIND_ERROR {
                    let number = received.body.first_chunk().copied().ok_or_else(cut_short)?;
                    match i32::from_ne_bytes(number) {
                        0 if kind == KIND_ERROR => return Ok(Vec::new()),
                        0 => {}
                        number => return Err(io::Error::from_raw_os_error(-number)),
                    }
                } else if received.kind == kind {
                    return Ok(received.body.to_vec());
                }
            }
        }
    }
}

impl AsFd for Netlink {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}

/// `struct ifinfomsg`: the device's index (or zero), its flags, and which of
/// them are to change.
fn link_header(index: u32, flags: u32, change: u32) -> [u8; LINK_BYTES] {
    let mut header = [0; LINK_BYTES];
    header[4..8].copy_from_slice(&index.to_ne_bytes());
    header[8..12].copy_from_slice(&flags.to_ne_bytes());
    header[12..16].copy_from_slice(&change.to_ne_bytes());
    header
}

/// The family of an address, and of how many bits one is.
fn family(address: IpAddr) -> (AddressFamily, u8) {
    match address {
        IpAddr::V4(_) => (AddressFamily::INET, 32),
        IpAddr::V6(_) => (AddressFamily::INET6, 128),
    }
}

fn octets(address: IpAddr) -> Vec<u8> {
    match address {
        IpAddr::V4(address) => address.octets().to_vec(),
        IpAddr::V6(address) => address.octets().to_vec(),
    }
}

fn cut_short() -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        "the system's answer about a device is cut short",
    )
}
