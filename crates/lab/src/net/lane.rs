//! One lane over a real path: its sockets before, its outcome after.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use lagometer_remote::{Error, Line, Remote, RemoteJob};
use lagometer_socket::{BoxedConnection, Opening};
use lagometer_units::Time;
use serde_json::{Value, json};

use super::service::{self, News, Outline, Request, Word};
use crate::live::{ClientOutcome, LaneStage};
use crate::outcome::{Cost, LaneOutcome, WireCounts};
use crate::plan::Plan;
use crate::resolve::RunnableLane;
use crate::runner::LaneRun;
use crate::workload::{Misdeliveries, RemoteArrival};

/// How long the remote end may take to open its side.
const TIMEOUT: Duration = Duration::from_secs(10);

/// A lane whose remote side waits and whose local side begins.
pub(super) struct OpenLane {
    pub(super) job: RemoteJob,
    pub(super) side: BoxedConnection,
}

/// What the client's thread leaves: its outcome, or the words of its panic;
/// nothing if there was none.
pub(super) type Left = Option<Result<ClientOutcome, String>>;

/// What the remote end noted of a lane.
#[derive(Default)]
struct RemoteNotes {
    outline: Outline,
    arrivals: Vec<RemoteArrival>,
}

/// What a lane plays.
pub(super) fn plan(lane: &RunnableLane, plan: &Plan, seed: u64) -> Plan {
    Plan {
        seed,
        workload: lane.workload,
        ..plan.clone()
    }
}

/// Opens a lane at both ends, or says why it cannot be.
pub(super) fn open(
    remote: &Remote,
    lane: &RunnableLane,
    plan: &Plan,
    seed: u64,
) -> Result<OpenLane, String> {
    let spec = &lane.transport;
    let request = Request {
        transport: spec.transport().to_owned(),
        settings: spec.settings_json(),
        workload: lane.workload,
        lasts_ms: u64::try_from(plan.duration.as_millis()).unwrap_or(u64::MAX),
        seed,
    };
    let open = || -> Result<OpenLane, Error> {
        let job = remote.open("lane", &json!(request))?;
        let socket = job.udp(job.port("port")?)?;
        await_opened(&job)?;
        let opening = Opening::of_client(&socket, seed, remote.clock().now());
        drop(socket);
        let side = opening.and_then(|opening| spec.client(&opening));
        let side = side.map_err(|source| Error::System {
            doing: "opening this side of the lane",
            source,
        })?;
        Ok(OpenLane { job, side })
    };
    open().map_err(|error| error.to_string())
}

/// Waits until the remote end has opened its side. Where that takes it a while,
/// as on a long or lossy path, it first says how the lane stands.
fn await_opened(job: &RemoteJob) -> Result<(), Error> {
    let until = Instant::now() + TIMEOUT;
    loop {
        let timeout = until.saturating_duration_since(Instant::now());
        match job.next_event(timeout).map(serde_json::from_value) {
            Some(Ok(News::Opened(Ok(())))) => return Ok(()),
            Some(Ok(News::Opened(Err(why)))) => {
                return Err(Error::Refused {
                    service: "lane".to_owned(),
                    why,
                });
            }
            Some(Ok(News::Stands { .. })) => {}
            Some(Err(_)) | None => {
                return Err(Error::Gone {
                    why: "it did not open its side of the lane".to_owned(),
                });
            }
        }
    }
}

/// Tells a lane's remote end when measuring starts, by its own clock.
pub(super) fn send_start(job: &RemoteJob, at: Time) -> Result<Value, Error> {
    job.ask(&json!(Word::Start(at.as_nanos())))
}

/// Takes what the remote end says of its own accord.
pub(super) fn heed(news: &Value, stage: &LaneStage, line: Option<&Line>) {
    let Ok(News::Stands {
        ready,
        closed,
        received_at,
    }) = serde_json::from_value(news.clone())
    else {
        return;
    };
    let received = received_at
        .zip(line)
        .map(|(at, line)| line.to_local(Time::from_nanos(at)));
    service::heed(stage, ready, closed, received);
}

