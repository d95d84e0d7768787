use super::*;
use lagometer_units::Time;
use proptest::prelude::*;

fn record(intended_ms: u64, rtt_ms: Option<u64>) -> MessageRecord {
    let intended = Time::from_millis(intended_ms);
    MessageRecord {
        accepted: Some(intended),
        returned: rtt_ms.map(|rtt| intended + Duration::from_millis(rtt)),
        ..MessageRecord::due(intended)
    }
}

fn run(seed: u64, records: &[MessageRecord]) -> SeedRun<'_> {
    SeedRun {
        seed,
        records,
        disturbed: &[],
        overhead: Some(1.5),
        cost: None,
        game: None,
        flows: None,
    }
}

/// Lag begins above 170 ms.
const LAG: Option<Duration> = Some(Duration::from_millis(170));

#[test]
fn what_became_of_every_message_is_counted() {
    let refused = MessageRecord {
        accepted: None,
        refused: true,
        ..record(150, None)
    };
    let records = [
        record(0, Some(60)),
        record(50, None),
        record(100, Some(70)),
        refused,
    ];
    let figures = figures(&[run(1, &records)], &[], LAG);
    assert_eq!(
        figures.messages,
        MessageCounts {
            intended: 4,
            sent: 3,
            delivered: 2,
            lost: 2,
            refused: 1,
        }
    );
    assert!((figures.within[&Milliseconds(100)] - 0.5).abs() < 1e-12);
    assert_eq!(figures.histogram.len(), 2);
    assert!(figures.up_ms.is_none());
    assert!(figures.per_seed.is_empty());
}

#[test]
fn a_late_sender_shows_in_the_corrected_delay_only() {
    let late = MessageRecord {
        accepted: Some(Time::from_millis(400)),
        ..record(0, Some(460))
    };
    let figures = figures(&[run(1, &[late])], &[], LAG);
    assert!((figures.rtt_delivered_ms.max - 460.0).abs() < 1e-9);
    assert!((figures.rtt_raw_ms.unwrap().max - 60.0).abs() < 1e-9);
}

#[test]
fn seeds_are_pooled_but_episodes_do_not_reach_across() {
    // The first seed ends in lag and the second begins in lag.
    let first: Vec<_> = (0..40)
        .map(|i| record(i * 50, Some(if i < 30 { 60 } else { 400 })))
        .collect();
    let second: Vec<_> = (0..40)
        .map(|i| record(i * 50, Some(if i < 10 { 400 } else { 60 })))
        .collect();
    let figures = figures(&[run(7, &first), run(8, &second)], &[], LAG);
    assert_eq!(figures.messages.intended, 80);
    let seeds: Vec<_> = figures
        .episodes
        .iter()
        .map(|episode| episode.seed)
        .collect();
    assert_eq!(seeds, [Some(7), Some(8)]);
    let [one, two] = &figures.per_seed[..] else {
        panic!("two seeds, not {:?}", figures.per_seed);
    };
    assert_eq!((one.seed, two.seed), (7, 8));
    assert_eq!(one.episodes + two.episodes, 2);
    assert_eq!(one.overhead, Some(1.5));
    assert!(figures.resamples.is_none());
    // The timeline is the first seed's: lag at its end.
    assert_eq!(figures.timeline.max_ms.last(), Some(&Some(400.0)));
}

#[test]
fn nothing_to_measure_is_no_reason_to_fail() {
    assert_eq!(figures(&[], &[], LAG), LaneFigures::default().tap_within());
    let figures = figures(&[run(1, &[])], &[], LAG);
    assert_eq!(figures.messages, MessageCounts::default());
    assert_eq!(figures.rtt_delivered_ms, Quantiles::default());
}

impl LaneFigures {
    /// The default with the shares of nothing.
    fn tap_within(mut self) -> Self {
        self.within = within(&[], 0, &[]);
        self
    }
}

proptest! {
    #[test]
    fn order_of_the_records_does_not_matter(
        rtts in proptest::collection::vec(proptest::option::of(20_u64..2_000), 1..80),
    ) {
        let records: Vec<_> = (0_u64..).zip(&rtts).map(|(i, &rtt)| record(i * 50, rtt)).collect();
        let mut reversed = records.clone();
        reversed.reverse();
        prop_assert_eq!(figures(&[run(1, &records)], &[], LAG), figures(&[run(1, &reversed)], &[], LAG));
    }

    #[test]
    fn pooling_seeds_counts_every_message_once(
        rtts in proptest::collection::vec(proptest::option::of(20_u64..2_000), 2..80),
        cut in 0_usize..80,
    ) {
        let records: Vec<_> = (0_u64..).zip(&rtts).map(|(i, &rtt)| record(i * 50, rtt)).collect();
        let (first, second) = records.split_at(cut.min(records.len()));
        let whole = figures(&[run(1, &records)], &[], LAG);
        let pooled = figures(&[run(1, first), run(2, second)], &[], LAG);
        prop_assert_eq!(whole.rtt_ms, pooled.rtt_ms);
        prop_assert_eq!(whole.within, pooled.within);
        prop_assert_eq!(whole.messages, pooled.messages);
        prop_assert_eq!(whole.histogram, pooled.histogram);
    }
}
