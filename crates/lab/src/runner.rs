//! The testbed `sim`'s runner: every lane of every seed, side by side, on as many threads as asked
//! for.
//!
//! Lanes of one seed advance together, a slice of virtual time at a time, so
//! that a run that is cut short has played all of them for about equally
//! long. How many threads play changes nothing of what is found: lanes share
//! nothing but the plan.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Condvar, Mutex, MutexGuard};
use std::time::Duration;

use lagometer_link::{Link, SharedLink};
use lagometer_testbed::EventDriven;
use lagometer_transport::Spec;
use lagometer_units::Time;

use crate::outcome::LaneOutcome;
use crate::plan::Plan;
use crate::resolve::{Resolved, RunnableLane};
use crate::sim::{OfferedPacket, SharedLinkSim, SimCapture, SimLane};

/// Virtual time that a lane plays before another has its turn.
const SLICE: Duration = Duration::from_secs(20);

/// Virtual time after which a lane looks whether it is to stop. Where packets are
/// many a slice may take minutes.
const STEP: Duration = Duration::from_millis(100);
/// Time measured that a lane plays though it is to stop, so that there is something
/// to report.
const LEAST: Duration = Duration::from_secs(2);

/// How a run is carried out.
#[derive(Clone, Debug)]
pub struct RunOptions {
    /// Seeds to play, in order.
    pub seeds: Vec<u64>,
    /// Threads that play; at least one.
    pub threads: usize,
}

/// What every lane of one seed did.
#[derive(Debug)]
pub struct SeedRun {
    /// The seed.
    pub seed: u64,
    /// One result for each runnable lane, in the experiment's order.
    pub lanes: Vec<LaneRun>,
}

/// What one lane did, or why nothing can be said.
#[derive(Debug)]
pub enum LaneRun {
    /// It played to its end.
    Played(LaneOutcome),
    /// It was stopped on the way, after so much virtual time.
    Cut(LaneOutcome, Time),
    /// Its transport broke an assumption of its own; the message says which.
    Panicked(String),
    /// Its sockets could not be made; the message says why.
    Unopened(String),
}

