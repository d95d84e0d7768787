//! UDP in bulk: many datagrams for each system call, in both directions.
//!
//! A datagram costs the kernel about a microsecond of its own, most of it for
//! the walk through the layers and little for the bytes. Linux can take that
//! walk once for many: *segmentation offload* (`UDP_SEGMENT`, here GSO) takes
//! one large write and cuts it into datagrams as late as it can, and
//! *receive offload* (`UDP_GRO`) hands over a run of datagrams of one sender
//! in one piece. Where the kernel or the path offers neither, `sendmmsg` and
//! `recvmmsg` still save the crossings into the kernel, and where even these
//! are missing, as on every other system, datagrams go one by one.
//!
//! [`Socket`] chooses by itself and says what it found ([`Socket::path`]) and
//! what it cost ([`Socket::counters`]). The user fills an [`Outgoing`], hands
//! it over, and reads an [`Incoming`]; both keep their memory, so that in the
//! steady state nothing is allocated.
//!
//! ```
//! use std::time::Duration;
//! use lagometer_socket::udp::{Incoming, Options, Outgoing, Socket};
//!
//! # fn main() -> std::io::Result<()> {
//! let any = "127.0.0.1:0".parse().unwrap();
//! let mut server = Socket::bind(any, &Options::default())?;
//! let mut client = Socket::connected(server.local_addr()?, &Options::default())?;
//!
//! let mut outgoing = Outgoing::new(64);
//! for number in 0..10_u8 {
//!     outgoing.push(&[number; 100], None);
//! }
//! client.send(&mut outgoing)?;
//! assert!(outgoing.is_empty());
//! # #[cfg(target_os = "linux")]
//! assert_eq!(client.counters().send_calls, 1);
//!
//! let mut incoming = Incoming::new(8);
//! server.wait_readable(Some(Duration::from_secs(1)))?;
//! server.receive(&mut incoming)?;
//! let first = incoming.iter().next().unwrap();
//! assert_eq!(first.bytes, [0; 100]);
//! assert_eq!(first.from, client.local_addr()?);
//! # Ok(())
//! # }
//! ```

#[cfg(target_os = "linux")]
mod batches;
mod incoming;
mod obstacle;
mod outgoing;
mod path;
mod socket;
#[cfg_attr(target_os = "linux", path = "udp/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "udp/elsewhere.rs")]
mod system;

pub use incoming::{Datagram, Incoming};
pub use outgoing::Outgoing;
pub use path::{Counters, Offload, Path};
pub use socket::{Options, Socket, enlarge_receive_buffer};

/// The longest payload of a UDP datagram over IPv4 without options: 65 535
/// less 20 for IP (RFC 791) and 8 for UDP (RFC 768).
pub const LONGEST_DATAGRAM: usize = 65_507;