/// The lane's outcome, with what the remote end noted of it. Where that is gone,
/// what the local end saw.
pub(super) fn outcome(
    lane: &RunnableLane,
    job: Result<RemoteJob, String>,
    left: Left,
    began: Time,
    remote: &Remote,
    plan: &Plan,
) -> LaneRun {
    let (job, client) = match (job, left) {
        (Err(why), _) => return LaneRun::Unopened(why),
        (Ok(_), Some(Err(words))) => return LaneRun::Panicked(words),
        (Ok(_), None) => return LaneRun::Panicked("no message".to_owned()),
        (Ok(job), Some(Ok(client))) => (job, client),
    };
    let notes = fetch(&job, remote).unwrap_or_default();
    let mut misdeliveries = Misdeliveries {
        damaged: notes.outline.damaged,
        duplicated: notes.outline.duplicated,
        out_of_order: notes.outline.out_of_order,
    };
    let mut records = Vec::new();
    if let Some(echo) = &client.echo {
        misdeliveries += echo.misdeliveries();
        records = echo.records(&notes.arrivals);
    }
    let measured = client
        .started_at
        .map(|start| client.ended_at.since(start))
        .unwrap_or_default();
    let outline = &notes.outline;
    let outcome = LaneOutcome {
        bottleneck: None,
        records,
        wire: wire(lane, &client, outline, remote),
        echoes_sent: outline.echoes_sent,
        misdeliveries,
        ready_at: client.ready_at.map(|at| Time::ZERO + at.since(began)),
        end: client.end,
        cost: Some(Cost {
            cpu: client.cpu + Duration::from_nanos(outline.cpu_ns),
            library_cpu: client.counters.library_cpu + Duration::from_nanos(outline.library_cpu_ns),
            system_calls: client.counters.system_calls + outline.system_calls,
            path: client.path,
        }),
    };
    match &outcome.end {
        Some(_) => LaneRun::Played(outcome),
        None => LaneRun::Cut(outcome, plan.measuring_starts() + measured),
    }
}

/// Ends the remote end's part and fetches what it noted; nothing if it is gone.
fn fetch(job: &RemoteJob, remote: &Remote) -> Option<RemoteNotes> {
    let outline: Outline = serde_json::from_value(job.ask(&json!(Word::End)).ok()?).ok()?;
    let line = remote.offset()?;
    let mut arrivals: Vec<RemoteArrival> = Vec::new();
    while arrivals.len() < outline.arrivals {
        let answer = job.ask(&json!(Word::Arrivals(arrivals.len()))).ok()?;
        let piece = service::read_arrivals(answer, |at| line.to_local(at))?;
        if piece.is_empty() {
            break;
        }
        arrivals.extend(piece);
    }
    Some(RemoteNotes { outline, arrivals })
}

/// What both ends handed to their kernels, and what of it did not come. The
/// headers are reckoned: what the path adds is not seen from here. Of a
/// stream the kernel's packets are not known, so nothing is said.
fn wire(
    lane: &RunnableLane,
    client: &ClientOutcome,
    outline: &Outline,
    remote: &Remote,
) -> WireCounts {
    const UDP_HEADER_BYTES: u64 = 8;
    if !lane.transport.is_carried_by_udp() || client.counters.packets_sent == 0 {
        return WireCounts::default();
    }
    let ip_header_bytes = if remote.host().is_ipv4() { 20 } else { 40 };
    let up = client.counters.packets_sent;
    let down = outline.packets_sent;
    let lost = up.saturating_sub(outline.packets_received)
        + down.saturating_sub(client.counters.packets_received);
    let mut wire = WireCounts {
        up_packets: up,
        down_packets: down,
        bytes: client.counters.bytes_sent
            + outline.bytes_sent
            + (up + down) * (UDP_HEADER_BYTES + ip_header_bytes),
        ..WireCounts::default()
    };
    if lost > 0 {
        wire.dropped.insert(Cow::Borrowed("path"), lost);
    }
    wire
}
