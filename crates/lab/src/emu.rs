//! The testbed `emu`: real sockets and real kernels, behind an emulated link.
//!
//! All lanes of a seed play at the same time, each between addresses of its
//! own and over its own link. They connect over calm links; when all stand
//! (or the lead-in is over) the links begin anew, and with them the impairments
//! and the schedule. Lane *n* of *N* begins *n*/*N* of an interval after the
//! first, its impairments likewise, so that they do not all ask for the processor
//! at the same instant and each meets the impairments it would meet alone.
//!
//! On a clock that waits for whoever computes, everything has its instant, as in
//! the testbed `sim`: see `timeline`.

mod lane;
mod timeline;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use lagometer_emu::{Error, LogSummary};
use lagometer_link::{Direction, Link};
use lagometer_stats::Audit;
use lagometer_testbed::{Emulated, Findings, Testbed, keep_audit};
use lagometer_units::Time;

use crate::live::{LaneStage, NOTICE, Supervisor, guarded, play_client, play_server};
use crate::plan::Plan;
use crate::resolve::Resolved;
use crate::runner::SeedRun;
use lane::{OpenLane, Played};
use timeline::Timeline;

/// How an emulated run is carried out.
#[derive(Clone, Debug)]
pub struct EmuOptions {
    /// `Emu`, `Relay` or `Kernel`; in the last the clock stands still while anybody
    /// computes: nothing may spin, and everything has its instant.
    pub testbed: Testbed,
    /// Seeds to play, one after the other.
    pub seeds: Vec<u64>,
    /// Lanes use IPv6; the relay has none of it.
    pub ipv6: bool,
    /// Where to write the packets of the first seed and their fates.
    pub pcap: Option<PathBuf>,
}

/// What an emulated run found.
#[derive(Debug)]
pub struct EmulatedRun {
    /// One entry for each seed that was begun, in order.
    pub seeds: Vec<SeedRun>,
    /// What the emulator says of its own work: of the first seed in which it
    /// failed, or else of the first.
    pub audit: Option<Audit>,
    /// What became of the log of packets, if one was asked for.
    pub log: Option<LogSummary>,
    /// When each lane's schedule started, of the first seed, on the calendar that
    /// the log goes by; none of a lane whose schedule never did.
    pub schedules: Vec<Option<SystemTime>>,
}

/// How long before the first message links and counters begin anew, where every
/// thread has known when long since.
const NOTICE_OF_LINKS: Duration = Duration::from_micros(500);
/// How long an unreliable transport's lane goes on when nothing more comes,
/// beyond the longest time that its link holds anything back.
const QUIET: Duration = Duration::from_secs(3);

