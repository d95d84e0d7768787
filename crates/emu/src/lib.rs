//! The emulated network: real hosts, real kernels, real time, and a path
//! between them that behaves as a link profile says.
//!
//! One process is all of it. [`Host`]s are network namespaces of its own,
//! joined by TUN devices whose other ends the process itself holds: so every
//! IP packet one host sends the other, of whatever protocol, passes through
//! the [`Network`]'s router, which asks the lane's own
//! [`Link`](lagometer_link::Link), or the path that it shares with others, what becomes
//! of it and hands it over when it is due. No kernel module, no container, no root where the system permits
//! user namespaces; and nothing remains on the machine when the process ends,
//! however it ends.
//!
//! A machine has other things to do than to release packets on time, so the
//! network audits itself: see [`Audit`].
//!
//! Namespaces are Linux's: elsewhere there is the [`Relay`] alone, and whoever asks
//! for hosts is refused with what to use instead. What differs is in modules of the
//! same name, Linux's here and the others' in the folder `elsewhere`.
//!
//! # Map
//!
//! - `permission`: the right to have namespaces, or what to enable
//! - `worker`, `host`, `netlink`, `address`: a host and its devices
//! - `port`, `ip`: where the router meets a host
//! - `tun`: a device without a router
//! - `lane_link`: what decides over a lane's packets
//! - `router`: the thread that holds packets and releases them
//! - `audit`: what it did
//! - `settings`, `network`: all of it together
//! - `relay`: the path without hosts, for UDP alone
//! - `shape`: foreign programs in the hosts
//! - `ticks`: where the kernel's ticks stand on its clock
//! - `sys`: system calls without a safe wrapper, the only `unsafe` code

#![cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        reason = "what serves hosts alone is not called where there are none"
    )
)]

mod address;
mod audit;
mod device_counters;
mod error;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/host.rs")]
mod host;
mod ip;
mod lane_link;
#[cfg(target_os = "linux")]
mod netlink;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/network.rs")]
mod network;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/permission.rs")]
mod permission;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/port.rs")]
mod port;
mod refusal;
mod relay;
mod router;
mod settings;
mod shape;
#[cfg(target_os = "linux")]
mod sys;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/ticks.rs")]
mod ticks;
#[cfg(target_os = "linux")]
mod tun;
#[cfg(target_os = "linux")]
mod worker;

pub use lagometer_capture::{LogSummary, LoggedPacket, logged_packets};

pub use address::{LaneAddresses, MAX_LANES};
pub use audit::{Audit, Band, Figures, LaneAudit, Spread, WayAudit};
pub use device_counters::SentTotals;
pub use error::Error;
pub use host::{Entrance, Host};
pub use lane_link::{LaneLink, PathFate, PathPacket, PathSender, SharedPath};
pub use network::Network;
pub use permission::Permission;
pub use refusal::Refusal;
pub use relay::{Relay, RelayAddresses};
pub use router::Waiting;
pub use settings::{Device, LaneSetup, Outcome, Settings};
pub use shape::{
    CLIENT, FORMER_VARIABLES, Output, Shape, ShapeError, Shaped, Speaker, TaggedLine, VARIABLES,
};
pub use ticks::Ticks;
#[cfg(target_os = "linux")]
pub use tun::open_tun;
