//! One lane, from joining its ends to what was found.

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, ScopedJoinHandle};
use std::time::{Duration, Instant};

use lagometer_remote::{Remote, RemoteJob};
use lagometer_results::{Bulk, BulkSample, Lane};
use lagometer_units::Time;
use serde_json::Value;

use super::datagrams::Terms;
use super::ends::{self, Run};
use super::gauge::{Gauge, Reading};
use super::lane::LanePlan;
use super::pace::Pace;
use super::plan::Plan;
use super::service::{Report, Request, SERVICE};
use super::signal::{Order, Signal};
use super::{Ended, Failed};
use crate::clock::Clock;

/// Time from one sample of the rates to the next.
const STEP: Duration = Duration::from_millis(500);
/// How often the threads are looked at between two samples.
const LOOK: Duration = Duration::from_millis(10);
/// How long after the end a sender that keeps to a clock may still offer what
/// was due before.
const CATCH_UP: Duration = Duration::from_millis(500);
/// How long nothing may arrive, once nothing more is offered, until the rest
/// is given up.
const TIMEOUT: Duration = Duration::from_secs(2);
/// The same of a transport that promises nothing.
const TIMEOUT_UNRELIABLE: Duration = Duration::from_millis(300);

/// What is reported while a lane is measured.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// The name of the lane that is measured.
    pub lane: &'a str,
    /// The last half second.
    pub sample: BulkSample,
}

/// Measures one lane towards the remote end and returns its part of the document;
/// what kept it from being measured is [`Lane::failure`]. `progress` is called
/// twice a second. Once `stop` is raised no more is offered.
#[must_use]
pub fn measure(
    remote: &Remote,
    plan: &Plan,
    lane: &LanePlan,
    progress: &mut dyn FnMut(&Progress<'_>),
    stop: &AtomicBool,
) -> Lane {
    let mut found = lane.document();
    let chunk_bytes = plan
        .chunk
        .map_or_else(|| lane.chunk_bytes(), |chunk| chunk.bytes() as usize);
    let terms = Terms {
        chunk_bytes,
        seed: plan.seed,
        every: plan.every,
        duration: plan.duration,
        header_bytes: lane.header_bytes(),
        sleeps: plan.sleeps,
    };
    let watch = Watch {
        plan,
        lane,
        terms: &terms,
        stop,
    };
    match watch.run(remote, progress) {
        Ok(outcome) => fill(&mut found, plan, &terms, outcome),
        Err(why) => found.failure = Some(why.to_string()),
    }
    found
}

/// A lane under way.
struct Watch<'a> {
    plan: &'a Plan,
    lane: &'a LanePlan,
    terms: &'a Terms,
    stop: &'a AtomicBool,
}

/// What both ends say, and the rates as they went.
struct Outcome {
    sender: Result<Ended, Failed>,
    sent: Reading,
    /// The remote end's report, or why there is none.
    receiver: Result<Report, Failed>,
    /// What it last showed before that.
    received: Reading,
    offered: Duration,
    series: Vec<BulkSample>,
}

/// The receiving end, as it is seen from here.
struct Receiver {
    job: RemoteJob,
    /// What it last showed.
    reading: Reading,
    is_gone: bool,
}

type Handle<'scope> = ScopedJoinHandle<'scope, Result<Ended, Failed>>;

