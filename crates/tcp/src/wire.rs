//! IP and TCP as bytes: parsing that trusts nothing, and building.
//!
//! A packet is one IPv4 or IPv6 packet with one TCP segment in it. Parsing
//! borrows; what it accepts has a correct checksum and consistent lengths.

mod checksum;
mod ip;
mod mark;
mod options;
mod tcp;

pub use ip::{Ecn, IpHeader, ParseError, icmp_too_big, parse_packet};
pub(crate) use ip::{build_packet, too_big};
pub use mark::{is_ecn_capable, mark_congestion};
pub use options::{MAX_SACK_BLOCKS, SackBlock, SackBlocks, TcpOptions};
pub use tcp::{Flags, Segment, TCP_HEADER};
