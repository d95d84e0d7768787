//! Transports that come as the system's libraries in C and C++, each behind a safe
//! layer and each by way of a feature: UDT (`udt`) and SRT (`srt`).
//!
//! Both own their UDP sockets and their threads and keep their own time, so they
//! cannot be driven in virtual time. Every module calls its library in its module
//! `foreign` and nowhere else.

pub mod srt;
pub mod udt;
