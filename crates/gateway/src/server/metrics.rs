//! The gateway's numbers for Prometheus.
//!
//! Channeld's metrics keep their names and labels, so that dashboards made for
//! it show this gateway too; what it has beyond them begins with `gateway_`.
//! Nothing is counted here: at each scrape the loops are asked for what they
//! have counted.

mod counters;
mod families;
#[cfg_attr(not(target_os = "linux"), path = "metrics/process_elsewhere.rs")]
mod process;
mod routes;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus::proto::MetricFamily;
use prometheus::{Encoder, TextEncoder};

use crate::core::{ConnectionCounters, Peer};

use super::accept_queue::Wait;
use super::admission_control::Refusal;
use super::report::{Numbers, Report, RouteNumbers};
use super::shared::Shared;
use super::stream_transport::KcpEvent;

use counters::{add, label, of_budgets, of_channels, of_connections};
use families::{Families, Kind};
use process::Process;
use routes::of_routes;

/// How long a loop may take to report its numbers.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The least time between two questions: each wakes every loop.
const ASKED_EVERY: Duration = Duration::from_millis(5);

/// The processor time of the process, under the name that is usual.
const CPU_SECONDS: &str = "process_cpu_seconds_total";

/// Gathers the numbers of all loops.
#[derive(Debug)]
pub(super) struct Metrics {
    shared: Arc<Shared>,
    /// Each loop's name and report.
    reports: Vec<(String, Arc<Report>)>,
    process: Process,
    last_asked: Mutex<Option<Instant>>,
}

/// A loop did not report its numbers in time, or a probe of it did not come back
/// from the channels: the gateway hangs.
#[derive(Debug, thiserror::Error)]
#[error("{0} does not answer")]
pub struct Hangs(String);

impl Metrics {
    pub(super) fn new(shared: Arc<Shared>, reports: Vec<(String, Arc<Report>)>) -> Self {
        Self {
            shared,
            reports,
            process: Process::new(),
            last_asked: Mutex::default(),
        }
    }

    /// Whether all loops answer.
    pub(super) fn alive(&self) -> Result<(), Hangs> {
        self.numbers().map(drop)
    }

