//! The local end's loop: keeps so many messages on their way, times and checks
//! what comes back, and never waits for ever.
//!
//! The loop runs on a thread of its own, pinned where that is asked for. The
//! thread that started it watches: where nothing at all comes back for a
//! while, it sends the oldest message once more, so that the loop wakes and
//! counts the loss; where that does not help either, it ends the wait.

use std::io;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lagometer_units::Time;

use super::flights::{Arrival, Flights};
use super::stats::EchoStats;
use crate::clock::Clock;
use crate::payload::{Corrupt, Payload};
use crate::placement::pin_this_thread;
use crate::wire::{Unblock, Wire};

/// How the local end goes about it.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    /// Messages on their way at once, at least one.
    pub outstanding: usize,
    /// How long messages are sent.
    pub span: Duration,
    /// How long a message is waited for before it counts as lost.
    pub timeout: Duration,
    /// How long nothing at all may come before the remote end counts as gone.
    pub silence: Duration,
    /// The processor to run on.
    pub cpu: Option<u32>,
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ended {
    /// At its time.
    OnTime,
    /// The user stopped it.
    Stopped,
    /// The remote end fell silent, or its socket was gone; in words.
    Gone(String),
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// Counts, round trips, series.
    pub stats: EchoStats,
    /// From the first message to the end of sending, or to the last echo if
    /// that came later.
    pub measured: Duration,
    /// Whether it ended on time, was stopped by the user, or lost the remote end.
    pub ended: Ended,
}

/// What the loop reports to the thread that watches it.
#[derive(Debug, Default)]
struct Pulse {
    /// Arrivals of any kind.
    arrivals: AtomicU64,
    /// Verified echoes.
    echoed: AtomicU64,
    /// The oldest message on its way.
    oldest: AtomicU64,
    /// Messages sent once more by the watching thread.
    nudges: AtomicU64,
    /// The loop is to end.
    over: AtomicBool,
}

/// How often the watching thread looks.
const LOOK: Duration = Duration::from_millis(25);

/// Carries one run out over `wire`, whose wait `unblock` ends. `nudge` sends a
/// message on the same path from another thread, where that is possible.
/// `progress` is called now and then with how long the run lasts and how many echoes
/// have come; the run ends when it returns false.
///
/// # Errors
///
/// The system does not let the thread be started or pinned.
pub fn run<W: Wire + Send>(
    mut wire: W,
    payload: &Payload,
    plan: &Plan,
    unblock: &Unblock,
    nudge: &dyn Fn(&[u8]),
    progress: &mut dyn FnMut(Duration, u64) -> bool,
) -> io::Result<Outcome> {
    let pulse = Pulse::default();
    let watcher = thread::current();
    let mut outcome = thread::scope(|scope| {
        let (pulse, plan) = (&pulse, *plan);
        let mut own = payload.clone();
        let looping = thread::Builder::new()
            .name("echo-local".to_owned())
            .spawn_scoped(scope, move || {
                let outcome =
                    pin_this_thread(plan.cpu).map(|()| echo(&mut wire, &mut own, &plan, pulse));
                watcher.unpark();
                outcome
            })?;
        let ended = watch(payload, &plan, pulse, nudge, progress, &|| {
            looping.is_finished()
        });
        pulse.over.store(true, Ordering::Relaxed);
        if ended.is_some() {
            unblock.now();
        }
        let mut outcome = looping
            .join()
            .unwrap_or_else(|panic| std::panic::resume_unwind(panic))?;
        if let Some(ended) = ended {
            outcome.ended = ended;
        }
        Ok::<_, io::Error>(outcome)
    })?;
    outcome.stats.counts.nudges = pulse.nudges.load(Ordering::Relaxed);
    Ok(outcome)
}

/// Watches the loop until it has ended by itself, or says why it must.
fn watch(
    payload: &Payload,
    plan: &Plan,
    pulse: &Pulse,
    nudge: &dyn Fn(&[u8]),
    progress: &mut dyn FnMut(Duration, u64) -> bool,
    is_over: &dyn Fn() -> bool,
) -> Option<Ended> {
    let began = Instant::now();
    let mut seen = 0;
    let mut last_arrival = began;
    let mut last_nudge = began;
    let mut message = vec![0; payload.size()];
    loop {
        thread::park_timeout(LOOK);
        if is_over() {
            return None;
        }
        let now = Instant::now();
        let arrivals = pulse.arrivals.load(Ordering::Relaxed);
        if arrivals != seen {
            seen = arrivals;
            last_arrival = now;
            last_nudge = now;
        }
        if !progress(now - began, pulse.echoed.load(Ordering::Relaxed)) {
            return Some(Ended::Stopped);
        }
        if now - began >= plan.span + plan.timeout + LOOK {
            return Some(Ended::OnTime);
        }
        if now - last_arrival >= plan.silence {
            let silent = (now - last_arrival).as_secs_f64();
            return Some(Ended::Gone(format!("nothing came back for {silent:.1} s")));
        }
        if now - last_nudge >= plan.timeout {
            last_nudge = now;
            payload.write(pulse.oldest.load(Ordering::Relaxed), &mut message);
            nudge(&message);
            pulse.nudges.fetch_add(1, Ordering::Relaxed);
        }
    }
}

