//! One lane over a real path: its sockets before, its outcome after.

use std::borrow::Cow;
use std::time::{Duration, Instant};

use lagometer_remote::{Error, Line, Remote, RemoteJob};
use lagometer_socket::{BoxedConnection, Opening};
use lagometer_units::{Encapsulation, Time};
use serde_json::{Value, json};

use super::capture::Capture;
use super::service::{self, News, Outline, Request, Word};
use crate::live::{ClientOutcome, LaneStatus, ServerNotes};
use crate::outcome::{PlayBytes, WireCounts};
use crate::plan::Plan;
use crate::resolve::RunnableLane;
use crate::workload::{RemoteArrival, Workload};

/// How long the remote end may take to open its side.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Opens a lane at both ends, or says why it cannot be. Its packets go into `capture`, as
/// those of the lane with a number.
pub(super) fn open(
    remote: &Remote,
    lane: &RunnableLane,
    plan: &Plan,
    mut capture: Option<(&mut Capture, usize)>,
) -> Result<(RemoteJob, BoxedConnection), String> {
    let spec = &lane.transport;
    let millis = |span: Duration| u64::try_from(span.as_millis()).unwrap_or(u64::MAX);
    let (workload, traffic) = sent_workload(plan)?;
    let request = Request {
        transport: spec.transport().to_owned(),
        settings: spec.settings_json(),
        workload,
        traffic,
        lasts_ms: millis(plan.duration),
        grace_ms: millis(plan.grace),
        seed: plan.seed,
    };
    let mut open = move || -> Result<(RemoteJob, BoxedConnection), Error> {
        let job = remote.open("lane", &json!(request))?;
        let socket = job.udp(job.port("port")?)?;
        await_opened(&job)?;
        let opening = Opening::of_client(&socket, plan.seed, remote.clock().now());
        drop(socket);
        let side = opening.and_then(|opening| {
            // Who makes datagrams itself shows them; the others' are seen as they pass.
            let shows_datagrams = spec.endpoint().is_some();
            if !shows_datagrams && let Some((capture, number)) = &mut capture {
                capture.listen(*number, &opening)?;
            }
            let mut side = spec.client(&opening)?;
            if shows_datagrams && let Some((capture, number)) = &capture {
                capture.watch(*number, &mut side, &opening);
            }
            Ok(side)
        });
        let side = side.map_err(|source| Error::System {
            doing: "opening this side of the lane",
            source,
        })?;
        Ok((job, side))
    };
    open().map_err(|error| error.to_string())
}

/// The most of a log that is sent to the remote end, in bytes: a control message holds
/// 4 MiB, and the log is quoted in it beside the rest.
const MOST_LOG_BYTES: usize = 3 << 20;

/// What the remote end is sent of the workload, with a log of those messages of its file
/// that are played.
fn sent_workload(plan: &Plan) -> Result<(Workload, Option<String>), String> {
    let Workload::Replay(replay) = &plan.workload else {
        return Ok((plan.workload.clone(), None));
    };
    let (replay, log) = replay.within(plan.duration);
    if log.len() <= MOST_LOG_BYTES {
        return Ok((Workload::Replay(Box::new(replay)), Some(log)));
    }
    Err(format!(
        "the {} messages of its traffic are too many to be sent to the remote end: play for \
         shorter (`--for`), or cut the file",
        replay.traffic.messages()
    ))
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

/// Sends a lane's remote end when measuring starts, by its own clock.
pub(super) fn send_start(job: &RemoteJob, at: Time) -> Result<Value, Error> {
    job.ask(&json!(Word::Start(at.as_nanos())))
}

/// Takes what the remote end says of its own accord.
pub(super) fn on_news(news: &Value, status: &LaneStatus, line: Option<&Line>) {
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
    service::on_state(status, ready, closed, received);
}

/// Ends the remote end's part and fetches what it noted; nothing if it is gone.
pub(super) fn fetch(job: &RemoteJob, remote: &Remote) -> Option<ServerNotes> {
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
    Some(outline.with(arrivals))
}

/// What both ends handed to their kernels, and what of it did not come. The
/// headers are reckoned: what the path adds is not seen from here. Of a
/// stream the kernel's packets are not known, so nothing is said.
pub(super) fn wire(
    lane: &RunnableLane,
    client: &ClientOutcome,
    server: &ServerNotes,
    remote: &Remote,
) -> WireCounts {
    if !lane.transport.is_carried_by_udp() || client.counters.packets_sent == 0 {
        return WireCounts::default();
    }
    let header_bytes = Encapsulation::of_udp_to(remote.host()).header_bytes();
    let up = client.counters.packets_sent;
    let down = server.counters.packets_sent;
    let lost = up.saturating_sub(server.counters.packets_received)
        + down.saturating_sub(client.counters.packets_received);
    let with_headers = |bytes: u64, packets: u64| bytes + packets * u64::from(header_bytes);
    let play = PlayBytes {
        up: with_headers(client.counters.bytes_sent, up),
        down: with_headers(server.counters.bytes_sent, down),
        over: Duration::ZERO,
    };
    let mut wire = WireCounts {
        up_packets: up,
        down_packets: down,
        bytes: play.up + play.down,
        play,
        ..WireCounts::default()
    };
    if lost > 0 {
        wire.dropped.insert(Cow::Borrowed("path"), lost);
    }
    wire
}
