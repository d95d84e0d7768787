//! Which settings of a transport are worth searching, and between which ends.
//!
//! A transport lists them beside its settings as
//! [`Transport::TUNABLES`](crate::Transport::TUNABLES). A range is where a search
//! looks: where a setting changes what a game feels or what it costs, not all that
//! [`check`](crate::Transport::check) lets pass. A setting that changes what is
//! promised may be listed; a search keeps to what a lane promises.
//!
//! Every range is laid on positions from 0 to 1, lengths of time and sizes evenly
//! by their logarithm, so that a search needs to know of no units. Values are made
//! with two significant digits: a figure for people, and no finer than its effect.

use lagometer_units::{Size, Span};
use serde_json::{Map, Value, json};

/// A setting that is worth searching.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Tunable {
    /// Its key, as an experiment writes it; with dots where it is in a table.
    pub key: &'static str,
    /// What it may be.
    pub range: TunableRange,
}

/// What a setting may be.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum TunableRange {
    /// A whole number, both ends included.
    Integer {
        /// The least.
        low: u64,
        /// The most.
        high: u64,
        /// Whether ratios count rather than differences; `low` is then above 0.
        by_ratio: bool,
    },
    /// A number with a fraction, both ends included.
    Number {
        /// The least.
        low: f64,
        /// The most.
        high: f64,
    },
    /// A length of time in milliseconds, from 1 on, by ratio.
    Time {
        /// The shortest.
        low_ms: u64,
        /// The longest.
        high_ms: u64,
    },
    /// An amount of data in bytes, from 1 on, by ratio.
    Size {
        /// The smallest.
        low_bytes: u64,
        /// The largest.
        high_bytes: u64,
    },
    /// One of these words.
    Choice(&'static [&'static str]),
    /// Yes or no.
    Flag,
}

impl Tunable {
    /// A whole number.
    #[must_use]
    pub const fn integer(key: &'static str, low: u64, high: u64) -> Self {
        let by_ratio = false;
        Self {
            key,
            range: TunableRange::Integer {
                low,
                high,
                by_ratio,
            },
        }
    }

    /// A whole number above zero, of which ratios count.
    #[must_use]
    pub const fn ratio(key: &'static str, low: u64, high: u64) -> Self {
        let by_ratio = true;
        Self {
            key,
            range: TunableRange::Integer {
                low,
                high,
                by_ratio,
            },
        }
    }

    /// A number with a fraction.
    #[must_use]
    pub const fn number(key: &'static str, low: f64, high: f64) -> Self {
        Self {
            key,
            range: TunableRange::Number { low, high },
        }
    }

    /// A length of time in milliseconds.
    #[must_use]
    pub const fn millis(key: &'static str, low_ms: u64, high_ms: u64) -> Self {
        Self {
            key,
            range: TunableRange::Time { low_ms, high_ms },
        }
    }

    /// An amount of data.
    #[must_use]
    pub const fn bytes(key: &'static str, low_bytes: u64, high_bytes: u64) -> Self {
        Self {
            key,
            range: TunableRange::Size {
                low_bytes,
                high_bytes,
            },
        }
    }

