//! A stream: messages of one size at a steady rate, or on and off, in one direction or both;
//! a download, a film, voice.
//!
//! ```toml
//! [workload.stream]
//! direction = "down"       # or "up", "both"
//! rate = "400 kbit/s"      # of payload, while it is on
//! size = "1000 B"          # of a message
//! on = "2 s"               # on and off by turns; leave out both for a steady one
//! off = "3 s"
//! delivery = "unreliable"  # or "reliable", on a transport that has both
//! within = "100 ms"        # from how late on a message is of no use
//! ```

use std::time::Duration;

use lagometer_units::{Rate, Size, Span, Time};
use serde::{Deserialize, Serialize};

use super::lane_workload::LaneWorkload;
use super::replay::{Promise, check_within, useful};
use super::scheduled::{ScheduledClient, ScheduledServer, Script, Way};
use super::{ClientApplication, PacedEcho, ServerApplication};
use crate::plan::Plan;

/// A stream, as an experiment says it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StreamTraffic {
    /// Which way it goes.
    #[serde(default)]
    pub direction: Ways,
    /// Payload a second while it is on.
    pub rate: Rate,
    /// Bytes of a message; 8 B to 1 MiB, and messages are at least 10 µs apart.
    pub size: Size,
    /// For how long it is on at a time; always where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub on: Option<Span>,
    /// For how long it is off then; for longer where the last message of a burst needs it at
    /// the rate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub off: Option<Span>,
    /// What is asked of a transport that has several promises.
    #[serde(default)]
    pub delivery: Promise,
    /// From how late on a message is of no use; see [`Replay`](super::Replay::within).
    #[serde(default = "useful")]
    pub within: Span,
    /// The engine's tick, at which alone endpoints are looked after; see
    /// [`PacedEcho::tick`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tick: Option<Span>,
}

/// Which way a stream goes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Ways {
    /// From the client to the server.
    Up,
    /// From the server to the client.
    #[default]
    Down,
    /// Both, each by itself.
    Both,
}

/// Messages at a steady rate, or in bursts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Steady {
    rate: Rate,
    bytes: u32,
    /// Messages of a burst, and from one burst's beginning to the next's.
    bursts: Option<(u32, Duration)>,
}

impl Steady {
    /// When message `number` is due, and its bytes.
    pub(super) fn due(self, number: u32) -> (Duration, u32) {
        let at = match self.bursts {
            None => self.after(number),
            Some((count, cycle)) => {
                cycle.saturating_mul(number / count) + self.after(number % count)
            }
        };
        (at, self.bytes)
    }

    /// How long so many messages take at the rate.
    fn after(self, messages: u32) -> Duration {
        self.rate
            .time_for(u64::from(messages) * u64::from(self.bytes))
    }

    /// How many are due before `span` is over.
    fn within(self, span: Duration) -> u64 {
        let (whole, cycle, most) = match self.bursts {
            None => (0, Duration::ZERO, u64::MAX),
            Some((count, cycle)) => {
                let whole = span.as_nanos() / cycle.as_nanos().max(1);
                (whole as u64, cycle, u64::from(count))
            }
        };
        let rest = span.as_nanos() - cycle.as_nanos() * u128::from(whole);
        let of_rest = rest.div_ceil(self.after(1).as_nanos().max(1)) as u64;
        let of_whole = if whole == 0 { 0 } else { whole * most };
        of_whole + of_rest.min(most)
    }
}

impl LaneWorkload for StreamTraffic {
    fn check(&self) -> Result<(), (&'static str, String)> {
        PacedEcho::check_size(self.size)?;
        check_within(self.within)?;
        if Span(self.interval()) < PacedEcho::FASTEST {
            let fastest = PacedEcho::FASTEST;
            return Err((
                "rate",
                format!("messages are at least {fastest} apart: lower `rate`, or raise `size`"),
            ));
        }
        match (self.on, self.off) {
            (None, None) => Ok(()),
            (Some(on), Some(off)) if on.duration() >= self.interval() && off > Span::ZERO => Ok(()),
            (Some(_), Some(_)) => Err((
                "on",
                format!(
                    "a stream is `on` for a message at least, {}, and `off` for longer than \
                     nothing",
                    Span(self.interval())
                ),
            )),
            _ => Err((
                "on",
                "say both `on` and `off`, or neither for a steady stream".into(),
            )),
        }
    }

    fn of_use_within(&self) -> Option<Duration> {
        Some(self.within.duration())
    }

    fn tick(&self) -> Option<Span> {
        self.tick
    }

    fn set_tick(&mut self, tick: Span) {
        self.tick = Some(tick);
    }

    /// Of one direction.
    fn interval(&self) -> Duration {
        self.rate.time_for(self.size.bytes())
    }

