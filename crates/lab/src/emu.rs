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

mod audit;
mod lane;
mod path;
mod timeline;

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use lagometer_emu::{Clock, Error, LaneSetup, LogSummary, Outcome, Settings, Waiting};
use lagometer_link::{Direction, Link};
use lagometer_stats::Audit;
use lagometer_units::Time;

use crate::live::{LaneStage, NOTICE, Supervisor, guarded, play_client, play_server};
use crate::plan::Plan;
use crate::resolve::Resolved;
use crate::runner::SeedRun;
pub use audit::audit_of;
use lane::{OpenLane, Played};
use path::EmulatedPath;
use timeline::Timeline;

/// How an emulated run is carried out.
#[derive(Clone, Debug, Default)]
pub struct EmuOptions {
    /// Seeds to play, one after the other.
    pub seeds: Vec<u64>,
    /// Lanes use IPv6; the relay has none of it.
    pub ipv6: bool,
    /// A relay of UDP datagrams on the loopback device in place of hosts.
    pub relay: bool,
    /// Where to write the packets of the first seed and their fates.
    pub pcap: Option<PathBuf>,
    /// The clock stands still while anybody computes: nothing may spin, and
    /// everything has its instant.
    pub is_virtual: bool,
}

/// What an emulated run found.
#[derive(Debug)]
pub struct Emulated {
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
) -> Result<Emulated, Error> {
    let mut found = Emulated {
        seeds: Vec::new(),
        audit: None,
        log: None,
        schedules: Vec::new(),
    };
    for &seed in &options.seeds {
        if stop.load(Ordering::Relaxed) && !found.seeds.is_empty() {
            break;
        }
        let settings = Settings {
            log: options.pcap.clone().filter(|_| found.seeds.is_empty()),
            waiting: if options.is_virtual {
                Waiting::Sleep
            } else {
                Waiting::default()
            },
            ..Settings::default()
        };
        let (run, outcome, schedules) =
            play_seed(resolved, options, &settings, seed, progress, stop)?;
        if found.seeds.is_empty() {
            found.schedules = schedules;
        }
        found.seeds.push(run);
        found.log = found.log.or(outcome.log);
        let audit = audit_of(&outcome.audit);
        match &found.audit {
            Some(before) if audit.valid || !before.valid => {}
            _ => found.audit = Some(audit),
        }
    }
    Ok(found)
}

fn play_seed(
    resolved: &Resolved,
    options: &EmuOptions,
    settings: &Settings,
    seed: u64,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<(SeedRun, Outcome, Vec<Option<SystemTime>>), Error> {
    let clock = Clock::start();
    let setups = resolved
        .lanes
        .iter()
        .map(|lane| LaneSetup {
            name: lane.name.clone(),
            link: link(resolved, seed, Time::MAX),
        })
        .collect();
    let mut path = EmulatedPath::build(options, settings, clock, setups)?;
    let opened = (0..=u8::MAX)
        .zip(&resolved.lanes)
        .map(|(number, lane)| {
            // A lane's own clock has not started yet.
            let now = if options.is_virtual {
                Time::ZERO
            } else {
                clock.now()
            };
            lane::open(&path, number, lane, seed, now)
        })
        .collect::<Result<Vec<_>, Error>>()?;
    let timeline = Timeline::new(resolved, clock, options.is_virtual);
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
        attend(
            resolved, seed, &mut path, &timeline, &stages, progress, stop,
        )?;
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
    let outcome = path.stop()?;
    let lanes = played
        .into_iter()
        .zip(&outcome.audit.lanes)
        .map(|(played, audit)| lane::outcome(played, audit, began, &resolved.plan))
        .collect();
    Ok((SeedRun { seed, lanes }, outcome, schedules))
}

/// Sees the lanes through: the lead-in, the cue, and the end.
fn attend(
    resolved: &Resolved,
    seed: u64,
    path: &mut EmulatedPath,
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
        outcome = path.begin(links(resolved, seed, timeline, first));
        supervisor.note_started();
    }
    while supervisor.wait() {
        let now = clock.now();
        if stop.load(Ordering::Relaxed) || outcome.is_err() {
            supervisor.stop();
        }
        if supervisor.is_time_to_start(now) {
            let first = now + NOTICE;
            outcome = path.begin(links(resolved, seed, timeline, first));
            cue(timeline, stages, first);
        }
        supervisor.report_progress(now);
    }
    outcome
}

/// The links, whose impairments start with the schedule: the first lane's at
/// `first`.
fn links(resolved: &Resolved, seed: u64, timeline: &Timeline, first: Time) -> Vec<Link> {
    let starts = (0..resolved.lanes.len()).map(|lane| first + timeline.offset(lane));
    starts.map(|start| link(resolved, seed, start)).collect()
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
