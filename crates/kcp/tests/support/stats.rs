//! What conversations have met, counted: a test that never reaches a branch
//! says nothing of it.

/// What a run has met.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct ScenarioStats {
    pub(crate) datagrams: u64,
    pub(crate) messages: u64,
    /// Runs in which a link died.
    pub(crate) dead: u64,
    /// Runs in which everything sent arrived, once the network was mended.
    pub(crate) complete: u64,
    /// Runs in which it had not after an hour, for timeouts had doubled again and
    /// again.
    pub(crate) late: u64,
    /// Runs of which nothing can be said: their datagrams were damaged or forged.
    pub(crate) damaged: u64,
    /// How often each of [`BRANCHES`] was reached.
    pub(crate) reached: [u64; BRANCHES.len()],
}

/// What an engine may meet or do, as its datagrams and answers show.
pub(crate) const BRANCHES: [&str; 14] = [
    "data",
    "acknowledgement",
    "question for a window",
    "answer with a window",
    "data again",
    "data again within a round trip and a half",
    "message of several segments",
    "several segments in a datagram",
    "closed window",
    "number past its end",
    "datagram of 1400 bytes",
    "message too long",
    "segment of an unknown command refused",
    "segment cut short refused",
];

impl ScenarioStats {
    /// Adds another run's.
    pub(crate) fn add(&mut self, other: Self) {
        self.datagrams += other.datagrams;
        self.messages += other.messages;
        self.dead += other.dead;
        self.complete += other.complete;
        self.late += other.late;
        self.damaged += other.damaged;
        for (total, reached) in self.reached.iter_mut().zip(other.reached) {
            *total += reached;
        }
    }
}
