//! The testbed `net`: real sockets over a real path, to a remote end on another
//! machine.
//!
//! All lanes play at the same time, so that they meet the same network. Each
//! has its own job at the remote end, its own sockets and its own threads at both
//! ends, as in the other testbeds. Lane *n* of *N* begins *n*/*N* of an
//! interval after the first.
//!
//! The remote end's instants come by its own clock. They are brought into the
//! local end's with the line that the conversation has found; its error is
//! part of the result, since every one-way figure carries it.

mod lane;
mod service;

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lagometer_remote::{Error, Line, Remote, RemoteJob};

use crate::live::{LaneStage, NOTICE, Supervisor, guarded, play_client, starts};
use crate::resolve::Resolved;
use crate::runner::SeedRun;
use lane::{Left, OpenLane};

pub use service::LaneService;

/// What a run over a real path found.
#[derive(Debug)]
pub struct OverNet {
    /// One entry for each seed that was begun, in order.
    pub seeds: Vec<SeedRun>,
    /// How the two clocks stood at the end.
    pub clocks: Option<Line>,
    /// Why the remote end was gone before the run was over, if it was.
    pub gone: Option<String>,
}

/// How long an unreliable transport's lane goes on when nothing more comes.
const QUIET: Duration = Duration::from_secs(5);

/// Plays the experiment over the path to `remote`, which must serve
/// [`LaneService`].
///
/// `progress` is told every second how many lane-seconds have been played
/// since it was last told. When `stop` becomes true, or the remote end is gone,
/// the lanes end where they are, and seeds that have not begun are left out.
///
/// # Errors
///
/// [`Error`] if the remote end was gone before any lane stood.
pub fn play_over_net(
    resolved: &Resolved,
    seeds: &[u64],
    remote: &Remote,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<OverNet, Error> {
    let mut played = Vec::new();
    for &seed in seeds {
        let is_over = stop.load(Ordering::Relaxed) || remote.gone().is_some();
        if is_over && !played.is_empty() {
            break;
        }
        played.push(play_seed(resolved, seed, remote, progress, stop)?);
    }
    Ok(OverNet {
        seeds: played,
        clocks: remote.offset(),
        gone: remote.gone(),
    })
}

fn play_seed(
    resolved: &Resolved,
    seed: u64,
    remote: &Remote,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<SeedRun, Error> {
    let clock = remote.clock();
    let began = clock.now();
    let mut opened = Vec::new();
    for lane in &resolved.lanes {
        opened.push(lane::open(remote, lane, &resolved.plan, seed));
        if let Some(why) = remote.gone() {
            return Err(Error::Gone { why });
        }
    }
    let stages: Vec<LaneStage> = opened.iter().map(|_| LaneStage::default()).collect();
    let (jobs, clients): (Vec<_>, Vec<_>) = opened
        .into_iter()
        .map(|lane| match lane {
            Ok(OpenLane { job, side }) => (Ok(job), Some(side)),
            Err(why) => (Err(why), None),
        })
        .unzip();
    let left: Vec<Left> = thread::scope(|scope| {
        let threads: Vec<_> = resolved
            .lanes
            .iter()
            .zip(clients)
            .zip(&stages)
            .map(|((lane, side), stage)| {
                let Some(side) = side else {
                    stage.give_up();
                    return None;
                };
                let plan = lane::plan(lane, &resolved.plan, seed);
                let quiet = (!lane.transport.properties().reliable).then_some(QUIET);
                Some(scope.spawn(move || {
                    guarded(stage, || {
                        play_client(side, &plan, stage, quiet, || clock.now())
                    })
                }))
            })
            .collect();
        attend(resolved, &jobs, &stages, remote, progress, stop);
        threads
            .into_iter()
            // What a thread panics with is caught within it.
            .map(|thread| thread.and_then(|thread| thread.join().ok()))
            .collect()
    });
    let lanes = resolved
        .lanes
        .iter()
        .zip(jobs)
        .zip(left)
        .map(|((lane, job), left)| lane::outcome(lane, job, left, began, remote, &resolved.plan))
        .collect();
    Ok(SeedRun { seed, lanes })
}

/// Sees the lanes through: the lead-in, the cue, and the end.
fn attend(
    resolved: &Resolved,
    jobs: &[Result<RemoteJob, String>],
    stages: &[LaneStage],
    remote: &Remote,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) {
    let clock = remote.clock();
    let mut supervisor = Supervisor::new(stages, progress, clock.now());
    while supervisor.wait() {
        let now = clock.now();
        if stop.load(Ordering::Relaxed) || remote.gone().is_some() {
            supervisor.stop();
        }
        let line = remote.offset();
        for (job, stage) in jobs.iter().zip(stages) {
            let Ok(job) = job else { continue };
            while let Some(news) = job.next_event(Duration::ZERO) {
                lane::heed(&news, stage, line.as_ref());
            }
        }
        if supervisor.is_time_to_start(now) {
            start(resolved, jobs, stages, remote, line.as_ref());
        }
        supervisor.report_progress(now);
    }
}

/// Starts the schedule of every lane, and tells the remote end when by its own
/// clock.
fn start(
    resolved: &Resolved,
    jobs: &[Result<RemoteJob, String>],
    stages: &[LaneStage],
    remote: &Remote,
    line: Option<&Line>,
) {
    let round_trip = line.map_or(Duration::ZERO, Line::least_round_trip);
    // Every lane's remote end is told in turn.
    let first = remote.clock().now() + NOTICE + round_trip * (stages.len() as u32 + 1);
    let interval = resolved.plan.workload.interval.duration();
    let starts = starts(stages.len(), first, interval);
    for ((start, job), stage) in starts.zip(jobs).zip(stages) {
        stage.cue.start(start);
        if let (Ok(job), Some(line)) = (job, line) {
            // If the remote end is gone, the lanes end soon.
            let _ = lane::send_start(job, line.to_remote(start));
        }
    }
}
