//! The thread of a lane's remote end.

use std::time::Duration;

use lagometer_platform::{be_punctual, thread_cpu_time};
use lagometer_socket::{Counters, SocketConnection};
use lagometer_transport::turn;
use lagometer_units::Time;

use super::pace::Pace;
use super::status::{LaneStatus, Role};
use crate::plan::Plan;
use crate::workload::{ServerApplication, Workload, act};

/// What the remote end's thread leaves.
#[derive(Debug)]
pub struct ServerOutcome {
    /// The application, with what arrived.
    pub application: Box<dyn ServerApplication>,
    /// CPU time of the thread while measuring.
    pub cpu: Duration,
    /// What the side did while measuring.
    pub counters: Counters,
}

/// Plays a lane's remote end on the calling thread until the lane is over: answers.
pub fn play_server(
    mut side: impl AsMut<dyn SocketConnection>,
    plan: &Plan,
    status: &LaneStatus,
    now: impl Fn() -> Time,
) -> ServerOutcome {
    let side = side.as_mut();
    // Where the system does not permit it, sleeps are a little longer.
    let _ = be_punctual();
    let tick = plan.workload.tick().map(lagometer_units::Span::duration);
    // The remote end's tick falls in the middle of the client's, as two
    // machines' ticks have no reason to agree.
    let pace = Pace::new(tick, tick.unwrap_or_default() / 2);
    let mut application = Workload::server(plan);
    let mut has_begun = false;
    let mut before = None;
    loop {
        let at = now();
        if !has_begun && let Some(start) = status.cue.starts_at() {
            application.begin(start);
            has_begun = true;
        }
        if before.is_none() && status.cue.starts_at().is_some_and(|start| start <= at) {
            before = Some((thread_cpu_time(), side.counters()));
        }
        let at = turn(side, &now, |side, at| {
            let any = act(side, |side| application.turn(at, side));
            if any {
                status.note_received(at);
            }
            any
        });
        status.note_state(Role::Server, side.state());
        if status.is_over() || status.cue.is_stopped() {
            break;
        }
        let next_cue = status.cue.starts_at().filter(|_| before.is_none());
        let next = [next_cue, application.next_send()]
            .into_iter()
            .flatten()
            .min();
        pace.wait(at, side, next);
    }
    let (cpu, counters) = before.unwrap_or_else(|| (thread_cpu_time(), side.counters()));
    ServerOutcome {
        application,
        cpu: thread_cpu_time().saturating_sub(cpu),
        counters: side.counters().since(&counters),
    }
}
