//! The kernel's queueing disciplines beside the link model's.
//!
//! In a guest several flows send datagrams through a device whose root is a shaper
//! (`htb`, one class without a burst) over the discipline under test. What was sent
//! and what came out is recorded with its time. Then a
//! [`Queue`](lagometer_link::queue::Queue) is given the same packets at the same
//! times and asked for one whenever the kernel's gave one: it must give the same,
//! marked or not, and drop the same. The shaper asks for a packet when the one before
//! has passed, and so does a [`SharedLink`](lagometer_link::SharedLink).
//!
//! - `plan`: settings and flows by a seed
//! - `trace`: what was seen
//! - `play`: in a guest; Linux only
//! - `replay`: the same through a `Queue`

mod plan;
#[cfg(target_os = "linux")]
mod play;
mod replay;
mod trace;

pub use plan::QueueKind;
#[cfg(target_os = "linux")]
pub use play::record_queues;
pub use replay::{Fates, compare_queues, fates};
pub use trace::QueueTrace;
