//! What is realised is what was asked for, within statistical bounds. Seeds
//! are fixed, so a bound that holds holds always.

use std::time::Duration;

use lagometer_link::{Direction, Fate, Reason, Regime};
use lagometer_units::Time;

use crate::link;

const UP: Direction = Direction::Up;
const DOWN: Direction = Direction::Down;

/// The delays in milliseconds of one packet each `spacing_us`, for `packets`.
fn delays_ms(text: &str, seed: u64, spacing_us: u64, packets: u64) -> Vec<f64> {
    let mut link = link(text, seed);
    (0..packets)
        .filter_map(|n| {
            let now = Time::from_micros(n * spacing_us);
            let arrival = link.offer(UP, now, 100).arrivals().next()?;
            Some(arrival.at.since(now).as_secs_f64() * 1e3)
        })
        .collect()
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn quantile(values: &mut [f64], share: f64) -> f64 {
    values.sort_by(f64::total_cmp);
    values[(share * values.len() as f64) as usize]
}

#[test]
fn independent_loss_has_the_share_asked_for_and_no_memory() {
    for (percent, seed) in [(1.0, 1), (5.0, 2), (20.0, 3), (50.0, 4)] {
        let mut link = link(&format!("[both]\nloss = \"{percent} %\""), seed);
        let n = 100_000;
        let lost: Vec<bool> = (0..n)
            .map(|i| link.offer(UP, Time::from_millis(i), 100) == Fate::Dropped(Reason::Loss))
            .collect();
        let p = percent / 100.0;
        let deviation = (p * (1.0 - p) / n as f64).sqrt();
        let share = lost.iter().filter(|&&lost| lost).count() as f64 / n as f64;
        assert!((share - p).abs() < 4.0 * deviation, "{share} for {p}");
        let pairs = lost.windows(2).filter(|pair| pair[0] && pair[1]).count();
        let pairs = pairs as f64 / n as f64;
        // The variance of the pair count is near p^2 (1 + 2p), as pairs overlap.
        let deviation = p * ((1.0 + 2.0 * p) / n as f64).sqrt();
        assert!((pairs - p * p).abs() < 4.0 * deviation, "{pairs} for {p}");
    }
}

#[test]
fn loss_of_the_directions_is_independent() {
    let mut link = link("[both]\nloss = \"30 %\"", 1);
    let n = 50_000;
    let both = (0..n)
        .filter(|&i| {
            let now = Time::from_millis(i);
            let up = link.offer(UP, now, 100);
            let down = link.offer(DOWN, now, 100);
            up.arrivals().next().is_none() && down.arrivals().next().is_none()
        })
        .count();
    // 9 %, four deviations: 0.5 %.
    assert!((both as f64 / n as f64 - 0.09).abs() < 0.005, "{both}");
}

#[test]
fn bursts_lose_the_share_and_last_as_long_as_asked_for() {
    let text = "[up]\nbursts = { mean_good = \"900 ms\", mean_bad = \"100 ms\", \
                loss_good = \"1 %\", loss_bad = \"60 %\" }";
    let mut link = link(text, 6);
    let seconds = 4000;
    let n = seconds * 500;
    let lost = (0..n)
        .filter(|&i| {
            let fate = link.offer(UP, Time::from_micros(i * 2000), 100);
            fate == Fate::Dropped(Reason::Burst)
        })
        .count();
    let share = lost as f64 / n as f64;
    // 0.9 x 1 % + 0.1 x 60 %; some 4000 bursts make it sure to a few per cent.
    assert!((share / 0.069 - 1.0).abs() < 0.06, "{share}");
    let truth = link.truth(UP, Time::from_secs(seconds));
    let lengths: Vec<f64> = truth
        .iter()
        .map(|it| it.end.since(it.start).as_secs_f64() * 1e3)
        .collect();
    assert!((mean(&lengths) / 100.0 - 1.0).abs() < 0.06);
    // Exponential: the deviation equals the mean.
    let squares: Vec<f64> = lengths.iter().map(|ms| (ms - 100.0).powi(2)).collect();
    assert!((mean(&squares).sqrt() / 100.0 - 1.0).abs() < 0.1);
}

#[test]
fn base_delay_is_exact() {
    let delays = delays_ms("[both]\ndelay = \"23.5 ms\"", 1, 1000, 1000);
    assert!(delays.iter().all(|ms| (ms - 23.5).abs() < 1e-9));
}

#[test]
fn jitter_has_the_mean_and_tail_asked_for() {
    for correlation in ["", ", correlation = \"5 ms\""] {
        let delays = |shape: &str| {
            let text = format!(
                "[both]\ndelay = \"10 ms\"\njitter = {{ {shape}, reorder = true{correlation} }}"
            );
            // A packet every 50 ms: ten correlation times apart.
            delays_ms(&text, 7, 50_000, 40_000)
        };
        let mut uniform = delays("distribution = \"uniform\", maximum = \"20 ms\"");
        assert!((mean(&uniform) - 20.0).abs() < 0.15);
        assert!((quantile(&mut uniform, 0.9) - 28.0).abs() < 0.2);

        // Cut off four deviations from the mean: as good as not cut off.
        let mut normal = delays(
            "distribution = \"normal\", mean = \"20 ms\", deviation = \"5 ms\", \
             maximum = \"40 ms\"",
        );
        assert!((mean(&normal) - 30.0).abs() < 0.15);
        assert!((quantile(&mut normal, 0.9772) - 40.0).abs() < 0.4);

        // Lomax with shape 3, mean 4: the median is 8 (2^(1/3) - 1).
        let mut pareto = delays("distribution = \"pareto\", mean = \"4 ms\", maximum = \"10 s\"");
        assert!((mean(&pareto) - 14.0).abs() < 0.2);
        assert!((quantile(&mut pareto, 0.5) - 12.079).abs() < 0.1);
        assert!((quantile(&mut pareto, 0.99) - 10.0 - 29.13).abs() < 2.5);
    }
}

#[test]
fn correlated_jitter_is_alike_for_as_long_as_asked_for() {
    let text = "[both]\njitter = { distribution = \"normal\", mean = \"50 ms\", \
        deviation = \"10 ms\", maximum = \"100 ms\", correlation = \"100 ms\", reorder = true }";
    let delays = delays_ms(text, 8, 25_000, 100_000);
    let centre = mean(&delays);
    let covariance = |lag: usize| {
        let pairs = delays.iter().zip(&delays[lag..]);
        let products: Vec<f64> = pairs.map(|(a, b)| (a - centre) * (b - centre)).collect();
        mean(&products)
    };
    let correlation = |lag| covariance(lag) / covariance(0);
    assert!((correlation(4) - (-1.0_f64).exp()).abs() < 0.04);
    assert!((correlation(12) - (-3.0_f64).exp()).abs() < 0.04);
}

#[test]
fn handovers_draw_the_delay_anew_each_period() {
    let text = "[both]\nhandover = { every = \"1 s\", extra = \"40 ms\" }";
    let delays = delays_ms(text, 3, 100_000, 20_000);
    for period in delays.chunks(10) {
        // The last packets of a slower path hold back the first of a faster.
        let steady = period[9];
        assert!(period[1..].iter().all(|ms| (ms - steady).abs() < 1e-9));
    }
    let levels: Vec<f64> = delays.iter().skip(9).step_by(10).copied().collect();
    assert!((mean(&levels) - 20.0).abs() < 1.1);
    assert!(levels.iter().all(|ms| (0.0..=40.0).contains(ms)));
}

#[test]
fn a_full_link_passes_its_rate() {
    for (rate, bits) in [
        ("512 kbit/s", 512e3),
        ("10 Mbit/s", 10e6),
        ("1 Gbit/s", 1e9),
    ] {
        let mut link = link(&format!("[both]\nrate = \"{rate}\"\nqueue = \"30 ms\""), 1);
        // Twice as much as fits.
        let spacing = Duration::from_secs_f64(500.0 * 8.0 / bits / 2.0);
        let mut now = Time::ZERO;
        let mut latest = Time::ZERO;
        for _ in 0..20_000 {
            for arrival in link.offer(UP, now, 500).arrivals() {
                latest = arrival.at;
            }
            now += spacing;
        }
        let realised = link.stats(UP).delivered.bytes as f64 * 8.0 / latest.as_secs_f64();
        assert!(
            (realised / bits - 1.0).abs() < 0.001,
            "{realised} for {bits}"
        );
        // The last one waited for a full queue and its own turn.
        let waited = latest.since(now).as_secs_f64();
        let own = 500.0 * 8.0 / bits;
        assert!(waited <= 0.030 + own && waited > 0.028 - own, "{waited}");
    }
}

#[test]
fn stalls_cover_the_share_of_time_asked_for() {
    let text = "[up]\nstalls = [{ mean_gap = \"4 s\", mean_for = \"1 s\" }]";
    let link = link(text, 5);
    let truth = link.truth(UP, Time::from_secs(20_000));
    let covered: f64 = truth
        .iter()
        .map(|it| it.end.since(it.start).as_secs_f64())
        .sum();
    assert!((covered / 20_000.0 - 0.2).abs() < 0.01, "{covered}");
}

#[test]
fn by_the_packet_the_shares_are_the_same() {
    let text = "[up]\nloss = \"10 %\"\n\
                bursts = { mean_good = \"1 s\", mean_bad = \"250 ms\", loss_bad = \"50 %\" }";
    let spacing = Duration::from_millis(50);
    let profile = crate::profile(text);
    let regime = Regime::Packet { spacing };
    let mut link = lagometer_link::Link::new(&profile, 2, regime, Time::ZERO);
    let n = 100_000;
    for _ in 0..n {
        // All at once: the nominal time is what counts.
        link.offer(UP, Time::ZERO, 100);
    }
    let share = link.stats(UP).delivered.packets as f64 / f64::from(n);
    // 0.9 x (1 - 0.2 x 0.5)
    assert!((share / 0.81 - 1.0).abs() < 0.015, "{share}");
}
