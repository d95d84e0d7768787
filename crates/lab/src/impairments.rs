//! The link's own truth, as the document shows it.

use std::time::Duration;

use lagometer_link::{Direction, Link};
use lagometer_results::{DirectionImpairments, Disturbance, Impairments};
use lagometer_units::Time;

/// Samples of a series at most: more than a page has pixels.
const SAMPLES_AT_MOST: u32 = 2000;

/// The finest step of a series.
const FINEST_STEP: Duration = Duration::from_millis(50);

/// What both directions did within `duration` of the impairments' start.
pub(crate) fn of(link: &Link, duration: Duration) -> Impairments {
    Impairments {
        up: direction(link, Direction::Up, duration),
        down: direction(link, Direction::Down, duration),
    }
}

fn direction(link: &Link, direction: Direction, duration: Duration) -> DirectionImpairments {
    let until = Time::ZERO + duration;
    let step = (duration / SAMPLES_AT_MOST).max(FINEST_STEP);
    let samples = link.conditions(direction, Time::ZERO, until, step);
    let rate_kbit_per_s = samples
        .iter()
        .map_while(|(_, now)| now.rate_bits_per_second)
        .map(|bits| bits as f64 / 1e3)
        .collect();
    DirectionImpairments {
        disturbances: link
            .truth(direction, until)
            .into_iter()
            .map(|disturbance| Disturbance {
                kind: disturbance.kind.name().to_owned(),
                start_s: seconds(disturbance.start),
                end_s: seconds(disturbance.end),
            })
            .collect(),
        step_s: step.as_secs_f64(),
        delay_ms: samples
            .iter()
            .map(|(_, now)| rounded((now.delay + now.held).as_secs_f64() * 1e3, 1e3))
            .collect(),
        loss_pct: samples
            .iter()
            .map(|(_, now)| rounded(now.loss * 100.0, 1e4))
            .collect(),
        rate_kbit_per_s,
    }
}

fn seconds(at: Time) -> f64 {
    rounded(at.as_secs_f64(), 1e6)
}

/// Rounded to one part in `steps`: a document need not carry float noise.
fn rounded(value: f64, steps: f64) -> f64 {
    (value * steps).round() / steps
}
