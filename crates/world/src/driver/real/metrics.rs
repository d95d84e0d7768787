//! Asking a gateway for its metrics while a world is played on it.

use std::net::SocketAddr;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use lagometer_results::{GatewayMetrics, GatewayMoment};
use lagometer_units::Time;
use lagometer_web::scrape::{fetch, samples, sum};

use super::MetricsSource;
use crate::measure::outcome::GatewayTicks;

/// How often the gateway is asked. Its tick durations are gauges: whatever
/// happens between two questions is not seen.
const EVERY: Duration = Duration::from_millis(200);

/// The least time between two moments of the gateway's course, so that a rate
/// is one over several answers.
const MOMENT: Duration = Duration::from_millis(500);

/// Whole seconds of processor time that give a rate to five per cent.
const WHOLE_SECONDS_ENOUGH: f64 = 20.0;

/// How many ticks of its channels this project's gateway has made.
const TICKS: &str = "gateway_tick_delay_seconds_count";

/// A thread that asks a gateway for its metrics until it is asked to stop.
#[derive(Debug)]
pub(super) struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<()>,
    readings: Readings,
    /// How many of them have been looked at while the world is played.
    looked_at: usize,
}

/// What was read so far, as it is read.
#[derive(Clone, Debug, Default)]
struct Readings(Arc<Mutex<Vec<Reading>>>);

impl Readings {
    fn lock(&self) -> MutexGuard<'_, Vec<Reading>> {
        // A reading is put in whole or not at all.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Watch {
    /// Asks from now on; `now` is the time of the run.
    pub(super) fn start(metrics: MetricsSource, now: Time) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let readings = Readings::default();
        let into = readings.clone();
        let thread = std::thread::Builder::new()
            .name("gateway-metrics".into())
            .spawn(move || {
                let MetricsSource { at, enter } = metrics;
                if enter.is_none_or(|enter| enter().is_ok()) {
                    watch(at, now, &stopped, &into);
                }
            })?;
        Ok(Self {
            stop,
            thread,
            readings,
            looked_at: 0,
        })
    }

    /// What the answers since the last look say of ticks.
    pub(super) fn ticks(&mut self) -> Option<GatewayTicks> {
        let readings = self.readings.lock();
        // From the last one of before on, so that no tick is left out.
        let before = self.looked_at.saturating_sub(1);
        self.looked_at = readings.len();
        ticks(&readings[before..])
    }

    /// What was seen: figures of the time since `measured_from`, the course
    /// from the start. Nothing where the gateway never answered.
    pub(super) fn finish(self, measured_from: Time) -> Option<GatewayMetrics> {
        drop(self.stop);
        self.thread.join().ok()?;
        let readings = self.readings.lock();
        let measured = readings.partition_point(|reading| reading.at < measured_from);
        let mut figures = figures(&readings[measured..])?;
        figures.timeline = course(&readings);
        Some(figures)
    }
}

fn watch(metrics: SocketAddr, now: Time, stopped: &Receiver<()>, readings: &Readings) {
    let began = Instant::now();
    while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        if let Ok(text) = fetch(metrics) {
            let reading = Reading::of(now + began.elapsed(), &text);
            readings.lock().push(reading);
        }
    }
}

/// What readings say of the ticks from the first on: nothing where there was no
/// answer after it.
fn ticks(readings: &[Reading]) -> Option<GatewayTicks> {
    let (first, rest) = readings.split_first()?;
    let last = rest.last()?;
    Some(GatewayTicks {
        per_s: last.rate(first, |it| it.ticks),
        late_pct: ticks_late_pct(first, last),
        longest_ms: longest_tick(rest),
    })
}

