//! Processes made by `fork(2)` that never run anything but system calls: the
//! first one of a process namespace, and one that tries something out.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd, RawFd};

use nix::libc;
use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, SigmaskHow, pthread_sigmask};
use nix::sys::wait::{WaitStatus, waitpid};
use nix::unistd::{ForkResult, Pid, fork};
use rustix::pipe::{PipeFlags, pipe_with};

/// The first process of a process namespace.
///
/// When it is dropped, or when this process ends, however it ends, the system
/// kills every process of that namespace.
#[derive(Debug)]
pub(crate) struct Init {
    process: Pid,
    /// Closed by the system at the latest when this process ends.
    lifeline: Option<OwnedFd>,
}

impl Init {
    /// Forks the first process of the process namespace that the calling
    /// thread's children enter after `unshare(CLONE_NEWPID)`.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub(crate) fn start() -> io::Result<Self> {
        let (remote_end, lifeline) = pipe_with(PipeFlags::CLOEXEC)?;
        // This process's signal handlers must not run in the child, which
        // shares the files they may write to.
        let mut before = SigSet::empty();
        pthread_sigmask(
            SigmaskHow::SIG_SETMASK,
            Some(&SigSet::all()),
            Some(&mut before),
        )?;
        // SAFETY: the child has this thread alone, and a lock that another
        // one held is held there for ever; so it may only make calls that are
        // safe in a signal handler. It runs nothing but `outlast`, which
        // makes system calls alone and never returns.
        let forked = unsafe { fork() };
        if matches!(forked, Ok(ForkResult::Child)) {
            outlast(remote_end.as_raw_fd());
        }
        pthread_sigmask(SigmaskHow::SIG_SETMASK, Some(&before), None)?;
        match forked? {
            ForkResult::Parent { child } => Ok(Self {
                process: child,
                lifeline: Some(lifeline),
            }),
            ForkResult::Child => unreachable!("the child does not leave `outlast`"),
        }
    }
}

impl Drop for Init {
    fn drop(&mut self) {
        self.lifeline = None;
        // It ends of itself now; waiting only removes it from the table.
        let _ = waitpid(self.process, None);
    }
}

/// What the first process does: nothing, until the last writer of the pipe
/// `lifeline` is gone. Orphans it inherits are removed by the system.
fn outlast(lifeline: RawFd) -> ! {
    let mut byte = 0_u8;
    // SAFETY: all of these are system calls that may be made after `fork` and
    // take integers, but for `read`, which is given one byte to write to.
    // Closing all other descriptors is sound since nothing in this process
    // uses them again.
    unsafe {
        libc::signal(libc::SIGCHLD, libc::SIG_IGN);
        libc::dup2(lifeline, 0);
        libc::syscall(libc::SYS_close_range, 1, u32::MAX, 0);
        // Only an interruption could return anything but zero: nobody writes.
        while libc::read(0, (&raw mut byte).cast(), 1) != 0 {}
        libc::_exit(0)
    }
}

/// Whether a process like this one may make itself namespaces of the kinds in
/// `flags`: tries it in a child, which ends at once.
///
/// # Errors
///
/// What the system says.
pub(crate) fn try_unshare(flags: CloneFlags) -> io::Result<()> {
    // SAFETY: as in `Init::start`; the child makes one system call and leaves
    // without running anything that is registered for the end of a process.
    match unsafe { fork() }? {
        ForkResult::Child => {
            let code = unshare(flags).map_or_else(|errno| errno as i32, |()| 0);
            // SAFETY: ends the process and touches nothing.
            unsafe { libc::_exit(code) }
        }
        ForkResult::Parent { child } => match waitpid(child, None)? {
            WaitStatus::Exited(_, 0) => Ok(()),
            WaitStatus::Exited(_, code) => Err(io::Error::from_raw_os_error(code)),
            _ => Err(io::Error::other("the process that tried it was killed")),
        },
    }
}
