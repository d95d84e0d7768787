//! One run as the page's charts see it: the lanes in the order shown, their
//! looks, and the axes all charts share.

use lagometer_results::{Document, Lane};

use super::palette::{self, Look};
use super::scale::{self, LogScale};
use crate::about::{self, About};
use crate::ranking::{self, Group};

/// A document with what every chart of it needs.
#[derive(Debug)]
pub(crate) struct View<'a> {
    /// Place of the run on the page, from 0.
    pub(crate) index: usize,
    /// What distinguishes it from the others, if they were given names.
    pub(crate) name: Option<&'a str>,
    /// The document.
    pub(crate) document: &'a Document,
    /// The names of its experiment and network, its seeds and how it was made.
    pub(crate) about: About,
    /// Measured lanes by promise, best first.
    pub(crate) groups: Vec<Group<'a>>,
    /// The axis of round trips, the same in every chart.
    pub(crate) rtt: LogScale,
    /// Seconds of play that the time axis covers.
    pub(crate) span_s: f64,
    looks: Vec<Look>,
}

impl<'a> View<'a> {
    /// The view of `document`, the `index`-th of the page.
    pub(crate) fn of(document: &'a Document, index: usize, name: Option<&'a str>) -> Self {
        let about = About::of(document);
        let measured = document
            .lanes
            .iter()
            .filter(|lane| lane.messages.delivered > 0);
        let extremes =
            measured.flat_map(|lane| [lane.rtt_delivered_ms.min, lane.rtt_delivered_ms.max]);
        Self {
            index,
            name,
            groups: ranking::groups(document, about.limit_ms),
            rtt: LogScale::covering(extremes, 10.0),
            span_s: about::played_s(document).unwrap_or(1.0),
            looks: palette::looks(&document.lanes),
            about,
            document,
        }
    }

    /// What the run is called on a page of several.
    pub(crate) fn title(&self) -> String {
        let title = self.about.title();
        match self.name {
            Some(name) => format!("{name}: {title}"),
            None => title,
        }
    }

    /// Measured lanes in the order shown, each with its place in the document.
    pub(crate) fn lanes(&self) -> impl Iterator<Item = (usize, &'a Lane)> {
        self.groups
            .iter()
            .flat_map(|group| group.lanes.iter().copied())
            .map(|lane| (self.place(lane), lane))
    }

    /// The place of `lane` in the document, by which the page's script knows
    /// it.
    pub(crate) fn place(&self, lane: &Lane) -> usize {
        self.document
            .lanes
            .iter()
            .position(|each| std::ptr::eq(each, lane))
            .unwrap_or(0)
    }

    /// How the lane at `place` looks.
    pub(crate) fn look(&self, place: usize) -> Look {
        self.looks[place]
    }

    /// The nines that the lane with most messages can show.
    pub(crate) fn most_nines(&self) -> f64 {
        let most = self
            .document
            .lanes
            .iter()
            .map(|lane| lane.messages.intended)
            .max();
        scale::most_nines(most.unwrap_or(0))
    }

    /// An element's id, unique on a page of several runs.
    pub(crate) fn id(&self, name: &str) -> String {
        format!("run{}-{name}", self.index)
    }
}
