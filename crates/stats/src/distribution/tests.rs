use super::*;
use crate::quantiles::at_rank;
use flate2::Compression;
use flate2::write::ZlibEncoder;
use hdrhistogram::serialization::{Deserializer, V2Serializer};
use proptest::prelude::*;
use std::io::Write;

fn of(values: &[u64]) -> Distribution {
    let mut distribution = Distribution::new();
    for &value in values {
        distribution.record(Duration::from_nanos(value));
    }
    distribution
}

/// As documents had it before.
fn uncompressed(distribution: &Distribution) -> String {
    let mut bytes = Vec::new();
    V2Serializer::new()
        .serialize(&distribution.histogram, &mut bytes)
        .unwrap();
    STANDARD.encode(bytes)
}

#[test]
fn what_unpacks_to_more_than_any_distribution_is_refused() {
    let mut packed = ZlibEncoder::new(Vec::new(), Compression::best());
    for _ in 0..64 {
        packed.write_all(&vec![0; 1 << 20]).unwrap();
    }
    let packed = packed.finish().unwrap();
    let mut bytes = 0x1c84_9314_u32.to_be_bytes().to_vec();
    bytes.extend((packed.len() as u32).to_be_bytes());
    bytes.extend(packed);
    assert!(bytes.len() < 100_000);
    assert_eq!(
        Distribution::from_base64(&STANDARD.encode(&bytes)),
        Err(BadDistribution::NotOurs("it unpacks to too much"))
    );
    // A stream that is cut off, and none at all.
    for len in [4, 8, 40] {
        let mut cut = bytes[..len].to_vec();
        if len > 8 {
            cut[4..8].copy_from_slice(&(len as u32 - 8).to_be_bytes());
        }
        let read = Distribution::from_base64(&STANDARD.encode(&cut));
        assert!(matches!(read, Err(BadDistribution::NotOurs(_))), "{len}");
    }
}

#[test]
fn minutes_long_echoes_are_recorded_not_clipped() {
    let mut distribution = Distribution::new();
    distribution.record(Duration::from_millis(50));
    distribution.record(Duration::from_millis(138_568));
    let max = distribution.max().as_secs_f64();
    assert!((138.568..138.568 * 1.001).contains(&max), "{max}");
}

#[test]
fn the_whole_range_of_time_fits() {
    let distribution = of(&[0, 1, u64::MAX]);
    assert_eq!(distribution.len(), 3);
    assert_eq!(distribution.at_rank(1), Duration::ZERO);
    assert!(distribution.at_rank(3) >= Duration::from_nanos(u64::MAX - 1));
    assert_eq!(
        Distribution::from_base64(&distribution.to_base64()),
        Ok(distribution)
    );
}

#[test]
fn counts_that_would_saturate_are_refused() {
    let mut distribution = Distribution::new();
    distribution
        .record_n(Duration::from_millis(1), MOST_VALUES)
        .unwrap();
    assert_eq!(distribution.record_n(Duration::ZERO, 1), Err(TooManyValues));
    let other = of(&[1]);
    assert_eq!(distribution.merge(&other), Err(TooManyValues));
    assert_eq!(distribution.len(), MOST_VALUES);
    assert!(Distribution::from_base64(&distribution.to_base64()).is_ok());
}

#[test]
fn an_empty_distribution_says_so() {
    let empty = Distribution::new();
    assert!(empty.is_empty());
    assert_eq!(empty.at_per_mille([500, 1000]), [Duration::ZERO; 2]);
    assert_eq!([empty.min(), empty.max()], [Duration::ZERO; 2]);
    assert!(empty.mean_nanos().abs() < 1e-12);
    assert_eq!(empty.at_rank(1), Duration::ZERO);
    assert_eq!(Distribution::from_base64(&empty.to_base64()), Ok(empty));
}

#[test]
fn a_shortened_or_foreign_text_is_refused() {
    let text = of(&[1, 2, 3, 4_000_000]).to_base64();
    assert_eq!(
        Distribution::from_base64("not base64!"),
        Err(BadDistribution::NotBase64)
    );
    assert!(matches!(
        Distribution::from_base64(&text[..text.len() - 4]),
        Err(BadDistribution::NotOurs(_))
    ));
    let long = "A".repeat(8 << 20);
    assert!(matches!(
        Distribution::from_base64(&long),
        Err(BadDistribution::TooLong { .. })
    ));
}