/// Plays the experiment.
///
/// `progress` is called, from any thread, with how many lane-seconds have been played
/// since it was last called. When `stop` becomes true the lanes end where they
/// are, though every lane of the first seed measures for two seconds, so that there is
/// something to report; seeds that have not started are left out.
pub fn play(
    resolved: &Resolved,
    options: &RunOptions,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Vec<SeedRun> {
    play_captured(resolved, options, None, progress, stop)
}

/// As [`play`], with the packets of the first seed's lanes in `capture`.
pub fn play_captured(
    resolved: &Resolved,
    options: &RunOptions,
    capture: Option<&SimCapture<'_>>,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Vec<SeedRun> {
    let board = Board {
        resolved,
        options,
        capture,
        state: Mutex::new(BoardState {
            queue: VecDeque::new(),
            next_seed: 0,
            playing: 0,
            slices: 0,
            finished: Vec::new(),
        }),
        changed: Condvar::new(),
    };
    std::thread::scope(|scope| {
        for _ in 0..options.threads.max(1) {
            scope.spawn(|| board.work(progress, stop));
        }
    });
    board.into_results()
}

/// Plays lane number `lane` with `seed`, and whoever else is on its link, and returns
/// the packets that it put on the link, in order.
///
/// # Panics
///
/// Where there is no such lane, or it is not resolved for virtual time.
#[must_use]
pub fn packets_of(resolved: &Resolved, lane: usize, seed: u64) -> Vec<OfferedPacket> {
    let (first, lanes) = if resolved.experiment.shared {
        (0, &*resolved.lanes)
    } else {
        (lane, &resolved.lanes[lane..=lane])
    };
    match start(resolved, lanes, seed) {
        Play::Lane(mut sim) => {
            sim.remember_packets();
            sim.run_until(Time::MAX);
            sim.packets().to_vec()
        }
        Play::Shared(mut shared) => {
            shared.remember_packets(lane - first);
            shared.run_until(Time::MAX);
            let mut packets = shared.packets(lane - first).to_vec();
            packets.sort_by_key(|packet| packet.at);
            packets
        }
    }
}

/// The lanes on one link.
fn start(resolved: &Resolved, lanes: &[RunnableLane], seed: u64) -> Play {
    if let ([lane], false) = (lanes, resolved.needs_shared_link()) {
        return Play::Lane(Box::new(alone(resolved, lane, seed)));
    }
    let shared_lanes = lanes.iter().map(|lane| {
        let sim = SimLane::on_shared_link(&plan_of(resolved, lane, seed), spec_of(lane));
        (lane.name.clone(), sim)
    });
    let starts = resolved.plan.measuring_starts();
    let (profile, regime) = (&resolved.profile, resolved.regime);
    let link = SharedLink::new(profile, seed, regime, starts);
    let plan = resolved.plan.under(seed);
    let shared = SharedLinkSim::new(&plan, shared_lanes.collect(), &resolved.cross, link);
    Play::Shared(Box::new(shared))
}

/// A lane over a link of its own.
fn alone(resolved: &Resolved, lane: &RunnableLane, seed: u64) -> SimLane {
    let plan = plan_of(resolved, lane, seed);
    let starts = plan.measuring_starts();
    let link = Link::new(&resolved.profile, seed, resolved.regime, starts);
    SimLane::new(&plan, spec_of(lane), link)
}

/// What a lane plays under a seed.
pub(crate) fn plan_of(resolved: &Resolved, lane: &RunnableLane, seed: u64) -> Plan {
    Plan {
        workload: lane.workload.clone(),
        offer: lane.transport.offer(),
        ..resolved.plan.under(seed)
    }
}

/// The lanes that are to be played, shared by the threads that play them.
struct Board<'a, 'c> {
    resolved: &'a Resolved,
    options: &'a RunOptions,
    /// Of the first seed.
    capture: Option<&'a SimCapture<'c>>,
    state: Mutex<BoardState>,
    changed: Condvar,
}

struct BoardState {
    queue: VecDeque<Job>,
    next_seed: usize,
    playing: usize,
    /// Slices taken so far, by all lanes.
    slices: usize,
    finished: Vec<(usize, usize, LaneRun)>,
}

/// One lane of one seed, or all lanes that share a link.
struct Job {
    seed_index: usize,
    /// The first of its lanes.
    lane_index: usize,
    play: Play,
}

enum Play {
    /// A lane with a link of its own.
    Lane(Box<SimLane>),
    /// One or several lanes and whoever else is on their link.
    Shared(Box<SharedLinkSim>),
}

impl Board<'_, '_> {
    fn work(&self, progress: &(dyn Fn(Duration) + Sync), stop: &AtomicBool) {
        let least = self.resolved.plan.measuring_starts() + LEAST;
        while let Some(mut job) = self.take(stop) {
            let before = job.play.now();
            let played = catch_unwind(AssertUnwindSafe(|| job.play.play_a_slice(least, stop)));
            progress(job.play.now().since(before) * job.play.lanes());
            if let Some(capture) = self.capture
                && job.seed_index == 0
            {
                let is_over = !matches!(played, Ok(false));
                job.play.hand_over(capture, job.lane_index, is_over);
            }
            match played {
                Ok(false) => self.put_back(job),
                Ok(true) => {
                    let runs = job.play.outcomes().into_iter().map(LaneRun::Played);
                    self.finish(job.seed_index, job.lane_index, runs.collect());
                }
                Err(panic) => {
                    let why = panic_message(&*panic);
                    let runs = (0..job.play.lanes()).map(|_| LaneRun::Panicked(why.clone()));
                    self.finish(job.seed_index, job.lane_index, runs.collect());
                }
            }
        }
    }

    /// The next lane to play; waits while others might still hand theirs
    /// back, and returns nothing when all is played or play is to stop.
    fn take(&self, stop: &AtomicBool) -> Option<Job> {
        let mut state = self.lock();
        loop {
            let all_received = state.slices >= self.jobs_of_a_seed();
            if all_received && stop.load(Ordering::Relaxed) {
                return None;
            }
            if state.queue.is_empty()
                && let Some(&seed) = self.options.seeds.get(state.next_seed)
            {
                let seed_index = state.next_seed;
                state.next_seed += 1;
                self.start_seed(&mut state, seed_index, seed);
            }
            if let Some(job) = state.queue.pop_front() {
                state.playing += 1;
                state.slices += 1;
                return Some(job);
            }
            if state.playing == 0 && state.next_seed >= self.options.seeds.len() {
                return None;
            }
            if state.playing == 0 {
                continue;
            }
            state = self
                .changed
                .wait(state)
                .unwrap_or_else(std::sync::PoisonError::into_inner);
        }
    }

    fn jobs_of_a_seed(&self) -> usize {
        if self.resolved.experiment.shared {
            1
        } else {
            self.resolved.lanes.len()
        }
    }

    /// Queues every lane of a seed, ready to play.
    fn start_seed(&self, state: &mut BoardState, seed_index: usize, seed: u64) {
        let lanes = &self.resolved.lanes;
        let together = lanes.len() / self.jobs_of_a_seed().max(1);
        for (group, lanes) in lanes.chunks(together.max(1)).enumerate() {
            let lane_index = group * together;
            match catch_unwind(AssertUnwindSafe(|| start(self.resolved, lanes, seed))) {
                Ok(mut play) => {
                    if self.capture.is_some() && seed_index == 0 {
                        play.capture_packets();
                    }
                    state.queue.push_back(Job {
                        seed_index,
                        lane_index,
                        play,
                    });
                }
                Err(panic) => {
                    let why = panic_message(&*panic);
                    if let (Some(capture), 0) = (self.capture, seed_index) {
                        for lane in lane_index..lane_index + lanes.len() {
                            capture.take(lane, Vec::new(), Time::MAX);
                        }
                    }
                    state.finished.extend(
                        (lane_index..)
                            .zip(lanes)
                            .map(|(index, _)| (seed_index, index, LaneRun::Panicked(why.clone()))),
                    );
                }
            }
        }
    }

    fn put_back(&self, job: Job) {
        let mut state = self.lock();
        state.playing -= 1;
        state.queue.push_back(job);
        drop(state);
        self.changed.notify_all();
    }

    fn finish(&self, seed_index: usize, lane_index: usize, runs: Vec<LaneRun>) {
        let mut state = self.lock();
        state.playing -= 1;
        let runs = (lane_index..).zip(runs);
        let runs = runs.map(|(lane_index, run)| (seed_index, lane_index, run));
        state.finished.extend(runs);
        drop(state);
        self.changed.notify_all();
    }

    fn lock(&self) -> MutexGuard<'_, BoardState> {
        // A panic while the lock is held is impossible: lanes play outside it.
        self.state
            .lock()
            .unwrap_or_else(std::sync::PoisonError::into_inner)
    }

    /// Everything that was played, by seed and lane; seeds of which some lane
    /// never started are left out.
    fn into_results(self) -> Vec<SeedRun> {
        let state = self
            .state
            .into_inner()
            .unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut runs = state.finished;
        for mut job in state.queue {
            let now = job.play.now();
            let cut = (job.lane_index..).zip(job.play.outcomes());
            runs.extend(cut.map(|(lane_index, outcome)| {
                (job.seed_index, lane_index, LaneRun::Cut(outcome, now))
            }));
        }
        runs.sort_by_key(|&(seed_index, lane_index, _)| (seed_index, lane_index));
        let mut results: Vec<SeedRun> = self.options.seeds[..state.next_seed]
            .iter()
            .map(|&seed| SeedRun {
                seed,
                lanes: Vec::new(),
            })
            .collect();
        for (seed_index, _, run) in runs {
            results[seed_index].lanes.push(run);
        }
        results
    }
}

