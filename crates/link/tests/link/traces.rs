//! Recordings are played as they are, again and again.

use std::fmt::Write as _;
use std::time::Duration;

use lagometer_link::{Direction, DisturbanceKind, Fate, Link, Profile, Reason, Regime};
use lagometer_units::Time;
use proptest::prelude::*;

const UP: Direction = Direction::Up;
const DOWN: Direction = Direction::Down;

/// A link that plays `trace` in both directions, besides what `text` says.
fn playing(trace: &str, text: &str) -> Link {
    let text = format!("summary = \"a test\"\n[both]\ntrace = \"the.trace\"\n{text}");
    let mut read = |name: &str| {
        assert_eq!(name, "the.trace");
        Ok(trace.to_owned())
    };
    let profile =
        Profile::parse("test", &text, &mut read).unwrap_or_else(|error| panic!("{error}"));
    Link::new(&profile, 1, Regime::Time, Time::ZERO)
}

const RECORDING: &str = "lagometer-trace/1\nlasts 1000000\n\
    up 0 - 10000 0\nup 300000 8000000 20000 0\nup 600000 0 20000 0\nup 700000 - 10000 1000000\n\
    down 0 - 5000 0\n";

#[test]
fn a_recording_says_delay_loss_and_rate_and_starts_again() {
    let mut link = playing(RECORDING, "");
    let ms = Time::from_millis;
    let mut took = |now: Time| match link.offer(UP, now, 1000) {
        Fate::Delivered { first, .. } => Ok(first.at.since(now).as_millis()),
        Fate::Dropped(reason) => Err(reason),
        Fate::Refused { .. } => panic!("refused"),
    };
    for second in [0, 1000, 50_000] {
        assert_eq!(took(ms(second)), Ok(10));
        // 1 ms on the wire.
        assert_eq!(took(ms(second + 300)), Ok(21));
        // Held until 700.
        assert_eq!(took(ms(second + 650)), Ok(70));
        assert_eq!(took(ms(second + 700)), Err(Reason::Loss));
    }
    assert_eq!(
        link.offer(DOWN, ms(0), 1000)
            .arrivals()
            .next()
            .map(|it| it.at),
        Some(ms(5))
    );
}

#[test]
fn a_recordings_truth_is_its_zeros() {
    let link = playing(RECORDING, "");
    let truth = link.truth(UP, Time::from_millis(1650));
    let found: Vec<_> = truth
        .iter()
        .map(|it| (it.kind, it.start.as_millis(), it.end.as_millis()))
        .collect();
    assert_eq!(
        found,
        [
            (DisturbanceKind::Stall, 600, 700),
            (DisturbanceKind::Outage, 700, 1000),
            (DisturbanceKind::Stall, 1600, 1700),
        ]
    );
    assert!(link.truth(DOWN, Time::from_secs(100)).is_empty());
    let from = Time::from_millis(650);
    let until = Time::from_millis(651);
    let sampled = link.conditions(UP, from, until, Duration::from_secs(1));
    let (_, conditions) = sampled[0];
    assert_eq!(conditions.held, Duration::from_millis(50));
    assert_eq!(conditions.rate_bits_per_second, Some(0));
}

#[test]
fn a_mahimahi_trace_passes_its_rate_besides_delay_and_queue() {
    // 1500 bytes each millisecond for half a second, then none for half a
    // second: 6 Mbit/s on the mean.
    let mut trace = String::new();
    for ms in 1..=500 {
        writeln!(trace, "{ms}").unwrap();
    }
    trace += "1000\n";
    let mut link = playing(&trace, "delay = \"20 ms\"\nqueue = \"100 ms\"\n");
    let mut latest = Time::ZERO;
    for n in 0..100_000 {
        // 12 Mbit/s, twice as much as fits.
        let fate = link.offer(UP, Time::from_micros(n * 1000), 1500);
        latest = fate.arrivals().last().map_or(latest, |it| it.at);
        assert!(link.waiting_bytes(UP, Time::from_micros(n * 1000)) <= 75_150);
    }
    let rate = link.stats(UP).delivered.bytes as f64 * 8.0 / latest.as_secs_f64();
    assert!((rate / 6.012e6 - 1.0).abs() < 0.005, "{rate}");
    let truth = link.truth(UP, Time::from_secs(2));
    assert_eq!(truth.len(), 2);
    assert_eq!(truth[0].start, Time::from_millis(500));
    assert_eq!(truth[0].end, Time::from_millis(1000));
}

#[test]
fn before_the_impairments_a_recording_is_at_its_best() {
    let text = "summary = \"a test\"\n[both]\ntrace = \"the.trace\"\n";
    let mut read = |_: &str| Ok(RECORDING.to_owned());
    let profile = Profile::parse("test", text, &mut read).unwrap();
    let mut link = Link::new(&profile, 1, Regime::Time, Time::from_secs(1));
    for n in 0..1000 {
        let now = Time::from_millis(n);
        let fate = link.offer(UP, now, 1000);
        let arrival = fate.arrivals().next().unwrap();
        assert_eq!(arrival.at.since(now), Duration::from_millis(10));
    }
}

proptest! {
    /// Any trace that is accepted can be played.
    #[test]
    fn any_trace_can_be_played(
        steps in proptest::collection::vec(
            (1..500_000_u64, 0..3_u64, 0..100_000_u64, 0..=1_000_000_u64), 1..12),
        gaps in proptest::collection::vec(0..300_000_u64, 1..100),
    ) {
        let mut trace = String::from("lagometer-trace/1\ndown 0 - 0 0\n");
        let mut from = 0;
        for (gap, rate, delay, loss) in &steps {
            writeln!(trace, "up {from} {} {delay} {loss}", rate * 100_000).unwrap();
            from += gap;
        }
        writeln!(trace, "lasts {from}").unwrap();
        let text = "summary = \"a test\"\n[both]\ntrace = \"x\"\nqueue = \"20 KB\"\n";
        let mut read = |_: &str| Ok(trace.clone());
        if let Ok(profile) = Profile::parse("test", text, &mut read) {
            let mut link = Link::new(&profile, 1, Regime::Time, Time::from_millis(100));
            let mut now = Time::ZERO;
            for gap in gaps {
                now += Duration::from_micros(gap);
                let fate = link.offer(UP, now, 700);
                prop_assert!(fate.arrivals().all(|it| it.at >= now && it.at < Time::MAX));
            }
            prop_assert!(link.stats(UP).is_conserved());
        }
    }
}
