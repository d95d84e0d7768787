//! `lagometer-tcp` against the kernel's TCP, packet by packet.
//!
//! Without a kernel this is left out, which is said; with
//! `LAGOMETER_REQUIRE_KERNEL` in the environment that is a failure. The program
//! of these tests is the one that starts guests and the one that runs in them,
//! so it answers to `guest boot`, `guest init` and `guest drive` before it is a
//! test.
//!
//! - `LAGOMETER_TCP_SEEDS=1000` plays so many conversations of each kind,
//!   `LAGOMETER_TCP_SEEDS=17-17` the one with this seed.
//! - `LAGOMETER_TCP_TRACES=FOLDER` keeps what was recorded there, and takes what
//!   is there already instead of recording it.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}
