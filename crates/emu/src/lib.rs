//! The emulated network: real hosts, real kernels, real time, and a path
//! between them that behaves as a link profile says.
//!
//! One process is all of it. [`Host`]s are network namespaces of its own,
//! joined by TUN devices whose other ends the process itself holds: so every
//! IP packet one host sends the other, of whatever protocol, passes through
//! the [`Network`]'s router, which asks the lane's own
//! [`Link`](lagometer_link::Link) what becomes of it and hands it over when it
//! is due. No kernel module, no container, no root where the system permits
//! user namespaces; and nothing remains on the machine when the process ends,
//! however it ends.
//!
//! A machine has other things to do than to release packets on time, so the
//! network audits itself: see [`Audit`].
//!
//! Namespaces are Linux's: elsewhere this crate is empty.
//!
//! # Map
//!
//! - `permission`: the right to have namespaces, or what to enable
//! - `worker`, `host`, `netlink`, `address`: a host and its devices
//! - `port`, `ip`: where the router meets a host
//! - `tun`: a device without a router
//! - `router`: the thread that holds packets and releases them
//! - `audit`, `capture`: what it did
//! - `network`: all of it together
//! - `relay`, `encapsulation`: the path without hosts, for UDP alone
//! - `shape`: foreign programs in the hosts
//! - `ticks`: where the kernel's ticks stand on its clock
//! - `sys`: system calls without a safe wrapper, the only `unsafe` code

#![cfg(target_os = "linux")]

mod address;
mod audit;
mod capture;
mod encapsulation;
mod error;
mod host;
mod ip;
mod netlink;
mod network;
mod permission;
mod port;
mod relay;
mod router;
mod shape;
mod sys;
mod ticks;
mod tun;
mod worker;

pub use address::{LaneAddresses, MAX_LANES};
pub use audit::{Audit, Band, Figures, LaneAudit, Spread, WayAudit};
pub use capture::{LogSummary, LoggedPacket, logged_packets};
pub use error::Error;
pub use host::Host;
pub use network::{Device, LaneSetup, Network, Outcome, Settings};
pub use permission::{Permission, Refusal};
pub use relay::{Relay, RelayAddresses};
pub use router::Waiting;
pub use shape::{
    CLIENT, FORMER_VARIABLES, Output, Shape, ShapeError, Shaped, Speaker, TaggedLine, VARIABLES,
};
pub use ticks::Ticks;
pub use tun::open_tun;
