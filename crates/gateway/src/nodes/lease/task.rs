//! What is asked of the entry and answered, and what it means for a node.

use bytes::Bytes;

/// Something to be done with the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseTask {
    /// Which task this is; the answer has the same number.
    pub number: u64,
    /// The operation on the lease's entry.
    pub request: LeaseRequest,
}

/// What is to be done with the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseRequest {
    /// Read it.
    Read,
    /// Write it, if there is none.
    Create(Bytes),
    /// Write it, if it still has this revision.
    Update(Bytes, u64),
}

/// What came of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeaseAnswer {
    /// What was read, and its revision; `None` if there is no entry.
    Entry(Option<(Bytes, u64)>),
    /// It was written, with this revision.
    Written(u64),
    /// It was not written, for it is another one by now.
    Conflict,
    /// It is not known whether anything was done. Why.
    Failed(String),
}

/// How a node stands to the channels.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    /// Another node owns them, or none.
    StandsBy,
    /// This node owns them, in this epoch.
    Owns(u64),
    /// It did, and may again: its lease is over, and nobody has taken it as far as it
    /// knows.
    Rests(u64),
}
