//! One seed of an experiment over real sockets, whatever lies between the ends of
//! its lanes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, SystemTime};

use lagometer_socket::{BoxedConnection, Counters};
use lagometer_units::{Clock, Time};

use super::client::{ClientOutcome, play_client};
use super::guarded;
use super::server::{ServerOutcome, play_server};
use super::status::LaneStatus;
use super::supervisor::{NOTICE, Supervisor};
use super::timeline::Timeline;
use super::watch::{LaneFigures, RunWatch, WatchedSeed};
use crate::outcome::{Cost, LaneOutcome, WireCounts};
use crate::plan::Plan;
use crate::resolve::{Resolved, RunnableLane};
use crate::runner::{LaneRun, plan_of};
use crate::workload::{Findings, Misdeliveries, RemoteArrival};

/// What lies between the ends of lanes, and where their servers are. Lanes have
/// numbers, in the order in which they are connected.
pub(crate) trait Backend {
    /// Why nothing can be played.
    type Error;

    /// Opens the ends of the next lane, or says why the lane has none.
    fn connect(
        &mut self,
        lane: &RunnableLane,
        plan: &Plan,
    ) -> Result<Result<OpenLane, String>, Self::Error>;

    /// How much earlier than by [`NOTICE`] it must be known when schedules start.
    fn notice(&self) -> Duration {
        Duration::ZERO
    }

    /// Has each lane's impairments start with its schedule, at the instant that
    /// `starts` gives for its number. What is counted is counted from now on.
    fn begin_impairments(&mut self, starts: &dyn Fn(usize) -> Time) -> Result<(), Self::Error>;

    /// Passes on what servers elsewhere say of themselves; false when there is
    /// nothing between the ends any more.
    fn tend(&mut self, _statuses: &[LaneStatus]) -> bool {
        true
    }

    /// What the server of lane number `lane` noted, where it is not played here.
    fn collect(&mut self, lane: usize) -> ServerNotes;
}

/// The ends of a lane that are played here.
pub(crate) struct OpenLane {
    pub(crate) client: BoxedConnection,
    /// None where the server is elsewhere.
    pub(crate) server: Option<BoxedConnection>,
}

/// What a lane's server noted since measuring began.
#[derive(Debug, Default)]
pub(crate) struct ServerNotes {
    pub(crate) arrivals: Vec<RemoteArrival>,
    pub(crate) payload_bytes: u64,
    pub(crate) misdeliveries: Misdeliveries,
    pub(crate) cpu: Duration,
    pub(crate) counters: Counters,
}

/// How lanes are played.
pub(crate) struct Manner {
    pub(crate) clock: Clock,
    /// The clock stands still while anybody computes.
    pub(crate) is_virtual: bool,
    /// How long an unreliable transport's lane goes on when nothing more comes.
    pub(crate) quiet: Duration,
    /// Who watches, if anybody does.
    pub(crate) watch: Option<Arc<RunWatch>>,
}

/// What the lanes of a seed leave.
pub(crate) struct Played {
    /// What the two ends of each lane did, or why there is nothing to say.
    pub(crate) lanes: Vec<Result<(ClientOutcome, ServerNotes), Box<LaneRun>>>,
    /// When each lane's schedule started, on the calendar; none of a lane whose
    /// schedule never did.
    pub(crate) schedules: Vec<Option<SystemTime>>,
    /// When the connections were begun.
    began: Time,
}

/// How long before the first message links and counters begin anew, where every
/// thread has known when long since.
const NOTICE_OF_LINKS: Duration = Duration::from_micros(500);

