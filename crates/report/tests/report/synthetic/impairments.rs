//! The made-up link: its impairments depend on the seed and the time alone.

use lagometer_results::{DirectionImpairments, Disturbance, Disturbed, Impairments};
use lagometer_units::Time;

/// A number between 0 and 1 that depends on its arguments alone.
pub(crate) fn coin(seed: u64, stream: u64, index: u64) -> f64 {
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

pub(crate) fn impairments(seconds: u32, seed: u64) -> Impairments {
    Impairments {
        up: direction(seconds, seed, 1),
        down: direction(seconds, seed, 2),
    }
}

const STEP_S: f64 = 0.25;

fn direction(seconds: u32, seed: u64, which: u64) -> DirectionImpairments {
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
    let mut impairments = DirectionImpairments {
        disturbances,
        step_s: STEP_S,
        delay_ms: Vec::new(),
        loss_pct: Vec::new(),
        rate_kbit_per_s: Vec::new(),
    };
    for step in 0..steps {
        let time = step as f64 * STEP_S;
        let slow = (time / 37.0 + which as f64).sin() * 2.0 + (time / 5.3).sin();
        let stalled = active(&impairments, time, "stall").map_or(0.0, |end| (end - time) * 1e3);
        impairments.delay_ms.push(21.0 + slow + stalled);
        impairments.loss_pct.push(loss(&impairments, time) * 100.0);
    }
    impairments
}

pub(crate) fn active(impairments: &DirectionImpairments, time: f64, kind: &str) -> Option<f64> {
    impairments
        .disturbances
        .iter()
        .find(|each| each.kind == kind && each.start_s <= time && time < each.end_s)
        .map(|each| each.end_s)
}

pub(crate) fn loss(impairments: &DirectionImpairments, time: f64) -> f64 {
    if active(impairments, time, "outage").is_some() {
        1.0
    } else if active(impairments, time, "burst").is_some() {
        0.35
    } else {
        0.004
    }
}

/// All disturbances of both directions, as episodes are held against.
pub(crate) fn disturbed(impairments: &Impairments) -> Vec<Disturbed> {
    let at = |seconds: f64| Time::from_nanos((seconds * 1e9) as u64);
    let both = impairments
        .up
        .disturbances
        .iter()
        .chain(&impairments.down.disturbances);
    both.map(|each| Disturbed {
        from: at(each.start_s),
        until: at(each.end_s),
    })
    .collect()
}
