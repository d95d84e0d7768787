//! Foreign processes that do not outlive this one.
//!
//! They live in a process namespace whose first process ends when this
//! process does, however it ends; then the system kills all of them, and
//! their children with them.

use std::io;
use std::process::{Child, Command, ExitStatus};

use nix::sched::{CloneFlags, unshare};
use nix::sys::signal::{SigSet, SigmaskHow, Signal, kill};
use nix::unistd::Pid;

use crate::error::{Doing, Error};
use crate::host::Host;
use crate::sys::init::Init;
use crate::sys::own_proc::see_own_processes;
use crate::worker::Worker;

/// The place where foreign processes live.
#[derive(Debug)]
pub(super) struct Processes {
    worker: Worker,
}

/// A foreign process. Killed and waited for when it is dropped.
#[derive(Debug)]
pub(super) struct Process {
    child: Child,
    ended: Option<ExitStatus>,
}

impl Processes {
    /// Makes the place. Better early: it forks this process, whose memory is
    /// then copied as it changes.
    pub(super) fn start() -> Result<Self, Error> {
        let (worker, ()) = Worker::start("processes", || {
            const DOING: &str = "making a namespace for processes";
            unshare(CloneFlags::CLONE_NEWPID).doing(DOING)?;
            Ok(((), Init::start().doing(DOING)?))
        })?;
        Ok(Self { worker })
    }

    /// Starts `command` in `host`.
    pub(super) fn spawn(
        &self,
        host: &Host,
        mut command: Command,
    ) -> Result<io::Result<Process>, Error> {
        let namespace = host.namespace().doing("entering a host")?;
        see_own_processes(&mut command);
        self.worker.run(move || {
            namespace.enter()?;
            // A process inherits what its starter holds back. For this moment
            // a signal meets this one unprepared: it ends, and with it all.
            let held = SigSet::all().thread_swap_mask(SigmaskHow::SIG_UNBLOCK)?;
            let child = command.spawn();
            held.thread_set_mask()?;
            Ok(Process {
                child: child?,
                ended: None,
            })
        })
    }
}

impl Process {
    /// How it ended, if it has.
    pub(super) fn ended(&mut self) -> io::Result<Option<ExitStatus>> {
        if self.ended.is_none() {
            self.ended = self.child.try_wait()?;
        }
        Ok(self.ended)
    }

    /// Sends it `signal`, unless it has ended.
    pub(super) fn signal(&mut self, signal: Signal) {
        // Its number is its own until it has been waited for.
        if matches!(self.ended(), Ok(None)) {
            let _ = kill(Pid::from_raw(self.child.id().cast_signed()), signal);
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if self.ended.is_none() {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
