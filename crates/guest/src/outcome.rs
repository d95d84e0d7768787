//! How a guest is run, how much it may use, and how it ends.

use std::time::Duration;

/// What the guest's clock shows when it boots, in seconds since 1970: the
/// first of January 2026.
pub const EPOCH_S: u64 = 1_767_225_600;

/// How the system calls of a guest's processes are caught. A run repeats to the byte with
/// either; one way against the other it need not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Traps {
    /// Its kernel traces them: whatever a process does, it reaches nothing but what the
    /// kernel gives it.
    Traced,
    /// The processes' own handler of signals hands them over, where the kernel knows how
    /// (from 6.16 on) and the machine permits it: twice as fast and more. A process that
    /// sets out to can get at the memory of the guest's kernel, and so do to the machine
    /// what the user can who started it: for programs that are trusted.
    Trusted,
}

/// How much a guest may use of the machine.
#[derive(Clone, Copy, Debug)]
pub struct Limits {
    /// Memory in MiB. It is the machine's only when it is used.
    pub memory_mib: u32,
    /// The longest it may take, in real time.
    pub time: Duration,
    /// The longest it may say nothing, in real time: a thread that spins
    /// without ever asking for the time makes it stand still for good.
    pub silence: Duration,
}

/// How a guest's program ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// By itself, with this exit code; 128 and the signal's number where a
    /// signal ended it.
    Exited(i32),
    /// Because it was asked to, at a limit or by the user; what it said and
    /// left until then is there.
    Cut(Cut),
}

/// Why a guest was ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cut {
    /// The user wanted it.
    Stopped,
    /// It took longer than it may.
    Time,
    /// It said nothing for longer than it may.
    Silence,
}
