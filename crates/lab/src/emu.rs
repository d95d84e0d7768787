//! The testbed `emu`: real sockets and real kernels, behind an emulated link.
//!
//! All lanes of a seed play at the same time, each between addresses of its
//! own and over its own link, with its own copy of other traffic, or all over one
//! link that they share. They connect over calm links; when all stand
//! (or the lead-in is over) the links begin anew, and with them the impairments
//! and the schedule. Lane *n* of *N* begins *n*/*N* of an interval after the
//! first, its impairments likewise, so that they do not all ask for the processor
//! at the same instant and each meets the impairments it would meet alone.
//!
//! On a clock that waits for whoever computes, everything has its instant, as in
//! the testbed `sim`, and all lanes begin at once: see `live::timeline`.

use std::borrow::Cow;
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, SystemTime};

use lagometer_emu::{Error, LaneAudit, LogSummary};
use lagometer_link::{Direction, Link};
use lagometer_results::Audit;
use lagometer_testbed::{Emulated, Findings, Testbed, keep_audit};
use lagometer_units::Time;

use crate::live::{Backend, Links, Manner, OpenLane, RunWatch, ServerNotes, play_seed};
use crate::outcome::{PlayBytes, WireCounts};
use crate::plan::Plan;
use crate::resolve::{Resolved, RunnableLane};
use crate::runner::{LaneRun, SeedRun};

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
    /// How often a seed is played, at most, until the emulator is within its band. What
    /// lanes do has no part in it.
    pub tries: u32,
    /// Who watches, if anybody does.
    pub watch: Option<Arc<RunWatch>>,
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
    /// How often a seed was played again because the emulator was outside its band.
    pub again: u32,
    /// When each lane's schedule started, of the first seed, on the calendar that
    /// the log goes by; none of a lane whose schedule never did.
    pub schedules: Vec<Option<SystemTime>>,
}

/// How long an unreliable transport's lane goes on when nothing more comes,
/// beyond the longest time that its link holds anything back.
const QUIET: Duration = Duration::from_secs(3);

/// Plays the experiment in real time.
///
/// `progress` is called every second with how many lane-seconds have been played
/// since it was last called. When `stop` becomes true the lanes end where they
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
        again: 0,
        schedules: Vec::new(),
    };
    for &seed in &options.seeds {
        if stop.load(Ordering::Relaxed) && !found.seeds.is_empty() {
            break;
        }
        let log = options.pcap.clone().filter(|_| found.seeds.is_empty());
        let mut tries = 1;
        let (run, between, schedules) = loop {
            let played = play_one(resolved, options, log.clone(), seed, progress, stop)?;
            let is_valid = played.1.audit.valid;
            if is_valid || tries >= options.tries || stop.load(Ordering::Relaxed) {
                break played;
            }
            tries += 1;
            found.again += 1;
        };
        if found.seeds.is_empty() {
            found.schedules = schedules;
        }
        found.seeds.push(run);
        found.log = found.log.or(between.log);
        keep_audit(&mut found.audit, between.audit);
    }
    Ok(found)
}

fn play_one(
    resolved: &Resolved,
    options: &EmuOptions,
    log: Option<PathBuf>,
    seed: u64,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<(SeedRun, Findings, Vec<Option<SystemTime>>), Error> {
    let names = resolved.lanes.iter().map(|lane| lane.name.clone());
    let links = Links::new(resolved, seed, options.testbed == Testbed::Kernel);
    let link = |lane, starts| links.link(lane, starts);
    let path = Emulated::build(options.testbed, options.ipv6, log, names, link)?;
    for (lane, runnable) in (0..=u8::MAX).zip(&resolved.lanes) {
        if runnable.transport.asks_for_ecn() {
            path.ask_for_ecn(lane)?;
        }
    }
    let manner = Manner {
        clock: path.clock(),
        is_virtual: options.testbed == Testbed::Kernel,
        quiet: QUIET + longest_disturbance(resolved, seed),
        watch: options.watch.clone(),
    };
    let mut backend = EmulatedBackend {
        path,
        is_virtual: manner.is_virtual,
        connected: 0,
    };
    let mut played = play_seed(resolved, seed, &mut backend, &manner, progress, stop)?;
    let schedules = std::mem::take(&mut played.schedules);
    let ended = backend.path.clock().now();
    let between = backend.path.collect()?;
    let mut lanes = played.into_runs(&resolved.plan, |lane, _, _| wire(&between.lanes[lane]));
    if options.testbed != Testbed::Kernel {
        for (run, audit) in lanes.iter_mut().zip(&between.lanes) {
            charge(run, audit);
        }
    }
    for (lane, run) in lanes.iter_mut().enumerate() {
        if let LaneRun::Played(outcome) | LaneRun::Cut(outcome, _) = run {
            outcome.bottleneck = links.bottleneck(lane, ended);
        }
    }
    Ok((SeedRun { seed, lanes }, between, schedules))
}

/// Emulated links between, and both ends of every lane here.
struct EmulatedBackend<'a> {
    path: Emulated<'a>,
    is_virtual: bool,
    connected: u8,
}

