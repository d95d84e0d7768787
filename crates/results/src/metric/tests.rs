use super::*;
use crate::figures::{SeedRun, figures};
use crate::record::MessageRecord;
use lagometer_units::Time;
use proptest::prelude::*;
use std::time::Duration;

const STATISTICS: [Statistic; 7] = [
    Statistic::Min,
    Statistic::P50,
    Statistic::P90,
    Statistic::P99,
    Statistic::P99_9,
    Statistic::Max,
    Statistic::Mean,
];

#[test]
fn every_metric_is_read_back_from_its_own_name() {
    let mut metrics = vec![
        Metric::Within(150),
        Metric::Lost,
        Metric::Lag,
        Metric::Freezes,
        Metric::LongestFreeze,
        Metric::RecoveryFirst,
        Metric::RecoveryLast,
        Metric::Episodes,
        Metric::Episodes500ms,
        Metric::WorstEpisode,
        Metric::WorstRecovery,
        Metric::Overhead,
        Metric::CpuPerMessage,
        Metric::ThroughputUp,
        Metric::BytesPerHour,
        Metric::MoneyPerHour,
        Metric::ThroughputDown,
        Metric::ViewFreezes,
        Metric::ViewFreezesAt(80),
        Metric::ViewFrozen,
        Metric::InterpolationNeeded,
        Metric::RollbackStalled,
        Metric::VoiceLate,
    ];
    metrics.extend(Sampled::ALL.map(|of| Metric::ShareWithin(of, 300)));
    for statistic in STATISTICS {
        metrics.extend([
            Metric::Rtt(statistic),
            Metric::Up(statistic),
            Metric::Down(statistic),
            Metric::ViewAge(statistic),
            Metric::InputAge(statistic),
            Metric::Event(statistic),
            Metric::Rollback(statistic),
        ]);
    }
    for metric in metrics {
        assert_eq!(metric.to_string().parse(), Ok(metric));
    }
}

#[test]
fn people_may_write_it_in_words() {
    for (written, metric) in [
        ("within 150 ms", Metric::Within(150)),
        ("within 0.1 s", Metric::Within(100)),
        ("Within 2s", Metric::Within(2000)),
        ("p99", Metric::Rtt(Statistic::P99)),
        ("p99.9", Metric::Rtt(Statistic::P99_9)),
        ("rtt p50", Metric::Rtt(Statistic::P50)),
        ("median", Metric::Rtt(Statistic::P50)),
        ("up max", Metric::Up(Statistic::Max)),
        ("event p99", Metric::Event(Statistic::P99)),
        (
            "event within 300 ms",
            Metric::ShareWithin(Sampled::Event, 300),
        ),
        ("up within 80 ms", Metric::ShareWithin(Sampled::Up, 80)),
        (
            "view age within 0.1 s",
            Metric::ShareWithin(Sampled::ViewAge, 100),
        ),
        (
            "rollback within 7 frames",
            Metric::ShareWithin(Sampled::Rollback, 7),
        ),
        ("rollback p90", Metric::Rollback(Statistic::P90)),
        ("view freezes at 80 ms", Metric::ViewFreezesAt(80)),
        ("view age p50", Metric::ViewAge(Statistic::P50)),
        ("interpolation needed", Metric::InterpolationNeeded),
        ("rollback stalled", Metric::RollbackStalled),
        ("worst episode", Metric::WorstEpisode),
        ("  episodes ", Metric::Episodes),
    ] {
        assert_eq!(written.parse(), Ok(metric), "{written}");
    }
    for written in [
        "",
        "within",
        "within 0 ms",
        "within 1.5 ms",
        "within 100",
        "p98",
        "up",
        "up within 80 frames",
        "rollback within 0 frames",
        "rollback within 7 ms",
    ] {
        assert!(written.parse::<Metric>().is_err(), "{written}");
    }
}

fn lane(rtts_ms: &[Option<u64>]) -> Lane {
    let records: Vec<_> = rtts_ms
        .iter()
        .enumerate()
        .map(|(index, rtt)| {
            let intended = Time::from_millis(index as u64 * 50);
            MessageRecord {
                returned: rtt.map(|rtt| intended + Duration::from_millis(rtt)),
                ..MessageRecord::due(intended)
            }
        })
        .collect();
    let run = SeedRun::of(1, &records);
    figures(&[run], &[], Some(Duration::from_millis(170))).into_lane("lane", "udp")
}

#[test]
fn lost_messages_never_end() {
    let mut rtts = vec![Some(60); 100];
    rtts[7] = None;
    rtts[8] = Some(80);
    let lane = lane(&rtts);
    // Of a hundred, the 99th is the slowest delivered, the 100th never came.
    let p99 = Metric::Rtt(Statistic::P99).of(&lane).unwrap();
    assert!((p99 - 80.0).abs() < 0.1, "{p99}");
    let lost = Some(f64::INFINITY);
    assert_eq!(Metric::Rtt(Statistic::Max).of(&lane), lost);
    assert_eq!(Metric::Rtt(Statistic::P99_9).of(&lane), lost);
    assert_eq!(Metric::Rtt(Statistic::Mean).of(&lane), lost);
    assert_eq!(
        Metric::Rtt(Statistic::P50).of(&lane).map(f64::round),
        Some(60.0)
    );
    assert_eq!(Metric::Lost.of(&lane), Some(0.01));
}

#[test]
fn a_lane_that_delivered_nothing_is_infinitely_late_and_one_that_sent_nothing_is_not() {
    for (rtts, delay) in [(&[][..], None), (&[None, None], Some(f64::INFINITY))] {
        let lane = lane(rtts);
        for statistic in STATISTICS {
            assert_eq!(Metric::Rtt(statistic).of(&lane), delay, "{statistic}");
        }
    }
}

proptest! {
    #[test]
    fn no_text_makes_it_panic(text in ".*") {
        let _ = text.parse::<Metric>();
    }
}
