//! A result document for people: terminal table, HTML page, comparison.
//!
//! Everything here reads [`lagometer_results::Document`] and nothing else, and
//! knows nothing of how runs are made. [`table`] writes for a terminal,
//! [`page`] for a browser, [`plot()`] draws for a text, [`compare()`] sets two runs
//! side by side, and a [`Gate`] says whether a run holds what it had to.

/// Appends formatted text to a `String`, which cannot fail.
macro_rules! append {
    ($out:expr, $($text:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($text)*);
    }};
}

mod about;
mod beside;
mod budget;
mod by_network;
mod by_preset;
mod capacity;
mod compare;
mod cost;
mod figure;
mod gate;
mod instruments;
mod page;
mod plot;
mod ranking;
mod terminal;
mod traffic;
mod trust;
mod tuned;

use lagometer_results::written;

pub use compare::{
    Basis, CannotCompare, Chance, Change, Comparison, Direction, LaneChange, compare,
};
pub use gate::{Baseline, Gate, NoBaseline, USUAL_TOLERANCE};
pub use page::{named_page, page};
pub use plot::plot;
pub use terminal::{Terminal, agreement, comparison, table, world_comparison};
pub use tuned::lanes_to_paste;
