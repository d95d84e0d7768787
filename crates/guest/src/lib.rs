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
//! It needs Linux on x86-64: elsewhere whoever asks for a kernel gets an error. What
//! differs is in modules of the same name, Linux's here and the others' in the folder
//! `elsewhere`.
//!
//! # Map
//!
//! - `recipe`, `edits`, `kernel.config`: what a kernel is made of
//! - `source`, `tools`: where it comes from and what building it needs
//! - `build`: from the source to a kernel in the cache
//! - `cache`: the kernels that are there
//! - `start`, `guest`, `outcome`, `boot`: a guest from outside; `output`, `console`,
//!   `holder`: what its programs and its kernel say, and which thread takes the processor;
//!   `init`: a guest from inside; `protocol`: what the two agree on; `folder`: where on the
//!   machine they do; `copy`: files that are kept

#![cfg_attr(
    not(target_os = "linux"),
    allow(
        dead_code,
        reason = "what serves guests alone is not called where there are none"
    )
)]

#[cfg_attr(not(target_os = "linux"), path = "elsewhere/boot.rs")]
mod boot;
mod build;
mod cache;
mod command;
#[cfg(target_os = "linux")]
mod console;
#[cfg(target_os = "linux")]
mod copy;
mod edits;
mod error;
#[cfg(target_os = "linux")]
mod folder;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/guest.rs")]
mod guest;
#[cfg(target_os = "linux")]
mod holder;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/init.rs")]
mod init;
mod outcome;
#[cfg(target_os = "linux")]
mod output;
mod protocol;
mod recipe;
mod source;
mod start;
mod tools;

pub use boot::boot;
pub use build::{Built, Request, Step, build};
pub use cache::{Cache, Kernel, Record};
pub use error::Error;
pub use guest::Ended;
pub use init::init;
pub use outcome::{Cut, EPOCH_S, Limits, Outcome, Traps};
pub use protocol::{BOOT, INIT, Job, SHARE, STOP, Said, Stream};
pub use recipe::{DEFAULT_HZ, HZ_CHOICES};
pub use start::Guest;
