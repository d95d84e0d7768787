//! Documents made up for the tests, as close to a real run's as a page of
//! code comes: one weather for all lanes, and for each lane a rule of how its
//! transport retries, orders and holds back messages.

use std::collections::BTreeMap;

use base64::Engine;
use hdrhistogram::Histogram;
use hdrhistogram::serialization::{Serializer, V2Serializer};
use lagometer_stats::{
    BudgetResult, DirectionWeather, Disturbance, Document, Episode, HeadOfLine, Host, Lane,
    MessageCounts, Milliseconds, Noise, NoiseQuantiles, Parity, Quantiles, SCHEMA, SeedFigures,
    Timeline, WITHIN_LIMITS_MS, Warning, Weather, Wire,
};
use serde_json::json;

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
        name: "tcp-smoltcp",
        transport: "tcp-smoltcp",
        library: "smoltcp 0.14.0",
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
    let weather = weather(seconds, seeds[0]);
    Document {
        schema: SCHEMA.to_owned(),
        command: "run".to_owned(),
        testbed: Some("sim".to_owned()),
        seed: seeds[0],
        seeds: seeds.to_vec(),
        partial: false,
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
            }),
        },
        experiment: json!({
            "name": "pvp-500",
            "network": { "name": "home-wifi-busy" },
            "for": format!("{seconds} s"),
            "workload": { "kind": "paced-echo", "size": "500 B", "every": "50 ms" },
        }),
        lanes: lanes
            .iter()
            .map(|rule| lane(rule, seconds, seeds))
            .collect(),
        weather: Some(weather),
        budgets: Vec::new(),
        verdict: None,
        warnings: Vec::new(),
    }
}

/// The fourteen lanes over ten minutes, with budgets, verdict and warnings:
/// the page at its fullest.
pub(crate) fn full() -> Document {
    let mut document = document(&LANES, 600, &[1]);
    judge(&mut document);
    document
}

/// Adds budgets, a verdict and a warning.
pub(crate) fn judge(document: &mut Document) {
    document.budgets = document
        .lanes
        .iter()
        .filter(|lane| lane.messages.intended > 0)
        .map(|lane| {
            let value = lane.within[&Milliseconds(150)];
            BudgetResult {
                lane: lane.lane.clone(),
                metric: "within_150ms".to_owned(),
                limit: 0.99,
                value: Some(value),
                ok: value >= 0.99,
            }
        })
        .collect();
    document.verdict = Some(
        "kcp keeps 96.4 % of messages within 150 ms, more than any other reliable lane, for 1.2 \
         times the bytes; no reliable lane meets the budget of 99 %."
            .to_owned(),
    );
    document.warnings = vec![Warning {
        what: "One seed was played.".to_owned(),
        why: "Differences of a few per cent between lanes may be this weather's, not the transports'."
            .to_owned(),
        mend: "--seeds 5 gives every figure with its spread".to_owned(),
    }];
}

/// A lane that could not run.
pub(crate) fn failed_lane(name: &str, reason: &str) -> Lane {
    Lane {
        failure: Some(reason.to_owned()),
        messages: MessageCounts::default(),
        rtt_ms: Quantiles::default(),
        within: BTreeMap::new(),
        episodes: Vec::new(),
        episodes_500ms: Vec::new(),
        wire: None,
        head_of_line: None,
        histogram: String::new(),
        timeline: Timeline::default(),
        per_seed: Vec::new(),
        ..lane(
            &Rule {
                name: "failed",
                transport: "udt",
                ..PLAIN
            },
            1,
            &[1],
        )
    }
    .renamed(name)
}

trait Renamed {
    fn renamed(self, name: &str) -> Self;
}

impl Renamed for Lane {
    fn renamed(mut self, name: &str) -> Self {
        name.clone_into(&mut self.lane);
        self
    }
}

/// A number between 0 and 1 that depends on its arguments alone.
fn coin(seed: u64, stream: u64, index: u64) -> f64 {
    let mut x = seed
        .wrapping_mul(0x9e37_79b9_7f4a_7c15)
        .wrapping_add(stream.wrapping_mul(0xbf58_476d_1ce4_e5b9))
        .wrapping_add(index.wrapping_mul(0x94d0_49bb_1331_11eb));
    for _ in 0..2 {
        x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        x ^= x >> 31;
    }
    (x >> 11) as f64 / (1_u64 << 53) as f64
}

