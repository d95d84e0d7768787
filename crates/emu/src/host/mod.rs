//! A host: a network namespace, and a thread that lives in it.
//!
//! A socket belongs to the namespace of the thread that made it, for ever,
//! and a process to that of the thread that started it. So one process can be
//! both hosts: what is to exist in a host is made there by [`Host::run`] and
//! may be used anywhere.
//!
//! The namespace has no name. It lives as long as a thread, a socket or a
//! process in it, and no longer: nothing is left behind, however the process
//! ends.

mod devices;

use std::fs::{self, File};
use std::io;
use std::os::fd::AsFd;
use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use nix::sched::{CloneFlags, setns, unshare};

use crate::error::{Doing, Error};
use crate::netlink::Netlink;
pub(crate) use devices::Side;

type Job = Box<dyn FnOnce() + Send>;

/// A host of the emulated network.
#[derive(Debug)]
pub struct Host {
    name: &'static str,
    namespace: File,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Host {
    /// Makes a host with a loopback device and nothing else. `name` is what
    /// errors and its thread are called.
    pub(crate) fn new(name: &'static str) -> Result<Self, Error> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (ready, is_ready) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(format!("{name}-host"))
            .spawn(move || {
                let prepared = prepare(name);
                let go_on = prepared.is_ok();
                // The maker waits for it; if that has ended there is nobody
                // to do jobs for either.
                if ready.send(prepared).is_ok() && go_on {
                    for job in queue {
                        job();
                    }
                }
            })
            .doing(format!("starting the thread of the {name} host"))?;
        let namespace = is_ready.recv().map_err(|_| Error::ThreadGone(name))??;
        Ok(Self {
            name,
            namespace,
            jobs: Some(jobs),
            thread: Some(thread),
        })
    }

    /// Does `work` on the host's own thread, and so in its namespace.
    ///
    /// One piece of work at a time: what takes long belongs on a thread of
    /// its own, which [`enter`](Self::enter)s the host first.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadGone`] if the host's thread has ended.
    ///
    /// # Panics
    ///
    /// If `work` does, with what it panicked with.
    pub fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = mpsc::channel();
        let job = Box::new(move || {
            let outcome = panic::catch_unwind(AssertUnwindSafe(work));
            // Whoever asked waits below.
            let _ = answer.send(outcome);
        });
        self.jobs
            .as_ref()
            .and_then(|jobs| jobs.send(job).ok())
            .ok_or(Error::ThreadGone(self.name))?;
        match answered.recv() {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(panicked)) => panic::resume_unwind(panicked),
            Err(_) => Err(Error::ThreadGone(self.name)),
        }
    }

    /// Moves the calling thread into the host: the sockets it makes and the
    /// processes it starts from now on belong there.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn enter(&self) -> Result<(), Error> {
        setns(self.namespace.as_fd(), CloneFlags::CLONE_NEWNET)
            .doing(format!("entering the {} host", self.name))
    }

    pub(crate) fn namespace(&self) -> &File {
        &self.namespace
    }
}

impl Drop for Host {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of its work has been handed to whoever asked for it.
            let _ = thread.join();
        }
    }
}

/// Gives the calling thread a network namespace of its own, ready for use.
fn prepare(name: &str) -> Result<File, Error> {
    unshare(CloneFlags::CLONE_NEWNET)
        .doing(format!("making the network namespace of the {name} host"))?;
    let namespace = File::open("/proc/thread-self/ns/net")
        .doing(format!("opening the network namespace of the {name} host"))?;
    Netlink::open()
        .and_then(|mut netlink| netlink.turn_loopback_on())
        .doing(format!("turning on the loopback device of the {name} host"))?;
    for (setting, value) in SETTINGS {
        // A container may show these read-only, or not at all. Each has a
        // default that serves; only a convenience is lost.
        let _ = set(setting, value);
    }
    Ok(namespace)
}

/// What a host's kernel is told.
const SETTINGS: [(&str, &str); 4] = [
    // Messages about the path come from the far end's address.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    // The road speaks to no router.
    ("net/ipv6/conf/default/router_solicitations", "0"),
    // Let `ping` work without privileges.
    ("net/ipv4/ping_group_range", "0 2147483647"),
];

fn set(setting: &str, value: &str) -> io::Result<()> {
    fs::write(format!("/proc/sys/{setting}"), value)
}
