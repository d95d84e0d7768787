//! The messages of an authenticated control connection: JSON, one message a
//! frame.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the protocol, handshake and messages. Ends of
/// different versions refuse each other.
pub const VERSION: u16 = 2;

/// Numbers the jobs of one control connection; the local end chooses.
pub(crate) type JobNumber = u32;

/// What the local end says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum FromClient {
    /// Begin a job.
    Open {
        job: JobNumber,
        service: String,
        request: Value,
    },
    /// Something for a job, to be answered.
    Ask { job: JobNumber, body: Value },
    /// End a job and report what it found.
    Finish { job: JobNumber },
    /// End a job; what it found is not wanted.
    Abandon { job: JobNumber },
    /// What time is it? `sent` is the local end's clock, in nanoseconds.
    Ping { sent: u64 },
}

/// What the remote end says.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "say", rename_all = "snake_case", deny_unknown_fields)]
pub(crate) enum FromServer {
    /// The job has begun.
    Opened { job: JobNumber, reply: Value },
    /// It has not, or what was asked of it was not done.
    Refused { job: JobNumber, why: String },
    /// The answer to what was asked.
    Answer { job: JobNumber, body: Value },
    /// The job has ended; this is what it found.
    Finished { job: JobNumber, found: Value },
    /// Something a job says of its own accord.
    Event { job: JobNumber, body: Value },
    /// An address has proved itself on the job's data socket at `port`.
    Admitted { job: JobNumber, port: u16 },
    /// `sent` comes back; `received` and `answered` are the remote end's clock,
    /// in nanoseconds.
    Pong {
        sent: u64,
        received: u64,
        answered: u64,
    },
    /// The remote end is about to leave.
    Leaving { why: String },
}
