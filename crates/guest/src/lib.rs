//! The real Linux kernel in virtual time: user-mode Linux, the kernel as an
//! ordinary program, built with a clock of its own. In a guest computing takes
//! no time, and when every thread sleeps the clock jumps to the next timer; so
//! the kernel's own network stack, and any program on it, runs without the
//! machine's noise and the same every time.
//!
//! This crate builds such kernels in the user's cache folder, keeps them, and
//! starts guests on them. A guest sees the machine's files read-only beneath a
//! file system in memory, shares one folder with who started it, and has no
//! network but its own.
//!
//! # Map
//!
//! - `recipe`, `edits`, `kernel.config`: what a kernel is made of
//! - `source`, `tools`: where it comes from and what building it needs
//! - `build`: from the source to a kernel in the cache
//! - `cache`: the kernels that are there
//! - `guest`, `boot`: a guest from outside; `output`, `holder`: what its
//!   programs say, and which of them takes the processor; `init`: a guest from
//!   inside; `protocol`: what the two agree on; `copy`: files that are kept

#[cfg(target_os = "linux")]
mod boot;
mod build;
mod cache;
mod command;
#[cfg(target_os = "linux")]
mod copy;
mod edits;
mod error;
#[cfg(target_os = "linux")]
mod guest;
#[cfg(target_os = "linux")]
mod holder;
#[cfg(target_os = "linux")]
mod init;
#[cfg(target_os = "linux")]
mod output;
#[cfg(target_os = "linux")]
mod protocol;
mod recipe;
mod source;
mod tools;

#[cfg(target_os = "linux")]
pub use boot::boot;
pub use build::{Built, Request, Step, build};
pub use cache::{Cache, Kernel, Record};
pub use error::Error;
#[cfg(target_os = "linux")]
pub use guest::{Cut, EPOCH_S, Ended, Guest, Limits, Outcome, Traps};
#[cfg(target_os = "linux")]
pub use init::init;
#[cfg(target_os = "linux")]
pub use protocol::{BOOT, INIT, Job, SHARE, STOP, Said, Stream};
pub use recipe::{DEFAULT_HZ, HZ_CHOICES};
