//! From a link to a recording of it and back, in virtual time: what is played
//! again must behave as what was recorded.

use std::time::Duration;

use lagometer_instruments::record::{Fate, Summary, Way, profile_text, recording};
use lagometer_link::{Direction, Link, Profile, Regime};
use lagometer_units::Time;

const LASTS: Duration = Duration::from_mins(1);
const EVERY: Duration = Duration::from_millis(10);
const BYTES: usize = 92;

/// What probes at an even cadence meet on a link.
fn probe(profile: &Profile, seed: u64) -> [Way; 2] {
    let mut link = Link::new(profile, seed, Regime::Time, Time::ZERO);
    Direction::BOTH.map(|direction| {
        let mut at = Time::ZERO;
        let mut way = Way::default();
        let mut newest = Time::ZERO;
        while at < Time::ZERO + LASTS {
            let fate = link.offer(direction, at, BYTES);
            let arrivals: Vec<Time> = fate.arrivals().map(|arrival| arrival.at).collect();
            way.fates.push(Fate {
                sent: at,
                delay: arrivals.first().map(|first| first.since(at)),
                was_overtaken: arrivals.first().is_some_and(|first| *first < newest),
                copies: arrivals.len().saturating_sub(1) as u32,
            });
            newest = arrivals.first().copied().unwrap_or(newest).max(newest);
            at += EVERY;
        }
        way
    })
}

fn read(text: &str, trace: &str) -> Profile {
    Profile::parse("recorded", text, &mut |_| Ok(trace.to_owned())).unwrap()
}

fn millis(delay: Duration) -> f64 {
    delay.as_secs_f64() * 1e3
}

const NETWORK: &str = r#"
summary = "to be recorded"
[both]
delay = "20 ms"
[both.jitter]
distribution = "pareto"
mean = "3 ms"
maximum = "60 ms"
correlation = "50 ms"
[up.bursts]
mean_good = "2 s"
mean_bad = "60 ms"
loss_bad = "80 %"
[down]
loss = "2 %"
"#;

#[test]
fn the_trace_replays_each_probe_as_it_was() {
    let network = Profile::from_text("test", NETWORK).unwrap();
    let [up, down] = probe(&network, 7);
    let trace = recording(LASTS, &up, &down).unwrap().to_string();
    let replayed = read("summary = \"x\"\n[both]\ntrace = \"t\"\n", &trace);
    // Another seed: the recording leaves nothing to chance.
    let [up_again, down_again] = probe(&replayed, 8);
    for (first, again) in [(&up, &up_again), (&down, &down_again)] {
        assert_eq!(first.fates.len(), again.fates.len());
        for (one, other) in first.fates.iter().zip(&again.fates) {
            assert_eq!(
                one.delay.is_none(),
                other.delay.is_none(),
                "at {}",
                one.sent
            );
            if let (Some(one), Some(other)) = (one.delay, other.delay) {
                assert!(one.abs_diff(other) <= Duration::from_micros(1));
            }
        }
    }
}

#[test]
fn the_profile_behaves_alike() {
    let network = Profile::from_text("test", NETWORK).unwrap();
    let [up, down] = probe(&network, 7);
    let text = profile_text(
        "a \"test\"",
        &["made in virtual time".to_owned()],
        &up,
        &down,
    );
    let fitted = Profile::from_text("fitted", &text).unwrap_or_else(|bad| panic!("{bad}\n{text}"));
    let again = probe(&fitted, 9);
    for (first, again) in [&up, &down].into_iter().zip(&again) {
        let (first, again) = (Summary::of(first), Summary::of(again));
        let ([least, median, p99, _], [other_least, other_median, other_p99, _]) =
            (first.delay.unwrap(), again.delay.unwrap());
        assert!(
            least.abs_diff(other_least) < Duration::from_millis(1),
            "{text}"
        );
        assert!(
            (millis(median) - millis(other_median)).abs() < 2.0,
            "{first}\n{again}\n{text}"
        );
        let ratio = (millis(p99) - 20.0) / (millis(other_p99) - 20.0);
        assert!((0.5..2.0).contains(&ratio), "{first}\n{again}\n{text}");
        // Bursts are few in a minute.
        let ratio = (first.lost + 0.005) / (again.lost + 0.005);
        assert!((0.4..2.5).contains(&ratio), "{first}\n{again}\n{text}");
    }
}

#[test]
fn a_clean_path_gives_a_clean_profile() {
    let network =
        Profile::from_text("test", "summary = \"x\"\n[both]\ndelay = \"5 ms\"\n").unwrap();
    let [up, down] = probe(&network, 1);
    let text = profile_text("clean", &[], &up, &down);
    assert!(!text.contains("loss") && !text.contains("jitter"), "{text}");
    let trace = recording(LASTS, &up, &down).unwrap().to_string();
    assert_eq!(trace.lines().count(), 4, "{trace}");
}