/// Plays every lane of a seed at the same time.
///
/// `progress` is called every second with how many lane-seconds have been played since it
/// was last called. When `stop` becomes true the lanes end where they are.
pub(crate) fn play_seed<B: Backend>(
    resolved: &Resolved,
    seed: u64,
    backend: &mut B,
    manner: &Manner,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<Played, B::Error> {
    let timeline = Timeline::new(resolved, manner.clock, manner.is_virtual);
    timeline.await_zero();
    let clock = timeline.lanes();
    let mut lanes = Vec::new();
    for lane in &resolved.lanes {
        let plan = plan_of(resolved, lane, seed);
        let opened = backend.connect(lane, &plan)?;
        let quiet = (!lane.transport.properties().reliable).then_some(manner.quiet);
        lanes.push(opened.map(|opened| (opened, plan, quiet)));
    }
    let threshold = resolved.known_lag_threshold();
    let figures = lanes.iter().map(|_| Arc::new(LaneFigures::new(threshold)));
    let figures: Vec<_> = figures.collect();
    if let Some(watch) = &manner.watch {
        watch.begin(WatchedSeed {
            seed,
            clock: manner.clock,
            lanes: figures.clone(),
        });
    }
    let statuses: Vec<LaneStatus> = figures.into_iter().map(LaneStatus::watched).collect();
    let began = clock.now();
    let lanes = thread::scope(|scope| {
        let mut threads = Vec::new();
        for (lane, status) in lanes.into_iter().zip(&statuses) {
            if lane.is_err() {
                status.give_up();
            }
            threads.push(lane.map(|(OpenLane { client, server }, plan, quiet)| {
                let same_plan = plan.clone();
                let server = server.map(|server| {
                    scope.spawn(move || {
                        guarded(status, || {
                            play_server(server, &same_plan, status, || clock.now())
                        })
                    })
                });
                let client = scope.spawn(move || {
                    guarded(status, || {
                        play_client(client, &plan, status, quiet, || clock.now())
                    })
                });
                (client, server)
            }));
        }
        attend(backend, &timeline, &statuses, progress, stop)?;
        let lanes = threads.into_iter().enumerate().map(|(number, threads)| {
            let (client, server) = threads.map_err(|why| Box::new(LaneRun::Unopened(why)))?;
            let client = joined(client)?;
            let server = match server {
                Some(server) => joined(server)?.into(),
                None => backend.collect(number),
            };
            Ok((client, server))
        });
        Ok(lanes.collect())
    })?;
    let schedules = statuses.iter().map(|status| {
        let started = status.cue.starts_at();
        started.map(|at| clock.on_calendar(at))
    });
    Ok(Played {
        lanes,
        schedules: schedules.collect(),
        began,
    })
}

/// What a thread leaves. What it panics with is caught within it.
fn joined<T>(thread: thread::ScopedJoinHandle<'_, Result<T, String>>) -> Result<T, Box<LaneRun>> {
    let left = thread.join();
    left.unwrap_or_else(|_| Err("no message".to_owned()))
        .map_err(|words| Box::new(LaneRun::Panicked(words)))
}

/// Sees the lanes through: the lead-in, the cue, and the end.
fn attend<B: Backend>(
    backend: &mut B,
    timeline: &Timeline,
    statuses: &[LaneStatus],
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<(), B::Error> {
    let clock = timeline.clock();
    let mut supervisor = Supervisor::new(statuses, progress, clock.now());
    let mut outcome = Ok(());
    if let Some(first) = timeline.starts() {
        // Everybody knows when; links and counters begin just before.
        cue(timeline, statuses, first);
        thread::sleep((first - NOTICE_OF_LINKS).since(clock.now()));
        outcome = backend.begin_impairments(&|lane| first + timeline.offset(lane));
        supervisor.note_started();
    }
    while supervisor.wait() {
        let now = clock.now();
        let is_there = backend.tend(statuses);
        if stop.load(Ordering::Relaxed) || outcome.is_err() || !is_there {
            supervisor.stop();
        }
        if supervisor.is_time_to_start(now) {
            let first = now + NOTICE + backend.notice();
            outcome = backend.begin_impairments(&|lane| first + timeline.offset(lane));
            cue(timeline, statuses, first);
        }
        supervisor.report_progress(now);
    }
    outcome
}

/// Sends every lane when its schedule starts, the first at `first`.
fn cue(timeline: &Timeline, statuses: &[LaneStatus], first: Time) {
    for (lane, status) in statuses.iter().enumerate() {
        let start = first + timeline.offset(lane);
        status.cue.start(timeline.lanes().at(start));
    }
}

impl From<ServerOutcome> for ServerNotes {
    fn from(played: ServerOutcome) -> Self {
        Self {
            payload_bytes: played.application.payload_bytes(),
            misdeliveries: played.application.misdeliveries(),
            cpu: played.cpu,
            counters: played.counters,
            arrivals: played.application.arrivals().to_vec(),
        }
    }
}

impl Played {
    /// What each lane did, with what `wire` says of it by its number.
    pub(crate) fn into_runs(
        self,
        plan: &Plan,
        wire: impl Fn(usize, &ClientOutcome, &ServerNotes) -> WireCounts,
    ) -> Vec<LaneRun> {
        let began = self.began;
        let lanes = self.lanes.into_iter().enumerate();
        let runs = lanes.map(|(number, played)| match played {
            Err(run) => *run,
            Ok((client, server)) => {
                let wire = wire(number, &client, &server);
                lane_run(client, &server, wire, began, plan)
            }
        });
        runs.collect()
    }
}

fn lane_run(
    client: ClientOutcome,
    server: &ServerNotes,
    wire: WireCounts,
    began: Time,
    plan: &Plan,
) -> LaneRun {
    let mut misdeliveries = server.misdeliveries;
    let mut found = Findings::default();
    let mut payload_bytes = server.payload_bytes;
    if let Some(application) = &client.application {
        misdeliveries += application.misdeliveries();
        payload_bytes += application.payload_bytes();
        found = application.findings(&server.arrivals);
    }
    let measured = client
        .started_at
        .map(|start| client.ended_at.since(start))
        .unwrap_or_default();
    let mut wire = wire;
    // What is waited for after the last message is no play.
    wire.play.over = measured.min(plan.duration);
    let outcome = LaneOutcome {
        bottleneck: None,
        records: found.records,
        game: found.game,
        flows: found.flows,
        wire,
        payload_bytes,
        misdeliveries,
        ready_at: client.ready_at.map(|at| Time::ZERO + at.since(began)),
        end: client.end,
        cost: Some(Cost {
            cpu: client.cpu + server.cpu,
            kernel_cpu: None,
            library_cpu: client.counters.library_cpu + server.counters.library_cpu,
            server_cpu: server.cpu + server.counters.library_cpu,
            system_calls: client.counters.system_calls + server.counters.system_calls,
            path: client.path,
        }),
    };
    match &outcome.end {
        Some(_) => LaneRun::Played(outcome),
        None => LaneRun::Cut(outcome, plan.measuring_starts() + measured),
    }
}
