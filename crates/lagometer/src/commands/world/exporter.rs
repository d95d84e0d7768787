//! The world's own metrics for Prometheus: what its players see and what it
//! costs, while it is played.

use std::net::SocketAddr;

use lagometer_web::Answer;
use lagometer_world::{Moment, Scenario};
use prometheus::process_collector::ProcessCollector;
use prometheus::{Gauge, GaugeVec, Opts, Registry, TextEncoder};

use crate::failure::Failure;

/// The quantiles of ages that are exported.
const QUANTILES: [&str; 2] = ["0.5", "0.99"];

/// The gauges, which a thread of their own shows to whoever asks.
pub(super) struct Exporter {
    players_asked: Gauge,
    players: Gauge,
    updates_per_second: Gauge,
    received_bytes_per_second: Gauge,
    frames_per_second: Gauge,
    frame_late_seconds: Gauge,
    age_seconds: GaugeVec,
    generator_cpu_ratio: Gauge,
}

impl Exporter {
    /// Answers at `at` with the metrics of worlds of the scenario of that name.
    pub(super) fn start(at: SocketAddr, scenario: &str) -> Result<Self, Failure> {
        let registry = Registry::new();
        let exporter = Self::register(&registry, scenario).map_err(Failure::input)?;
        let listener = lagometer_web::bind(at).map_err(|why| {
            Failure::Environment(format!(
                "--export {at}: {why}; choose an address that is free"
            ))
        })?;
        lagometer_web::serve(listener, move |path| answer(path, &registry))
            .map_err(|why| Failure::Environment(format!("no thread for --export: {why}")))?;
        Ok(exporter)
    }

    fn register(registry: &Registry, scenario: &str) -> prometheus::Result<Self> {
        let gauge = |name: &str, help: &str| {
            let gauge = Gauge::new(format!("world_{name}"), help)?;
            registry.register(Box::new(gauge.clone()))?;
            Ok::<_, prometheus::Error>(gauge)
        };
        let many = |name: &str, help: &str, labels: &[&str]| {
            let gauges = GaugeVec::new(Opts::new(format!("world_{name}"), help), labels)?;
            registry.register(Box::new(gauges.clone()))?;
            Ok::<_, prometheus::Error>(gauges)
        };
        registry.register(Box::new(ProcessCollector::for_self()))?;
        Ok(Self {
            players_asked: many(
                "players_asked",
                "Players that the scenario asks for, by its name",
                &["scenario"],
            )?
            .with_label_values(&[scenario]),
            players: gauge("players", "Players in the game")?,
            updates_per_second: gauge(
                "updates_per_second",
                "Updates that all players received, a second",
            )?,
            received_bytes_per_second: gauge(
                "received_bytes_per_second",
                "Bytes that players and servers received, a second",
            )?,
            frames_per_second: gauge(
                "server_frames_per_second",
                "Frames that a game server simulated, a second",
            )?,
            frame_late_seconds: gauge(
                "server_frame_late_seconds",
                "How late the latest frame since the last look began",
            )?,
            age_seconds: many(
                "age_seconds",
                "Age of what players know of each other, by quantile",
                &["quantile"],
            )?,
            generator_cpu_ratio: gauge(
                "generator_cpu_ratio",
                "Processor time of servers and players, as a share of one core",
            )?,
        })
    }

    /// A world of `scenario` is about to be played.
    pub(super) fn ask(&self, scenario: &Scenario) {
        self.players_asked.set(f64::from(scenario.players));
    }

    /// Shows this moment from now on.
    pub(super) fn report(&self, moment: &Moment) {
        self.players.set(f64::from(moment.world.players));
        self.updates_per_second.set(moment.world.updates_per_s);
        self.received_bytes_per_second.set(moment.world.bytes_per_s);
        self.frames_per_second.set(moment.world.frames_per_s);
        self.frame_late_seconds
            .set(moment.world.frame_late_ms / 1e3);
        let ages_ms = [moment.world.age_p50_ms, moment.world.age_p99_ms];
        for (quantile, age_ms) in QUANTILES.into_iter().zip(ages_ms) {
            if let Some(age_ms) = age_ms {
                let gauge = self.age_seconds.with_label_values(&[quantile]);
                gauge.set(age_ms / 1e3);
            }
        }
        if let Some(cpu_pct) = moment.world.generator_cpu_pct {
            self.generator_cpu_ratio.set(cpu_pct / 100.0);
        }
    }
}

/// All metrics with what they mean, as a world answers that has not begun.
pub(crate) fn described_metrics() -> prometheus::Result<String> {
    let registry = Registry::new();
    let exporter = Exporter::register(&registry, "single")?;
    for quantile in QUANTILES {
        exporter.age_seconds.with_label_values(&[quantile]);
    }
    TextEncoder::new().encode_to_string(&registry.gather())
}

fn answer(path: &str, registry: &Registry) -> Answer {
    match path {
        "/metrics" => match TextEncoder::new().encode_to_string(&registry.gather()) {
            Ok(text) => Answer::metrics(text.into_bytes()),
            Err(error) => Answer::unavailable(format!("{error}\n")),
        },
        "/healthz" | "/readyz" => Answer::ok("playing\n"),
        _ => Answer::not_found("/metrics, /healthz and /readyz"),
    }
}
