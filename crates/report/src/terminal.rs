//! A result document on a terminal: the verdict in one sentence, the table a
//! game engineer reads first, what each transport promises, budgets missed,
//! and what to know before trusting the figures.

mod agreement;
mod beside;
mod bottleneck;
mod bulk;
mod by_preset;
mod capacity;
mod comparison;
mod cost;
mod echo;
mod grid;
mod lanes;
pub(crate) use lanes::{intervals_from, lag_figures, or_its_ends};
mod notes;
mod paint;
mod properties;
mod sweep;
mod traffic;
mod tune;
mod world;
mod world_pair;
mod worlds;

pub(crate) use self::world::{facts, reach};

use lagometer_results::{Agreement, Document};

use self::paint::{Paint, Style, printable, wrap};
use crate::about::About;
use crate::beside::{Beside, worlds_of};
use crate::capacity::by_players;
use crate::compare::Comparison;
use crate::trust;

/// The narrowest terminal tables are laid out for; on a narrower one they run
/// over its edge rather than into nonsense.
const NARROWEST: usize = 60;

/// What is known of the place the text goes to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Terminal {
    /// Columns. Tables fill what they can use of it, from 80 on; under 60 is
    /// treated as 60.
    pub width: usize,
    /// Whether ANSI colours may be written.
    pub colour: bool,
}

impl Terminal {
    /// A file or a pipe: 80 columns, no colour.
    pub const PLAIN: Self = Self {
        width: 80,
        colour: false,
    };

    fn room(self) -> usize {
        self.width.max(NARROWEST)
    }

    fn paint(self) -> Paint {
        Paint {
            colour: self.colour,
        }
    }
}

/// The document as text for `terminal`, every line ending in a newline.
#[must_use]
pub fn table(document: &Document, terminal: Terminal) -> String {
    let whole = document;
    let shown = whole.shown();
    let document = shown.as_ref();
    let about = About::of(document);
    let (paint, room) = (terminal.paint(), terminal.room());
    let mut out = String::new();
    for line in wrap(&printable(&about.headline()), room) {
        line_of(&mut out, &paint.apply(Style::Dim, &line));
    }
    if let Some(words) = trust::invalid(document) {
        for line in wrap(&printable(&words), room) {
            line_of(&mut out, &paint.apply(Style::Bad, &line));
        }
    }
    if let Some(verdict) = &document.verdict {
        for line in wrap(&printable(verdict), room) {
            line_of(&mut out, &paint.apply(Style::Bold, &line));
        }
    }
    out.push('\n');
    if let Some(found) = &document.echo {
        echo::render(found, paint, room, &mut out);
    }
    if let Some(found) = &document.sweep {
        sweep::render(found, paint, room, &mut out);
    }
    if let Some(found) = &document.world {
        world::render(found, paint, &mut out);
    }
    if by_players(&document.worlds) {
        capacity::render(&document.worlds, paint, room, &mut out);
    } else {
        worlds::render(&document.worlds, paint, &mut out);
    }
    if let Some(found) = &document.tune {
        tune::render(found, paint, room, &mut out);
    } else if document.lanes.iter().any(|lane| lane.bulk.is_some()) {
        bulk::render(document, paint, room, &mut out);
    } else if !document.lanes.is_empty() {
        lanes::render(document, &about, paint, room, &mut out);
        traffic::render(document, about.limit_ms, paint, room, &mut out);
        cost::render(document, about.limit_ms, paint, room, &mut out);
        bottleneck::render(document, paint, room, &mut out);
        by_preset::render(whole, about.limit_ms, paint, room, &mut out);
        properties::render(document, about.limit_ms, paint, room, &mut out);
    }
    notes::render(document, paint, room, &mut out);
    out
}

/// The comparison as text for `terminal`, every line ending in a newline.
#[must_use]
pub fn comparison(comparison: &Comparison, terminal: Terminal) -> String {
    comparison::render(comparison, terminal.paint(), terminal.room())
}

/// Played worlds side by side as text for `terminal`, every line ending in a
/// newline: one of either figure by figure, several cell by cell. `None` where
/// either document is of something else.
#[must_use]
pub fn world_comparison(
    names: [&str; 2],
    documents: [&Document; 2],
    terminal: Terminal,
) -> Option<String> {
    let (paint, room) = (terminal.paint(), terminal.room());
    let [first, second] = documents.map(worlds_of);
    match (first.as_slice(), second.as_slice()) {
        ([], _) | (_, []) => None,
        (&[one], &[other]) => Some(world_pair::render(
            names,
            documents,
            [one, other],
            paint,
            room,
        )),
        _ => {
            let beside = Beside::of(first, second);
            Some(beside::render(names, documents, &beside, paint, room))
        }
    }
}

/// The agreement of virtual time and real sockets as text for `terminal`,
/// every line ending in a newline.
#[must_use]
pub fn agreement(agreement: &Agreement, terminal: Terminal) -> String {
    agreement::render(agreement, terminal.paint(), terminal.room())
}

fn line_of(out: &mut String, line: &str) {
    *out += line;
    out.push('\n');
}
