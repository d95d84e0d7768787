//! The gateway's numbers for Prometheus.
//!
//! Channeld's metrics keep their names and labels, so that dashboards made for
//! it show this gateway too; what it has beyond them begins with `gateway_`.
//! Nothing is counted here: at each scrape the loops are asked for what they
//! have counted.

mod families;

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use prometheus::core::Collector;
use prometheus::process_collector::ProcessCollector;
use prometheus::proto::MetricFamily;
use prometheus::{Encoder, TextEncoder};
use rustix::process::{Resource, getrlimit};
use rustix::time::{ClockId, clock_gettime};

use crate::core::{
    Budget, COUNTED_TYPES, ChannelCounters, ConnectionCounters, OverBudgetCounters, Peer,
    PeerCounters, TypeCounters,
};

use super::carrier::KcpEvent;
use super::gatekeeper::Refusal;
use super::report::{Numbers, Report};
use super::shared::Shared;

use families::{Families, Kind};

/// How long a loop may take to tell its numbers.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The least time between two questions: each wakes every loop.
const ASKED_EVERY: Duration = Duration::from_millis(5);

/// The processor time of the process, under the name that is usual.
const CPU_SECONDS: &str = "process_cpu_seconds_total";

/// Gathers the numbers of all loops.
pub(super) struct Metrics {
    shared: Arc<Shared>,
    /// Each loop's name and report.
    reports: Vec<(String, Arc<Report>)>,
    process: ProcessCollector,
    last_asked: Mutex<Option<Instant>>,
}

/// A loop did not tell its numbers in time, or a probe of it did not come back
/// from the channels: the gateway hangs.
#[derive(Debug, thiserror::Error)]
#[error("{0} does not answer")]
pub(super) struct Hangs(String);