    /// All metrics in Prometheus's text format.
    pub(super) fn text(&self) -> Result<Vec<u8>, Hangs> {
        let numbers = self.numbers()?;
        let mut families = Families::default();
        let mut connections = ConnectionCounters::default();
        for (_, numbers) in &numbers {
            if let Some(of_loop) = &numbers.connections {
                add(&mut connections, of_loop);
            }
        }
        of_connections(&mut families, &connections);
        let mut over_budget = connections.over_budget;
        let channels = numbers.iter().filter_map(|(_, numbers)| numbers.channels);
        let of_shards = channels.reduce(|(mut sum, tick_at_ms), (other, other_tick_at_ms)| {
            sum.add(&other);
            (sum, tick_at_ms.max(other_tick_at_ms))
        });
        if let Some((channels, tick_at_ms)) = of_shards {
            of_channels(&mut families, &channels, tick_at_ms);
            over_budget.add(&channels.over_budget);
        }
        of_budgets(&mut families, &over_budget);
        Self::of_loops(&mut families, &numbers);
        let routes = numbers.iter().filter_map(|(_, it)| it.routes);
        if let Some(routes) = routes.reduce(RouteNumbers::with) {
            of_routes(&mut families, &routes);
        }
        self.of_admission(&mut families, &numbers);
        families.add(
            Kind::Counter,
            CPU_SECONDS,
            "Processor time of the process, user's and system's",
            &[],
            lagometer_platform::process_cpu_time().as_secs_f64(),
        );
        if let Some(bytes) = process::most_address_space() {
            families.add(
                Kind::Gauge,
                "process_virtual_memory_max_bytes",
                "The most address space the process may have",
                &[],
                bytes,
            );
        }
        let mut all: Vec<MetricFamily> = families.into_families();
        // The collector knows only whole seconds of processor time.
        let of_process = self.process.families().into_iter();
        all.extend(of_process.filter(|it| it.name() != CPU_SECONDS));
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&all, &mut text) {
            tracing::error!(%error, "metrics cannot be written");
        }
        Ok(text)
    }

    /// Asks all loops at once.
    pub(super) fn numbers(&self) -> Result<Vec<(&str, Numbers)>, Hangs> {
        self.keep_distance();
        let asked: Vec<u64> = self
            .reports
            .iter()
            .map(|(_, report)| report.ask())
            .collect();
        let give_up = Instant::now() + TIMEOUT;
        let answers = self
            .reports
            .iter()
            .zip(asked)
            .map(|((name, report), number)| {
                let numbers = report.wait(number, give_up);
                numbers.map_or_else(|| Err(Hangs(name.clone())), |it| Ok((name.as_str(), it)))
            });
        answers.collect()
    }

    /// Whoever asks without end is not to keep the loops from their work.
    fn keep_distance(&self) {
        let mut last = self
            .last_asked
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        if let Some(last) = *last {
            std::thread::sleep(ASKED_EVERY.saturating_sub(last.elapsed()));
        }
        *last = Some(Instant::now());
    }

    fn of_loops(families: &mut Families, numbers: &[(&str, Numbers)]) {
        for (name, numbers) in numbers {
            let labels = &[("loop", *name)];
            let count = |families: &mut Families, name, help, value: f64| {
                families.add(Kind::Counter, name, help, labels, value);
            };
            count(
                families,
                "gateway_loop_turns_total",
                "Turns of a loop",
                numbers.turns as f64,
            );
            count(
                families,
                "gateway_loop_busy_seconds_total",
                "Time in which a loop did not wait",
                numbers.busy_ns as f64 / 1e9,
            );
            if let Some(of_loop) = &numbers.connections {
                families.add(
                    Kind::Gauge,
                    "gateway_loop_connections",
                    "Open connections of a loop",
                    labels,
                    of_loop.peers.iter().map(|peer| peer.open).sum::<u64>() as f64,
                );
            }
            families.add(
                Kind::Gauge,
                "gateway_queue_depth",
                "Messages that wait in the queue before a loop",
                labels,
                numbers.queued as f64,
            );
            families.add(
                Kind::Gauge,
                "gateway_waiting_bytes",
                "Bytes that wait to be written to connections",
                labels,
                numbers.waiting_bytes as f64,
            );
        }
    }

    /// Who was let in, who not, and what they hold before their login.
    fn of_admission(&self, families: &mut Families, numbers: &[(&str, Numbers)]) {
        for why in Refusal::ALL {
            families.add(
                Kind::Counter,
                "gateway_connections_turned_away_total",
                "Connections that were not accepted, by reason",
                &[("reason", &why.to_string())],
                self.shared.admission.turned_away(why) as f64,
            );
        }
        for (event, name) in KcpEvent::ALL {
            families.add(
                Kind::Counter,
                "gateway_kcp_events_total",
                "What became of KCP's datagrams and conversations",
                &[("event", name)],
                self.shared.kcp.of(event) as f64,
            );
        }
        let waiting = self.shared.accept_queues.waiting();
        for peer in Peer::ALL {
            let labels = &[("connType", label(peer))];
            families.add(
                Kind::Gauge,
                "gateway_accept_queue",
                "Connections that wait in the system's queues to be accepted",
                labels,
                waiting[peer.index()] as f64,
            );
            for (why, reason) in Wait::ALL {
                families.add(
                    Kind::Counter,
                    "gateway_accept_waits_total",
                    "Times nobody was accepted at a listener for a moment for want of a file",
                    &[("connType", label(peer)), ("reason", reason)],
                    self.shared.accept_queues.waits(peer, why) as f64,
                );
            }
            families.add(
                Kind::Gauge,
                "gateway_connections_unauthenticated",
                "Open connections that have not logged in",
                labels,
                self.shared.admission.unauthenticated(peer) as f64,
            );
            families.add(
                Kind::Counter,
                "gateway_connections_evicted_total",
                "Connections closed before their login because another needed their place",
                labels,
                self.shared.admission.evicted(peer) as f64,
            );
        }
        let unproven: u64 = numbers.iter().map(|(_, it)| it.kcp_unproven_bytes).sum();
        let held = self.shared.admission.held_bytes();
        for (pool, bytes) in [("clients", held as u64), ("kcp_unproven", unproven)] {
            families.add(
                Kind::Gauge,
                "gateway_unauthenticated_memory_bytes",
                "Memory that clients hold that have not logged in, and KCP peers that are unproven",
                &[("pool", pool)],
                bytes as f64,
            );
        }
        families.add(
            Kind::Counter,
            "gateway_recordings_left_out_total",
            "Recordings not written because the disk could not keep up",
            &[],
            self.shared.recordings_left_out.count() as f64,
        );
        let draining = self.shared.draining.load(Ordering::Relaxed);
        families.add(
            Kind::Gauge,
            "gateway_draining",
            "1 while the gateway lets everyone go",
            &[],
            f64::from(u8::from(draining)),
        );
    }
}
