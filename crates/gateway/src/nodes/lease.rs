//! Who owns the channels: a lease in one entry of a key-value store, changed only by
//! compare-and-set.
//!
//! The holder renews it; those that stand by read it, and take it once they have read the
//! same revision for as long as a lease lasts, by their own clocks, and without a reading
//! that failed in between. The holder counts its time from before it asked for a renewal,
//! so that it has stopped before anybody may take over. A holder whose time is over rests:
//! if it renews before another has taken the lease, nobody has owned the channels
//! meanwhile, and it goes on.
//!
//! A holder that was paused cannot know in time that its lease is over. That is what the
//! epoch is for: it grows with each change of holder, and nobody takes a frame of an older
//! one.

mod asked;
mod entry;

use bytes::Bytes;
use lagometer_units::Time;

use super::NodeTimes;
use super::bus::{NodeId, Note};
use super::frame::PROTOCOL;

use asked::{Asked, Giving, Take};
use entry::Entry;

/// Something to be done with the entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeaseTask {
    /// Returns with the answer.
    pub number: u64,
    /// What.
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

#[derive(Debug)]
enum State {
    StandsBy {
        /// The revision that was read, and since when.
        seen: Option<(u64, Time)>,
    },
    Holds {
        epoch: u64,
        revision: u64,
        until: Time,
    },
}

/// The lease as one node has it.
#[derive(Debug)]
pub struct Lease {
    node: NodeId,
    times: NodeTimes,
    state: State,
    asked: Option<(u64, Asked, Time)>,
    numbers: u64,
    task: Option<LeaseTask>,
    /// When the next is to be asked for.
    ask_at: Time,
    /// What to ask for then, where it is not the usual.
    take: Option<Take>,
    /// The first of its attempts to take it of which nobody knows whether it was written.
    unanswered: Option<Take>,
    /// Whose it was when it was last read, and in which epoch.
    holder: Option<(NodeId, u64)>,
    /// Whose entry was replaced when this node became the holder, and of which epoch.
    predecessor: Option<(NodeId, u64)>,
    giving: Option<Giving>,
    /// Until then it is read more often: it is about to be given up.
    hurries_until: Time,
    /// A renewal was refused: is the entry still this node's?
    is_doubted: bool,
    /// The highest epoch there is known to be.
    newest: u64,
    has_failed: bool,
    is_ending: bool,
    notes: Vec<Note>,
    /// The other version of a holder that was spoken of.
    refused: Option<u16>,
    /// When the entry was last read, or written.
    seen_at: Option<Time>,
}

impl Lease {
    /// The lease for a node that stands by.
    #[must_use]
    pub fn new(now: Time, node: NodeId, times: NodeTimes) -> Self {
        Self {
            node,
            times,
            state: State::StandsBy { seen: None },
            asked: None,
            numbers: 0,
            task: None,
            ask_at: now,
            take: None,
            unanswered: None,
            holder: None,
            predecessor: None,
            giving: None,
            hurries_until: Time::ZERO,
            is_doubted: false,
            newest: 0,
            has_failed: false,
            is_ending: false,
            notes: Vec::new(),
            refused: None,
            seen_at: None,
        }
    }

    /// How the node stands to the channels now.
    #[must_use]
    pub fn standing(&self, now: Time) -> Standing {
        match self.state {
            State::StandsBy { .. } => Standing::StandsBy,
            State::Holds { epoch, until, .. } if now < until => Standing::Owns(epoch),
            State::Holds { epoch, .. } => Standing::Rests(epoch),
        }
    }

    /// Whether the entry was read or written within the last lease.
    #[must_use]
    pub fn is_in_touch(&self, now: Time) -> bool {
        self.seen_at
            .is_some_and(|at| now.since(at) < self.times.lease)
    }

    /// There is an epoch of this number: the next owner's is higher.
    pub fn note_epoch(&mut self, epoch: u64) {
        self.newest = self.newest.max(epoch);
    }

    /// An edge has seen this epoch, of another owner. If the lease is this node's all the
    /// same, the entry was lost and made anew: it takes a higher one.
    pub fn raise(&mut self, now: Time, epoch: u64) {
        self.note_epoch(epoch);
        if let State::Holds {
            epoch: own,
            revision,
            ..
        } = self.state
            && own <= epoch
        {
            self.take = Some(Take {
                revision: Some(revision),
                epoch: self.newest + 1,
                from: None,
            });
            self.ask_at = now;
        }
    }

    /// Whose it was when it was last read, and in which epoch.
    #[must_use]
    pub fn holder(&self) -> Option<(NodeId, u64)> {
        self.holder
    }

