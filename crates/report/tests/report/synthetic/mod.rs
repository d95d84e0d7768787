//! Documents made up for the tests, as close to a real run's as a page of
//! code comes: one network for all lanes, and for each lane a rule of how its
//! transport retries, orders and holds back messages.

mod impairments;

use std::collections::BTreeMap;
use std::sync::LazyLock;
use std::time::Duration;

use lagometer_results::{
    Budget, DirectionImpairments, Disturbed, Document, Host, Lane, MessageRecord, Metric, Noise,
    NoiseQuantiles, SeedRun, TransportProperties, Warning, Wire, evaluate, figures, verdict,
};
use lagometer_units::Time;
use serde_json::json;

use self::impairments::{active, coin, disturbed, impairments, loss};

/// Milliseconds between two messages.
const EVERY_MS: f64 = 50.0;

/// How a made-up transport behaves.
#[derive(Clone, Copy)]
pub(crate) struct Rule {
    name: &'static str,
    transport: &'static str,
    library: &'static str,
    reliable: bool,
    ordered: bool,
    encrypted: bool,
    /// Delay its clock adds to each message and direction, at most.
    tick_ms: f64,
    /// First retry after so long, and each later one by this factor later.
    rto_ms: f64,
    backoff: f64,
    /// Copies of each message in later datagrams.
    copies: u32,
    /// Messages that may be under way at once.
    window: usize,
    header_bytes: u32,
    packets_per_message: f64,
}

const PLAIN: Rule = Rule {
    name: "",
    transport: "",
    library: "lagometer 0.1.0",
    reliable: true,
    ordered: true,
    encrypted: false,
    tick_ms: 0.0,
    rto_ms: 100.0,
    backoff: 2.0,
    copies: 0,
    window: 100_000,
    header_bytes: 28,
    packets_per_message: 2.0,
};

/// The fourteen lanes of the default experiment, in its order.
pub(crate) const LANES: [Rule; 14] = [
    Rule {
        name: "udp",
        transport: "udp",
        reliable: false,
        ordered: false,
        packets_per_message: 1.0,
        ..PLAIN
    },
    Rule {
        name: "udp-redundant",
        transport: "udp-redundant",
        reliable: false,
        ordered: false,
        copies: 2,
        packets_per_message: 1.0,
        header_bytes: 1036,
        ..PLAIN
    },
    Rule {
        name: "kcp",
        transport: "kcp",
        rto_ms: 62.0,
        backoff: 1.5,
        header_bytes: 52,
        ..PLAIN
    },
    Rule {
        name: "kcp-turbo",
        transport: "kcp",
        tick_ms: 10.0,
        rto_ms: 75.0,
        backoff: 1.5,
        header_bytes: 52,
        ..PLAIN
    },
    Rule {
        name: "kcp-2015-early",
        transport: "kcp",
        tick_ms: 15.0,
        rto_ms: 95.0,
        backoff: 1.4,
        header_bytes: 52,
        window: 32,
        ..PLAIN
    },
    Rule {
        name: "enet",
        transport: "enet",
        library: "rusty_enet 0.4.1",
        rto_ms: 140.0,
        header_bytes: 38,
        ..PLAIN
    },
    Rule {
        name: "enet-tutorial",
        transport: "enet",
        library: "rusty_enet 0.4.1",
        rto_ms: 140.0,
        window: 8,
        header_bytes: 38,
        ..PLAIN
    },
    Rule {
        name: "tcp-cubic",
        transport: "tcp",
        library: "lagometer-tcp 0.1.0",
        rto_ms: 260.0,
        window: 60,
        header_bytes: 52,
        packets_per_message: 1.6,
        ..PLAIN
    },
    Rule {
        name: "quic",
        transport: "quic",
        library: "quinn-proto 0.11.19",
        encrypted: true,
        rto_ms: 120.0,
        header_bytes: 60,
        packets_per_message: 1.7,
        ..PLAIN
    },
    Rule {
        name: "quic-streams",
        transport: "quic",
        library: "quinn-proto 0.11.19",
        ordered: false,
        encrypted: true,
        rto_ms: 120.0,
        header_bytes: 62,
        packets_per_message: 1.7,
        ..PLAIN
    },
    Rule {
        name: "quic-datagram",
        transport: "quic",
        library: "quinn-proto 0.11.19",
        reliable: false,
        ordered: false,
        encrypted: true,
        header_bytes: 58,
        packets_per_message: 1.5,
        ..PLAIN
    },
    Rule {
        name: "webrtc",
        transport: "webrtc",
        library: "str0m 0.25.0",
        encrypted: true,
        rto_ms: 300.0,
        window: 40,
        header_bytes: 93,
        packets_per_message: 1.9,
        ..PLAIN
    },
    Rule {
        name: "webrtc-unreliable",
        transport: "webrtc",
        library: "str0m 0.25.0",
        reliable: false,
        ordered: false,
        encrypted: true,
        header_bytes: 93,
        packets_per_message: 1.9,
        ..PLAIN
    },
    Rule {
        name: "renet",
        transport: "renet",
        library: "renet 2.0.0",
        encrypted: true,
        tick_ms: 16.0,
        rto_ms: 300.0,
        backoff: 1.0,
        header_bytes: 47,
        packets_per_message: 1.8,
        ..PLAIN
    },
];

