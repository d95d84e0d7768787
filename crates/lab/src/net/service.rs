//! The remote end's part of a lane over a real path: the service `lane`.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use lagometer_remote::{
    Accepted, Job, NobodyCame, Refusal, Service, Session, UdpDataListener, Worker, understand,
};
use lagometer_socket::{Counters, Opening, SocketSpec};
use lagometer_transport::{Closed, Offer, State};
use lagometer_units::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

use crate::experiment::MESSAGES_AT_MOST;
use crate::live::{LaneStatus, Role, ServerNotes, ServerOutcome, play_server};
use crate::plan::Plan;
use crate::workload::{Misdeliveries, RemoteArrival, Stream, Workload};

/// How long the remote end waits for the local end's socket.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How often it is reported to the local end how the lane stands.
const REPORT_EVERY: Duration = Duration::from_millis(200);

/// Arrivals reported in one answer.
const CHUNK: usize = 50_000;

/// What the local end asks for.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// The transport's name; its presets share it.
    pub(super) transport: String,
    /// All of its settings.
    pub(super) settings: Value,
    pub(super) workload: Workload,
    /// A log of the messages that the workload plays, where it plays a file's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) traffic: Option<String>,
    pub(super) lasts_ms: u64,
    /// How long last messages are waited for.
    pub(super) grace_ms: u64,
    pub(super) seed: u64,
}

/// What the local end says while the lane is under way, and after.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Word {
    /// Measuring starts at this nanosecond of the remote end's clock.
    Start(u64),
    /// The lane is over; the [`Outline`] is the answer.
    End,
    /// The messages that arrived, from this one on, each with its number, its
    /// nanosecond, for how long it was blocked, and its stream.
    Arrivals(usize),
}

/// What the remote end says of its own accord.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum News {
    /// Its side of the lane is open, or why it cannot be.
    Opened(Result<(), String>),
    /// How the lane stands.
    Stands {
        /// Whether its side has, or had, a connection.
        ready: bool,
        /// Why its side closed, if it did.
        closed: Option<String>,
        /// When it last received a message, in nanoseconds of its clock.
        #[serde(rename = "heard_at")]
        received_at: Option<u64>,
    },
}

/// What the remote end's side did, without its arrivals.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Outline {
    pub(super) arrivals: usize,
    /// Bytes of all messages that its side took.
    pub(super) payload_bytes: u64,
    pub(super) damaged: u64,
    pub(super) duplicated: u64,
    pub(super) out_of_order: u64,
    pub(super) cpu_ns: u64,
    pub(super) library_cpu_ns: u64,
    pub(super) system_calls: u64,
    pub(super) packets_sent: u64,
    pub(super) bytes_sent: u64,
    pub(super) packets_received: u64,
    pub(super) bytes_received: u64,
}

/// The remote end of every lane: one job a lane, each with a socket and a thread
/// of its own, as in the other testbeds.
#[derive(Clone, Copy, Debug, Default)]
pub struct LaneService;

struct LaneJob {
    status: Arc<LaneStatus>,
    worker: Option<Worker<Option<ServerOutcome>>>,
    /// Dropped, it says no more.
    _reporter: Worker<()>,
    played: Option<ServerOutcome>,
}

impl Service for LaneService {
    fn name(&self) -> &'static str {
        "lane"
    }

    fn open(&self, request: &Value, session: &Session) -> Result<Accepted, Refusal> {
        let request: Request = understand("the request", request)?;
        let spec = spec_of(&request.transport, &request.settings)?;
        let plan = plan(&request, spec.offer())?;
        let data_listener = session.udp()?;
        let port = data_listener.port();
        let status = Arc::new(LaneStatus::default());
        let (of_worker, for_worker) = (Arc::clone(&status), session.clone());
        let worker = session.spawn("lane", move |_| {
            let opened = open_side(data_listener, &spec, &for_worker, plan.seed);
            let news = News::Opened(opened.as_ref().map(|_| ()).map_err(ToString::to_string));
            for_worker.send_event(&json!(news));
            let side = opened.ok()?;
            let clock = for_worker.clock();
            Some(play_server(side, &plan, &of_worker, || clock.now()))
        })?;
        let (of_reporter, for_reporter) = (Arc::clone(&status), session.clone());
        let reporter = session.spawn("lane-reporter", move |stop| {
            let mut reported = None;
            while !stop.wait(REPORT_EVERY) {
                let news = how_it_stands(&of_reporter);
                if reported.as_ref() != Some(&news) {
                    for_reporter.send_event(&json!(news));
                    reported = Some(news);
                }
            }
        })?;
        Ok(Accepted::new(
            json!({ "port": port }),
            LaneJob {
                status,
                worker: Some(worker),
                _reporter: reporter,
                played: None,
            },
        ))
    }
}

impl Job for LaneJob {
    fn ask(&mut self, body: &Value) -> Result<Value, Refusal> {
        let word: Word = understand("the word", body)?;
        match word {
            Word::Start(nanos) => {
                self.status.cue.start(Time::from_nanos(nanos));
                Ok(Value::Null)
            }
            Word::End => {
                self.status.give_up();
                if let Some(worker) = self.worker.take() {
                    self.played = worker.finish().flatten();
                }
                let outline = self.played.as_ref().map(outline).unwrap_or_default();
                Ok(json!(outline))
            }
            Word::Arrivals(from) => {
                let played = self.played.as_ref();
                let all = played.map(|played| played.application.arrivals());
                let rest = all.and_then(|all| all.get(from..)).unwrap_or_default();
                Ok(rest.iter().take(CHUNK).map(write_arrival).collect())
            }
        }
    }
}