    /// One of several words.
    #[must_use]
    pub const fn choice(key: &'static str, words: &'static [&'static str]) -> Self {
        Self {
            key,
            range: TunableRange::Choice(words),
        }
    }

    /// Yes or no.
    #[must_use]
    pub const fn flag(key: &'static str) -> Self {
        Self {
            key,
            range: TunableRange::Flag,
        }
    }

    /// The setting's value among all settings of a transport; `None` where it is not
    /// set.
    #[must_use]
    pub fn of(&self, settings: &Value) -> Option<Value> {
        let pointer = format!("/{}", self.key.replace('.', "/"));
        let value = settings.pointer(&pointer)?;
        (!value.is_null()).then(|| value.clone())
    }

    /// Puts `value` under the setting's key.
    pub fn put(&self, value: Value, overrides: &mut Map<String, Value>) {
        let (tables, key) = self.key.rsplit_once('.').unwrap_or(("", self.key));
        let mut table = overrides;
        for name in tables.split('.').filter(|name| !name.is_empty()) {
            let inner = table.entry(name).or_insert_with(|| json!({}));
            if !inner.is_object() {
                *inner = json!({});
            }
            match inner {
                Value::Object(inner) => table = inner,
                _ => return,
            }
        }
        table.insert(key.to_owned(), value);
    }
}

impl TunableRange {
    /// The value at `position`, from 0 for the lower end to 1 for the upper one, as
    /// an experiment writes it. Beyond the ends the ends themselves.
    #[must_use]
    pub fn at(&self, position: f64) -> Value {
        let position = if position.is_nan() { 0.0 } else { position }.clamp(0.0, 1.0);
        match *self {
            Self::Integer {
                low,
                high,
                by_ratio: false,
            } => json!((low + (position * (high - low) as f64).round() as u64).min(high)),
            Self::Integer { low, high, .. } => json!(by_ratio(low, high, position)),
            Self::Number { low, high } => {
                let value = low + position * (high - low);
                json!(((value * 100.0).round() / 100.0).clamp(low, high))
            }
            Self::Time { low_ms, high_ms } => {
                json!(Span::from_millis(by_ratio(low_ms, high_ms, position)))
            }
            Self::Size {
                low_bytes,
                high_bytes,
            } => json!(Size(by_ratio(low_bytes, high_bytes, position))),
            Self::Choice(words) => json!(words[index(words.len(), position)]),
            Self::Flag => json!(position >= 0.5),
        }
    }

    /// Where `value` stands; `None` if it is none of this range's kind. Values beyond
    /// an end stand there.
    #[must_use]
    pub fn position(&self, value: &Value) -> Option<f64> {
        let position = match *self {
            Self::Integer {
                low,
                high,
                by_ratio: false,
            } => (value.as_f64()? - low as f64) / (high - low).max(1) as f64,
            Self::Integer { low, high, .. } => position_by_ratio(low, high, value.as_f64()?),
            Self::Number { low, high } => (value.as_f64()? - low) / (high - low),
            Self::Time { low_ms, high_ms } => {
                let span: Span = value.as_str()?.parse().ok()?;
                position_by_ratio(low_ms, high_ms, span.as_millis_f64())
            }
            Self::Size {
                low_bytes,
                high_bytes,
            } => {
                let size: Size = value.as_str()?.parse().ok()?;
                position_by_ratio(low_bytes, high_bytes, size.bytes() as f64)
            }
            Self::Choice(words) => {
                let word = value.as_str()?;
                let at = words.iter().position(|known| *known == word)?;
                (at as f64 + 0.5) / words.len() as f64
            }
            Self::Flag => f64::from(u8::from(value.as_bool()?)),
        };
        Some(position.clamp(0.0, 1.0))
    }

    /// Whether values have an order, so that one can be between two others.
    #[must_use]
    pub const fn is_ordered(&self) -> bool {
        !matches!(self, Self::Choice(_) | Self::Flag)
    }

    /// All values where they have no order, otherwise `steps` that are spread evenly
    /// from end to end, each once.
    #[must_use]
    pub fn levels(&self, steps: usize) -> Vec<Value> {
        let steps = match self {
            Self::Choice(words) => words.len(),
            Self::Flag => 2,
            _ => steps.max(2),
        };
        let mut levels: Vec<Value> = (0..steps)
            .map(|step| self.at(step as f64 / (steps - 1).max(1) as f64))
            .collect();
        levels.dedup();
        levels
    }
}

/// The number at `position` between two above zero, evenly by logarithm, with two
/// significant digits but for the ends themselves.
fn by_ratio(low: u64, high: u64, position: f64) -> u64 {
    if position <= 0.0 || position >= 1.0 {
        return if position <= 0.0 { low } else { high };
    }
    let (from, to) = (libm::log(low as f64), libm::log(high as f64));
    let exact = libm::exp(from + position * (to - from));
    let unit = libm::pow(10.0, libm::floor(libm::log10(exact.max(1.0))) - 1.0).max(1.0);
    (((exact / unit).round() * unit) as u64).clamp(low, high)
}

fn position_by_ratio(low: u64, high: u64, value: f64) -> f64 {
    let (from, to) = (libm::log(low as f64), libm::log(high as f64));
    (libm::log(value.max(low as f64)) - from) / (to - from).max(f64::MIN_POSITIVE)
}

/// Which of `count` equal parts of 0 to 1 a position is in.
fn index(count: usize, position: f64) -> usize {
    ((position * count as f64) as usize).min(count - 1)
}
