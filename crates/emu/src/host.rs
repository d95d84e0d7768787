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

use nix::sched::{CloneFlags, setns, unshare};

use crate::error::{Doing, Error};
use crate::netlink::Netlink;
use crate::worker::Worker;
pub(crate) use devices::Side;

/// A host of the emulated network.
#[derive(Debug)]
pub struct Host {
    worker: Worker,
    namespace: Namespace,
}

/// The network namespace of a host, which threads can be moved into.
#[derive(Debug)]
pub(crate) struct Namespace {
    file: File,
}

impl Host {
    /// Makes a host with a loopback device and nothing else. `name` is what
    /// errors and its thread are called.
    pub(crate) fn new(name: &'static str) -> Result<Self, Error> {
        let (worker, file) = Worker::start(name, move || Ok((prepare(name)?, ())))?;
        Ok(Self {
            worker,
            namespace: Namespace { file },
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
        self.worker.run(work)
    }

    /// Moves the calling thread into the host: the sockets it makes and the
    /// processes it starts from now on belong there.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn enter(&self) -> Result<(), Error> {
        self.namespace.enter().doing("entering a host")
    }

    /// What lets another thread enter the host.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn entrance(&self) -> Result<Entrance, Error> {
        self.namespace()
            .map(Entrance)
            .doing("opening a host once more")
    }

    /// A second handle on the namespace, for another thread.
    pub(crate) fn namespace(&self) -> io::Result<Namespace> {
        let file = self.namespace.file.try_clone()?;
        Ok(Namespace { file })
    }
}

/// The way into a [`Host`] for a thread that does not have the host.
#[derive(Debug)]
pub struct Entrance(Namespace);

impl Entrance {
    /// Moves the calling thread into the host: the sockets it makes from now on belong
    /// there.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn enter(self) -> io::Result<()> {
        self.0.enter()
    }
}

impl Namespace {
    /// Moves the calling thread into the host.
    pub(crate) fn enter(&self) -> io::Result<()> {
        Ok(setns(self.file.as_fd(), CloneFlags::CLONE_NEWNET)?)
    }

    /// The namespace as the kernel takes it.
    pub(crate) fn file(&self) -> &File {
        &self.file
    }
}

/// Gives the calling thread a network namespace of its own, ready for use.
fn prepare(name: &str) -> Result<File, Error> {
    unshare(CloneFlags::CLONE_NEWNET)
        .doing(format!("making the network namespace of the {name}"))?;
    let namespace = File::open("/proc/thread-self/ns/net")
        .doing(format!("opening the network namespace of the {name}"))?;
    Netlink::open()
        .and_then(|mut netlink| netlink.turn_loopback_on())
        .doing(format!("turning on the loopback device of the {name}"))?;
    for (setting, value) in SETTINGS {
        // A container may show these read-only, or not at all. Each has a
        // default that serves; only a convenience is lost.
        let _ = fs::write(format!("/proc/sys/{setting}"), value);
    }
    Ok(namespace)
}

/// The settings of a host's kernel.
const SETTINGS: [(&str, &str); 4] = [
    // Messages about the path come from the remote end's address.
    ("net/ipv4/conf/all/rp_filter", "0"),
    ("net/ipv4/conf/default/rp_filter", "0"),
    // There is no router to ask for.
    ("net/ipv6/conf/default/router_solicitations", "0"),
    // `ping` without privileges.
    ("net/ipv4/ping_group_range", "0 2147483647"),
];
