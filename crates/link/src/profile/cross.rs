//! Other traffic on a link: what people write of it, and when it flows.

mod read;

use std::time::Duration;

use lagometer_units::{BadInput, Rate, Size, Span, Time};
use serde::{Deserialize, Serialize};

pub use read::{listed, name_choices};

use super::spells::spells;
use super::written::Spell;
use crate::Direction;
use crate::interval::{Source, Union};
use crate::keyed::{Purpose, Scope, Stream};

/// Other traffic beside that which is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Cross {
    /// What it is called where figures are shown. Default: its kind.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// How it sends.
    pub kind: CrossKind,
    /// Where its data go; what acknowledges them goes the other way.
    pub direction: CrossDirection,
    /// The machine at the player's side that it belongs to, for queues that are
    /// fair to hosts; `"game"` is the game's own. Default: one of its own.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub host: Option<String>,
    /// When it flows. Default: always.
    #[serde(
        default,
        deserialize_with = "read::when",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub when: Vec<Spell>,
    /// The congestion control (`bulk`, `web`). Default: cubic.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub control: Option<Control>,
    /// Connections at the same time (`bulk`: default 1; `web`: default 6).
    #[serde(
        default,
        deserialize_with = "read::flows",
        skip_serializing_if = "Option::is_none"
    )]
    pub flows: Option<u32>,
    /// Whether its TCP asks for ECN (`bulk`, `web`). Default: no, as Linux.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ecn: Option<bool>,
    /// The mean of a page (`web`; default 2500 KB), or a packet (`constant`,
    /// `call`; default 1200 B), headers included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
    /// The mean of the times between pages (`web`). Default: 10 s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub pause: Option<Span>,
    /// The rate (`constant`), or the highest (`call`; default 2.5 Mbit/s).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rate: Option<Rate>,
    /// The lowest rate (`call`). Default: 150 kbit/s.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub least: Option<Rate>,
    /// What it adapts by (`call`). Default: delay.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub adapts: Option<Adapts>,
}

/// How other traffic sends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CrossKind {
    /// TCP that always has more to send: a download, an upload.
    Bulk,
    /// Pages: short TCP connections side by side, then a pause.
    Web,
    /// A video call: paced, and adapting its rate.
    Call,
    /// The same rate always.
    Constant,
}

/// Where other traffic's data go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum CrossDirection {
    /// From the player's side.
    Up,
    /// To the player's side.
    Down,
}

/// A congestion control of TCP.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Control {
    /// CUBIC (RFC 9438).
    #[default]
    Cubic,
    /// Reno (RFC 5681).
    Reno,
    /// BBR, version 1.
    Bbr,
}

/// What a call adapts its rate by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Adapts {
    /// How long packets wait in queues.
    #[default]
    Delay,
    /// The share of packets lost.
    Loss,
}

/// Other traffic of one link at most: kinds, and connections of one kind.
const KINDS_AT_MOST: usize = 16;
const FLOWS_AT_MOST: u32 = 64;
/// Packets of constant traffic and calls in a second, at most.
const PACKETS_AT_MOST: f64 = 100_000.0;

impl From<CrossDirection> for Direction {
    fn from(direction: CrossDirection) -> Self {
        match direction {
            CrossDirection::Up => Self::Up,
            CrossDirection::Down => Self::Down,
        }
    }
}

impl CrossKind {
    /// The kind in one word.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Bulk => "bulk",
            Self::Web => "web",
            Self::Call => "call",
            Self::Constant => "constant",
        }
    }
}

