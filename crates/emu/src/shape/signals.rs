//! Signals to this process, taken one by one instead of at any moment.

use std::io;
use std::time::Duration;

use nix::libc;
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;

/// Signals that wait to be taken, for as long as this lives. Threads started
/// meanwhile leave them alone.
#[derive(Debug)]
pub(super) struct Signals {
    file: SignalFd,
    before: SigSet,
}

/// A signal that came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Received {
    pub(super) signal: Signal,
    /// Whether it came from the terminal, which sends it to every process in
    /// the foreground.
    pub(super) from_terminal: bool,
}

impl Signals {
    /// Holds back what ends a process, and news of children.
    pub(super) fn hold() -> io::Result<Self> {
        let mut held = SigSet::empty();
        for signal in [
            Signal::SIGINT,
            Signal::SIGTERM,
            Signal::SIGHUP,
            Signal::SIGQUIT,
            Signal::SIGCHLD,
        ] {
            held.add(signal);
        }
        let before = SigSet::thread_get_mask()?;
        held.thread_block()?;
        let file = SignalFd::with_flags(&held, SfdFlags::SFD_NONBLOCK | SfdFlags::SFD_CLOEXEC)?;
        Ok(Self { file, before })
    }

    /// The next signal, if one comes within `longest`.
    pub(super) fn next(&self, longest: Duration) -> io::Result<Option<Received>> {
        let longest = Timespec {
            tv_sec: longest.as_secs().cast_signed(),
            tv_nsec: longest.subsec_nanos().into(),
        };
        let mut files = [PollFd::new(&self.file, PollFlags::IN)];
        match poll(&mut files, Some(&longest)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let Some(taken) = self.file.read_signal()? else {
            return Ok(None);
        };
        let signal = Signal::try_from(taken.ssi_signo.cast_signed())?;
        Ok(Some(Received {
            signal,
            from_terminal: taken.ssi_code == libc::SI_KERNEL,
        }))
    }
}

impl Drop for Signals {
    fn drop(&mut self) {
        // What still waits is for what comes after.
        let _ = self.before.thread_set_mask();
    }
}