fn weather(seconds: u32, seed: u64) -> Weather {
    Weather {
        up: direction(seconds, seed, 1),
        down: direction(seconds, seed, 2),
    }
}

const STEP_S: f64 = 0.25;

fn direction(seconds: u32, seed: u64, which: u64) -> DirectionWeather {
    let seconds = f64::from(seconds);
    let mut disturbances = Vec::new();
    let mut at = 7.0 * coin(seed, which, 0);
    let mut index = 0;
    while at < seconds {
        let length = 0.1 + 0.5 * coin(seed, which + 10, index);
        disturbances.push(Disturbance {
            kind: "burst".to_owned(),
            start_s: at,
            end_s: (at + length).min(seconds),
        });
        at += length + 18.0 * coin(seed, which + 20, index);
        index += 1;
    }
    let mut special = |kind: &str, share: f64, length: f64| {
        disturbances.push(Disturbance {
            kind: kind.to_owned(),
            start_s: seconds * share,
            end_s: (seconds * share + length).min(seconds),
        });
    };
    if which == 1 {
        special("outage", 0.31, 1.2);
        special("stall", 0.72, 0.9);
    } else {
        special("stall", 0.57, 1.6);
    }
    disturbances.sort_by(|a, b| a.start_s.total_cmp(&b.start_s));
    let steps = (seconds / STEP_S).ceil() as usize;
    let mut weather = DirectionWeather {
        disturbances,
        step_s: STEP_S,
        delay_ms: Vec::new(),
        loss_pct: Vec::new(),
        rate_kbit_per_s: Vec::new(),
    };
    for step in 0..steps {
        let time = step as f64 * STEP_S;
        let slow = (time / 37.0 + which as f64).sin() * 2.0 + (time / 5.3).sin();
        let stalled = active(&weather, time, "stall").map_or(0.0, |end| (end - time) * 1e3);
        weather.delay_ms.push(21.0 + slow + stalled);
        weather.loss_pct.push(loss(&weather, time) * 100.0);
    }
    weather
}

fn active(weather: &DirectionWeather, time: f64, kind: &str) -> Option<f64> {
    weather
        .disturbances
        .iter()
        .find(|each| each.kind == kind && each.start_s <= time && time < each.end_s)
        .map(|each| each.end_s)
}

fn loss(weather: &DirectionWeather, time: f64) -> f64 {
    if active(weather, time, "outage").is_some() {
        1.0
    } else if active(weather, time, "burst").is_some() {
        0.35
    } else {
        0.004
    }
}