/// What one answer of the gateway's said, as far as it did.
#[derive(Clone, Copy, Debug, Default)]
struct Reading {
    /// When, in the run's time.
    at: Time,
    cpu_s: Option<f64>,
    resident_bytes: Option<f64>,
    /// The longest of the last ticks of all types of channels.
    tick_ms: Option<f64>,
    connections: Option<f64>,
    channels: Option<f64>,
    messages_in: Option<f64>,
    messages_out: Option<f64>,
    bytes_in: Option<f64>,
    bytes_out: Option<f64>,
    /// Ticks so far, where it reports them, and those come to in time.
    ticks: Option<f64>,
    ticks_in_time: Option<f64>,
    /// Messages that wait before its threads, and bytes before its connections,
    /// where it reports them.
    queued_messages: Option<f64>,
    waiting_bytes: Option<f64>,
    /// Updates merged so far for slow readers.
    merged: Option<f64>,
}

impl Reading {
    fn of(at: Time, text: &str) -> Self {
        let sum = |name| sum(text, name);
        Self {
            at,
            cpu_s: sum("process_cpu_seconds_total"),
            resident_bytes: sum("process_resident_memory_bytes"),
            tick_ms: samples(text, "channel_tick_duration")
                .map(|(_, tick_ms)| tick_ms)
                .reduce(f64::max),
            connections: sum("connection_num"),
            channels: sum("channel_num"),
            messages_in: sum("messages_in"),
            messages_out: sum("messages_out"),
            bytes_in: sum("bytes_in"),
            bytes_out: sum("bytes_out"),
            ticks: sum(TICKS),
            ticks_in_time: not_late(text),
            queued_messages: sum("gateway_queue_depth"),
            waiting_bytes: sum("gateway_waiting_bytes"),
            merged: sum("gateway_updates_merged_total"),
        }
    }

    /// By how much a counter grew each second from `before` to this.
    fn rate(&self, before: &Self, counter: fn(&Self) -> Option<f64>) -> Option<f64> {
        let seconds = self.at.since(before.at).as_secs_f64();
        let gained = counter(self)? - counter(before)?;
        (seconds > 0.0).then(|| gained / seconds)
    }
}

/// What the time from the first to the last of the readings comes to.
fn figures(readings: &[Reading]) -> Option<GatewayMetrics> {
    let (first, last) = (readings.first()?, readings.last()?);
    Some(GatewayMetrics {
        cpu_pct: cpu_pct(first, last),
        resident_bytes: last.resident_bytes,
        tick_max_ms: longest_tick(readings),
        ticks_per_s: last.rate(first, |it| it.ticks),
        ticks_late_pct: ticks_late_pct(first, last),
        messages_in_per_s: last.rate(first, |it| it.messages_in),
        messages_out_per_s: messages_out_per_s(first, last),
        queue_ms: queue_ms(readings),
        merged_pct: merged_pct(first, last),
        timeline: Vec::new(),
    })
}

/// The readings as a course, every half second.
fn course(readings: &[Reading]) -> Vec<GatewayMoment> {
    let mut course = Vec::new();
    let mut rest = readings;
    while let Some(first) = rest.first()
        && let Some(next) = rest.iter().position(|it| it.at.since(first.at) >= MOMENT)
    {
        let last = &rest[next];
        course.push(GatewayMoment {
            at_s: last.at.as_secs_f64(),
            connections: last.connections,
            channels: last.channels,
            cpu_pct: cpu_pct(first, last),
            resident_bytes: last.resident_bytes,
            tick_ms: longest_tick(&rest[1..=next]),
            messages_in_per_s: last.rate(first, |it| it.messages_in),
            messages_out_per_s: last.rate(first, |it| it.messages_out),
            bytes_in_per_s: last.rate(first, |it| it.bytes_in),
            bytes_out_per_s: last.rate(first, |it| it.bytes_out),
        });
        rest = &rest[next..];
    }
    course
}

