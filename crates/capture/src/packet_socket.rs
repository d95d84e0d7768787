//! What the kernel itself sends and receives for one conversation, as `tcpdump` sees it:
//! for lanes whose packets no code of this program makes.
//!
//! A packet socket (`packet(7)`) on Linux, with a filter so that the rest of the machine's
//! traffic is not copied to this process; no other system has one.

#[cfg(not(target_os = "linux"))]
#[path = "packet_socket/elsewhere.rs"]
mod system;
#[cfg(target_os = "linux")]
#[path = "packet_socket/linux.rs"]
mod system;

use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use lagometer_platform::Waker;

use crate::Conversation;

/// A packet that the kernel sent or received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct KernelPacket<'a> {
    /// Whether it goes from this end to the other.
    pub is_up: bool,
    /// When it passed the device, by the kernel's stamp.
    pub at: SystemTime,
    /// The packet, from its IP header on. Where a device cuts or joins segments, it may
    /// be longer than what is on the wire, and its checksum unfinished.
    pub bytes: &'a [u8],
}

/// The packets of one conversation, read by a thread of its own while this lives.
///
/// Only those at the device through which the conversation's first packet left are seen,
/// so that a packet that passes several (a bridge, a VLAN) is seen once.
pub struct PacketSocket {
    waker: Arc<Waker>,
    is_over: Arc<AtomicBool>,
    reader: Option<JoinHandle<u64>>,
}

impl PacketSocket {
    /// Whether this process may read what the kernel sends and receives.
    ///
    /// # Errors
    ///
    /// The system's: no privilege (`CAP_NET_RAW`), or [`io::ErrorKind::Unsupported`]
    /// where the system is not Linux.
    pub fn probe() -> io::Result<()> {
        system::probe()
    }

    /// Hands every packet of the conversation to `see` from now on.
    ///
    /// # Errors
    ///
    /// As [`PacketSocket::probe`], or what the system says about a thread or a filter.
    pub fn start(
        conversation: Conversation,
        mut see: impl FnMut(KernelPacket<'_>) + Send + 'static,
    ) -> io::Result<Self> {
        let mut socket = system::Socket::open(conversation)?;
        let waker = Arc::new(Waker::new()?);
        let is_over = Arc::new(AtomicBool::new(false));
        let (woken, over) = (Arc::clone(&waker), Arc::clone(&is_over));
        let reader = thread::Builder::new()
            .name("packet-socket".to_owned())
            .spawn(move || {
                loop {
                    // What came before the end is still in the socket then.
                    let is_last = over.load(Ordering::Acquire);
                    socket.drain(&mut see);
                    if is_last {
                        return socket.lost();
                    }
                    socket.wait(&woken);
                }
            })?;
        Ok(Self {
            waker,
            is_over,
            reader: Some(reader),
        })
    }

    /// Hands over what has come and ends: how many packets had no room, as far as the
    /// socket has said it, for they came faster than they were read.
    #[must_use]
    pub fn finish(mut self) -> u64 {
        self.end()
    }

    fn end(&mut self) -> u64 {
        self.is_over.store(true, Ordering::Release);
        // A waker fails only where it has been woken so often that it is readable.
        let _ = self.waker.wake();
        let reader = self.reader.take();
        reader.map_or(0, |reader| reader.join().unwrap_or_default())
    }
}

impl Drop for PacketSocket {
    fn drop(&mut self) {
        self.end();
    }
}

impl fmt::Debug for PacketSocket {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("PacketSocket")
            .finish_non_exhaustive()
    }
}