impl Play {
    /// Plays on for a [`SLICE`], or until `least` where it is to stop; says whether it
    /// has ended.
    fn play_a_slice(&mut self, least: Time, stop: &AtomicBool) -> bool {
        let end = self.now() + SLICE;
        let mut has_ended = false;
        while !has_ended && self.now() < end {
            if self.now() >= least && stop.load(Ordering::Relaxed) {
                break;
            }
            has_ended = self.run_until((self.now() + STEP).min(end));
        }
        has_ended
    }

    fn run_until(&mut self, limit: Time) -> bool {
        match self {
            Self::Lane(lane) => lane.run_until(limit),
            Self::Shared(shared) => shared.run_until(limit),
        }
    }

    fn now(&self) -> Time {
        match self {
            Self::Lane(lane) => lane.now(),
            Self::Shared(shared) => shared.now(),
        }
    }

    fn lanes(&self) -> u32 {
        match self {
            Self::Lane(_) => 1,
            Self::Shared(shared) => shared.lanes(),
        }
    }

    fn capture_packets(&mut self) {
        match self {
            Self::Lane(lane) => lane.capture_packets(),
            Self::Shared(shared) => shared.capture_packets(),
        }
    }

    /// Hands over what was put on the link since it did so last; whether that was all
    /// there is.
    fn hand_over(&mut self, capture: &SimCapture<'_>, first_lane: usize, is_over: bool) {
        match self {
            Self::Lane(lane) => {
                let until = if is_over { Time::MAX } else { lane.now() };
                capture.take(first_lane, lane.take_captured(), until);
            }
            Self::Shared(shared) => shared.hand_over(capture, first_lane, is_over),
        }
    }

    fn outcomes(&mut self) -> Vec<LaneOutcome> {
        match self {
            Self::Lane(lane) => vec![lane.outcome()],
            Self::Shared(shared) => shared.outcomes(),
        }
    }
}

/// The lane's endpoints.
///
/// # Panics
///
/// For a lane that has no place in virtual time, which resolving for that testbed
/// leaves out.
fn spec_of(lane: &RunnableLane) -> &Spec {
    let endpoint = lane.transport.endpoint();
    endpoint.unwrap_or_else(|| panic!("{} has no endpoints", lane.name))
}

/// The words of a panic.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> String {
    panic
        .downcast_ref::<String>()
        .map(String::as_str)
        .or_else(|| panic.downcast_ref::<&str>().copied())
        .unwrap_or("no message")
        .to_owned()
}
