//! A run: lanes side by side, and beneath them what their link does, over one axis of
//! time.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use lagometer_lab::Resolved;
use lagometer_lab::live::{LaneMoment, RunWatch, WatchedSeed};
use lagometer_link::{Direction, Link};
use lagometer_units::Time;
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

use crate::board::{foot, head, in_a_line, is_tiny};
use crate::draw::{Theme, Tone, bar, clock, cut, graph, left, line, number, right, span, width};
use crate::layout::{COLUMNS, Layout};
use crate::link::{LinkView, STATES_KEPT};
use crate::{History, View};

/// Lines of the links: an empty one, both directions, the letters' meaning.
const LINKS_HEIGHT: u16 = 4;

/// So many lanes have their line before the links have theirs.
const LANES_BEFORE_LINKS: u16 = 3;

/// What a run does now.
pub struct RunView {
    /// What is played, over which network and where, in a line.
    pub title: String,
    /// Seeds that are to be played.
    pub seeds: Vec<u64>,
    /// The seed that is played, once one is.
    pub seed: Option<u64>,
    /// How long a seed plays after its lead-in.
    pub duration: Duration,
    /// Since when the schedules have started, once they have.
    pub playing_for: Option<Duration>,
    /// The age from which on a player lags.
    pub threshold: Duration,
    /// The share of the whole run that is done, 0 to 1.
    pub done: f64,
    /// How many seconds of lanes are played in a second, where time is virtual.
    pub speed: Option<f64>,
    /// The lanes; none where they are not seen one by one.
    pub lanes: Vec<LaneView>,
    /// The directions of every lane's link, up first; none where nobody knows it.
    pub links: Vec<LinkView>,
    watched: Option<Arc<WatchedSeed>>,
    link: Option<Link>,
    profile: Option<lagometer_link::Profile>,
    regime: lagometer_link::Regime,
}

/// A lane.
#[derive(Clone, Debug, Default)]
pub struct LaneView {
    /// The lane's name.
    pub name: String,
    /// The lane's latest figures.
    pub now: LaneMoment,
    /// The worst round trip of each look in milliseconds; infinite while it is frozen.
    pub round_trips: History,
    /// The looks at which it was frozen, as the history has them.
    pub frozen: VecDeque<bool>,
}

impl RunView {
    /// Of a run that has not begun.
    #[must_use]
    pub fn new(resolved: &Resolved, testbed: &str, seeds: &[u64]) -> Self {
        Self {
            title: format!(
                "{} over {}, {testbed}",
                resolved.experiment.name, resolved.network
            ),
            seeds: seeds.to_vec(),
            seed: None,
            duration: resolved.plan.duration,
            playing_for: None,
            threshold: resolved.known_lag_threshold(),
            done: 0.0,
            speed: None,
            lanes: Vec::new(),
            links: Vec::new(),
            watched: None,
            link: None,
            profile: None,
            regime: resolved.regime,
        }
    }

    /// The links of its lanes behave as this profile says.
    pub fn know_link(&mut self, resolved: &Resolved) {
        self.profile = Some(resolved.profile.clone());
    }

    /// Looks at what is played now; to be called once in [`EVERY`](crate::EVERY). `names`
    /// are those of the lanes.
    pub fn look(&mut self, watch: &RunWatch, names: &[String]) {
        let Some(watched) = watch.seed() else { return };
        let is_new = |before: &Arc<WatchedSeed>| !Arc::ptr_eq(before, &watched);
        if self.watched.as_ref().is_none_or(is_new) {
            self.begin(&watched, names);
        }
        let now = watched.clock.now();
        let moments = watched.lanes.iter().map(|lane| lane.look(now)).collect();
        self.note(now, moments);
    }

    /// Another seed is played.
    fn begin(&mut self, watched: &Arc<WatchedSeed>, names: &[String]) {
        self.watched = Some(Arc::clone(watched));
        self.begin_seed(watched.seed, names);
    }

    /// Another seed is played, of lanes called `names`.
    pub fn begin_seed(&mut self, seed: u64, names: &[String]) {
        let lane = |name: &String| LaneView {
            name: name.clone(),
            ..LaneView::default()
        };
        self.lanes = names.iter().map(lane).collect();
        self.seed = Some(seed);
        self.playing_for = None;
        let profile = self.profile.as_ref();
        self.link = profile.map(|it| Link::new(it, seed, self.regime, Time::ZERO));
        let link = self.link.iter().flat_map(|_| Direction::BOTH);
        self.links = link.map(|_| LinkView::default()).collect();
    }

    /// Takes in what the lanes are at `now`, by their clock.
    pub fn note(&mut self, now: Time, moments: Vec<LaneMoment>) {
        let starts = moments.iter().filter_map(|it| it.starts_at).min();
        self.playing_for = starts
            .filter(|&start| start <= now)
            .map(|start| now.since(start));
        for (lane, moment) in self.lanes.iter_mut().zip(moments) {
            lane.note(moment);
        }
        // The lanes' impairments begin with their schedules.
        let at = self.playing_for.map(|since| Time::ZERO + since);
        for (direction, view) in Direction::BOTH.into_iter().zip(&mut self.links) {
            if let Some(link) = &self.link {
                view.note(link, direction, at);
            }
        }
        self.done = self.done.max(self.share());
    }