impl Metrics {
    pub(super) fn new(shared: Arc<Shared>, reports: Vec<(String, Arc<Report>)>) -> Self {
        Self {
            shared,
            reports,
            process: ProcessCollector::for_self(),
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
        for (channels, tick_at_ms) in numbers
            .iter()
            .filter_map(|(_, numbers)| numbers.channels.as_ref())
        {
            of_channels(&mut families, channels, *tick_at_ms);
            over_budget.add(&channels.over_budget);
        }
        of_budgets(&mut families, &over_budget);
        self.of_loops(&mut families, &numbers);
        families.add(
            Kind::Counter,
            CPU_SECONDS,
            "Processor time of the process, user's and system's",
            &[],
            cpu_seconds(),
        );
        families.add(
            Kind::Gauge,
            "process_virtual_memory_max_bytes",
            "The most address space the process may have",
            &[],
            getrlimit(Resource::As)
                .current
                .map_or(u64::MAX as f64, |bytes| bytes as f64),
        );
        let mut all: Vec<MetricFamily> = families.into_families();
        // The collector knows only whole seconds of processor time.
        let of_process = self.process.collect();
        all.extend(of_process.into_iter().filter(|it| it.name() != CPU_SECONDS));
        let mut text = Vec::new();
        if let Err(error) = TextEncoder::new().encode(&all, &mut text) {
            tracing::error!(%error, "metrics cannot be written");
        }
        Ok(text)
    }

    /// Asks all loops at once.
    fn numbers(&self) -> Result<Vec<(&str, Numbers)>, Hangs> {
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

    fn of_loops(&self, families: &mut Families, numbers: &[(&str, Numbers)]) {
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
        for why in Refusal::ALL {
            families.add(
                Kind::Counter,
                "gateway_connections_turned_away_total",
                "Connections that were not accepted, by reason",
                &[("reason", &why.to_string())],
                self.shared.gatekeeper.turned_away(why) as f64,
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
        for peer in Peer::ALL {
            let labels = &[("connType", label(peer))];
            families.add(
                Kind::Gauge,
                "gateway_connections_unauthenticated",
                "Open connections that have not logged in",
                labels,
                self.shared.gatekeeper.unauthenticated(peer) as f64,
            );
            families.add(
                Kind::Counter,
                "gateway_connections_evicted_total",
                "Connections closed before their login because another needed their place",
                labels,
                self.shared.gatekeeper.evicted(peer) as f64,
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

/// A kind of peer as channeld's metrics name it.
fn label(peer: Peer) -> &'static str {
    match peer {
        Peer::Server => "SERVER",
        Peer::Client => "CLIENT",
    }
}

/// The processor time this process has used.
fn cpu_seconds() -> f64 {
    let used = clock_gettime(ClockId::ProcessCPUTime);
    used.tv_sec as f64 + used.tv_nsec as f64 / 1e9
}

/// A metric of one kind of peer: its name, what it means, and where it is.
type PeerMetric = (&'static str, &'static str, fn(&PeerCounters) -> u64);

/// Under channeld's names.
const PEER_METRICS: &[PeerMetric] = &[
    ("messages_in", "Messages taken in", |of| of.messages_in),
    ("messages_out", "Messages sent", |of| of.messages_out),
    ("packets_in", "Frames taken in", |of| of.packets_in),
    ("packets_out", "Frames sent", |of| of.packets_out),
    (
        "packets_drop",
        "Messages refused by the state machine",
        |of| of.refused,
    ),
    ("packets_frag", "Reads that ended within a frame", |of| {
        of.fragmented
    }),
    ("packets_comb", "Whole frames found in reads", |of| {
        of.combined
    }),
    ("bytes_in", "Bytes of frames taken in", |of| of.bytes_in),
    ("bytes_out", "Bytes of frames sent", |of| of.bytes_out),
    (
        "connection_closed",
        "Connections closed for bad frames",
        |of| of.closed_for_bad_bytes,
    ),
];

/// Under names of our own.
const OWN_PEER_METRICS: &[PeerMetric] = &[
    (
        "gateway_connections_opened_total",
        "Connections ever accepted",
        |of| of.opened,
    ),
    (
        "gateway_slow_readers_total",
        "Times a connection began to read too slowly",
        |of| of.slow_readers,
    ),
    (
        "gateway_updates_merged_total",
        "Updates merged for slow readers",
        |of| of.updates_merged,
    ),
    (
        "gateway_resyncs_total",
        "Whole states sent to slow readers in place of updates",
        |of| of.resyncs,
    ),
    (
        "gateway_pauses_total",
        "Pauses of clients with more than a little waiting at a congested server, renewals counted",
        |of| of.paused,
    ),
    (
        "gateway_slow_readers_closed_total",
        "Connections closed because they read too slowly",
        |of| of.closed_for_slow_reading,
    ),
];

fn of_connections(families: &mut Families, connections: &ConnectionCounters) {
    for peer in Peer::ALL {
        let of = connections.of(peer);
        let label = label(peer);
        families.add(
            Kind::Gauge,
            "connection_num",
            "Open connections",
            &[("type", label)],
            of.open as f64,
        );
        for (name, help, value) in PEER_METRICS.iter().chain(OWN_PEER_METRICS) {
            families.add(
                Kind::Counter,
                name,
                help,
                &[("connType", label)],
                value(of) as f64,
            );
        }
    }
    families.add(
        Kind::Counter,
        "gateway_banned_total",
        "Connections closed at once because their address misbehaved before",
        &[],
        connections.banned as f64,
    );
}

fn of_budgets(families: &mut Families, over_budget: &OverBudgetCounters) {
    for peer in Peer::ALL {
        for budget in Budget::ALL {
            families.add(
                Kind::Counter,
                "gateway_over_budget_total",
                "Times a peer asked for more than one of its budgets allows",
                &[("peer", &peer.to_string()), ("budget", budget.label())],
                over_budget.of(peer, budget) as f64,
            );
        }
    }
}

/// A metric of one type of channel.
type TypeMetric = (&'static str, &'static str, fn(&TypeCounters) -> u64);

const TYPE_METRICS: &[TypeMetric] = &[
    (
        "gateway_updates_total",
        "Updates of channel data taken in",
        |of| of.updates,
    ),
    ("gateway_windows_total", "Windows of updates made", |of| {
        of.windows
    }),
    ("gateway_states_total", "Whole states sent", |of| of.states),
    (
        "gateway_channel_bytes_total",
        "Bytes of channel data in windows and states, once each",
        |of| of.bytes,
    ),
];

fn of_channels(families: &mut Families, channels: &ChannelCounters, tick_at_ms: f64) {
    for ((number, name), of) in COUNTED_TYPES.iter().zip(&channels.types) {
        // Types that few games have are told of once there was one.
        let is_usual = (1..=5).contains(number);
        if !is_usual && *of == TypeCounters::default() {
            continue;
        }
        let labels = &[("type", *name)];
        families.add(
            Kind::Gauge,
            "channel_num",
            "Channels",
            labels,
            of.channels as f64,
        );
        families.add(
            Kind::Gauge,
            "channel_tick_duration",
            "Milliseconds the last fan-out tick of the channels took",
            labels,
            if of.channels > 0 { tick_at_ms } else { 0.0 },
        );
        families.add(
            Kind::Gauge,
            "gateway_subscriptions",
            "Subscriptions",
            labels,
            of.subscriptions as f64,
        );
        for (name, help, value) in TYPE_METRICS {
            families.add(Kind::Counter, name, help, labels, value(of) as f64);
        }
        families.histogram(
            "gateway_tick_lateness_seconds",
            "How late windows were sent after they were due",
            labels,
            &of.lateness,
        );
        families.histogram(
            "gateway_fan_out_seconds",
            "How old the oldest update of a window was when it was sent",
            labels,
            &of.age,
        );
    }
    families.histogram(
        "gateway_tick_delay_seconds",
        "How late the channels came to the ticks at which windows were due",
        &[],
        &channels.ticks,
    );
    let all: [(&str, &str, u64); 5] = [
        (
            "gateway_dropped_total",
            "Messages dropped, whatever the reason",
            channels.dropped,
        ),
        (
            "gateway_too_long_total",
            "Messages, and fields of channel data, too long to be sent",
            channels.too_long,
        ),
        (
            "gateway_forwarded_total",
            "User-space messages passed on, once for each recipient",
            channels.forwarded,
        ),
        (
            "gateway_handovers_total",
            "Entities that went from one spatial channel to another",
            channels.handovers,
        ),
        (
            "gateway_logins_refused_total",
            "Logins refused",
            channels.logins_refused,
        ),
    ];
    for (name, help, value) in all {
        families.add(Kind::Counter, name, help, &[], value as f64);
    }
}

/// Adds what another loop has counted.
fn add(sum: &mut ConnectionCounters, other: &ConnectionCounters) {
    for (sum, other) in sum.peers.iter_mut().zip(&other.peers) {
        let PeerCounters {
            open,
            opened,
            messages_in,
            messages_out,
            packets_in,
            packets_out,
            bytes_in,
            bytes_out,
            fragmented,
            combined,
            refused,
            closed_for_bad_bytes,
            closed_for_slow_reading,
            slow_readers,
            updates_merged,
            resyncs,
            paused,
        } = other;
        sum.open += open;
        sum.opened += opened;
        sum.messages_in += messages_in;
        sum.messages_out += messages_out;
        sum.packets_in += packets_in;
        sum.packets_out += packets_out;
        sum.bytes_in += bytes_in;
        sum.bytes_out += bytes_out;
        sum.fragmented += fragmented;
        sum.combined += combined;
        sum.refused += refused;
        sum.closed_for_bad_bytes += closed_for_bad_bytes;
        sum.closed_for_slow_reading += closed_for_slow_reading;
        sum.slow_readers += slow_readers;
        sum.updates_merged += updates_merged;
        sum.resyncs += resyncs;
        sum.paused += paused;
    }
    sum.events_lost += other.events_lost;
    sum.banned += other.banned;
    sum.over_budget.add(&other.over_budget);
}