impl Drop for LaneJob {
    fn drop(&mut self) {
        // The threads end, and are then waited for.
        self.status.give_up();
    }
}

/// The transport with these settings, by whichever preset of it.
pub(super) fn spec_of(transport: &str, settings: &Value) -> Result<SocketSpec, Refusal> {
    let settings = settings
        .as_object()
        .ok_or_else(|| Refusal::new("the settings are no table"))?;
    let spec =
        SocketSpec::restore(transport, settings).map_err(|bad| Refusal::new(bad.to_string()))?;
    spec.available()
        .and_then(|()| spec.offered())
        .map_err(|lacks| Refusal::new(lacks.to_string()))?;
    Ok(spec)
}

fn plan(request: &Request, offer: Offer) -> Result<Plan, Refusal> {
    let mut workload = request.workload.clone();
    if let Some(log) = &request.traffic {
        let loaded = workload.load(log.as_bytes());
        loaded.map_err(|why| Refusal::new(format!("the traffic {why}")))?;
    }
    let plan = Plan {
        workload,
        offer,
        duration: Duration::from_millis(request.lasts_ms),
        grace: Duration::from_millis(request.grace_ms),
        seed: request.seed,
        offset: Duration::ZERO,
    };
    let messages = plan.workload.remembered(plan.duration, plan.grace);
    if plan.workload.check().is_err() || messages > MESSAGES_AT_MOST {
        return Err(Refusal::new("such a workload is not played"));
    }
    Ok(plan)
}

/// Why the remote end's side of a lane is not there.
#[derive(Debug, Error)]
enum NotOpened {
    /// The local end's socket did not come.
    #[error(transparent)]
    NobodyCame(#[from] NobodyCame),
    /// The system refuses a socket, or the transport does.
    #[error(transparent)]
    System(#[from] io::Error),
}

/// Waits until the local end has authenticated itself at the data socket, and opens the side
/// at the very same port, for that address alone.
fn open_side(
    data_listener: UdpDataListener,
    spec: &SocketSpec,
    session: &Session,
    seed: u64,
) -> Result<lagometer_socket::BoxedConnection, NotOpened> {
    let socket = data_listener.admit(TIMEOUT)?;
    let opening = Opening::of_server(&socket, seed, session.clock().now());
    // The transport binds the same port.
    drop(socket);
    Ok(spec.server(&opening?)?)
}

fn how_it_stands(status: &LaneStatus) -> News {
    News::Stands {
        ready: status.was_ready(Role::Server),
        closed: status.closed().map(|why| why.to_string()),
        received_at: status.received_at().map(Time::as_nanos),
    }
}

/// Notes in the local end's status of a lane what the remote end reported of it.
pub(super) fn on_state(
    status: &LaneStatus,
    ready: bool,
    closed: Option<String>,
    received: Option<Time>,
) {
    if ready {
        status.note_state(Role::Server, State::Ready);
    }
    if let Some(why) = closed {
        status.note_state(Role::Server, State::Closed(Closed::Failed(why)));
    }
    if let Some(at) = received {
        status.note_received(at);
    }
}

fn outline(played: &ServerOutcome) -> Outline {
    let Misdeliveries {
        damaged,
        duplicated,
        out_of_order,
    } = played.application.misdeliveries();
    let nanos = |span: Duration| u64::try_from(span.as_nanos()).unwrap_or(u64::MAX);
    let Counters {
        system_calls,
        packets_sent,
        bytes_sent,
        packets_received,
        bytes_received,
        library_cpu,
        ..
    } = played.counters;
    Outline {
        arrivals: played.application.arrivals().len(),
        payload_bytes: played.application.payload_bytes(),
        damaged,
        duplicated,
        out_of_order,
        cpu_ns: nanos(played.cpu),
        library_cpu_ns: nanos(library_cpu),
        system_calls,
        packets_sent,
        bytes_sent,
        packets_received,
        bytes_received,
    }
}

impl Outline {
    /// What was noted, with the arrivals.
    pub(super) fn with(self, arrivals: Vec<RemoteArrival>) -> ServerNotes {
        ServerNotes {
            arrivals,
            payload_bytes: self.payload_bytes,
            misdeliveries: Misdeliveries {
                damaged: self.damaged,
                duplicated: self.duplicated,
                out_of_order: self.out_of_order,
            },
            cpu: Duration::from_nanos(self.cpu_ns),
            counters: Counters {
                system_calls: self.system_calls,
                packets_sent: self.packets_sent,
                bytes_sent: self.bytes_sent,
                packets_received: self.packets_received,
                bytes_received: self.bytes_received,
                packets_lost: 0,
                library_cpu: Duration::from_nanos(self.library_cpu_ns),
            },
        }
    }
}

fn write_arrival(arrival: &RemoteArrival) -> Value {
    let blocked = arrival
        .blocked
        .map(|blocked| u64::try_from(blocked.as_nanos()).unwrap_or(u64::MAX));
    json!([
        arrival.number,
        arrival.at.as_nanos(),
        blocked,
        arrival.stream
    ])
}

/// Reads an answer's list of arrivals; the instants become `to_local` of
/// theirs.
pub(super) fn read_arrivals(
    answer: Value,
    to_local: impl Fn(Time) -> Time,
) -> Option<Vec<RemoteArrival>> {
    let arrivals: Vec<(u32, u64, Option<u64>, Stream)> = serde_json::from_value(answer).ok()?;
    let arrival = |(number, at, blocked, stream): (u32, u64, Option<u64>, Stream)| RemoteArrival {
        stream,
        number,
        at: to_local(Time::from_nanos(at)),
        blocked: blocked.map(Duration::from_nanos),
    };
    Some(arrivals.into_iter().map(arrival).collect())
}