    /// The share of all seeds that is played, as far as lanes report it.
    fn share(&self) -> f64 {
        let nth = self.seeds.iter().position(|&seed| Some(seed) == self.seed);
        let (Some(nth), Some(playing)) = (nth, self.playing_for) else {
            return 0.0;
        };
        let of_seed = playing.as_secs_f64() / self.duration.as_secs_f64().max(1e-9);
        (nth as f64 + of_seed.min(1.0)) / self.seeds.len() as f64
    }

    /// What is done now, in words.
    fn phase(&self) -> String {
        let nth = self.seeds.iter().position(|&seed| Some(seed) == self.seed);
        let seed = match (self.seed, nth, self.seeds.len()) {
            (Some(seed), Some(nth), many) if many > 1 => {
                format!("seed {seed}, {} of {many}", nth + 1)
            }
            (Some(seed), ..) => format!("seed {seed}"),
            (None, _, 1) => "1 seed".to_owned(),
            (None, _, many) => format!("{many} seeds"),
        };
        let what = match (self.playing_for, self.speed) {
            (Some(playing), _) if playing < self.duration => {
                format!("{} of {}", clock(playing), clock(self.duration))
            }
            (Some(_), _) => "waiting for the last messages".to_owned(),
            (None, Some(pace)) => format!("{} s of lanes played each second", number(pace)),
            (None, None) if self.lanes.is_empty() => "beginning".to_owned(),
            (None, None) => "connecting".to_owned(),
        };
        format!("{seed}  {what}")
    }

    /// The run in one line, where there is room for no more.
    fn in_a_line(&self) -> String {
        let frozen: Vec<&str> = self
            .lanes
            .iter()
            .filter(|lane| lane.now.frozen_for.is_some())
            .map(|lane| &*lane.name)
            .collect();
        let lanes = match frozen.as_slice() {
            [] => String::new(),
            all => format!("  frozen: {}", all.join(", ")),
        };
        format!("{:.0} %  {}{lanes}", self.done * 100.0, self.phase())
    }
}

impl LaneView {
    fn note(&mut self, moment: LaneMoment) {
        let is_frozen = moment.frozen_for.is_some();
        let millis = |span: Duration| span.as_secs_f64() * 1e3;
        // Whoever is frozen has an age that grows.
        self.round_trips.push(moment.worst.map(millis));
        if self.frozen.len() == STATES_KEPT {
            self.frozen.pop_front();
        }
        self.frozen.push_back(is_frozen);
        self.now = moment;
    }

    fn tone(&self) -> Tone {
        match &self.now {
            now if now.failure.is_some() || now.frozen_for.is_some() => Tone::Bad,
            now if now.is_over || !now.is_ready => Tone::Dim,
            _ => Tone::Strong,
        }
    }

    /// What is said in place of a graph, where there is none yet or no more.
    fn words(&self) -> Option<String> {
        match &self.now {
            LaneMoment {
                failure: Some(why), ..
            } => Some(why.clone()),
            now if !now.is_ready => Some("connecting".to_owned()),
            now if now.starts_at.is_none() => Some("connected, waits for the others".to_owned()),
            _ => None,
        }
    }
}

impl View for RunView {
    fn draw(&self, buffer: &mut Buffer, theme: Theme, notes: &[String]) {
        let area = buffer.area;
        if is_tiny(area) {
            in_a_line(buffer, area, theme, &self.in_a_line());
            return;
        }
        head(buffer, area, theme, &self.title);
        let phase = self.phase();
        let top = line(area, 1);
        left(buffer, top, &phase, theme.style(Tone::Plain));
        let percent = format!("{:3.0} %", self.done * 100.0);
        right(buffer, top, &percent, theme.style(Tone::Plain));
        let from = (width(&phase) + 2).min(top.width);
        let until = top.width.saturating_sub(width(&percent) + 1).max(from);
        bar(
            buffer,
            Rect {
                x: top.x + from,
                width: until - from,
                ..top
            },
            self.done,
            theme,
        );

        let below = Rect {
            y: area.y + 3,
            height: area.height - 3,
            ..area
        };
        let layout = Layout::of(&self.lanes, below);
        let notes_height = (notes.len() as u16).min(2) + 1;
        let room = below.height.saturating_sub(notes_height + 1);
        // Lanes are what is watched: where a line for each, beneath their head, would not
        // fit beside the links, it is the links that are left out.
        let lines = 1 + (self.lanes.len() as u16).min(LANES_BEFORE_LINKS);
        let has_links = !self.links.is_empty() && room >= lines + LINKS_HEIGHT;
        let lanes_height = room - if has_links { LINKS_HEIGHT } else { 0 };
        let used = self.draw_lanes(
            buffer,
            Rect {
                height: lanes_height,
                ..below
            },
            &layout,
            theme,
        );
        let under = Rect {
            y: below.y + used,
            height: below.height - used,
            ..below
        };
        if has_links {
            self.draw_links(buffer, under, &layout, theme);
        }
        let ends = "Ctrl-C ends it and shows what was found";
        foot(buffer, area, theme, notes, ends);
    }
}

