//! What a link does, at each look, and what a packet meets that enters it now.

use std::collections::VecDeque;
use std::time::Duration;

use lagometer_link::{Conditions, Direction, DisturbanceKind, Link};
use lagometer_units::Time;

use crate::draw::{Tone, number, span};

/// Looks that are kept: as many as a history has.
pub(crate) const STATES_KEPT: usize = 512;

/// What a link's direction does at an instant.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum LinkState {
    /// Its impairments have not begun.
    #[default]
    Unknown,
    /// Nothing that comes and goes.
    Calm,
    /// It loses far more than otherwise.
    Burst,
    /// It holds everything back.
    Stall,
    /// It drops everything.
    Outage,
}

impl LinkState {
    /// The state during a disturbance.
    #[must_use]
    pub const fn of(kind: DisturbanceKind) -> Self {
        match kind {
            DisturbanceKind::Outage => Self::Outage,
            DisturbanceKind::Stall => Self::Stall,
            DisturbanceKind::Burst => Self::Burst,
        }
    }

    /// Its letter, which no colour is needed to read.
    pub(crate) const fn letter(self) -> &'static str {
        match self {
            Self::Unknown => " ",
            Self::Calm => "·",
            Self::Burst => "▒",
            Self::Stall => "▌",
            Self::Outage => "█",
        }
    }

    /// In a word.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Unknown => "not begun",
            Self::Calm => "calm",
            Self::Burst => "burst",
            Self::Stall => "stall",
            Self::Outage => "outage",
        }
    }
}

/// A direction of a link.
#[derive(Clone, Debug, Default)]
pub struct LinkView {
    /// Its state at each look, the newest last.
    pub states: VecDeque<LinkState>,
    /// What a packet meets that enters now, once the impairments have begun.
    pub conditions: Option<Conditions>,
    /// How long the present disturbance goes on.
    pub left: Option<Duration>,
}

impl LinkView {
    pub(crate) fn note(&mut self, link: &Link, direction: Direction, at: Option<Time>) {
        let mut state = LinkState::Unknown;
        self.conditions = None;
        self.left = None;
        if let Some(at) = at {
            let step = Duration::from_nanos(1);
            let met = link.conditions(direction, at, at + step, step);
            self.conditions = met.first().map(|(_, conditions)| *conditions);
            // One that shuts everything out hides one that does not.
            let now = link.truth(direction, at + step).into_iter();
            let present = now.filter(|it| it.start <= at && at < it.end);
            let worst = present.min_by_key(|it| it.kind);
            state = worst.map_or(LinkState::Calm, |it| LinkState::of(it.kind));
            self.left = worst.map(|it| it.end.since(at));
        }
        if self.states.len() == STATES_KEPT {
            self.states.pop_front();
        }
        self.states.push_back(state);
    }

    /// What it does now, in words.
    pub(crate) fn words(&self) -> String {
        let Some(conditions) = &self.conditions else {
            return String::new();
        };
        let state = self.states.back().copied().unwrap_or_default();
        if let (LinkState::Outage | LinkState::Stall, Some(left)) = (state, self.left) {
            return format!("{}, {} more", state.name(), span(left));
        }
        let mut parts = vec![span(conditions.delay)];
        if let (LinkState::Burst, Some(left)) = (state, self.left) {
            parts = vec![format!("burst, {} more", span(left))];
        }
        if conditions.loss > 0.0 {
            parts.push(format!("{:.1} % lost", conditions.loss * 100.0));
        }
        if let Some(bits) = conditions.rate_bits_per_second {
            parts.push(format!("{}bit/s", number(bits as f64)));
        }
        parts.join(", ")
    }

    pub(crate) const fn tone(state: LinkState) -> Tone {
        match state {
            LinkState::Unknown | LinkState::Calm => Tone::Dim,
            LinkState::Burst => Tone::Fair,
            LinkState::Stall | LinkState::Outage => Tone::Bad,
        }
    }
}