/// When something sent at `time` arrives; none when it never does.
fn arrival(
    rule: &Rule,
    weather: &DirectionWeather,
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
            coin(seed, which + 30, (at * 1e3) as u64 ^ (attempt << 40)) >= loss(weather, at)
        });
        if let Some(at) = through {
            let clear = active(weather, at, "stall").unwrap_or(at);
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

/// Round trips in milliseconds, one for each message intended.
fn round_trips(rule: &Rule, seconds: u32, seed: u64) -> Vec<Option<f64>> {
    let weather = weather(seconds, seed);
    let messages = (f64::from(seconds) * 1e3 / EVERY_MS) as usize;
    let mut arrivals: Vec<Option<f64>> = Vec::with_capacity(messages);
    let (mut up_last, mut down_last) = (0.0_f64, 0.0_f64);
    for index in 0..messages {
        let intended = index as f64 * EVERY_MS / 1e3;
        let free = index
            .checked_sub(rule.window)
            .and_then(|earlier| arrivals[earlier])
            .unwrap_or(0.0);
        let echo = arrival(rule, &weather.up, seed, 1, index as u64, intended.max(free)).and_then(
            |mut up| {
                if rule.ordered {
                    up_last = up_last.max(up);
                    up = up_last;
                }
                arrival(rule, &weather.down, seed, 2, index as u64, up)
            },
        );
        let echo = echo.map(|mut down| {
            if rule.ordered {
                down_last = down_last.max(down);
                down = down_last;
            }
            down
        });
        arrivals.push(echo);
    }
    arrivals
        .iter()
        .enumerate()
        .map(|(index, at)| at.map(|at| at * 1e3 - index as f64 * EVERY_MS))
        .collect()
}

fn lane(rule: &Rule, seconds: u32, seeds: &[u64]) -> Lane {
    let runs: Vec<Vec<Option<f64>>> = seeds
        .iter()
        .map(|&seed| round_trips(rule, seconds, seed))
        .collect();
    let all: Vec<Option<f64>> = runs.iter().flatten().copied().collect();
    let first = &runs[0];
    let rtt_ms = quantiles(&all);
    let episodes = episodes(
        first,
        (3.0 * rtt_ms.p50).max(100.0),
        &weather(seconds, seeds[0]),
    );
    let bytes_per_message = 500.0 + f64::from(rule.header_bytes);
    let acks = (rule.packets_per_message - 1.0) * 52.0;
    let messages = counts(&all);
    let packets = messages.intended as f64 * rule.packets_per_message * 2.0;
    Lane {
        lane: rule.name.to_owned(),
        transport: rule.transport.to_owned(),
        settings: json!({ "rto_ms": rule.rto_ms, "backoff": rule.backoff, "window": rule.window }),
        library: rule.library.to_owned(),
        parity: Some(Parity {
            reliable: rule.reliable,
            ordered: rule.ordered,
            encrypted: rule.encrypted,
            mtu_bytes: 1400,
            header_bytes: rule.header_bytes,
            acks: if rule.reliable {
                "each packet, with the next flush"
            } else {
                "none"
            }
            .to_owned(),
            congestion_control: if rule.window < 1000 {
                "window grows with acks"
            } else {
                "none"
            }
            .to_owned(),
        }),
        failure: None,
        within: within(&all),
        rtt_raw_ms: Some(rtt_ms.clone()),
        up_ms: None,
        down_ms: None,
        head_of_line: rule.ordered.then(|| HeadOfLine {
            blocked_messages: 731,
            share_of_late_delay: 0.41,
            blocked_ms: quantiles(&first[..100.min(first.len())]),
        }),
        episodes_500ms: episodes
            .iter()
            .filter(|each| each.worst_ms.unwrap_or(0.0) > 500.0)
            .cloned()
            .collect(),
        episodes,
        wire: Some(Wire {
            packets: packets as u64,
            bytes: ((bytes_per_message + acks) * messages.intended as f64 * 2.0) as u64,
            overhead: (bytes_per_message + acks) / 500.0,
            up_packets: packets as u64 / 2,
            down_packets: packets as u64 / 2,
            dropped: BTreeMap::from([("loss".to_owned(), 311), ("outage".to_owned(), 48)]),
        }),
        cpu_ns_per_message: Some(2_450.0),
        histogram: histogram(&all),
        timeline: timeline(first),
        resamples: None,
        per_seed: if seeds.len() < 2 {
            Vec::new()
        } else {
            seeds
                .iter()
                .zip(&runs)
                .map(|(&seed, run)| seed_figures(rule, seed, run))
                .collect()
        },
        messages,
        rtt_ms,
    }
}

fn seed_figures(rule: &Rule, seed: u64, run: &[Option<f64>]) -> SeedFigures {
    let rtt_ms = quantiles(run);
    let episodes = episodes(run, (3.0 * rtt_ms.p50).max(100.0), &Weather::default());
    SeedFigures {
        seed,
        messages: counts(run),
        within: within(run),
        episodes: episodes.len() as u64,
        worst_episode_ms: episodes
            .iter()
            .map(|each| each.duration_ms)
            .fold(0.0, f64::max),
        overhead: Some((500.0 + f64::from(rule.header_bytes)) / 500.0),
        rtt_ms,
    }
}

fn counts(run: &[Option<f64>]) -> MessageCounts {
    let delivered = run.iter().flatten().count() as u64;
    let intended = run.len() as u64;
    MessageCounts {
        intended,
        sent: intended,
        delivered,
        lost: intended - delivered,
        refused: 0,
    }
}

fn quantiles(run: &[Option<f64>]) -> Quantiles {
    let mut sorted: Vec<f64> = run.iter().flatten().copied().collect();
    sorted.sort_by(f64::total_cmp);
    if sorted.is_empty() {
        return Quantiles::default();
    }
    let rank = |share: f64| {
        let rank = (share * sorted.len() as f64).ceil() as usize;
        sorted[rank.clamp(1, sorted.len()) - 1]
    };
    Quantiles {
        min: sorted[0],
        p50: rank(0.5),
        p90: rank(0.9),
        p99: rank(0.99),
        p99_9: rank(0.999),
        max: sorted[sorted.len() - 1],
        mean: sorted.iter().sum::<f64>() / sorted.len() as f64,
    }
}

fn within(run: &[Option<f64>]) -> BTreeMap<Milliseconds, f64> {
    let share = |limit: u32| {
        let in_time = run
            .iter()
            .flatten()
            .filter(|&&rtt| rtt <= f64::from(limit))
            .count();
        in_time as f64 / run.len().max(1) as f64
    };
    WITHIN_LIMITS_MS
        .iter()
        .map(|&limit| (Milliseconds(limit), share(limit)))
        .collect()
}

fn episodes(run: &[Option<f64>], threshold: f64, weather: &Weather) -> Vec<Episode> {
    let late = |rtt: Option<f64>| rtt.is_none_or(|rtt| rtt > threshold);
    let mut stretches: Vec<(usize, usize)> = Vec::new();
    for index in (0..run.len()).filter(|&index| late(run[index])) {
        match stretches.last_mut() {
            Some((_, end)) if index - *end < 5 => *end = index,
            _ => stretches.push((index, index)),
        }
    }
    let end_of_trouble = |from: f64, to: f64| {
        let both = weather
            .up
            .disturbances
            .iter()
            .chain(&weather.down.disturbances);
        both.filter(|each| each.start_s < to && each.end_s > from - 0.2)
            .map(|each| each.end_s)
            .reduce(f64::max)
    };
    stretches
        .into_iter()
        .map(|(first, last)| {
            let start_s = first as f64 * EVERY_MS / 1e3;
            let end_s = last as f64 * EVERY_MS / 1e3 + run[last].unwrap_or(0.0) / 1e3;
            let stretch = &run[first..=last];
            Episode {
                seed: None,
                start_s,
                duration_ms: (end_s - start_s) * 1e3,
                worst_ms: stretch.iter().flatten().copied().reduce(f64::max),
                messages: stretch.iter().filter(|&&rtt| late(rtt)).count() as u64,
                lost: stretch.iter().filter(|rtt| rtt.is_none()).count() as u64,
                recovery_ms: end_of_trouble(start_s, end_s)
                    .map(|end| ((end_s - end) * 1e3).max(0.0)),
            }
        })
        .collect()
}

fn histogram(run: &[Option<f64>]) -> String {
    let mut histogram = Histogram::<u64>::new(3).expect("three digits are permitted");
    for rtt in run.iter().flatten() {
        histogram
            .record((rtt * 1e6) as u64)
            .expect("the histogram resizes itself");
    }
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(&histogram, &mut bytes)
        .expect("writing to memory");
    base64::engine::general_purpose::STANDARD.encode(bytes)
}

fn timeline(run: &[Option<f64>]) -> Timeline {
    let per_bucket = run.len().div_ceil(4000).max(1);
    let tenth = |value: f64| (value * 10.0).round() / 10.0;
    Timeline {
        step_s: per_bucket as f64 * EVERY_MS / 1e3,
        min_ms: run
            .chunks(per_bucket)
            .map(|each| each.iter().flatten().copied().reduce(f64::min).map(tenth))
            .collect(),
        max_ms: run
            .chunks(per_bucket)
            .map(|each| each.iter().flatten().copied().reduce(f64::max).map(tenth))
            .collect(),
        lost: run
            .chunks(per_bucket)
            .map(|each| each.iter().filter(|rtt| rtt.is_none()).count() as u32)
            .collect(),
    }
}