impl RunView {
    /// Draws the lanes and returns how many lines they took.
    fn draw_lanes(&self, buffer: &mut Buffer, area: Rect, layout: &Layout, theme: Theme) -> u16 {
        if self.lanes.is_empty() || area.height < 2 {
            return 0;
        }
        let dim = theme.style(Tone::Dim);
        let head = line(area, 0);
        left(buffer, layout.name(head), "lane", dim);
        let worst = format!("worst round trip; full height {}", span(self.threshold * 2));
        left(buffer, layout.graph(head), &worst, dim);
        for (nth, (name, ..)) in COLUMNS[..layout.columns].iter().enumerate() {
            right(buffer, layout.column(head, nth), name, dim);
        }
        let lanes = self.lanes.len() as u16;
        let room = area.height - 1;
        // A line between lanes where graphs are high enough for it.
        let each = (room / lanes).clamp(1, 4);
        let graph_height = if each > 2 { each - 1 } else { each };
        let shown = if lanes * each > room { room - 1 } else { lanes };
        for (nth, lane) in self.lanes.iter().take(usize::from(shown)).enumerate() {
            let top = area.y + 1 + nth as u16 * each;
            let place = Rect {
                y: top,
                height: graph_height,
                ..area
            };
            self.draw_lane(buffer, place, lane, layout, theme);
        }
        let used = 1 + shown * each;
        if shown < lanes {
            let hidden = format!("and {} more", lanes - shown);
            left(buffer, line(area, used), &hidden, dim);
            return used + 1;
        }
        used
    }

    fn draw_lane(
        &self,
        buffer: &mut Buffer,
        area: Rect,
        lane: &LaneView,
        layout: &Layout,
        theme: Theme,
    ) {
        // Its words stand where its graph does.
        let base = line(area, area.height - 1);
        left(
            buffer,
            layout.name(base),
            &lane.name,
            theme.style(lane.tone()),
        );
        let place = layout.graph(area);
        let threshold = self.threshold.as_secs_f64() * 1e3;
        graph(
            buffer,
            place,
            &lane.round_trips,
            threshold * 2.0,
            |millis| {
                theme.style(match millis {
                    _ if millis > threshold => Tone::Bad,
                    _ if millis > threshold * 0.75 => Tone::Fair,
                    _ => Tone::Good,
                })
            },
        );
        let looks = lane.frozen.len().min(usize::from(place.width));
        let first = place.right() - looks as u16;
        let frozen = lane.frozen.iter().skip(lane.frozen.len() - looks);
        for (x, _) in (first..).zip(frozen).filter(|(_, frozen)| **frozen) {
            for y in place.top()..place.bottom() {
                if buffer[(x, y)].symbol() == " " {
                    buffer.set_string(x, y, "×", theme.style(Tone::Bad));
                }
            }
        }
        if let Some(words) = lane.words() {
            left(buffer, layout.graph(base), &words, theme.style(Tone::Dim));
        }
        let style = match lane.now.frozen_for {
            Some(_) => theme.style(Tone::Bad),
            None => theme.style(Tone::Plain),
        };
        for (nth, (name, _, value)) in COLUMNS[..layout.columns].iter().enumerate() {
            let mut text = value(lane);
            if *name == "now" && lane.now.frozen_for.is_some() {
                "frozen".clone_into(&mut text);
            }
            right(buffer, layout.column(base, nth), &text, style);
        }
    }

    /// Draws the link's directions from the second line of `area` on.
    fn draw_links(&self, buffer: &mut Buffer, area: Rect, layout: &Layout, theme: Theme) {
        for (nth, link) in self.links.iter().enumerate() {
            let place = line(area, 1 + nth as u16);
            if place.is_empty() {
                return;
            }
            let name = ["link up", "link down"][nth.min(1)];
            let name = cut(name, layout.names.saturating_sub(1));
            let column = Rect {
                width: layout.names,
                ..place
            };
            left(buffer, column, &name, theme.style(Tone::Dim));
            let strip = layout.graph(place);
            let looks = link.states.len().min(usize::from(strip.width));
            let first = strip.right() - looks as u16;
            let states = link.states.iter().skip(link.states.len() - looks);
            for (x, state) in (first..).zip(states) {
                buffer.set_string(
                    x,
                    place.y,
                    state.letter(),
                    theme.style(LinkView::tone(*state)),
                );
            }
            let state = link.states.back().copied().unwrap_or_default();
            let rest = layout.rest(place);
            let rest = Rect {
                x: rest.x + 2.min(rest.width),
                width: rest.width.saturating_sub(2),
                ..rest
            };
            left(
                buffer,
                rest,
                &link.words(),
                theme.style(LinkView::tone(state)),
            );
        }
        let legend = "· calm  ▒ burst  ▌ stall  █ outage  × frozen";
        let place = layout.graph(line(area, 3));
        let place = Rect {
            width: area.right() - place.x,
            ..place
        };
        left(buffer, place, legend, theme.style(Tone::Dim));
    }
}
