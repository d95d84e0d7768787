//! A profile that behaves about as what was recorded, for people to read and
//! edit: the trace replays one quarter of an hour, the profile its like.

use std::fmt::Write as _;
use std::time::Duration;

use lagometer_units::{Rate, Share, Span};

use crate::record::fates::Way;
use crate::record::summary::Summary;

/// Extra delay below this is the machine's own.
const LEAST_JITTER: Duration = Duration::from_micros(100);

/// Losses that come so many in a row on average are bursts.
const BURSTS_FROM: f64 = 1.3;

/// How steep a Pareto tail is at most and at least; beyond, the differences
/// do not show.
const SHAPES: (f64, f64) = (1.5, 20.0);

/// The text of the profile, with `summary` as its one sentence and `notes`
/// before it as a comment.
#[must_use]
pub fn profile_text(summary: &str, notes: &[String], up: &Way, down: &Way) -> String {
    let mut text = String::new();
    for note in notes {
        let _ = writeln!(text, "# {note}");
    }
    let _ = writeln!(text, "summary = {}", quoted(summary));
    for (name, way) in [("up", up), ("down", down)] {
        let figures = Summary::of(way);
        let _ = write!(text, "\n# {figures}\n[{name}]\n");
        write_way(&mut text, name, way, &figures);
    }
    text
}

fn write_way(text: &mut String, name: &str, way: &Way, figures: &Summary) {
    let delays = way.delays();
    let least = delays.first().copied().unwrap_or_default();
    let _ = writeln!(text, "delay = {}", span(least));
    if let Some(rate) = way
        .rate_bits_per_second
        .and_then(Rate::from_bits_per_second)
    {
        let _ = writeln!(text, "rate = \"{rate}\"");
    }
    let interval = interval(way);
    let bursty = figures.lost_in_a_row >= BURSTS_FROM;
    if figures.lost > 0.0 && !bursty {
        let _ = writeln!(text, "loss = {}", share(figures.lost));
    }
    if let Some(jitter) = Jitter::of(way, &delays, least, interval) {
        let _ = writeln!(text, "\n[{name}.jitter]");
        jitter.write(text);
    }
    if figures.lost > 0.0 && bursty {
        let bad = interval.mul_f64(figures.lost_in_a_row);
        let good = bad.mul_f64((1.0 - figures.lost) / figures.lost);
        let _ = writeln!(
            text,
            "\n[{name}.bursts]\nmean_good = {}\nmean_bad = {}\nloss_bad = \"100 %\"",
            span(good.max(Duration::from_micros(1))),
            span(bad)
        );
    }
    if figures.duplicated > 0.0 {
        let share = share(figures.duplicated);
        let _ = writeln!(text, "\n[{name}.duplication]\nshare = {share}");
    }
    if figures.overtaken > 0.0 {
        let _ = writeln!(
            text,
            "\n[{name}.reordering]\nshare = {}\nextra = {}",
            share(figures.overtaken),
            span(interval * 2)
        );
    }
}

/// Extra delay as the link model has it.
struct Jitter {
    mean: Duration,
    maximum: Duration,
    /// The shape of a Pareto tail, or the deviation of a waker.
    form: Form,
    correlation: Option<Duration>,
}

enum Form {
    Pareto(f64),
    Normal(Duration),
}

impl Jitter {
    fn of(way: &Way, delays: &[Duration], least: Duration, interval: Duration) -> Option<Self> {
        let extras: Vec<f64> = delays
            .iter()
            .map(|delay| delay.saturating_sub(least).as_secs_f64())
            .collect();
        let maximum = delays.last()?.saturating_sub(least);
        let mean = extras.iter().sum::<f64>() / extras.len() as f64;
        if maximum < LEAST_JITTER || mean <= 0.0 {
            return None;
        }
        let p99 = extras[(extras.len() - 1) * 99 / 100];
        let variance = extras
            .iter()
            .map(|extra| (extra - mean) * (extra - mean))
            .sum::<f64>();
        let deviation = (variance / extras.len() as f64).sqrt();
        // An exponential's 99th percentile is 4.6 times its mean; what has
        // less has no tail to speak of.
        let form = if p99 / mean < libm::log(100.0) {
            Form::Normal(Duration::from_secs_f64(deviation))
        } else {
            Form::Pareto(pareto_shape(p99 / mean))
        };
        Some(Self {
            mean: Duration::from_secs_f64(mean),
            maximum,
            form,
            correlation: correlation(way, least, mean, interval),
        })
    }

