//! Packet sockets of Linux: `packet(7)`.

use std::io::{self, IoSliceMut};
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use lagometer_platform::Waker;
use nix::libc;
use nix::sys::socket::{
    AddressFamily, ControlMessageOwned, LinkAddr, MsgFlags, RecvMsg, SockFlag, SockProtocol,
    SockType, recvmsg, setsockopt, socket, sockopt,
};
use nix::sys::time::TimeSpec;
use rustix::event::{PollFd, PollFlags, poll};
use socket2::{SockFilter, SockRef};

use super::KernelPacket;
use crate::Conversation;

/// What may wait in a socket, where the system permits as much.
const RECEIVE_BYTES: usize = 4 << 20;
/// Room for a packet of any length: the kernel hands on up to 64 KiB and a header at once.
const PACKET_BYTES: usize = 1 << 17;

/// A socket that receives the packets of a conversation.
pub(super) struct Socket {
    file: OwnedFd,
    conversation: Conversation,
    /// The device by which the first packet left.
    device: Option<usize>,
    buffer: Vec<u8>,
    lost: u64,
}

/// What the kernel says of a packet.
struct Passing {
    bytes: usize,
    device: usize,
    has_left: bool,
    at: SystemTime,
}

/// Whether this process may open one.
pub(super) fn probe() -> io::Result<()> {
    packets().map(drop)
}

/// A socket that receives packets of every protocol from every device, from their IP
/// headers on.
fn packets() -> io::Result<OwnedFd> {
    Ok(socket(
        AddressFamily::Packet,
        SockType::Datagram,
        SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK,
        SockProtocol::EthAll,
    )?)
}

impl Socket {
    /// Receives the packets of `conversation` from now on, and no others.
    pub(super) fn open(conversation: Conversation) -> io::Result<Self> {
        let file = packets()?;
        let filter = filter(conversation.remote.port());
        SockRef::from(&file).attach_filter(&filter)?;
        setsockopt(&file, sockopt::ReceiveTimestampns, &true)?;
        setsockopt(&file, sockopt::RxqOvfl, &1)?;
        setsockopt(&file, sockopt::RcvBufForce, &RECEIVE_BYTES)
            .or_else(|_| setsockopt(&file, sockopt::RcvBuf, &RECEIVE_BYTES))?;
        Ok(Self {
            file,
            conversation,
            device: None,
            buffer: vec![0; PACKET_BYTES],
            lost: 0,
        })
    }

    /// Hands everything that has come to `see`.
    pub(super) fn drain(&mut self, see: &mut impl FnMut(KernelPacket<'_>)) {
        while let Some(passing) = self.receive() {
            let bytes = &self.buffer[..passing.bytes];
            let Some(is_up) = self.conversation.is_up(bytes) else {
                continue;
            };
            // Where both ends are on this machine, each packet leaves and comes.
            if is_up != passing.has_left {
                continue;
            }
            if is_up {
                self.device.get_or_insert(passing.device);
            }
            if self.device != Some(passing.device) {
                continue;
            }
            let at = passing.at;
            see(KernelPacket { is_up, at, bytes });
        }
    }

    fn receive(&mut self) -> Option<Passing> {
        let mut space = nix::cmsg_space!(TimeSpec, u32);
        let mut into = [IoSliceMut::new(&mut self.buffer)];
        let message: RecvMsg<'_, '_, LinkAddr> = loop {
            let flags = MsgFlags::MSG_DONTWAIT;
            match recvmsg(self.file.as_raw_fd(), &mut into, Some(&mut space), flags) {
                Ok(message) => break message,
                Err(nix::Error::EINTR) => {}
                // Nothing more, or a device that went down: it may come back.
                Err(_) => return None,
            }
        };
        let from = message.address?;
        let mut at = None;
        let mut lost = 0;
        for said in message.cmsgs().ok()? {
            match said {
                ControlMessageOwned::ScmTimestampns(stamp) => {
                    at = Some(UNIX_EPOCH + Duration::from(stamp));
                }
                ControlMessageOwned::RxqOvfl(packets) => lost = packets,
                _ => {}
            }
        }
        let passing = Passing {
            bytes: message.bytes,
            device: from.ifindex(),
            has_left: from.pkttype() == libc::PACKET_OUTGOING,
            // Every packet has one since they were asked for.
            at: at.unwrap_or_else(SystemTime::now),
        };
        self.lost = self.lost.max(u64::from(lost));
        Some(passing)
    }

    /// Waits until something has come, or `waker` was woken.
    pub(super) fn wait(&mut self, waker: &Waker) {
        let mut ready = [
            PollFd::new(&self.file, PollFlags::IN),
            PollFd::from_borrowed_fd(waker.as_fd(), PollFlags::IN),
        ];
        // A signal ends it early: then nothing has come.
        let _ = poll(&mut ready, None);
    }

    /// How many packets came faster than they were read.
    pub(super) fn lost(&self) -> u64 {
        self.lost
    }
}

/// Lets a packet pass whose source or destination port is `port`, over IPv4 or IPv6, in
/// the machine of `bpf(4)`: a coarse filter that spares this process the others.
fn filter(port: u16) -> [SockFilter; 14] {
    use nix::libc::{
        BPF_ABS, BPF_ALU, BPF_B, BPF_H, BPF_IND, BPF_JEQ, BPF_JMP, BPF_K, BPF_LD, BPF_LDX, BPF_MSH,
        BPF_RET, BPF_RSH,
    };
    const WHOLE: u32 = u32::MAX;
    let port = u32::from(port);
    let load = |how: u32, at| SockFilter::new((BPF_LD | how) as u16, 0, 0, at);
    let is = |value, then, or| SockFilter::new((BPF_JMP | BPF_JEQ | BPF_K) as u16, then, or, value);
    [
        load(BPF_B | BPF_ABS, 0),
        SockFilter::new((BPF_ALU | BPF_RSH | BPF_K) as u16, 0, 0, 4),
        is(6, 5, 0),
        // IPv4: the ports come after a header whose length it says.
        SockFilter::new((BPF_LDX | BPF_B | BPF_MSH) as u16, 0, 0, 0),
        load(BPF_H | BPF_IND, 0),
        is(port, 6, 0),
        load(BPF_H | BPF_IND, 2),
        is(port, 4, 5),
        // IPv6: they come after its 40 bytes.
        load(BPF_H | BPF_ABS, 40),
        is(port, 2, 0),
        load(BPF_H | BPF_ABS, 42),
        is(port, 0, 1),
        SockFilter::new((BPF_RET | BPF_K) as u16, 0, 0, WHOLE),
        SockFilter::new((BPF_RET | BPF_K) as u16, 0, 0, 0),
    ]
}
