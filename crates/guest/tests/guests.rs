//! Guests on a kernel that was built: what they may do, see and leave, how
//! they end, and that they do the same every time.
//!
//! Without a kernel the tests are left out, which is said; with
//! `LAGOMETER_REQUIRE_KERNEL` in the environment that is a failure. The program
//! of these tests is the one that starts guests, so it answers to `guest boot`
//! and `guest init` before it is a test.

#[cfg(target_os = "linux")]
mod linux;

#[cfg(target_os = "linux")]
fn main() -> std::process::ExitCode {
    linux::main()
}

#[cfg(not(target_os = "linux"))]
fn main() {}
