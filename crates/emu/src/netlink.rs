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

// Names and values are those of linux/netlink.h, rtnetlink.h, if_link.h, if_addr.h and if.h.
const NLM_F_REQUEST: u16 = 0x01;
const NLM_F_ACK: u16 = 0x04;
const CREATE_NEW: u16 = 0x200 | 0x400;
const CREATE_OR_REPLACE: u16 = 0x100 | 0x400;

const NLMSG_ERROR: u16 = 2;
const RTM_NEWLINK: u16 = 16;
const RTM_GETLINK: u16 = 18;
const RTM_NEWADDR: u16 = 20;
const RTM_NEWROUTE: u16 = 24;

/// Bytes of `struct ifinfomsg`.
const LINK_BYTES: usize = 16;
const IFLA_ADDRESS: u16 = 1;
const IFLA_IFNAME: u16 = 3;
const IFLA_MTU: u16 = 4;
const IFLA_TXQLEN: u16 = 13;
const IFLA_LINKINFO: u16 = 18;
const IFLA_STATS64: u16 = 23;
const IFLA_AF_SPEC: u16 = 26;
const IFLA_NET_NS_FD: u16 = 28;
const IFLA_INFO_KIND: u16 = 1;
const IFLA_INFO_DATA: u16 = 2;
const VETH_INFO_PEER: u16 = 1;
const IFLA_INET6_ADDR_GEN_MODE: u16 = 8;
const IN6_ADDR_GEN_MODE_NONE: u8 = 1;
const IFF_UP: u32 = 0x01;
const IFF_NOARP: u32 = 0x80;

const IFA_ADDRESS: u16 = 1;
const IFA_LOCAL: u16 = 2;
const IFA_FLAGS: u16 = 8;
const IFA_F_NODAD: u32 = 0x02;

const RTA_DST: u16 = 1;
const RTA_OIF: u16 = 4;
const RTA_PRIORITY: u16 = 6;
const RTA_PREFSRC: u16 = 7;
const RTA_METRICS: u16 = 8;
const RTAX_FEATURES: u16 = 12;
const RTAX_FEATURE_ECN: u32 = 1;
const RT_TABLE_MAIN: u8 = 254;
/// By whoever manages the host.
const RTPROT_STATIC: u8 = 4;
const RT_SCOPE_LINK: u8 = 253;
const RTN_UNICAST: u8 = 1;

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
            IFF_UP
        } else {
            IFF_UP | IFF_NOARP
        };
        let generation = [IN6_ADDR_GEN_MODE_NONE];
        let message = Message::new(
            RTM_NEWLINK,
            NLM_F_REQUEST | NLM_F_ACK,
            &link_header(0, flags, flags),
        )
        .text(IFLA_IFNAME, name)
        .attribute(IFLA_MTU, &(settings.mtu as u32).to_ne_bytes())
        .attribute(IFLA_TXQLEN, &(settings.queue as u32).to_ne_bytes())
        .nested(IFLA_AF_SPEC, &[], |families| {
            families.nested(AddressFamily::INET6.as_raw(), &[], |inet6| {
                inet6.attribute(IFLA_INET6_ADDR_GEN_MODE, &generation)
            })
        });
        self.request(message)
    }

    /// Turns the loopback device on, which the system gives its addresses.
    pub(crate) fn turn_loopback_on(&mut self) -> io::Result<()> {
        let message = Message::new(
            RTM_NEWLINK,
            NLM_F_REQUEST | NLM_F_ACK,
            &link_header(0, IFF_UP, IFF_UP),
        )
        .text(IFLA_IFNAME, "lo");
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
        let message = Message::new(RTM_NEWADDR, NLM_F_REQUEST | NLM_F_ACK | CREATE_NEW, &header)
            .attribute(IFA_LOCAL, &octets(local))
            .attribute(IFA_ADDRESS, &octets(peer))
            .attribute(IFA_FLAGS, &IFA_F_NODAD.to_ne_bytes());
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
        header[4..8].copy_from_slice(&[RT_TABLE_MAIN, RTPROT_STATIC, RT_SCOPE_LINK, RTN_UNICAST]);
        // IPv4 replaces the route of the same priority, IPv6 prefers the lower figure.
        let priority = u32::from(local.is_ipv6());
        let message = Message::new(
            RTM_NEWROUTE,
            NLM_F_REQUEST | NLM_F_ACK | CREATE_OR_REPLACE,
            &header,
        )
        .attribute(RTA_DST, &octets(peer))
        .attribute(RTA_OIF, &index.to_ne_bytes())
        .attribute(RTA_PRIORITY, &priority.to_ne_bytes())
        .attribute(RTA_PREFSRC, &octets(local))
        .nested(RTA_METRICS, &[], |metrics| {
            metrics.attribute(RTAX_FEATURES, &RTAX_FEATURE_ECN.to_ne_bytes())
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
            RTM_NEWLINK,
            NLM_F_REQUEST | NLM_F_ACK | CREATE_NEW,
            &link_header(0, 0, 0),
        )
        .text(IFLA_IFNAME, name)
        .nested(IFLA_LINKINFO, &[], |info| {
            info.text(IFLA_INFO_KIND, "veth")
                .nested(IFLA_INFO_DATA, &[], |data| {
                    data.nested(VETH_INFO_PEER, &link_header(0, 0, 0), |veth| {
                        veth.text(IFLA_IFNAME, peer)
                            .attribute(IFLA_NET_NS_FD, &namespace.as_raw_fd().to_ne_bytes())
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
            .and_then(|attributes| attribute(attributes, IFLA_ADDRESS))
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
            .and_then(|attributes| attribute(attributes, IFLA_STATS64))
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
            Message::new(RTM_GETLINK, NLM_F_REQUEST, &link_header(0, 0, 0)).text(IFLA_IFNAME, name);
        self.exchange(message, RTM_NEWLINK)
    }

    fn request(&mut self, message: Message) -> io::Result<()> {
        self.exchange(message, NLMSG_ERROR).map(drop)
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
                if received.kind == NLMSG_ERROR {
                    let number = received.body.first_chunk().copied().ok_or_else(cut_short)?;
                    match i32::from_ne_bytes(number) {
                        0 if kind == NLMSG_ERROR => return Ok(Vec::new()),
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
