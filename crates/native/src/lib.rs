//! Libraries in C and C++, each behind a safe layer: transports that are the system's,
//! each by way of a feature, UDT (`udt`) and SRT (`srt`), and the options of the
//! binary's allocator.
//!
//! Both transports own their UDP sockets and their threads and keep their own time, so they
//! cannot be driven in virtual time. Each calls its library in its module `foreign`
//! and nowhere else.

pub mod allocator;
pub mod srt;
#[cfg(any(feature = "srt", feature = "udt"))]
mod state;
pub mod udt;