/// How long messages waited before the gateway's threads and bytes before its
/// connections: what waited on the average over what went through.
fn queue_ms(readings: &[Reading]) -> Option<f64> {
    let (first, last) = (readings.first()?, readings.last()?);
    let mean = |gauge: fn(&Reading) -> Option<f64>| {
        let known: Vec<f64> = readings.iter().filter_map(gauge).collect();
        (!known.is_empty()).then(|| known.iter().sum::<f64>() / known.len() as f64)
    };
    let messages_per_s = last.rate(first, |it| it.messages_in)? + messages_out_per_s(first, last)?;
    let bytes_per_s = last.rate(first, |it| it.bytes_out)?;
    let before_threads = mean(|it| it.queued_messages)? / messages_per_s.max(1.0);
    let before_connections = mean(|it| it.waiting_bytes)? / bytes_per_s.max(1.0);
    Some(1000.0 * (before_threads + before_connections))
}

/// Updates merged for slow readers, in per cent of the messages sent.
fn merged_pct(before: &Reading, after: &Reading) -> Option<f64> {
    let merged_per_s = after.rate(before, |it| it.merged)?;
    Some(100.0 * merged_per_s / messages_out_per_s(before, after)?.max(1.0))
}

fn messages_out_per_s(before: &Reading, after: &Reading) -> Option<f64> {
    after.rate(before, |it| it.messages_out)
}

/// How many of the ticks between two readings were late, per cent.
fn ticks_late_pct(before: &Reading, after: &Reading) -> Option<f64> {
    let ticks = after.ticks? - before.ticks?;
    let in_time = after.ticks_in_time? - before.ticks_in_time?;
    (ticks > 0.0).then(|| 100.0 * (ticks - in_time) / ticks)
}

fn longest_tick(readings: &[Reading]) -> Option<f64> {
    let ticks = readings.iter().filter_map(|reading| reading.tick_ms);
    ticks.reduce(f64::max)
}

/// Processor time between two readings in per cent of one core, where it is
/// counted finely enough to be a rate: some gateways count whole seconds.
fn cpu_pct(before: &Reading, after: &Reading) -> Option<f64> {
    let (from, to) = (before.cpu_s?, after.cpu_s?);
    let is_whole = from.fract() == 0.0 && to.fract() == 0.0;
    let is_known = !is_whole || to - from >= WHOLE_SECONDS_ENOUGH;
    let rate = after.rate(before, |it| it.cpu_s)?;
    is_known.then_some(100.0 * rate)
}