/// A run of `lanes` over `seconds` of play with these seeds.
pub(crate) fn document(lanes: &[Rule], seconds: u32, seeds: &[u64]) -> Document {
    let impairments = impairments(seconds, seeds[0]);
    Document {
        testbed: Some("sim".to_owned()),
        seed: seeds[0],
        seeds: seeds.to_vec(),
        started: "2026-11-21T01:23:45Z".to_owned(),
        wall_s: 4.2,
        host: Host {
            os: "linux".to_owned(),
            kernel: "6.18.0".to_owned(),
            cpus: 2,
            noise: Some(Noise {
                wake_us: NoiseQuantiles {
                    p50: 94.0,
                    p99: 310.0,
                },
                steal_pct: 1.4,
                floor: None,
            }),
        },
        experiment: json!({
            "name": "pvp-500",
            "summary": "A shooter's traffic: 500 B every 50 ms, echoed",
            "network": "home-wifi-busy",
            "for": format!("{seconds} s"),
            "workload": { "paced-echo": { "size": "500 B", "interval": "50 ms" } },
        }),
        lanes: lanes
            .iter()
            .map(|rule| lane(rule, seconds, seeds))
            .collect(),
        impairments: Some(impairments),
        ..Document::empty("run")
    }
}

/// The fourteen lanes over ten minutes, with budgets, verdict and warnings:
/// the page at its fullest.
pub(crate) fn full() -> Document {
    static FULL: LazyLock<Document> = LazyLock::new(|| {
        let mut document = document(&LANES, 600, &[1]);
        judge(&mut document);
        document
    });
    FULL.clone()
}

/// Adds budgets, a verdict and a warning.
pub(crate) fn judge(document: &mut Document) {
    let budget = Budget::new(Metric::Within(150), 0.99);
    document.budgets = evaluate(&[budget], &document.lanes);
    document.budgets.retain(|result| result.value.is_some());
    document.verdict = Some(verdict(document));
    if document.seeds.len() > 1 {
        return;
    }
    document.warnings = vec![Warning {
        what: "One seed was played.".to_owned(),
        why: "Differences of a few per cent between lanes may be these network conditions', not the transports'."
            .to_owned(),
        mend: "--seeds 5 gives every figure with its spread".to_owned(),
    }];
}

/// A lane that could not run.
pub(crate) fn failed_lane(name: &str, reason: &str) -> Lane {
    let mut lane = figures(&[], &[], None).into_lane(name, "udt");
    lane.failure = Some(reason.to_owned());
    lane
}

/// When something sent at `time` arrives; none when it never does.
fn arrival(
    rule: &Rule,
    impairments: &DirectionImpairments,
    seed: u64,
    which: u64,
    index: u64,
    time: f64,
) -> Option<f64> {
    let key = seed ^ (index << 20);
    let mut sent = time + rule.tick_ms / 1e3 * coin(key, which, 1);
    let mut wait = rule.rto_ms / 1e3;
    for attempt in 0..40_u64 {
        let mut copies = (0..=rule.copies).map(|copy| sent + f64::from(copy) * EVERY_MS / 1e3);
        let through = copies.find(|&at| {
            coin(seed, which + 30, (at * 1e3) as u64 ^ (attempt << 40)) >= loss(impairments, at)
        });
        if let Some(at) = through {
            let clear = active(impairments, at, "stall").unwrap_or(at);
            let slow = (at / 37.0 + which as f64).sin() * 2.0 + (at / 5.3).sin();
            let jitter = -2.5 * (1.0 - coin(key, which + 40, attempt)).ln();
            return Some(clear + (21.0 + slow + jitter) / 1e3);
        }
        if !rule.reliable {
            return None;
        }
        sent += wait;
        wait *= rule.backoff;
    }
    None
}

