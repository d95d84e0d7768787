//! Asking a gateway for its metrics while a world is played on it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use crate::outcome::GatewayFigures;

/// How often the gateway is asked. Its tick durations are gauges: whatever
/// happens between two questions is not seen.
const EVERY: Duration = Duration::from_millis(200);

/// How long an answer is waited for.
const PATIENCE: Duration = Duration::from_secs(2);

/// Whole seconds of processor time that tell a rate to five per cent.
const WHOLE_SECONDS_ENOUGH: f64 = 20.0;

/// Longer answers are cut off.
const MOST_BYTES: u64 = 4 << 20;

/// A thread that asks a gateway for its metrics until it is told to stop.
#[derive(Debug)]
pub(super) struct Watch {
    stop: Sender<()>,
    thread: JoinHandle<GatewayFigures>,
}

impl Watch {
    pub(super) fn start(metrics: SocketAddr) -> std::io::Result<Self> {
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("gateway-metrics".into())
            .spawn(move || watch(metrics, &stopped))?;
        Ok(Self { stop, thread })
    }

    /// What was seen since the start; nothing where the gateway never
    /// answered.
    pub(super) fn finish(self) -> Option<GatewayFigures> {
        drop(self.stop);
        let figures = self.thread.join().ok()?;
        (figures != GatewayFigures::default()).then_some(figures)
    }
}

fn watch(metrics: SocketAddr, stopped: &Receiver<()>) -> GatewayFigures {
    let mut first: Option<(Instant, String)> = None;
    let mut last = None;
    let mut tick_max_ms: Option<f64> = None;
    while stopped.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
        let Ok(text) = fetch(metrics) else {
            continue;
        };
        let now = Instant::now();
        for (_, tick_ms) in samples(&text, "channel_tick_duration") {
            tick_max_ms = Some(tick_max_ms.map_or(tick_ms, |most| most.max(tick_ms)));
        }
        if first.is_none() {
            first = Some((now, text.clone()));
        }
        last = Some((now, text));
    }
    let (Some((began, before)), Some((ended, after))) = (first, last) else {
        return GatewayFigures::default();
    };
    let seconds = (ended - began).as_secs_f64();
    let rate = |name| {
        let gained = sum(&after, name)? - sum(&before, name)?;
        (seconds > 0.0).then(|| gained / seconds)
    };
    GatewayFigures {
        cpu_pct: finer_than_seconds(&before, &after)
            .then(|| rate("process_cpu_seconds_total").map(|share| 100.0 * share))
            .flatten(),
        resident_bytes: sum(&after, "process_resident_memory_bytes"),
        tick_max_ms,
        messages_in_per_s: rate("messages_in"),
        messages_out_per_s: rate("messages_out"),
    }
}

/// Whether the processor time is told well enough to be a rate: some gateways,
/// this project's among them, count whole seconds.
fn finer_than_seconds(before: &str, after: &str) -> bool {
    let name = "process_cpu_seconds_total";
    let (Some(before), Some(after)) = (sum(before, name), sum(after, name)) else {
        return false;
    };
    let is_whole = before.fract() == 0.0 && after.fract() == 0.0;
    !is_whole || after - before >= WHOLE_SECONDS_ENOUGH
}

fn fetch(metrics: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&metrics, PATIENCE)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    write!(
        stream,
        "GET /metrics HTTP/1.0\r\nHost: {metrics}\r\nAccept: text/plain\r\n\r\n"
    )?;
    let mut text = String::new();
    stream.take(MOST_BYTES).read_to_string(&mut text)?;
    Ok(text)
}

/// The sum of all samples of a name in Prometheus' text format.
fn sum(text: &str, name: &str) -> Option<f64> {
    samples(text, name)
        .map(|(_, value)| value)
        .reduce(|sum, value| sum + value)
}

/// Labels and values of the samples of a name, which a counter may also bear
/// with `_total` at its end.
fn samples<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = (&'a str, f64)> {
    text.lines().filter_map(move |line| {
        let rest = line.strip_prefix(name)?;
        let rest = rest.strip_prefix("_total").unwrap_or(rest);
        let (labels, value) = match rest.strip_prefix('{') {
            Some(rest) => rest.split_once('}')?,
            None => ("", rest.strip_prefix(' ')?),
        };
        let value = value.split_whitespace().next()?.parse().ok()?;
        Some((labels, value))
    })
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

    #[test]
    fn whole_seconds_say_nothing_of_a_short_run() {
        let told = |seconds: &str| format!("process_cpu_seconds_total {seconds}\n");
        assert!(!finer_than_seconds(&told("3"), &told("4")));
        assert!(finer_than_seconds(&told("3"), &told("24")));
        assert!(finer_than_seconds(&told("3.25"), &told("4")));
        assert!(!finer_than_seconds("", ""));
    }

    #[test]
    fn samples_are_found_by_name_and_label() {
        assert_eq!(sum(TEXT, "messages_in"), Some(154.0));
        assert_eq!(sum(TEXT, "process_cpu_seconds_total"), Some(12.0));
        assert_eq!(sum(TEXT, "frames"), Some(3.0));
        assert_eq!(sum(TEXT, "absent"), None);
        let ticks: Vec<_> = samples(TEXT, "channel_tick_duration").collect();
        assert_eq!(ticks, [("type=\"TEST\"", 1.0), ("type=\"GLOBAL\"", 7.25)]);
    }
}