/// The ticks that were come to within 10 ms, where a gateway reports them.
fn not_late(text: &str) -> Option<f64> {
    samples(text, "gateway_tick_delay_seconds_bucket")
        .find(|(labels, _)| *labels == "le=\"0.01\"")
        .map(|(_, count)| count)
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "\
# HELP messages_in Received messages\n\
# TYPE messages_in counter\n\
messages_in{channel=\"GLOBAL\",msgType=\"1\"} 4\n\
messages_in{channel=\"GLOBAL\",msgType=\"8\"} 1.5e2 1700000000\n\
messages_in_flight 9\n\
channel_tick_duration{type=\"TEST\"} 1\n\
channel_tick_duration{type=\"GLOBAL\"} 7.25\n\
process_cpu_seconds_total 12\n\
frames_total{x=\"y\"} 3\n";

    fn reading(at_s: f64, cpu: &str) -> Reading {
        let text = format!("{TEXT}process_cpu_seconds_total {cpu}\n");
        let text = text.replacen("process_cpu_seconds_total 12\n", "", 1);
        Reading::of(Time::from_nanos((at_s * 1e9) as u64), &text)
    }

    #[test]
    fn whole_seconds_say_nothing_of_a_short_run() {
        let shares = |from, to| cpu_pct(&reading(0.0, from), &reading(40.0, to));
        assert_eq!(shares("3", "4"), None);
        assert_eq!(shares("3", "24"), Some(52.5));
        assert_eq!(shares("3.5", "5.5"), Some(5.0));
        let nothing = Reading::default();
        assert_eq!(cpu_pct(&nothing, &nothing), None);
    }

    #[test]
    fn figures_are_of_what_was_measured_and_the_course_of_everything() {
        let readings: Vec<Reading> = (0..11)
            .map(|nth| reading(0.2 * f64::from(nth), &format!("{}.5", nth / 5)))
            .collect();
        let course = course(&readings);
        let at_s: Vec<_> = course.iter().map(|moment| moment.at_s).collect();
        assert_eq!(at_s, [0.6, 1.2, 1.8]);
        assert_eq!(course[0].tick_ms, Some(7.25));
        assert_eq!(course[0].messages_in_per_s, Some(0.0));
        assert_eq!(course[0].connections, None);
        let all: f64 = course.iter().filter_map(|moment| moment.cpu_pct).sum();
        assert!((all * 0.6 - 100.0).abs() < 1e-6, "{all}");
        let measured = figures(&readings[5..]).unwrap();
        assert_eq!(measured.cpu_pct, Some(100.0));
        assert_eq!(measured.resident_bytes, None);
        assert_eq!(figures(&[]), None);
    }

    #[test]
    fn queues_are_as_long_as_what_waits_takes_to_go_through() {
        let reading = |at_s: u64, queued: f64, waiting: f64, merged: f64| {
            let seconds = at_s as f64;
            Reading {
                at: Time::from_nanos(at_s * 1_000_000_000),
                messages_in: Some(100.0 * seconds),
                messages_out: Some(900.0 * seconds),
                bytes_out: Some(10_000.0 * seconds),
                queued_messages: Some(queued),
                waiting_bytes: Some(waiting),
                merged: Some(merged),
                ..Reading::default()
            }
        };
        let readings = [reading(1, 10.0, 0.0, 5.0), reading(2, 30.0, 200.0, 23.0)];
        // 20 of 1,000 messages a second, and 100 of 10,000 bytes.
        assert_eq!(queue_ms(&readings), Some(30.0));
        assert_eq!(merged_pct(&readings[0], &readings[1]), Some(2.0));
        let silent = readings.map(|reading| Reading {
            queued_messages: None,
            ..reading
        });
        assert_eq!(queue_ms(&silent), None);
    }

    #[test]
    fn ticks_are_reported_as_they_come() {
        let reading = |at_s: u64, all: u32, in_time: u32, tick_ms: f64| Reading {
            at: Time::from_nanos(at_s * 1_000_000_000),
            ticks: Some(all.into()),
            ticks_in_time: Some(in_time.into()),
            tick_ms: Some(tick_ms),
            ..Reading::default()
        };
        let readings = [
            reading(1, 40, 40, 9.0),
            reading(2, 90, 80, 3.0),
            reading(3, 140, 130, 1.0),
        ];
        let expected = GatewayTicks {
            per_s: Some(50.0),
            late_pct: Some(10.0),
            longest_ms: Some(3.0),
        };
        assert_eq!(ticks(&readings), Some(expected));
        assert_eq!(ticks(&readings[..1]), None, "no answer since");
        // A gateway that does not count them reports how long they take.
        let gauges = readings.map(|reading| Reading {
            ticks: None,
            ticks_in_time: None,
            ..reading
        });
        let expected = GatewayTicks {
            longest_ms: Some(3.0),
            ..GatewayTicks::default()
        };
        assert_eq!(ticks(&gauges), Some(expected));
    }

    #[test]
    fn late_ticks_are_those_beyond_the_bucket_of_ten_milliseconds() {
        let text = "gateway_tick_delay_seconds_bucket{le=\"0.005\"} 3\n\
                    gateway_tick_delay_seconds_bucket{le=\"0.01\"} 7\n\
                    gateway_tick_delay_seconds_bucket{le=\"+Inf\"} 9\n\
                    gateway_tick_delay_seconds_count 9\n";
        assert_eq!(not_late(text), Some(7.0));
        assert_eq!(sum(text, TICKS), Some(9.0));
        assert_eq!(not_late(TEXT), None);
        let before = Reading {
            ticks: Some(4.0),
            ticks_in_time: Some(4.0),
            ..Reading::default()
        };
        let after = Reading::of(Time::ZERO, text);
        assert_eq!(ticks_late_pct(&before, &after), Some(40.0));
        assert_eq!(ticks_late_pct(&before, &before), None);
    }
}
