//! What the remote end noted, fetched while the recording goes on: should the remote
//! end die, what it had sent by then is kept.

use std::sync::mpsc::{Receiver, RecvTimeoutError};
use std::time::Duration;

use lagometer_remote::RemoteJob;
use lagometer_units::{Clock, Time};
use serde_json::{Value, json};

use crate::record::local::RecordError;
use crate::record::player::Played;
use crate::record::service::{CHUNK, MOST_PROBES, Question, read_received, read_sent, read_trains};

/// From one look at the remote end's notes to the next: what may be missing at
/// the end of a recording whose remote end died.
const EVERY: Duration = Duration::from_secs(2);

/// The remote end's notes as far as they were fetched.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    /// The notes.
    pub(crate) played: Played,
    /// Until when they are whole, by the local end's clock.
    pub(crate) whole_until: Time,
}

impl Gathered {
    /// Fetches now and then until `end` is signalled or dropped, or the remote end
    /// answers no more.
    pub(crate) fn grow(&mut self, job: &RemoteJob, clock: Clock, end: &Receiver<()>) {
        while end.recv_timeout(EVERY) == Err(RecvTimeoutError::Timeout) {
            // Why it failed is asked again at the end.
            if self.more(job, clock).is_err() {
                return;
            }
        }
    }

    /// Ends the remote end's part and fetches the rest.
    pub(crate) fn finish(&mut self, job: &RemoteJob, clock: Clock) -> Result<(), RecordError> {
        job.ask(&json!(Question::End))?;
        self.more(job, clock)
    }

    fn more(&mut self, job: &RemoteJob, clock: Clock) -> Result<(), RecordError> {
        let asked_at = clock.now();
        let played = &mut self.played;
        extend(&mut played.sent, job, Question::Sent, read_sent)?;
        extend(&mut played.received, job, Question::Received, read_received)?;
        extend(&mut played.trains, job, Question::Trains, read_trains)?;
        self.whole_until = asked_at;
        Ok(())
    }
}

/// Fetches what a list has grown by.
fn extend<T>(
    list: &mut Vec<T>,
    job: &RemoteJob,
    question: impl Fn(usize) -> Question,
    read: impl Fn(Value) -> Option<Vec<T>>,
) -> Result<(), RecordError> {
    loop {
        let answer = job.ask(&json!(question(list.len())))?;
        let piece = read(answer).ok_or(RecordError::NotUnderstood)?;
        let is_last = piece.len() < CHUNK;
        list.extend(piece);
        if is_last {
            return Ok(());
        }
        // A remote end that never ends its list is none of ours.
        if list.len() > 4 * MOST_PROBES {
            return Err(RecordError::NotUnderstood);
        }
    }
}