/// The loop itself.
fn echo(wire: &mut impl Wire, payload: &mut Payload, plan: &Plan, pulse: &Pulse) -> Outcome {
    let clock = Clock::start();
    let clock = || clock.now();
    let end = Time::ZERO + plan.span;
    let mut flights = Flights::new(payload.numbers());
    let mut stats = EchoStats::new(plan.span);
    let mut now = Time::ZERO;
    let mut ended = Ended::OnTime;
    let mut refused_since = None;
    let mut arrival = None;
    loop {
        let filled = fill(wire, payload, plan, &mut flights, (now, end), &clock);
        // Entered once the next message has left, so that the book is kept
        // while that is on its way.
        if let Some((now, arrival)) = arrival.take() {
            enter(&mut stats, now, arrival);
            let counts = &stats.counts;
            let arrivals = counts.echoed + counts.late + counts.corrupt;
            pulse.echoed.store(counts.echoed, Ordering::Relaxed);
            pulse.arrivals.store(arrivals, Ordering::Relaxed);
            pulse.oldest.store(flights.oldest(), Ordering::Relaxed);
        }
        if let Err(error) = filled {
            ended = Ended::Gone(error.to_string());
            break;
        }
        if flights.flying() == 0 && now >= end {
            break;
        }
        match wire.receive() {
            Ok(message) => {
                let checked = payload.check(message, flights.oldest());
                if pulse.over.load(Ordering::Relaxed) {
                    break;
                }
                now = clock();
                refused_since = None;
                // An echo that took longer than it may is late, even where
                // nothing has woken this loop in between.
                give_up(&mut flights, &mut stats, now, plan.timeout);
                arrival = Some((now, checked.map(|number| flights.arrived(number))));
            }
            Err(error) => {
                now = clock();
                if pulse.over.load(Ordering::Relaxed) {
                    break;
                }
                match error.kind() {
                    io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted => {}
                    // The remote end's socket is gone, perhaps to come again.
                    io::ErrorKind::ConnectionRefused
                        if now.since(*refused_since.get_or_insert(now)) < plan.silence =>
                    {
                        thread::sleep(LOOK);
                    }
                    _ => {
                        ended = Ended::Gone(error.to_string());
                        break;
                    }
                }
                give_up(&mut flights, &mut stats, now, plan.timeout);
            }
        }
    }
    // What is still on its way counts if it had its time.
    give_up(&mut flights, &mut stats, clock(), plan.timeout);
    let measured = clock().min(end).max(stats.last_echo());
    Outcome {
        stats,
        measured: measured.since(Time::ZERO),
        ended,
    }
}

/// Counts and times what came at `now`.
#[inline]
fn enter(stats: &mut EchoStats, now: Time, arrival: Result<Arrival, Corrupt>) {
    match arrival {
        Ok(Arrival::Awaited(sent)) => stats.echoed(now, now.since(sent)),
        Ok(Arrival::Late) => stats.counts.late += 1,
        Ok(Arrival::Unsent) | Err(Corrupt) => stats.counts.corrupt += 1,
    }
}

/// Counts what has had its time as lost.
#[inline]
fn give_up(flights: &mut Flights, stats: &mut EchoStats, now: Time, timeout: Duration) {
    for _ in 0..flights.give_up(now, timeout) {
        stats.lost();
    }
}

/// Sends until enough messages are on their way.
#[inline]
fn fill(
    wire: &mut impl Wire,
    payload: &mut Payload,
    plan: &Plan,
    flights: &mut Flights,
    (now, end): (Time, Time),
    clock: &impl Fn() -> Time,
) -> io::Result<()> {
    let mut leaves = now;
    while flights.flying() < plan.outstanding
        && leaves < end
        && let Some(number) = flights.next()
    {
        match wire.send(payload.message(number)) {
            // The remote end's socket is gone: the message is lost like others.
            Err(error) if error.kind() == io::ErrorKind::ConnectionRefused => {}
            sent => sent?,
        }
        flights.left(leaves);
        if plan.outstanding > 1 {
            leaves = clock();
        }
    }
    Ok(())
}