/// What became of each message intended.
fn play(rule: &Rule, seconds: u32, seed: u64) -> Vec<MessageRecord> {
    let impairments = impairments(seconds, seed);
    let messages = (f64::from(seconds) * 1e3 / EVERY_MS) as usize;
    let mut arrivals: Vec<Option<f64>> = Vec::with_capacity(messages);
    let (mut up_last, mut down_last) = (0.0_f64, 0.0_f64);
    for index in 0..messages {
        let intended = index as f64 * EVERY_MS / 1e3;
        let free = index
            .checked_sub(rule.window)
            .and_then(|earlier| arrivals[earlier])
            .unwrap_or(0.0);
        let echo = arrival(
            rule,
            &impairments.up,
            seed,
            1,
            index as u64,
            intended.max(free),
        )
        .and_then(|mut up| {
            if rule.ordered {
                up_last = up_last.max(up);
                up = up_last;
            }
            arrival(rule, &impairments.down, seed, 2, index as u64, up)
        });
        let echo = echo.map(|mut down| {
            if rule.ordered {
                down_last = down_last.max(down);
                down = down_last;
            }
            down
        });
        arrivals.push(echo);
    }
    let at = |seconds: f64| Time::from_nanos((seconds * 1e9).round() as u64);
    arrivals
        .iter()
        .enumerate()
        .map(|(index, returned)| {
            let intended = at(index as f64 * EVERY_MS / 1e3);
            MessageRecord {
                intended,
                accepted: Some(intended),
                arrived: None,
                returned: returned.map(at),
                refused: false,
                blocked: rule.ordered.then_some(Duration::ZERO),
            }
        })
        .collect()
}

fn lane(rule: &Rule, seconds: u32, seeds: &[u64]) -> Lane {
    let bytes_per_message = 500.0 + f64::from(rule.header_bytes);
    let acks = (rule.packets_per_message - 1.0) * 52.0;
    let overhead = (bytes_per_message + acks) / 500.0;
    let runs: Vec<(Vec<MessageRecord>, Vec<Disturbed>)> = seeds
        .iter()
        .map(|&seed| {
            (
                play(rule, seconds, seed),
                disturbed(&impairments(seconds, seed)),
            )
        })
        .collect();
    let runs: Vec<SeedRun<'_>> = seeds
        .iter()
        .zip(&runs)
        .map(|(&seed, (records, disturbed))| SeedRun {
            seed,
            records,
            disturbed,
            overhead: Some(overhead),
            cost: None,
            game: None,
            flows: None,
        })
        .collect();
    let mut lane =
        figures(&runs, &[], Some(Duration::from_millis(170))).into_lane(rule.name, rule.transport);
    rule.library.clone_into(&mut lane.library);
    lane.settings =
        json!({ "rto_ms": rule.rto_ms, "backoff": rule.backoff, "window": rule.window });
    lane.properties = Some(TransportProperties {
        reliable: rule.reliable,
        ordered: rule.ordered,
        head_of_line: String::new(),
        encrypted: rule.encrypted,
        mtu_bytes: 1400,
        header_bytes: rule.header_bytes,
        acks: if rule.reliable {
            "each packet, with the next flush"
        } else {
            "none"
        }
        .to_owned(),
        varies: String::new(),
        late_answer: "nothing".to_owned(),
        congestion_control: if rule.window < 1000 {
            "window grows with acks"
        } else {
            "none"
        }
        .to_owned(),
        peer_timeout: "30 s".to_owned(),
        fixed: String::new(),
    });
    let packets = lane.messages.intended as f64 * rule.packets_per_message * 2.0;
    lane.wire = Some(Wire {
        packets: packets as u64,
        bytes: ((bytes_per_message + acks) * lane.messages.intended as f64 * 2.0) as u64,
        overhead,
        up_packets: packets as u64 / 2,
        down_packets: packets as u64 / 2,
        dropped: BTreeMap::from([("loss".to_owned(), 311), ("outage".to_owned(), 48)]),
    });
    lane.cpu_ns_per_message = Some(2_450.0);
    lane.kernel_cpu_ns_per_message = Some(610.0);
    lane
}
