//! The testbed `net`: real sockets over a real path, to a remote end on another
//! machine.
//!
//! All lanes play at the same time, so that they meet the same network. Each
//! has its own job at the remote end, its own sockets and its own threads at both
//! ends, as in the other testbeds. Lane *n* of *N* begins *n*/*N* of an
//! interval after the first.
//!
//! The remote end's instants come by its own clock. They are brought into the
//! local end's with the line that the control connection has found; its error is
//! part of the result, since every one-way figure carries it.

mod capture;
mod lane;
mod service;

use std::io;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use capture::Capture;
use lagometer_capture::{LogSummary, PacketSocket};
use lagometer_remote::{Error, Line, Remote, RemoteJob};
use lagometer_units::Time;

use crate::live::{Backend, LaneStatus, Manner, OpenLane, RunWatch, ServerNotes, play_seed};
use crate::plan::Plan;
use crate::resolve::{Resolved, RunnableLane};
use crate::runner::SeedRun;

pub use service::LaneService;

/// How a run over a real path is carried out.
#[derive(Clone, Debug, Default)]
pub struct NetOptions {
    /// Seeds to play, one after the other.
    pub seeds: Vec<u64>,
    /// Where to write the packets of the first seed, as this end sees them. Those of lanes
    /// that are no endpoints over UDP are seen where [`may_capture_all`].
    pub pcap: Option<PathBuf>,
    /// Who watches, if anybody does.
    pub watch: Option<Arc<RunWatch>>,
}

/// What a run over a real path found.
#[derive(Debug)]
pub struct OverNet {
    /// One entry for each seed that was begun, in order.
    pub seeds: Vec<SeedRun>,
    /// How the two clocks stood at the end.
    pub clocks: Option<Line>,
    /// Why the remote end was gone before the run was over, if it was.
    pub gone: Option<String>,
    /// What became of the log of packets, if one was asked for.
    pub log: Option<LogSummary>,
}

/// Whether the packets of every lane can be written: the kernel's too, and those of
/// libraries.
///
/// # Errors
///
/// As [`PacketSocket::probe`].
pub fn may_capture_all() -> io::Result<()> {
    PacketSocket::probe()
}

/// How long an unreliable transport's lane goes on when nothing more comes.
const QUIET: Duration = Duration::from_secs(5);

/// Plays the experiment over the path to `remote`, which must serve
/// [`LaneService`].
///
/// `progress` is called every second with how many lane-seconds have been played
/// since it was last called. When `stop` becomes true, or the remote end is gone,
/// the lanes end where they are, and seeds that have not begun are left out.
///
/// # Errors
///
/// [`Error`] if the remote end was gone before any lane stood, or the log of packets
/// cannot be begun.
pub fn play_over_net(
    resolved: &Resolved,
    options: &NetOptions,
    remote: &Remote,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<OverNet, Error> {
    let names = resolved.lanes.iter().map(|lane| &*lane.name);
    let pcap = options.pcap.as_deref();
    let mut capture = pcap
        .map(|path| Capture::start(path, remote.clock(), names))
        .transpose()?;
    let mut log = None;
    let mut played = Vec::new();
    for &seed in &options.seeds {
        let is_over = stop.load(Ordering::Relaxed) || remote.gone().is_some();
        if is_over && !played.is_empty() {
            break;
        }
        let mut first = capture.take();
        let run = play_one(
            resolved,
            seed,
            remote,
            options,
            first.as_mut(),
            progress,
            stop,
        );
        log = log.or(first.and_then(Capture::finish));
        played.push(run?);
    }
    Ok(OverNet {
        seeds: played,
        clocks: remote.offset(),
        gone: remote.gone(),
        log,
    })
}

fn play_one(
    resolved: &Resolved,
    seed: u64,
    remote: &Remote,
    options: &NetOptions,
    capture: Option<&mut Capture>,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<SeedRun, Error> {
    let manner = Manner {
        clock: remote.clock(),
        is_virtual: false,
        quiet: QUIET,
        watch: options.watch.clone(),
    };
    let mut backend = PathBackend {
        remote,
        capture,
        jobs: Vec::new(),
    };
    let played = play_seed(resolved, seed, &mut backend, &manner, progress, stop)?;
    let lanes = played.into_runs(&resolved.plan, |number, client, server| {
        lane::wire(&resolved.lanes[number], client, server, remote)
    });
    Ok(SeedRun { seed, lanes })
}

/// A real path between, and every lane's server at the remote end.
struct PathBackend<'a> {
    remote: &'a Remote,
    capture: Option<&'a mut Capture>,
    /// Each lane's part of the remote end, where it has one.
    jobs: Vec<Option<RemoteJob>>,
}

impl Backend for PathBackend<'_> {
    type Error = Error;

    fn connect(
        &mut self,
        lane: &RunnableLane,
        plan: &Plan,
    ) -> Result<Result<OpenLane, String>, Error> {
        let number = self.jobs.len();
        let capture = self.capture.as_deref_mut().map(|capture| (capture, number));
        let opened = lane::open(self.remote, lane, plan, capture);
        if let Some(why) = self.remote.gone() {
            return Err(Error::Gone { why });
        }
        let (job, client) = opened.map_or_else(
            |why| (None, Err(why)),
            |(job, client)| (Some(job), Ok(client)),
        );
        self.jobs.push(job);
        Ok(client.map(|client| OpenLane {
            client,
            server: None,
        }))
    }

    fn notice(&self) -> Duration {
        let line = self.remote.offset();
        let round_trip = line.map_or(Duration::ZERO, |line| line.least_round_trip());
        // Every lane's remote end is notified in turn.
        round_trip * (self.jobs.len() as u32 + 1)
    }

    fn begin_impairments(&mut self, starts: &dyn Fn(usize) -> Time) -> Result<(), Error> {
        let Some(line) = self.remote.offset() else {
            return Ok(());
        };
        for (number, job) in self.jobs.iter().enumerate() {
            if let Some(job) = job {
                // If the remote end is gone, the lanes end soon.
                let _ = lane::send_start(job, line.to_remote(starts(number)));
            }
        }
        Ok(())
    }

    fn tend(&mut self, statuses: &[LaneStatus]) -> bool {
        let line = self.remote.offset();
        for (job, status) in self.jobs.iter().zip(statuses) {
            let Some(job) = job else { continue };
            while let Some(news) = job.next_event(Duration::ZERO) {
                lane::on_news(&news, status, line.as_ref());
            }
        }
        self.remote.gone().is_none()
    }

    fn collect(&mut self, lane: usize) -> ServerNotes {
        let job = self.jobs.get(lane).and_then(Option::as_ref);
        job.and_then(|job| lane::fetch(job, self.remote))
            .unwrap_or_default()
    }
}
