//! The router: the thread through which every packet between the hosts goes.

mod burst;
mod engine;
pub(crate) mod hold;
mod lane;
mod too_big;
mod wait;
#[cfg_attr(not(target_os = "linux"), path = "elsewhere/waiter.rs")]
mod waiter;

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lagometer_capture::{Log, LogSummary};
use lagometer_platform::{Waker, be_punctual, become_first, place_thread};
use lagometer_units::Clock;

use crate::address::LaneAddresses;
use crate::audit::{AuditCounters, RouterEvent};
use crate::error::{Doing, Error};
use crate::lane_link::LaneLink;
use crate::port::Port;
use burst::Burst;
use engine::{Command, Engine};
use hold::Hold;
use lane::Lane;
pub use wait::Waiting;

/// How the router works.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Manner {
    pub(crate) waiting: Waiting,
    /// The core its thread is bound to.
    pub(crate) core: Option<usize>,
    /// How many packets can be on their way at a time, all lanes together.
    pub(crate) capacity: u32,
    pub(crate) mtu: usize,
}

/// A router at work.
#[derive(Debug)]
pub(crate) struct Router {
    commands: Sender<Command>,
    waker: Arc<Waker>,
    thread: JoinHandle<Finished>,
    precedence: &'static str,
}

/// What a router leaves.
#[derive(Debug)]
pub(crate) struct Finished {
    pub(crate) outcome: io::Result<Box<AuditCounters>>,
    pub(crate) log: Option<LogSummary>,
}

/// A packet can be longer than it should; so that this shows, a buffer has
/// some bytes more than the MTU.
const EXCESS_BYTES: usize = 64;

impl Router {
    /// Starts routing between `ports`, for each lane the client host's and the
    /// server host's, by `links`, one for each lane. What it does to packets is
    /// reported to `observer`.
    pub(crate) fn start(
        manner: Manner,
        clock: Clock,
        ports: Vec<[Port; 2]>,
        links: Vec<LaneLink>,
        log: Option<Log>,
        observer: Option<Sender<RouterEvent>>,
    ) -> Result<Self, Error> {
        const DOING: &str = "starting the router";
        let waker = Arc::new(Waker::new().doing(DOING)?);
        let (commands, received) = mpsc::channel();
        let lanes = links.into_iter().zip(0..);
        let engine = Engine {
            clock,
            waiting: manner.waiting,
            mtu: manner.mtu,
            lanes: lanes
                .map(|(link, number)| Lane::new(LaneAddresses::of(number), link))
                .collect(),
            hold: Hold::new(manner.capacity, manner.mtu + EXCESS_BYTES),
            audit_counters: Box::new(AuditCounters::new(ports.len(), clock.now())),
            bursts: vec![Burst::new(); ports.len() * 2],
            ports,
            log,
            commands: received,
            waker: Arc::clone(&waker),
            used_before: Duration::ZERO,
            observer,
            taken: 0,
            on_paths: BTreeMap::new(),
        };
        let (settled, has_settled) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("router".to_owned())
            .spawn(move || {
                // Whoever starts it waits for this.
                let _ = settled.send(settle(manner));
                engine.run()
            })
            .doing(DOING)?;
        let precedence = has_settled
            .recv()
            .map_err(|_| Error::ThreadGone("router"))?
            .doing(DOING)?;
        Ok(Self {
            commands,
            waker,
            thread,
            precedence,
        })
    }

    /// Goes on with other links and empty counters; returns the old counters.
    pub(crate) fn begin(
        &self,
        links: Vec<LaneLink>,
        audit_counters: AuditCounters,
    ) -> Result<Box<AuditCounters>, Error> {
        let (old_counters, answer) = mpsc::channel();
        self.command(Command::Begin {
            links,
            audit_counters: Box::new(audit_counters),
            old_counters,
        })?;
        answer.recv().map_err(|_| Error::ThreadGone("router"))
    }

    /// Has it do nothing for `how_long`, as if it were off the processor.
    pub(crate) fn hold_up(&self, how_long: Duration) -> Result<(), Error> {
        self.command(Command::HoldUp(how_long))
    }

    /// Ends the routing; what was on its way is lost.
    pub(crate) fn stop(self) -> Result<Finished, Error> {
        // A router that ended early says why below.
        let _ = self.command(Command::Stop);
        self.thread.join().map_err(|_| Error::ThreadGone("router"))
    }

    /// How its thread is scheduled, in a word.
    pub(crate) const fn precedence(&self) -> &'static str {
        self.precedence
    }

    fn command(&self, command: Command) -> Result<(), Error> {
        self.commands
            .send(command)
            .map_err(|_| Error::ThreadGone("router"))?;
        self.waker.wake().doing("waking the router")
    }
}

/// Makes the calling thread as punctual as the system permits; says how it is
/// scheduled now.
fn settle(manner: Manner) -> io::Result<&'static str> {
    // Timers may fire 50 us late by default, to save power.
    be_punctual()?;
    if let Some(core) = manner.core {
        place_thread(&[core])?;
    }
    Ok(match become_first() {
        Ok(()) => "real-time",
        Err(_) => "ordinary",
    })
}