    fn remembered(&self, duration: Duration, _grace: Duration) -> u64 {
        let ways = [Ways::Up, Ways::Down].map(|way| u64::from(self.goes(way)));
        self.steady().within(duration) * ways.iter().sum::<u64>()
    }

    /// While it is on.
    fn payload_bits_per_second(&self) -> [f64; 2] {
        let rate = self.rate.bits_per_second() as f64;
        [Ways::Up, Ways::Down].map(|way| if self.goes(way) { rate } else { 0.0 })
    }

    fn client(&self, plan: &Plan, start: Time) -> Box<dyn ClientApplication> {
        Box::new(ScheduledClient::new(self.script(plan), start))
    }

    fn server(&self, plan: &Plan) -> Box<dyn ServerApplication> {
        Box::new(ScheduledServer::new(self.script(plan)))
    }
}

impl StreamTraffic {
    fn goes(&self, way: Ways) -> bool {
        self.direction == way || self.direction == Ways::Both
    }

    fn steady(&self) -> Steady {
        let interval = self.interval().as_nanos().max(1);
        let bursts = self.on.zip(self.off).map(|(on, off)| {
            let count = on.duration().as_nanos().div_ceil(interval);
            let count = u32::try_from(count).unwrap_or(u32::MAX).max(1);
            // What a burst begins takes its time, however soon the next would begin.
            let at_the_rate = self.interval().saturating_mul(count);
            (count, (on.duration() + off.duration()).max(at_the_rate))
        });
        Steady {
            rate: self.rate,
            bytes: u32::try_from(self.size.bytes()).unwrap_or(u32::MAX),
            bursts,
        }
    }

    pub(super) fn script(&self, plan: &Plan) -> Script {
        let ways = [Ways::Up, Ways::Down].map(|way| {
            if self.goes(way) {
                Way::Steady(self.steady())
            } else {
                Way::Silent
            }
        });
        Script::new(ways, self.delivery.into(), self.within.duration(), plan)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stream(text: &str) -> StreamTraffic {
        toml::from_str(text).unwrap()
    }

    #[test]
    fn a_steady_stream_keeps_its_rate() {
        let stream = stream("rate = \"80 kbit/s\"\nsize = \"100 B\"\n");
        stream.check().unwrap();
        let due = |number| stream.steady().due(number);
        assert_eq!(due(0), (Duration::ZERO, 100));
        assert_eq!(due(6_000), (Duration::from_mins(1), 100));
        let within = |millis| stream.remembered(Duration::from_millis(millis), Duration::ZERO);
        assert_eq!([0, 10, 11, 1_000].map(within), [0, 1, 2, 100]);
        let [up, down] = stream.payload_bits_per_second();
        assert!(up == 0.0 && (down - 80e3).abs() < 1e-6, "{up} and {down}");
    }

    #[test]
    fn bursts_begin_in_time_with_as_many_messages_each() {
        let text = "rate = \"80 kbit/s\"\nsize = \"100 B\"\non = \"25 ms\"\noff = \"75 ms\"\n\
                    direction = \"both\"\n";
        let stream = stream(text);
        stream.check().unwrap();
        let millis: Vec<_> = (0..7)
            .map(|number| stream.steady().due(number).0.as_millis())
            .collect();
        assert_eq!(millis, [0, 10, 20, 100, 110, 120, 200]);
        let within = |millis| stream.remembered(Duration::from_millis(millis), Duration::ZERO);
        assert_eq!([10, 90, 100, 101, 300].map(within), [2, 6, 6, 8, 18]);
    }

    #[test]
    fn no_pause_is_so_short_that_the_rate_is_surpassed() {
        let text = "rate = \"80 kbit/s\"\nsize = \"100 B\"\non = \"15 ms\"\noff = \"1 ns\"\n";
        let stream = stream(text);
        stream.check().unwrap();
        let millis: Vec<_> = (0..4)
            .map(|number| stream.steady().due(number).0.as_millis())
            .collect();
        assert_eq!(millis, [0, 10, 20, 30]);
        assert_eq!(
            stream.remembered(Duration::from_secs(1), Duration::ZERO),
            100
        );
    }

    #[test]
    fn values_that_contradict_each_other_are_named() {
        let base = "rate = \"80 kbit/s\"\nsize = \"100 B\"\n";
        for (more, key) in [
            ("on = \"1 s\"\n", "on"),
            ("off = \"1 s\"\n", "on"),
            ("on = \"1 ms\"\noff = \"1 s\"\n", "on"),
            ("on = \"1 s\"\noff = \"0 s\"\n", "on"),
            ("within = \"0 ms\"\n", "within"),
        ] {
            let found = stream(&format!("{base}{more}")).check().unwrap_err();
            assert_eq!(found.0, key, "{more}");
        }
        let fast = stream("rate = \"1 Gbit/s\"\nsize = \"8 B\"\n");
        assert_eq!(fast.check().unwrap_err().0, "rate");
    }
}