impl Watch<'_> {
    fn run(
        &self,
        remote: &Remote,
        progress: &mut dyn FnMut(&Progress<'_>),
    ) -> Result<Outcome, Failed> {
        let pin = self.plan.pin;
        let request = Request {
            lane: self.lane.name().to_owned(),
            settings: self.lane.settings(),
            chunk_bytes: self.terms.chunk_bytes,
            seed: self.terms.seed,
            way: self.plan.offload.into(),
            processor: pin.map(|pin| pin.receive),
            sleeps: self.plan.sleeps,
        };
        let request = serde_json::to_value(&request).unwrap_or_default();
        let job = remote.open(SERVICE, &request)?;
        let (lane_transport, seed) = (&self.lane.lane_transport, self.terms.seed);
        let end = ends::join(lane_transport, &job, self.plan.offload, seed)?;
        let mut receiver = Receiver {
            job,
            reading: Reading::default(),
            is_gone: false,
        };
        let (sent, signal) = (Gauge::default(), Signal::default());
        let sending = Run {
            terms: self.terms,
            clock: Clock::start(),
            gauge: &sent,
            signal: &signal,
            processor: pin.map(|pin| pin.send),
        };
        Ok(thread::scope(|scope| {
            let sender = scope.spawn(|| end.send(&sending));
            let (offered, series) = self.sample(&sent, &mut receiver, &sender, progress);
            self.catch_up(&sent, &sender);
            signal.give(Order::Drain);
            self.drain(&sent, &mut receiver, &sender);
            signal.give(Order::Stop);
            let ended = sender.join().unwrap_or(Err(Failed::Panicked));
            Outcome {
                sender: ended,
                sent: sent.read(),
                received: receiver.reading,
                receiver: receiver.finish(),
                offered,
                series,
            }
        }))
    }

    /// Samples the rates until the time is up or an end has ended. Returns how
    /// long messages were offered, and the samples.
    fn sample(
        &self,
        sent: &Gauge,
        receiver: &mut Receiver,
        sender: &Handle<'_>,
        progress: &mut dyn FnMut(&Progress<'_>),
    ) -> (Duration, Vec<BulkSample>) {
        let is_over = || sender.is_finished() || self.stop.load(Ordering::Relaxed);
        while sent.read().counts.bytes == 0 {
            if is_over() {
                return (Duration::ZERO, Vec::new());
            }
            thread::sleep(Duration::from_millis(1));
        }
        let began = Instant::now();
        let mut series = Vec::new();
        let mut before = (Duration::ZERO, 0, 0);
        loop {
            let next = (before.0 + STEP).min(self.plan.duration);
            while began.elapsed() < next && !is_over() {
                thread::sleep(next.saturating_sub(began.elapsed()).min(LOOK));
            }
            let elapsed = began.elapsed();
            let (out, came) = (sent.read().counts.bytes, receiver.look().counts.bytes);
            let span = elapsed.saturating_sub(before.0);
            // What is left of a step cut short says little.
            if span >= STEP / 4 {
                let sample = BulkSample {
                    t_s: thousandths(elapsed.as_secs_f64()),
                    send_mbit_per_s: mbit_per_s(out - before.1, span),
                    recv_mbit_per_s: mbit_per_s(came.saturating_sub(before.2), span),
                };
                progress(&Progress {
                    lane: self.lane.name(),
                    sample,
                });
                series.push(sample);
                before = (elapsed, out, came);
            }
            if elapsed >= self.plan.duration || is_over() || receiver.is_gone {
                return (elapsed, series);
            }
        }
    }

    /// Lets a sender that keeps to a clock offer what was due.
    fn catch_up(&self, sent: &Gauge, sender: &Handle<'_>) {
        let began = Instant::now();
        let total = Pace::new(self.plan.every, Time::ZERO, Time::ZERO + self.plan.duration).total();
        let is_behind = || total.is_some_and(|total| sent.read().counts.messages < total);
        let is_stopped = || sender.is_finished() || self.stop.load(Ordering::Relaxed);
        while is_behind() && began.elapsed() < CATCH_UP && !is_stopped() {
            thread::sleep(LOOK);
        }
    }

    /// Waits until all that was taken has arrived, or nothing arrives any
    /// more.
    fn drain(&self, sent: &Gauge, receiver: &mut Receiver, sender: &Handle<'_>) {
        let timeout = if self.lane.is_reliable() {
            TIMEOUT
        } else {
            TIMEOUT_UNRELIABLE
        };
        let began = Instant::now();
        let mut last = (receiver.look().counts.bytes, began);
        loop {
            thread::sleep(LOOK);
            let bytes = receiver.look().counts.bytes;
            if bytes > last.0 {
                last = (bytes, Instant::now());
            }
            // The sender's last word may come after the order to stop offering.
            let settled = began.elapsed() >= 2 * LOOK;
            let whole = bytes >= sent.read().counts.bytes && settled;
            let given_up = last.1.elapsed() >= timeout || receiver.is_gone;
            if whole || given_up || sender.is_finished() {
                return;
            }
        }
    }
}

impl Receiver {
    /// What it shows now; what it last showed where it is gone.
    fn look(&mut self) -> Reading {
        let answer = self.job.ask(&Value::Null);
        let reading = answer
            .ok()
            .and_then(|answer| serde_json::from_value(answer).ok());
        match reading {
            Some(reading) => self.reading = reading,
            None => self.is_gone = true,
        }
        self.reading
    }

    /// Ends it; what it found.
    fn finish(self) -> Result<Report, Failed> {
        let found = self.job.finish()?;
        serde_json::from_value(found).map_err(|_| Failed::Report)
    }
}

/// Puts what was found into the lane's part of the document.
fn fill(lane: &mut Lane, plan: &Plan, terms: &Terms, outcome: Outcome) {
    let Outcome {
        sender,
        sent,
        receiver,
        received,
        offered,
        series,
    } = outcome;
    let failure = sender.as_ref().err().map(ToString::to_string);
    let failure = failure.or_else(|| receiver.as_ref().err().map(ToString::to_string));
    let report = receiver.unwrap_or_else(|_| Report {
        reading: received,
        ..Report::default()
    });
    let failure = failure.or(report.failure);
    let (local, remote, received) = (sender.unwrap_or_default(), report.ended, report.reading);
    let (out, came) = (sent.counts, received.counts);
    // What a stream has in whole chunks is cut where the bytes are.
    let delivered = came.messages.min(out.messages);
    let intended = local.intended.max(out.messages);
    lane.messages.intended = intended;
    lane.messages.sent = out.messages;
    lane.messages.delivered = delivered;
    lane.messages.lost = intended - delivered;
    lane.messages.refused = local.refused;
    let every = plan.every.filter(|every| !every.is_zero());
    let gigabytes = came.bytes as f64 / 1e9;
    let per_gigabyte =
        |cpu: Duration| (came.bytes > 0).then(|| thousandths(cpu.as_secs_f64() / gigabytes));
    lane.bulk = Some(Bulk {
        send_mbit_per_s: mbit_per_s(out.bytes, offered),
        recv_mbit_per_s: mbit_per_s(came.bytes, received.span),
        offered_mbit_per_s: every.map(|every| mbit_per_s(terms.chunk_bytes as u64, every)),
        chunk_bytes: terms.chunk_bytes as u64,
        every_us: every.map(|every| every.as_secs_f64() * 1e6),
        offered_s: thousandths(offered.as_secs_f64()),
        sent_bytes: out.bytes,
        received_bytes: came.bytes.min(out.bytes),
        loss_pct: loss_pct(out.bytes, came.bytes),
        duplicates: came.duplicates,
        reordered: came.reordered,
        damaged: came.damaged,
        send_cpu_s_per_gb: per_gigabyte(sent.cpu),
        recv_cpu_s_per_gb: per_gigabyte(received.cpu),
        path: local.path,
        system_calls: local.calls + remote.calls,
        datagrams: local.datagrams + remote.datagrams,
        series,
        rate_per_seed: Vec::new(),
    });
    lane.failure = failure.or_else(|| {
        let promised = lane
            .properties
            .as_ref()
            .is_some_and(|properties| properties.reliable);
        let missing = out.bytes.saturating_sub(came.bytes);
        if came.damaged > 0 {
            Some(format!("{} messages arrived damaged", came.damaged))
        } else if promised && missing > 0 {
            Some(format!(
                "{missing} bytes of a reliable transport had not arrived {} s after the last \
                 that did",
                TIMEOUT.as_secs()
            ))
        } else {
            None
        }
    });
}

/// Share of `sent` that did not come, per cent.
fn loss_pct(sent: u64, came: u64) -> f64 {
    if sent == 0 {
        return 0.0;
    }
    let share = sent.saturating_sub(came) as f64 / sent as f64;
    (share * 1e6).round() / 1e4
}

/// The rate of so many bytes in so much time, to a hundredth.
fn mbit_per_s(bytes: u64, span: Duration) -> f64 {
    if span.is_zero() {
        return 0.0;
    }
    (bytes as f64 * 8.0 / span.as_secs_f64() / 1e4).round() / 1e2
}

fn thousandths(value: f64) -> f64 {
    (value * 1e3).round() / 1e3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_and_shares() {
        let figures = [
            mbit_per_s(62_000, Duration::from_micros(100)),
            mbit_per_s(1, Duration::ZERO),
            loss_pct(1000, 990),
            loss_pct(0, 0),
            loss_pct(10, 12),
        ];
        assert_eq!(figures.map(|figure| figure as i64), [4960, 0, 1, 0, 0]);
    }
}