    /// Who had the lease before this node took it, and in which epoch, if nobody can have
    /// had it in between.
    #[must_use]
    pub fn predecessor(&self) -> Option<(NodeId, u64)> {
        self.predecessor
    }

    /// The highest epoch there is known to be.
    #[must_use]
    pub fn newest(&self) -> u64 {
        self.newest
    }

    /// Whether others have had it since this epoch, as far as this node knows. One that may
    /// have been the next itself, and does not know yet, does not count.
    #[must_use]
    pub fn is_past(&self, epoch: u64) -> bool {
        let may_be_next = |take: Take| take.from.is_some_and(|(_, of)| of == epoch);
        epoch < self.newest && !self.unanswered.is_some_and(may_be_next)
    }

    /// The holder is about to give it up: until then it is read twenty times as often.
    pub fn hurry(&mut self, now: Time, until: Time) {
        self.hurries_until = until;
        self.ask_at = now;
    }

    /// The node ends: it gives up the lease, to a `successor` if there is one, and never
    /// takes it again.
    pub fn end(&mut self, now: Time, successor: Option<NodeId>) {
        self.is_ending = true;
        if let State::Holds {
            epoch, revision, ..
        } = self.state
        {
            self.giving = Some(Giving {
                epoch,
                revision,
                successor,
            });
            // A renewal that is under way changes the revision.
            if self.asked.is_none() {
                self.give_up(now);
            }
        }
        self.state = State::StandsBy { seen: None };
    }

