//! A result document for people: terminal table, HTML page, comparison.
//!
//! Everything here reads [`lagometer_stats::Document`] and nothing else, and
//! knows nothing of how runs are made. [`table`] writes for a terminal,
//! [`page`] for a browser, and [`compare()`] sets two runs side by side.

/// Appends formatted text to a `String`, which cannot fail.
macro_rules! append {
    ($out:expr, $($text:tt)*) => {{
        use std::fmt::Write as _;
        let _ = write!($out, $($text)*);
    }};
}

mod about;
mod budget;
mod compare;
mod figure;
mod page;
mod ranking;
mod terminal;
mod written;

pub use compare::{CannotCompare, Chance, Change, Comparison, Direction, LaneChange, compare};
pub use page::page;
pub use terminal::{Terminal, comparison, table};
