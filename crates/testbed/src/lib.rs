//! Testbeds: where the two ends of a lane are, and what lies between them.
//!
//! A workload (an echo lane, a world) asks for what lies between and plays over
//! it; how that comes to be is the same for all of them, and is here. What a
//! network does to packets is asked of `link`, in every testbed.
//!
//! # Map
//!
//! - [`Testbed`]: which there are, and what each plays of the transports
//! - [`Emulated`]: lanes over real sockets with emulated links between, in hosts or
//!   by a relay, in real time or within a guest
//! - [`run_until`]: the loop of virtual time, whatever is played
//! - [`Simulated`]: several lanes in virtual time, each with a link of its own
//! - [`StreamSocket`]: an end in memory for a library that wants a socket
//! - [`lane_packet`]: packets of lanes in memory with addresses, for captures

mod emulated;
mod packet;
mod simulated;
mod stream_socket;
mod testbed;
mod virtual_time;

pub use emulated::{Emulated, Findings, keep_audit, lane_ports};
pub use packet::lane_packet;
pub use simulated::{Capture, DirectionStats, PathStats, Sender, Simulated};
pub use stream_socket::StreamSocket;
pub use testbed::{Testbed, promises};
pub use virtual_time::{EventDriven, run_until};
