//! The thread of a lane's client.

use std::time::Duration;

use lagometer_platform::{be_punctual, thread_cpu_time};
use lagometer_socket::{Counters, SocketConnection};
use lagometer_transport::turn;
use lagometer_units::Time;

use super::pace::Pace;
use super::status::{LaneStatus, Role};
use crate::outcome::LaneEnd;
use crate::plan::Plan;
use crate::workload::{ClientApplication, Workload, act};

/// What the client's thread leaves.
#[derive(Debug)]
pub struct ClientOutcome {
    /// The application, with its records; nothing if measuring never started.
    pub application: Option<Box<dyn ClientApplication>>,
    /// When measuring started.
    pub started_at: Option<Time>,
    /// When the connection stood.
    pub ready_at: Option<Time>,
    /// How the lane ended; nothing if it was stopped on the way.
    pub end: Option<LaneEnd>,
    /// When the lane ended, on the lanes' clock.
    pub ended_at: Time,
    /// CPU time of the thread while measuring.
    pub cpu: Duration,
    /// What the side did while measuring.
    pub counters: Counters,
    /// How bytes got to the wire.
    pub path: String,
}

/// Plays a lane's client on the calling thread: connects, waits for the cue,
/// sends the schedule's messages and takes their echoes, until the lane's end.
///
/// `quiet` is how long after the last message an unreliable transport's lane
/// goes on when neither side receives anything more; nothing where messages are
/// waited for until the grace period is over.
pub fn play_client(
    mut side: impl AsMut<dyn SocketConnection>,
    plan: &Plan,
    status: &LaneStatus,
    quiet: Option<Duration>,
    now: impl Fn() -> Time,
) -> ClientOutcome {
    let side = side.as_mut();
    // Where the system does not permit it, sleeps are a little longer.
    let _ = be_punctual();
    let tick = plan.workload.tick().map(lagometer_units::Span::duration);
    let pace = Pace::new(tick, Duration::ZERO);
    let mut outcome = ClientOutcome {
        application: None,
        started_at: None,
        ready_at: None,
        end: None,
        ended_at: now(),
        cpu: Duration::ZERO,
        counters: Counters::default(),
        path: String::new(),
    };
    connect(side, status, &pace, &mut outcome, &now);
    if let Some(start) = status.cue.starts_at()
        && !status.cue.is_stopped()
    {
        let mut application = Workload::client(plan, start);
        let awaited = application.awaited();
        status.figures().note_start(start, plan.duration, awaited);
        let cpu_before = thread_cpu_time();
        let counted_before = side.counters();
        outcome.started_at = Some(start);
        outcome.end = if status.is_connected() {
            measure(side, &mut *application, plan, status, quiet, &pace, &now)
        } else {
            Some(status.closed().map_or(LaneEnd::NeverReady, LaneEnd::Died))
        };
        if outcome.end.is_some() {
            application.abandon();
        }
        outcome.cpu = thread_cpu_time().saturating_sub(cpu_before);
        outcome.counters = side.counters().since(&counted_before);
        outcome.application = Some(application);
    }
    let failure = match &outcome.end {
        Some(LaneEnd::Done) | None => None,
        Some(LaneEnd::NeverReady) => Some("there was no connection".to_owned()),
        Some(LaneEnd::Died(why)) => Some(why.to_string()),
        Some(LaneEnd::NoProgress) => Some("the endpoint is stuck".to_owned()),
    };
    status.figures().note_end(failure);
    outcome.path = side.path();
    outcome.ended_at = now();
    status.end();
    outcome
}

/// Makes the connection and keeps it until measuring starts.
fn connect(
    side: &mut dyn SocketConnection,
    status: &LaneStatus,
    pace: &Pace,
    outcome: &mut ClientOutcome,
    now: &impl Fn() -> Time,
) {
    loop {
        let at = now();
        let start = status.cue.starts_at();
        // What comes just then is for the first turn with the application.
        if status.cue.is_stopped() || start.is_some_and(|start| start <= at) {
            return;
        }
        side.turn(at);
        status.note_state(Role::Client, side.state());
        if outcome.ready_at.is_none() && status.is_connected() {
            outcome.ready_at = Some(at);
            status.figures().note_ready();
        }
        pace.wait(at, side, start);
    }
}

/// Sends and takes until the lane is over, and says how it ended; nothing if
/// it was stopped.
fn measure(
    side: &mut dyn SocketConnection,
    application: &mut dyn ClientApplication,
    plan: &Plan,
    status: &LaneStatus,
    quiet: Option<Duration>,
    pace: &Pace,
    now: &impl Fn() -> Time,
) -> Option<LaneEnd> {
    let start = status.cue.starts_at()?;
    let gives_up = start + plan.duration + plan.grace;
    let all_due = start + plan.duration;
    let mut last_received = start;
    loop {
        let returned_before = application.returned();
        let at = turn(side, now, |side, at| {
            act(side, |side| application.turn(at, side))
        });
        if application.returned() > returned_before {
            last_received = at;
            let (worst, awaited) = (application.take_worst(), application.awaited());
            let returned = application.returned();
            status.figures().note_returned(at, returned, worst, awaited);
        }
        status.note_state(Role::Client, side.state());
        if status.cue.is_stopped() {
            return None;
        }
        if application.is_complete() || at >= gives_up {
            return Some(LaneEnd::Done);
        }
        if let Some(why) = status.closed() {
            // Nobody waits for an unreliable transport's last echoes: that it
            // closes when it has been idle for long is no failure.
            let over = quiet.is_some() && application.has_sent_all() && at >= all_due;
            return Some(if over {
                LaneEnd::Done
            } else {
                LaneEnd::Died(why)
            });
        }
        if let Some(quiet) = quiet
            && application.has_sent_all()
            && at.since(last_received.max(all_due)) >= quiet
            && status.silence(at, start) >= quiet
        {
            return Some(LaneEnd::Done);
        }
        pace.wait(now(), side, application.next_send());
    }
}