/// Plays the experiment in real time.
///
/// `progress` is told every second how many lane-seconds have been played
/// since it was last told. When `stop` becomes true the lanes end where they
/// are, and seeds that have not begun are left out.
///
/// Call [`Permission::acquire`](lagometer_emu::Permission::acquire) before
/// the process has a second thread, unless a relay is asked for.
///
/// # Errors
///
/// [`Error`]: what the system refuses, and what broke the network.
pub fn play_emulated(
    resolved: &Resolved,
    options: &EmuOptions,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<EmulatedRun, Error> {
    let mut found = EmulatedRun {
        seeds: Vec::new(),
        audit: None,
        log: None,
        schedules: Vec::new(),
    };
    for &seed in &options.seeds {
        if stop.load(Ordering::Relaxed) && !found.seeds.is_empty() {
            break;
        }
        let log = options.pcap.clone().filter(|_| found.seeds.is_empty());
        let (run, between, schedules) = play_seed(resolved, options, log, seed, progress, stop)?;
        if found.seeds.is_empty() {
            found.schedules = schedules;
        }
        found.seeds.push(run);
        found.log = found.log.or(between.log);
        keep_audit(&mut found.audit, between.audit);
    }
    Ok(found)
}

fn play_seed(
    resolved: &Resolved,
    options: &EmuOptions,
    log: Option<PathBuf>,
    seed: u64,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<(SeedRun, Findings, Vec<Option<SystemTime>>), Error> {
    let names = resolved.lanes.iter().map(|lane| lane.name.clone());
    let link = |_, starts| link(resolved, seed, starts);
    let mut path = Emulated::build(options.testbed, options.ipv6, log, names, link)?;
    let clock = path.clock();
    let is_virtual = options.testbed == Testbed::Kernel;
    let opened = (0..=u8::MAX)
        .zip(&resolved.lanes)
        .map(|(number, lane)| {
            // A lane's own clock has not started yet.
            let now = if is_virtual { Time::ZERO } else { clock.now() };
            lane::open(&path, number, lane, seed, now)
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let timeline = Timeline::new(resolved, clock, is_virtual);
    let stages: Vec<LaneStage> = opened.iter().map(|_| LaneStage::default()).collect();
    let began = timeline.lane(0).now();
    let quiet = QUIET + longest_disturbance(resolved, seed);

    let played = thread::scope(|scope| {
        let mut threads = Vec::new();
        let lanes = resolved.lanes.iter().zip(&stages).zip(opened);
        for (number, ((lane, stage), opened)) in lanes.enumerate() {
            let clock = timeline.lane(number);
            let plan = Plan {
                seed,
                workload: lane.workload,
                ..resolved.plan.clone()
            };
            let quiet = (!lane.transport.properties().reliable).then_some(quiet);
            if opened.is_err() {
                stage.give_up();
            }
            threads.push(opened.map(|OpenLane { client, server }| {
                let same_plan = plan.clone();
                let server = scope.spawn(move || {
                    guarded(stage, || {
                        clock.await_zero();
                        play_server(server, &same_plan, stage, || clock.now())
                    })
                });
                let client = scope.spawn(move || {
                    guarded(stage, || {
                        clock.await_zero();
                        play_client(client, &plan, stage, quiet, || clock.now())
                    })
                });
                (client, server)
            }));
        }
        attend(&mut path, &timeline, &stages, progress, stop)?;
        let played: Vec<Played> = threads
            .into_iter()
            .map(|threads| {
                let (client, server) = threads?;
                // What a thread panics with is caught within it.
                Ok((client.join().ok(), server.join().ok()))
            })
            .collect();
        Ok::<_, Error>(played)
    })?;
    let schedules = (0..).zip(&stages).map(|(lane, stage)| {
        let started = stage.cue.starts_at();
        started.map(|at| timeline.lane(lane).on_calendar(at))
    });
    let schedules = schedules.collect();
    let between = path.collect()?;
    let lanes = played
        .into_iter()
        .zip(&between.lanes)
        .map(|(played, audit)| lane::outcome(played, audit, began, &resolved.plan))
        .collect();
    Ok((SeedRun { seed, lanes }, between, schedules))
}

/// Sees the lanes through: the lead-in, the cue, and the end.
fn attend(
    path: &mut Emulated<'_>,
    timeline: &Timeline,
    stages: &[LaneStage],
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<(), Error> {
    let clock = timeline.clock();
    let mut supervisor = Supervisor::new(stages, progress, clock.now());
    let mut outcome = Ok(());
    if let Some(first) = timeline.starts() {
        // Everybody knows when; links and counters begin just before.
        cue(timeline, stages, first);
        thread::sleep((first - NOTICE_OF_LINKS).since(clock.now()));
        outcome = path.begin_impairments(|lane| first + timeline.offset(lane));
        supervisor.note_started();
    }
    while supervisor.wait() {
        let now = clock.now();
        if stop.load(Ordering::Relaxed) || outcome.is_err() {
            supervisor.stop();
        }
        if supervisor.is_time_to_start(now) {
            let first = now + NOTICE;
            outcome = path.begin_impairments(|lane| first + timeline.offset(lane));
            cue(timeline, stages, first);
        }
        supervisor.report_progress(now);
    }
    outcome
}

/// Tells every lane when its schedule starts, the first at `first`.
fn cue(timeline: &Timeline, stages: &[LaneStage], first: Time) {
    for (lane, stage) in stages.iter().enumerate() {
        let start = first + timeline.offset(lane);
        stage.cue.start(timeline.lane(lane).told(start));
    }
}

/// A lane's link, whose impairments start at `starts`.
fn link(resolved: &Resolved, seed: u64, starts: Time) -> Link {
    Link::new(&resolved.profile, seed, resolved.regime, starts)
}

/// The longest that the link is disturbed at a stretch, either way.
fn longest_disturbance(resolved: &Resolved, seed: u64) -> Duration {
    let link = link(resolved, seed, Time::ZERO);
    let until = Time::ZERO + resolved.plan.duration + resolved.plan.grace;
    Direction::BOTH
        .into_iter()
        .flat_map(|direction| link.truth(direction, until))
        .map(|disturbance| disturbance.end.since(disturbance.start))
        .max()
        .unwrap_or_default()
}
