//! `lagometer-tcp` held against the kernel's TCP, packet by packet.
//!
//! In a guest whose kernel has virtual time two of its TCP sockets, each in a
//! network namespace of its own, hold seeded conversations over a path that is
//! a program here: what each end received, did and sent is recorded with its
//! time. `lagometer-tcp` then lives through the same and must send the same. So are
//! the link model's queueing disciplines held against the kernel's.
//!
//! # Map
//!
//! - `plan`, `path`: conversations and what becomes of packets, by a seed
//! - `settings`: what is set at an end of one
//! - `trace`, `info`: what was seen of one, and what its ends' sockets reported
//! - `host`, `conversation`, `guest`, `sys`: playing them between two kernels;
//!   Linux only
//! - `replay`: playing one end again and comparing
//! - `queue`: the link model's queueing disciplines beside the kernel's, likewise

mod info;
mod path;
mod plan;
mod queue;
mod random;
mod replay;
mod settings;
mod trace;

#[cfg(target_os = "linux")]
mod conversation;
#[cfg(target_os = "linux")]
mod guest;
#[cfg(target_os = "linux")]
mod host;
#[cfg(target_os = "linux")]
mod sys;

#[cfg(target_os = "linux")]
pub use guest::{Batch, record};
pub use plan::Class;
#[cfg(target_os = "linux")]
pub use queue::record_queues;
pub use queue::{Fates, QueueKind, QueueTrace, compare_queues, fates};
pub use replay::{Difference, TOLERANCE_NS, compare};
pub use trace::Trace;
