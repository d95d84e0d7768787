//! System calls for which neither `rustix` nor `nix` has a safe wrapper.
//!
//! This is the only place in the crate where `unsafe` is permitted. Each file
//! wraps one call, each block says why it is sound, and what is exported is
//! safe to call with any arguments.

#![allow(unsafe_code, reason = "system calls without a safe wrapper live here")]

pub(crate) mod ethtool;
pub(crate) mod init;
pub(crate) mod own_proc;
pub(crate) mod packet;
pub(crate) mod tap;
pub(crate) mod ticks;
pub(crate) mod tun;
