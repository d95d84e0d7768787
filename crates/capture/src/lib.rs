//! Captures of packets: pcapng, the format of Wireshark, written and read, and the
//! headers that a UDP datagram has on the wire; and packets of the kernel's own, as they pass.
//!
//! Every testbed writes its captures with this crate, so that they look alike: two
//! interfaces for each lane, up and down, and each packet's fate as its comment.
//!
//! - `pcapng`: blocks of a file, appended to memory
//! - `read`: what this crate wrote, read again
//! - `log`: a capture in real time, which never makes the sender wait for a disk
//! - `packet_file`: a capture in virtual time
//! - `conversation`: which packets of a machine are one lane's
//! - `packet_socket`: what the kernel itself sends and receives for one, in real time
//! - `udp`: a datagram as the IP packet it is between hosts, and back
//! - `checksum`: that of the Internet

mod checksum;
mod conversation;
mod log;
mod packet_file;
mod packet_socket;
pub mod pcapng;
mod read;
mod udp;

pub use checksum::checksum;
pub use conversation::Conversation;
pub use log::{Log, LogSummary};
pub use packet_file::PacketFile;
pub use packet_socket::{KernelPacket, PacketSocket};
pub use read::{LoggedPacket, logged_packets};
pub use udp::{UDP_V4_HEADER_BYTES, UdpHeaders, taken_off};
