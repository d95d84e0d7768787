//! A document of two short lanes for the tests of this crate.

use std::time::Duration;

use lagometer_units::Time;

use super::{
    BudgetResult, DirectionWeather, Disturbance, Document, Host, Noise, NoiseQuantiles, Parity,
    SCHEMA, Warning, Weather, Wire,
};
use crate::episodes::Disturbed;
use crate::figures::{SeedRun, figures};
use crate::record::MessageRecord;

/// Thirty seconds of a reliable lane that lags in the fifth second, and of an
/// unreliable one that loses every tenth message.
pub(crate) fn sample_document() -> Document {
    let disturbed = [Disturbed {
        from: Time::from_secs(5),
        until: Time::from_millis(5_300),
    }];
    let lane = |name: &str, reliable: bool, rtt: fn(u64) -> Option<u64>| {
        let records: Vec<_> = (0..600).map(|index| echoed(index, rtt(index))).collect();
        let run = SeedRun {
            seed: 1,
            records: &records,
            disturbed: &disturbed,
            overhead: Some(1.25),
        };
        let mut lane = figures(&[run], &[]).into_lane(name, name);
        lane.parity = Some(Parity {
            reliable,
            ordered: reliable,
            encrypted: false,
            mtu_bytes: 1400,
            header_bytes: 52,
            acks: "at the next flush".to_owned(),
            congestion_control: "none".to_owned(),
        });
        lane.wire = Some(Wire {
            packets: 1200,
            bytes: 750_000,
            overhead: 1.25,
            up_packets: 600,
            down_packets: 600,
            dropped: [("burst".to_owned(), 12)].into(),
        });
        lane
    };
    let lanes = vec![
        lane("kcp", true, |index| {
            Some(if (100..110).contains(&index) { 400 } else { 60 })
        }),
        lane("udp", false, |index| (index % 10 != 0).then_some(55)),
    ];
    Document {
        schema: SCHEMA.to_owned(),
        command: "run".to_owned(),
        testbed: Some("sim".to_owned()),
        seed: 1,
        seeds: vec![1],
        partial: false,
        started: "2026-01-02T03:04:05Z".to_owned(),
        wall_s: 0.25,
        host: Host {
            os: "linux".to_owned(),
            kernel: "6.18".to_owned(),
            cpus: 2,
            noise: Some(Noise {
                wake_us: NoiseQuantiles {
                    p50: 60.0,
                    p99: 200.0,
                },
                steal_pct: 1.5,
            }),
        },
        experiment: serde_json::json!({ "for": "30 s" }),
        weather: Some(Weather {
            up: DirectionWeather {
                disturbances: vec![Disturbance {
                    kind: "stall".to_owned(),
                    start_s: 5.0,
                    end_s: 5.3,
                }],
                step_s: 10.0,
                delay_ms: vec![20.0; 3],
                loss_pct: vec![0.0; 3],
                rate_kbit_per_s: Vec::new(),
            },
            down: DirectionWeather::default(),
        }),
        lanes,
        budgets: vec![BudgetResult {
            lane: "kcp".to_owned(),
            metric: "within_150ms".to_owned(),
            limit: 0.99,
            value: Some(0.98),
            ok: false,
        }],
        verdict: None,
        warnings: vec![Warning {
            what: "One seed was played.".to_owned(),
            why: "Small differences may be this weather's.".to_owned(),
            mend: "--seeds 5".to_owned(),
        }],
    }
}

fn echoed(index: u64, rtt_ms: Option<u64>) -> MessageRecord {
    let intended = Time::from_millis(index * 50);
    MessageRecord {
        accepted: Some(intended),
        arrived: rtt_ms.map(|rtt| intended + Duration::from_millis(rtt / 2)),
        returned: rtt_ms.map(|rtt| intended + Duration::from_millis(rtt)),
        blocked: rtt_ms.map(|rtt| Duration::from_millis(rtt.saturating_sub(300))),
        ..MessageRecord::due(intended)
    }
}