    /// Whether it has ended, and no answer to that is to come.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.is_ending && self.giving.is_none() && self.asked.is_none()
    }

    fn give_up(&mut self, now: Time) {
        if let Some(giving) = self.giving.take() {
            let free = Entry {
                protocol: PROTOCOL,
                node: self.node,
                epoch: giving.epoch,
                is_free: true,
                successor: giving.successor,
            };
            let request = LeaseRequest::Update(free.encode(), giving.revision);
            self.ask(now, Asked::Read, request);
        }
    }

    /// What is to be asked for next.
    pub fn poll_task(&mut self) -> Option<LeaseTask> {
        self.task.take()
    }

    /// What is to be logged.
    pub fn poll_note(&mut self) -> Option<Note> {
        (!self.notes.is_empty()).then(|| self.notes.remove(0))
    }

    /// When [`handle_deadline`](Self::handle_deadline) is to be called.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        let until = match self.state {
            State::Holds { until, .. } => Some(until),
            State::StandsBy { .. } => None,
        };
        let ask_at = match self.asked {
            None => self.ask_at,
            Some((.., asked_at)) => asked_at + self.times.lease,
        };
        let ask_at = (!self.is_ending).then_some(ask_at);
        [until, ask_at].into_iter().flatten().min()
    }

    /// Asks for what is due.
    pub fn handle_deadline(&mut self, now: Time) {
        // Every task is answered; but nothing here depends on it.
        if let Some((number, _, asked_at)) = self.asked
            && now.since(asked_at) >= self.times.lease
        {
            let why = "no answer has come".to_owned();
            self.on_answer(now, number, LeaseAnswer::Failed(why));
        }
        if self.asked.is_some() || self.is_ending || now < self.ask_at {
            return;
        }
        if let Some(take) = self.take.take() {
            let entry = self.entry(take.epoch).encode();
            let request = match take.revision {
                Some(revision) => LeaseRequest::Update(entry, revision),
                None => LeaseRequest::Create(entry),
            };
            self.ask(now, Asked::Take(take), request);
            return;
        }
        match self.state {
            State::Holds {
                epoch, revision, ..
            } if !self.is_doubted => {
                let entry = self.entry(epoch).encode();
                self.ask(now, Asked::Renew, LeaseRequest::Update(entry, revision));
            }
            _ => self.ask(now, Asked::Read, LeaseRequest::Read),
        }
    }

    /// Takes an answer. Those to what was asked for earlier are passed over.
    pub fn on_answer(&mut self, now: Time, number: u64, answer: LeaseAnswer) {
        let Some((_, asked, asked_at)) = self.asked.take_if(|(of, ..)| *of == number) else {
            return;
        };
        if self.is_ending {
            if let (Some(giving), LeaseAnswer::Written(revision)) = (&mut self.giving, answer) {
                giving.revision = revision;
            }
            self.give_up(now);
            return;
        }
        let is_hurried = now < self.hurries_until && matches!(self.state, State::StandsBy { .. });
        self.ask_at = asked_at + self.times.renew / if is_hurried { 20 } else { 1 };
        if !matches!(answer, LeaseAnswer::Failed(_)) {
            self.has_failed = false;
            self.seen_at = Some(now);
        }
        match (asked, answer) {
            (_, LeaseAnswer::Failed(why)) => {
                if !std::mem::replace(&mut self.has_failed, true) {
                    self.notes.push(Note::LeaseFailed(why));
                }
                if let Asked::Take(take) = asked {
                    self.unanswered.get_or_insert(take);
                }
                // Nobody knows how long the holder could not renew it either.
                if let State::StandsBy { seen } = &mut self.state {
                    *seen = None;
                }
                self.ask_at = now + self.times.renew / 2;
            }
            (Asked::Take(take), LeaseAnswer::Written(revision)) => {
                self.is_doubted = false;
                self.unanswered = None;
                self.predecessor = take.from;
                self.state = State::Holds {
                    epoch: take.epoch,
                    revision,
                    until: asked_at + self.times.lease,
                };
                self.note_epoch(take.epoch);
            }
            (_, LeaseAnswer::Written(new)) => {
                if let State::Holds {
                    revision, until, ..
                } = &mut self.state
                {
                    *revision = new;
                    *until = asked_at + self.times.lease;
                }
            }
            (_, LeaseAnswer::Conflict) => {
                // Perhaps only with a renewal of its own whose answer was lost.
                self.is_doubted = true;
                self.ask_at = now;
            }
            (_, LeaseAnswer::Entry(entry)) => self.on_entry(now, asked_at, entry),
        }
    }

    fn on_entry(&mut self, now: Time, asked_at: Time, entry: Option<(Bytes, u64)>) {
        let read = entry.map(|(bytes, revision)| (Entry::decode(bytes).ok(), revision));
        let of_holder = read.and_then(|(entry, revision)| Some((entry?, revision)));
        self.holder = of_holder.map(|(entry, _)| (entry.node, entry.epoch));
        if let Some((entry, _)) = of_holder {
            self.note_epoch(entry.epoch);
            let is_other = entry.protocol != PROTOCOL;
            if is_other && self.refused.replace(entry.protocol) != Some(entry.protocol) {
                self.notes.push(Note::OtherProtocol {
                    theirs: entry.protocol,
                    ours: PROTOCOL,
                });
            }
        }
        if let State::Holds {
            epoch, revision, ..
        } = &mut self.state
        {
            self.is_doubted = false;
            match of_holder {
                Some((entry, new)) if entry.node == self.node && entry.epoch == *epoch => {
                    *revision = new;
                    self.ask_at = now;
                    return;
                }
                _ => self.state = State::StandsBy { seen: None },
            }
        }
        let epoch = self.newest + 1;
        if let Some((from, revision)) = self.own_unanswered(of_holder) {
            // Its own entry, in which it has not acted: nobody had the channels in between.
            let revision = Some(revision);
            self.take = Some(Take {
                revision,
                epoch,
                from,
            });
            self.ask_at = now;
            return;
        }
        let State::StandsBy { seen } = &mut self.state else {
            return;
        };
        let Some((entry, revision)) = read else {
            self.take = Some(Take {
                revision: None,
                epoch,
                from: None,
            });
            self.ask_at = now;
            return;
        };
        let since = match *seen {
            Some((of, since)) if of == revision => since,
            // From now on, not from when it was asked for: so long it may be valid still.
            _ => {
                *seen = Some((revision, now));
                now
            }
        };
        let node = self.node;
        let is_for_me = |entry: Entry| entry.successor.is_none_or(|successor| successor == node);
        let is_free = entry.is_some_and(|entry| entry.is_free && is_for_me(entry));
        if is_free || asked_at.since(since) >= self.times.lease {
            self.take = Some(Take {
                revision: Some(revision),
                epoch,
                from: entry.map(|entry| (entry.node, entry.epoch)),
            });
            self.ask_at = now;
        }
    }

    /// Of the entry that was read, if an attempt to take it wrote it whose answer was lost:
    /// whose the one before was, and its revision. If it did not, that is known now.
    fn own_unanswered(
        &mut self,
        read: Option<(Entry, u64)>,
    ) -> Option<(Option<(NodeId, u64)>, u64)> {
        let first = self.unanswered?;
        let written = read.filter(|(entry, _)| {
            entry.node == self.node && entry.epoch >= first.epoch && !entry.is_free
        });
        if written.is_none() {
            self.unanswered = None;
        }
        Some((first.from, written?.1))
    }

    fn entry(&self, epoch: u64) -> Entry {
        Entry {
            protocol: PROTOCOL,
            node: self.node,
            epoch,
            is_free: false,
            successor: None,
        }
    }

    fn ask(&mut self, now: Time, asked: Asked, request: LeaseRequest) {
        self.numbers += 1;
        self.asked = Some((self.numbers, asked, now));
        self.task = Some(LeaseTask {
            number: self.numbers,
            request,
        });
    }
}

#[cfg(test)]
#[path = "lease/tests.rs"]
mod tests;
