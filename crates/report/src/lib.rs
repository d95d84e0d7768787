//! A result document for people: terminal table, HTML page, comparison.
//!
//! Everything here reads [`lagometer_stats::Document`] and nothing else, and
//! knows nothing of how runs are made. [`table`] writes for a terminal,
//! [`compare`] sets two runs side by side.

mod about;
mod budget;
mod compare;
mod figure;
mod ranking;
mod terminal;
mod written;

pub use compare::{CannotCompare, Change, Comparison, Direction, LaneChange, compare};
pub use terminal::{Terminal, comparison, table};
