//! Traces: how a link behaved, recorded, to be played again and again.
//!
//! Two kinds of file are read: [`recorded`], this project's own, with rate,
//! delay and loss of both directions over time; and [`mahimahi`], the
//! packet-delivery files of that emulator, with one direction's rate.

pub mod mahimahi;
pub mod recorded;

pub use mahimahi::Opportunities;
pub use recorded::{BadRecording, Recording, Step};

use lagometer_units::BadInput;

/// A trace file that has been read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trace {
    /// Rate, delay and loss of both directions over time.
    Recorded(Recording),
    /// The instants at which one direction may deliver.
    Mahimahi(Opportunities),
}

impl Trace {
    /// Reads a trace of either kind; its first line shows which it is.
    ///
    /// # Errors
    ///
    /// [`BadInput`] with the line that was not understood; `origin` is the
    /// file's name.
    pub fn parse(origin: &str, text: &str) -> Result<Self, BadInput> {
        if text.trim_start().starts_with("lagometer-trace") {
            Recording::parse(origin, text).map(Self::Recorded)
        } else {
            Opportunities::parse(origin, text).map(Self::Mahimahi)
        }
    }
}

/// A complaint about the line with `index` (from 0) of a trace.
fn bad_line(origin: &str, index: usize, message: impl Into<String>) -> BadInput {
    BadInput {
        origin: origin.to_owned(),
        line: index + 1,
        message: message.into(),
    }
}