impl Cross {
    /// What it is called.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(self.kind.name())
    }

    /// Connections at the same time.
    #[must_use]
    pub fn flows(&self) -> u32 {
        let usual = if self.kind == CrossKind::Web { 6 } else { 1 };
        self.flows.unwrap_or(usual)
    }

    /// A call's lowest rate in bits a second.
    #[must_use]
    pub fn least(&self) -> u64 {
        self.least.map_or(150_000, Rate::bits_per_second)
    }

    /// A call's highest rate in bits a second.
    #[must_use]
    pub fn highest(&self) -> u64 {
        self.rate.map_or(2_500_000, Rate::bits_per_second)
    }

    /// A packet's size in bytes, headers included.
    #[must_use]
    pub fn packet_bytes(&self) -> u64 {
        self.size.map_or(1200, Size::bytes)
    }

    /// Whether it is TCP.
    #[must_use]
    pub const fn is_tcp(&self) -> bool {
        matches!(self.kind, CrossKind::Bulk | CrossKind::Web)
    }

    /// Whether it may flow before so much time of the impairments is over, whatever
    /// the seed.
    #[must_use]
    pub fn may_start_before(&self, end: Duration) -> bool {
        let may = |spell: &Spell| spell.at.is_none_or(|at| at.duration() < end);
        self.when.is_empty() || self.when.iter().any(may)
    }

    /// When it flows under `seed`, where it is the `position`-th of its link:
    /// stretches in impairment time, in order, without an end where it repeats.
    #[must_use]
    pub fn stretches(
        &self,
        seed: u64,
        position: u64,
    ) -> Box<dyn Iterator<Item = (Time, Time)> + Send> {
        let always = (Time::ZERO, Time::MAX);
        if self.when.is_empty() {
            return Box::new(std::iter::once(always));
        }
        let stream = Stream::new(seed, Scope::Both, Purpose::CrossTraffic).nth(position);
        let rules = spells("when", &self.when).unwrap_or_default();
        let sources: Vec<Source> = (0_u64..)
            .zip(rules)
            .map(|(rule, (onset, length))| Source {
                onset,
                length,
                stream: stream.nth(rule),
            })
            .collect();
        Box::new(Union::new(&sources).map(|interval| {
            let at = Time::from_nanos;
            (at(interval.start), at(interval.end))
        }))
    }

    /// Checks the settings against each other.
    fn check(&self) -> Result<(), (&'static str, String)> {
        self.check_keys()?;
        spells("when", &self.when).map_err(|it| ("when", it.into_message()))?;
        if !(1..=FLOWS_AT_MOST).contains(&self.flows()) {
            return Err((
                "flows",
                format!("`flows` must be between 1 and {FLOWS_AT_MOST}"),
            ));
        }
        if self.name().is_empty() || self.name().len() > 40 {
            return Err(("name", "a `name` has 1 to 40 bytes".to_owned()));
        }
        check_printable("name", self.name())?;
        check_printable("host", self.host.as_deref().unwrap_or("-"))?;
        if self.kind == CrossKind::Constant && self.rate.is_none() {
            return Err((
                "constant",
                "constant traffic needs a `rate`, as in \"2 Mbit/s\"".to_owned(),
            ));
        }
        if self
            .pause
            .is_some_and(|pause| pause < Span::from_millis(10))
        {
            return Err(("pause", "`pause` must be at least 10 ms".to_owned()));
        }
        if self.kind == CrossKind::Web {
            let page = self.size.map_or(1, Size::bytes);
            return if (1..=1 << 30).contains(&page) {
                Ok(())
            } else {
                Err(("size", "a page has between 1 B and 1 GiB".to_owned()))
            };
        }
        if !(64..=1500).contains(&self.packet_bytes()) {
            return Err(("size", "a packet has between 64 B and 1500 B".to_owned()));
        }
        let bits = self.rate.map_or(0, Rate::bits_per_second) as f64;
        if bits / 8.0 / self.packet_bytes() as f64 > PACKETS_AT_MOST {
            return Err((
                "rate",
                format!("more than {PACKETS_AT_MOST} packets a second are too many"),
            ));
        }
        if self.kind == CrossKind::Call && self.least() > self.highest() {
            let key = if self.least.is_some() {
                "least"
            } else {
                "rate"
            };
            let message = format!(
                "`least` ({} kbit/s) must not be above `rate` ({} kbit/s); say both",
                self.least() / 1000,
                self.highest() / 1000
            );
            return Err((key, message));
        }
        Ok(())
    }

    /// Whether each key belongs to the kind.
    fn check_keys(&self) -> Result<(), (&'static str, String)> {
        use CrossKind::{Bulk, Call, Constant, Web};
        for (key, is_said, has_it) in [
            ("control", self.control.is_some(), &[Bulk, Web][..]),
            ("flows", self.flows.is_some(), &[Bulk, Web]),
            ("ecn", self.ecn.is_some(), &[Bulk, Web]),
            ("size", self.size.is_some(), &[Web, Call, Constant]),
            ("pause", self.pause.is_some(), &[Web]),
            ("rate", self.rate.is_some(), &[Call, Constant]),
            ("least", self.least.is_some(), &[Call]),
            ("adapts", self.adapts.is_some(), &[Call]),
        ] {
            if is_said && !has_it.contains(&self.kind) {
                let message = format!(
                    "`{}` traffic has no `{key}`; leave it out",
                    self.kind.name()
                );
                return Err((key, message));
            }
        }
        Ok(())
    }
}

/// Names are printed in tables, on pages and in errors of one line.
fn check_printable(key: &'static str, name: &str) -> Result<(), (&'static str, String)> {
    if name.trim().is_empty() || name.chars().any(char::is_control) {
        let message = format!("`{key}` must be something to see, without line breaks");
        return Err((key, message));
    }
    Ok(())
}

/// Checks the other traffic that `text` says.
///
/// # Errors
///
/// [`BadInput`] with the line of the entry that is wrong, and what was expected.
pub fn check_cross(origin: &str, text: &str, crosses: &[Cross]) -> Result<(), BadInput> {
    let bad = |nth: usize, key: &str, message| {
        let path = ["cross", &nth.to_string(), key];
        Err(BadInput::at_key(origin, text, &path, message))
    };
    if crosses.len() > KINDS_AT_MOST {
        let message = format!("at most {KINDS_AT_MOST} `[[cross]]` may be said");
        return bad(KINDS_AT_MOST, "", message);
    }
    for (nth, cross) in crosses.iter().enumerate() {
        if let Err((key, message)) = cross.check() {
            return bad(nth, key, message);
        }
        let has_name = |other: &Cross| other.name() == cross.name();
        if crosses[..nth].iter().any(has_name) {
            let message = format!(
                "other traffic is called `{}` already; give this a `name` of its own",
                cross.name()
            );
            return bad(nth, "name", message);
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn downloads_and_pages_are_tcp_and_calls_are_not() {
        for (kind, is_tcp) in [
            ("bulk", true),
            ("web", true),
            ("call", false),
            ("constant", false),
        ] {
            let cross: Cross =
                toml::from_str(&format!("kind = \"{kind}\"\ndirection = \"down\"")).unwrap();
            assert_eq!(cross.is_tcp(), is_tcp, "{kind}");
        }
    }
}