    fn write(&self, text: &mut String) {
        let mean = span(self.mean);
        let _ = match &self.form {
            Form::Pareto(shape) => writeln!(
                text,
                "distribution = \"pareto\"\nmean = {mean}\nshape = {shape:.2}"
            ),
            Form::Normal(deviation) => writeln!(
                text,
                "distribution = \"normal\"\nmean = {mean}\ndeviation = {}",
                span(*deviation)
            ),
        };
        let _ = writeln!(text, "maximum = {}", span(self.maximum));
        if let Some(correlation) = self.correlation {
            let _ = writeln!(text, "correlation = {}", span(correlation));
        }
    }
}

/// The shape of the Lomax distribution whose 99th percentile is `ratio` times
/// its mean: (a - 1) (100^(1/a) - 1), which falls as the shape grows.
fn pareto_shape(ratio: f64) -> f64 {
    let (mut low, mut high) = SHAPES;
    for _ in 0..50 {
        let shape = f64::midpoint(low, high);
        if (shape - 1.0) * (libm::pow(100.0, 1.0 / shape) - 1.0) > ratio {
            low = shape;
        } else {
            high = shape;
        }
    }
    high
}

/// How long the extra delay stays alike: until its autocorrelation has fallen
/// to 1/e; `None` if it has by the next probe.
fn correlation(way: &Way, least: Duration, mean: f64, interval: Duration) -> Option<Duration> {
    let extras: Vec<Option<f64>> = way
        .fates
        .iter()
        .map(|fate| Some((fate.delay?.saturating_sub(least)).as_secs_f64() - mean))
        .collect();
    let variance: f64 = extras.iter().flatten().map(|extra| extra * extra).sum();
    let alike = |lag: usize| {
        let products = extras.iter().zip(&extras[lag.min(extras.len())..]);
        let sum: f64 = products
            .filter_map(|(one, other)| Some((*one)? * (*other)?))
            .sum();
        sum / variance
    };
    let most = extras.len() / 4;
    let lag = (1..=most).find(|lag| alike(*lag) < libm::exp(-1.0))?;
    (lag > 1).then(|| interval * u32::try_from(lag).unwrap_or(u32::MAX))
}

/// From one probe to the next, on average.
fn interval(way: &Way) -> Duration {
    match (way.fates.first(), way.fates.last()) {
        (Some(first), Some(last)) if way.fates.len() > 1 => {
            last.sent.since(first.sent) / u32::try_from(way.fates.len() - 1).unwrap_or(u32::MAX)
        }
        _ => Duration::ZERO,
    }
}

/// A time to the microsecond, as TOML has it.
fn span(time: Duration) -> String {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    format!("\"{}\"", Span(Duration::from_micros(micros)))
}

fn share(fraction: f64) -> String {
    format!(
        "\"{}\"",
        Share::from_fraction(fraction).unwrap_or(Share::ALL)
    )
}

/// A text as TOML has it.
fn quoted(text: &str) -> String {
    let clean: String = text
        .chars()
        .map(|letter| if letter.is_control() { ' ' } else { letter })
        .collect();
    format!("\"{}\"", clean.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shape_is_that_of_the_tail() {
        for shape in [2.0_f64, 3.0, 5.0] {
            let ratio = (shape - 1.0) * (libm::pow(100.0, 1.0 / shape) - 1.0);
            assert!((pareto_shape(ratio) - shape).abs() < 0.01, "{shape}");
        }
        assert!((pareto_shape(0.0) - 20.0).abs() < 0.01);
        assert!((pareto_shape(99.0) - 1.5).abs() < 0.01);
    }

    #[test]
    fn a_text_cannot_break_out_of_its_quotes() {
        assert_eq!(quoted("a \"b\" \\ c\nd"), r#""a \"b\" \\ c d""#);
    }
}