impl Backend for EmulatedBackend<'_> {
    type Error = Error;

    fn connect(
        &mut self,
        lane: &RunnableLane,
        plan: &Plan,
    ) -> Result<Result<OpenLane, String>, Error> {
        // The lanes' own clock starts at this instant.
        let now = if self.is_virtual {
            Time::ZERO
        } else {
            self.path.clock().now()
        };
        let number = self.connected;
        // There is a number for each lane that the path was built with.
        self.connected = number.saturating_add(1);
        let opening = self.path.server(number, plan.seed, now);
        let spec = lane.transport.clone();
        let server = self.path.run_remote(move || spec.server(&opening))?;
        let opening = self.path.client(number, plan.seed, now);
        let spec = lane.transport.clone();
        let client = self.path.run_local(move || spec.client(&opening))?;
        Ok(match (client, server) {
            (Ok(client), Ok(server)) => Ok(OpenLane {
                client,
                server: Some(server),
            }),
            (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
        })
    }

    fn begin_impairments(&mut self, starts: &dyn Fn(usize) -> Time) -> Result<(), Error> {
        self.path.begin_impairments(starts)
    }

    fn collect(&mut self, _: usize) -> ServerNotes {
        ServerNotes::default()
    }
}

/// Charges a lane with what the kernel did for it on the router's thread.
fn charge(run: &mut LaneRun, audit: &LaneAudit) {
    if let LaneRun::Played(outcome) | LaneRun::Cut(outcome, _) = run
        && let Some(cost) = &mut outcome.cost
    {
        let ways = [audit.up.kernel_used, audit.down.kernel_used];
        cost.kernel_cpu = ways.into_iter().flatten().reduce(|up, down| up + down);
        // What goes up is delivered to the server.
        cost.server_cpu += audit.up.kernel_used.unwrap_or_default();
    }
}

/// What the router saw of the lane since measuring began.
fn wire(audit: &LaneAudit) -> WireCounts {
    let mut wire = WireCounts {
        up_packets: audit.up.packets,
        down_packets: audit.down.packets,
        bytes: audit.up.bytes + audit.down.bytes,
        play: PlayBytes {
            up: audit.up.bytes,
            down: audit.down.bytes,
            over: Duration::ZERO,
        },
        ..WireCounts::default()
    };
    for way in [&audit.up, &audit.down] {
        let by_link = way
            .dropped
            .iter()
            .map(|(reason, &packets)| (Cow::Owned(reason.clone()), packets));
        let others = [
            ("refused", way.refused),
            ("accident", way.lost_by_accident()),
        ];
        let others = others.map(|(reason, packets)| (Cow::Borrowed(reason), packets));
        for (reason, packets) in by_link.chain(others).filter(|&(_, packets)| packets > 0) {
            *wire.dropped.entry(reason).or_default() += packets;
        }
    }
    wire
}

/// The longest that the link is disturbed at a stretch, either way.
fn longest_disturbance(resolved: &Resolved, seed: u64) -> Duration {
    let link = Link::new(&resolved.profile, seed, resolved.regime, Time::ZERO);
    let until = Time::ZERO + resolved.plan.duration + resolved.plan.grace;
    Direction::BOTH
        .into_iter()
        .flat_map(|direction| link.truth(direction, until))
        .map(|disturbance| disturbance.end.since(disturbance.start))
        .max()
        .unwrap_or_default()
}
