//! Documents of the schema before are read and say what this version means:
//! `documents/lagometer-1.json` is a run that version 0.1.0 wrote, two seeds of
//! twelve seconds of `kcp` and `udp` on `busy-wifi`.

use std::path::PathBuf;

use lagometer_results::{Document, Metric, Population, SCHEMA, Statistic};

const WRITTEN: &str = include_str!("documents/lagometer-1.json");

#[test]
fn lost_messages_are_put_back_into_the_quantiles() {
    let document = Document::from_json(WRITTEN).unwrap();
    assert_eq!(document.schema, SCHEMA);
    let [kcp, udp] = &document.lanes[..] else {
        panic!("two lanes were played");
    };
    let of = |statistic, lane| Metric::Rtt(statistic).of(lane).unwrap();
    // Of 480 messages 17 were lost: the p90 lies among those that arrived.
    assert_eq!(udp.messages.lost, 17);
    assert_eq!(udp.rtt_ms.of, Population::Intended);
    assert!((of(Statistic::P90, udp) - 35.0).abs() < 2.0);
    assert!(of(Statistic::P90, udp) > udp.rtt_delivered_ms.p90);
    assert!(of(Statistic::P99, udp).is_infinite());
    assert!(of(Statistic::Max, udp).is_infinite());
    assert!((udp.rtt_delivered_ms.p99 - 72.091_855).abs() < 1e-9);
    // Nothing of kcp was lost: what it says stays as it is.
    assert_eq!(kcp.messages.lost, 0);
    assert!((of(Statistic::P99, kcp) - kcp.rtt_delivered_ms.p99).abs() < 1e-9);
    let by_seed = |lane: &lagometer_results::Lane| -> Vec<Option<f64>> {
        let seeds = lane.per_seed.iter();
        seeds
            .map(|seed| Metric::Rtt(Statistic::P99).of_seed(seed))
            .collect()
    };
    assert!(by_seed(kcp).iter().all(Option::is_some));
    assert_eq!(by_seed(udp), [None, None], "not kept by seed then");
}

#[test]
fn what_is_read_is_written_as_this_version_writes_it() {
    let document = Document::from_json(WRITTEN).unwrap();
    assert_eq!(Document::from_json(&document.to_json()), Ok(document));
}

#[test]
fn the_older_schema_stays_as_it_was() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../schema/lagometer-1.json");
    let schema = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    assert!(validator.is_valid(&serde_json::from_str(WRITTEN).unwrap()));
}
