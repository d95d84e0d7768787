//! One lane of an emulated network: its sockets before, its outcome after.

use std::borrow::Cow;

use lagometer_emu::{Error, LaneAudit};
use lagometer_socket::BoxedConnection;
use lagometer_testbed::Emulated;
use lagometer_units::Time;

use crate::live::{ClientOutcome, ServerOutcome};
use crate::outcome::{Cost, LaneOutcome, WireCounts};
use crate::plan::Plan;
use crate::resolve::RunnableLane;
use crate::runner::LaneRun;

/// Both sides of a lane, in their hosts.
pub(super) struct OpenLane {
    pub(super) client: BoxedConnection,
    pub(super) server: BoxedConnection,
}

/// What a thread leaves: its outcome, or the words of its panic; nothing if
/// it ended without either.
type Left<T> = Option<Result<T, String>>;

/// What a lane's two threads leave, or why it had none.
pub(super) type Played = Result<(Left<ClientOutcome>, Left<ServerOutcome>), String>;

/// Makes both sides of lane number `number`, or says why the system does not.
pub(super) fn open(
    path: &Emulated<'_>,
    number: u8,
    lane: &RunnableLane,
    seed: u64,
    now: Time,
) -> Result<Result<OpenLane, String>, Error> {
    let (server_at, server_spec) = (path.server(number, seed, now), lane.transport.clone());
    let server = path.run_remote(move || server_spec.server(&server_at))?;
    let (client_at, client_spec) = (path.client(number, seed, now), lane.transport.clone());
    let client = path.run_local(move || client_spec.client(&client_at))?;
    Ok(match (client, server) {
        (Ok(client), Ok(server)) => Ok(OpenLane { client, server }),
        (Err(error), _) | (_, Err(error)) => Err(error.to_string()),
    })
}

/// The lane's outcome, with what the router counted.
pub(super) fn outcome(played: Played, audit: &LaneAudit, began: Time, plan: &Plan) -> LaneRun {
    let (client, server) = match played {
        Err(why) => return LaneRun::Unopened(why),
        Ok((Some(Ok(client)), Some(Ok(server)))) => (client, server),
        Ok((Some(Err(words)), _) | (_, Some(Err(words)))) => return LaneRun::Panicked(words),
        Ok((None, _) | (_, None)) => return LaneRun::Panicked("no message".to_owned()),
    };
    let mut misdeliveries = server.echo.misdeliveries();
    let mut records = Vec::new();
    if let Some(echo) = &client.echo {
        misdeliveries += echo.misdeliveries();
        records = echo.records(server.echo.arrivals());
    }
    let measured = client
        .started_at
        .map(|start| client.ended_at.since(start))
        .unwrap_or_default();
    let outcome = LaneOutcome {
        bottleneck: None,
        records,
        wire: wire(audit),
        echoes_sent: server.echo.echoes_sent(),
        misdeliveries,
        ready_at: client.ready_at.map(|at| Time::ZERO + at.since(began)),
        end: client.end,
        cost: Some(Cost {
            cpu: client.cpu + server.cpu,
            library_cpu: client.counters.library_cpu + server.counters.library_cpu,
            system_calls: client.counters.system_calls + server.counters.system_calls,
            path: client.path,
        }),
    };
    match &outcome.end {
        Some(_) => LaneRun::Played(outcome),
        None => LaneRun::Cut(outcome, plan.measuring_starts() + measured),
    }
}

/// What the router saw of the lane since measuring began.
fn wire(audit: &LaneAudit) -> WireCounts {
    let mut wire = WireCounts {
        up_packets: audit.up.packets,
        down_packets: audit.down.packets,
        bytes: audit.up.bytes + audit.down.bytes,
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