#[test]
fn a_run_of_empty_buckets_as_long_as_can_be_written_is_refused() {
    // The zig-zag form of i64::MIN, twice, then a count.
    let mut bytes = STANDARD.decode(uncompressed(&Distribution::new())).unwrap();
    bytes.truncate(40);
    bytes.extend([0xff; 18]);
    bytes.push(2);
    let len = u32::try_from(bytes.len() - 40).unwrap();
    bytes[4..8].copy_from_slice(&len.to_be_bytes());
    assert!(matches!(
        Distribution::from_base64(&STANDARD.encode(bytes)),
        Err(BadDistribution::NotOurs(_))
    ));
}

fn delays() -> impl Strategy<Value = Vec<u64>> {
    let delay = prop_oneof![0_u64..5_000, 0_u64..10_000_000_000, any::<u64>()];
    proptest::collection::vec(delay, 0..200)
}

proptest! {
    #[test]
    fn older_documents_are_read_too(values in delays()) {
        let distribution = of(&values);
        let read = Distribution::from_base64(&uncompressed(&distribution));
        prop_assert_eq!(read, Ok(distribution));
    }

    #[test]
    fn merging_equals_recording_everything(left in delays(), right in delays()) {
        let mut merged = of(&left);
        merged.merge(&of(&right)).unwrap();
        let both: Vec<u64> = left.iter().chain(&right).copied().collect();
        prop_assert_eq!(merged, of(&both));
    }

    #[test]
    fn quantiles_are_within_a_thousandth_of_the_exact_ones(mut values in delays()) {
        let ours = of(&values);
        values.sort_unstable();
        let per_mille = [500, 900, 990, 999];
        let sum: u128 = values.iter().copied().map(u128::from).sum();
        let mean = sum as f64 / (values.len() as f64).max(1.0);
        let exact = per_mille.map(|share| at_rank(&values, share) as f64);
        let found = ours.at_per_mille(per_mille).map(|value| nanos(value) as f64);
        let ends = |values: &[u64]| [values.first(), values.last()].map(|end| end.map_or(0, |&it| it));
        let [min, max] = ends(&values).map(|end| end as f64);
        for (ours, exact) in found.into_iter().zip(exact).chain([
            (nanos(ours.min()) as f64, min),
            (nanos(ours.max()) as f64, max),
            (ours.mean_nanos(), mean),
        ]) {
            let close = (ours - exact).abs() <= exact * 1e-3 + 1.0;
            prop_assert!(close, "{} instead of {}", ours, exact);
        }
    }

    #[test]
    fn what_is_written_is_read_back_by_us_and_by_the_library(values in delays()) {
        let distribution = of(&values);
        let text = distribution.to_base64();
        prop_assert_eq!(&Distribution::from_base64(&text).unwrap(), &distribution);
        let bytes = STANDARD.decode(&text).unwrap();
        let theirs: Histogram<u64> = Deserializer::new().deserialize(&mut &bytes[..]).unwrap();
        prop_assert_eq!(Distribution { histogram: theirs }, distribution);
    }

    #[test]
    fn damaged_texts_are_refused_or_read_never_a_panic(
        values in delays(),
        damage in proptest::collection::vec((40_usize..400, any::<u8>()), 0..8),
    ) {
        let mut bytes = STANDARD.decode(of(&values).to_base64()).unwrap();
        for (at, byte) in damage {
            if let Some(place) = bytes.get_mut(at) {
                *place = byte;
            }
        }
        let _ = Distribution::from_base64(&STANDARD.encode(bytes));
    }

    #[test]
    fn shares_of_the_range_agree_with_a_count(values in delays(), limit in 0_u64..10_000_000_000) {
        let within = of(&values).count_within(Duration::from_nanos(limit));
        let surely = values.iter().filter(|&&v| v as f64 <= limit as f64 * 0.999).count() as u64;
        let perhaps = values.iter().filter(|&&v| v as f64 <= limit as f64 * 1.001 + 1.0).count() as u64;
        prop_assert!((surely..=perhaps).contains(&within));
    }
}
