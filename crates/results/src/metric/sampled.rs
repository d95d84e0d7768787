//! What a quantile is of beside round trips, where a budget on it is judged by the share
//! within its limit.

use std::fmt;

use crate::metric::{Metric, Statistic};

/// Something of which a lane has many samples, or that has a value all the time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Sampled {
    /// Delays of messages from client to server, in milliseconds.
    Up,
    /// Delays of messages from server to client, in milliseconds.
    Down,
    /// The age of what a game's client has of the world, over time, in milliseconds.
    ViewAge,
    /// The age of the newest input at a game server's steps, in milliseconds.
    InputAge,
    /// Delays of a game's events both ways, in milliseconds.
    Event,
    /// By how many frames inputs rolled a game back.
    Rollback,
}

impl Sampled {
    /// Every one of them.
    pub(crate) const ALL: [Self; 6] = [
        Self::Up,
        Self::Down,
        Self::ViewAge,
        Self::InputAge,
        Self::Event,
        Self::Rollback,
    ];

    /// A statistic of it.
    #[must_use]
    pub const fn statistic(self, statistic: Statistic) -> Metric {
        match self {
            Self::Up => Metric::Up(statistic),
            Self::Down => Metric::Down(statistic),
            Self::ViewAge => Metric::ViewAge(statistic),
            Self::InputAge => Metric::InputAge(statistic),
            Self::Event => Metric::Event(statistic),
            Self::Rollback => Metric::Rollback(statistic),
        }
    }

    /// What its limits are in.
    pub(crate) const fn unit(self) -> &'static str {
        match self {
            Self::Rollback => "frames",
            _ => "ms",
        }
    }

    /// What it is in a sentence, as in `delay of events`.
    pub(crate) const fn noun(self) -> &'static str {
        match self {
            Self::Up => "delay up",
            Self::Down => "delay down",
            Self::Event => "delay of events",
            _ => self.in_words(),
        }
    }

    /// Its name as people write it in an experiment, as in `view age`.
    pub(crate) const fn in_words(self) -> &'static str {
        match self {
            Self::Up => "up",
            Self::Down => "down",
            Self::ViewAge => "view age",
            Self::InputAge => "input age",
            Self::Event => "event",
            Self::Rollback => "rollback",
        }
    }
}

impl fmt::Display for Sampled {
    /// Its name in a document, as in `view_age`.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.in_words().replace(' ', "_"))
    }
}

impl Metric {
    /// The statistic of a distribution that the figure is; `None` of others.
    pub(crate) const fn statistic(self) -> Option<Statistic> {
        match self {
            Self::Rtt(statistic)
            | Self::Up(statistic)
            | Self::Down(statistic)
            | Self::ViewAge(statistic)
            | Self::InputAge(statistic)
            | Self::Event(statistic)
            | Self::Rollback(statistic) => Some(statistic),
            _ => None,
        }
    }

    /// The quantile that the figure is, in thousandths, between the least and the most of
    /// its distribution; `None` of those and of figures that are none.
    pub(crate) fn quantile_per_mille(self) -> Option<u32> {
        let per_mille = self.statistic()?.per_mille()?;
        (1..1000).contains(&per_mille).then_some(per_mille)
    }

    /// What it is a statistic, or a share, of; `None` of round trips and other figures.
    pub(crate) const fn sampled(self) -> Option<Sampled> {
        match self {
            Self::Up(_) => Some(Sampled::Up),
            Self::Down(_) => Some(Sampled::Down),
            Self::ViewAge(_) => Some(Sampled::ViewAge),
            Self::InputAge(_) => Some(Sampled::InputAge),
            Self::Event(_) => Some(Sampled::Event),
            Self::Rollback(_) => Some(Sampled::Rollback),
            Self::ShareWithin(of, _) => Some(of),
            _ => None,
        }
    }
}
