//! Who owns the channels: a lease in one entry of a key-value store, changed only by
//! compare-and-set.
//!
//! The holder renews it; those that stand by read it, and take it once they have read the
//! same revision for as long as a lease lasts, by their own clocks, and without a reading
//! that failed in between, unless the entry names them. The holder counts its time from before it asked for a renewal,
//! so that it has stopped before anybody may take over. A holder whose time is over rests:
//! if it renews before another has taken the lease, nobody has owned the channels
//! meanwhile, and it goes on.
//!
//! A holder that was paused cannot know in time that its lease is over. That is what the
//! epoch is for: it grows with each change of holder, and nobody takes a frame of an older
//! one.
//!
//! While it is held, the entry may name a node that has all that the holder has: that one
//! takes the lease before others do, and goes on. The holder does nothing of which it does
//! not know until the entry names it no longer.

mod asked;
mod entry;
mod successor;
mod takeover;
mod task;

use bytes::Bytes;
use lagometer_units::Time;

use super::NodeTimes;
use super::bus::{NodeId, Note};
use super::frame::PROTOCOL;

use asked::{Asked, Giving, Take};
use entry::Entry;
use successor::{Claim, Naming};
pub use task::{LeaseAnswer, LeaseRequest, LeaseTask, Standing};

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
    naming: Naming,
    claim: Claim,
    giving: Option<Giving>,
    /// Until then it is read more often: it is about to be given up.
    hurries_until: Time,
    /// A renewal was refused: is the entry still this node's?
    is_doubted: bool,
    /// The highest epoch there is known to be.
    newest: u64,
    has_failed: bool,
    is_ending: bool,
    /// The epoch in which it had it before, and gave it to another: what it wrote until then is
    /// not its own any more.
    given_up: Option<u64>,
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
            naming: Naming::default(),
            claim: Claim::default(),
            giving: None,
            hurries_until: Time::ZERO,
            is_doubted: false,
            newest: 0,
            has_failed: false,
            is_ending: false,
            given_up: None,
            notes: Vec::new(),
            refused: None,
            seen_at: None,
        }
    }

    /// The lease for the same node once it has given it up and stands by.
    #[must_use]
    pub fn begin_anew(&self, now: Time) -> Self {
        Self {
            numbers: self.numbers,
            newest: self.newest,
            given_up: Some(self.newest),
            ..Self::new(now, self.node, self.times)
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
                is_named: false,
            });
            self.ask_at = now;
        }
    }

    /// Likewise, unless something is asked already, or it is not known what is in the entry.
    pub(super) fn raise_once_idle(&mut self, now: Time, epoch: u64) {
        if self.asked.is_none() && self.take.is_none() && !self.is_doubted {
            self.raise(now, epoch);
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
                let successor = self.naming.successor;
                // The answer may be lost.
                self.naming.may_name = successor.or(self.naming.may_name);
                let entry = Entry {
                    successor,
                    ..self.entry(epoch)
                };
                let request = LeaseRequest::Update(entry.encode(), revision);
                self.ask(now, Asked::Renew(successor), request);
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
            (asked, LeaseAnswer::Failed(why)) => self.on_failure(now, asked, why),
            (Asked::Take(take), LeaseAnswer::Written(revision)) => {
                self.on_taken(asked_at, take, revision);
            }
            (asked, LeaseAnswer::Written(revision)) => {
                self.on_renewed(now, asked_at, asked, revision);
            }
            (_, LeaseAnswer::Conflict) => {
                // Perhaps only with a renewal of its own whose answer was lost.
                self.is_doubted = true;
                self.ask_at = now;
            }
            (_, LeaseAnswer::Entry(entry)) => self.on_entry(now, asked_at, entry),
        }
    }

    fn on_failure(&mut self, now: Time, asked: Asked, why: String) {
        if !std::mem::replace(&mut self.has_failed, true) {
            self.notes.push(Note::LeaseFailed(why));
        }
        if let Asked::Take(take) = asked {
            self.unanswered.get_or_insert(take);
        }
        // Nobody knows how long the holder could not renew it either. Who has all that it
        // has need not wait for it.
        if let State::StandsBy { seen } = &mut self.state
            && !self.claim.is_good()
        {
            *seen = None;
        }
        self.claim.has_missed = true;
        self.ask_at = now + self.times.renew / 2;
    }

    /// The entry names this node as the holder.
    fn on_taken(&mut self, asked_at: Time, take: Take, revision: u64) {
        self.is_doubted = false;
        self.unanswered = None;
        self.predecessor = take.from;
        self.naming.is_named = take.is_named;
        // What was asked for earlier and comes late is of an older revision.
        (
            self.naming.successor,
            self.naming.may_name,
            self.naming.names,
        ) = (None, None, None);
        self.state = State::Holds {
            epoch: take.epoch,
            revision,
            until: asked_at + self.times.lease,
        };
        self.note_epoch(take.epoch);
    }

    /// The entry is as this node wrote it while it held it.
    fn on_renewed(&mut self, now: Time, asked_at: Time, asked: Asked, new: u64) {
        if let Asked::Renew(successor) = asked {
            (self.naming.may_name, self.naming.names) = (successor, successor);
            if successor != self.naming.successor {
                self.ask_at = now;
            }
        }
        if let State::Holds {
            revision, until, ..
        } = &mut self.state
        {
            *revision = new;
            *until = asked_at + self.times.lease;
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
            // Whom it named is not forgotten: what was asked for may be done yet.
            self.is_doubted = false;
            match of_holder {
                Some((entry, new)) if entry.node == self.node && entry.epoch == *epoch => {
                    *revision = new;
                    self.ask_at = now;
                    return;
                }
                // Its own of another epoch, of which it was not told: it has that. How long,
                // the next renewal says.
                Some((entry, new))
                    if entry.node == self.node
                        && !entry.is_free
                        && self
                            .unanswered
                            .is_some_and(|take| take.epoch == entry.epoch) =>
                {
                    (*epoch, *revision) = (entry.epoch, new);
                    self.unanswered = None;
                    self.predecessor = None;
                    self.naming = Naming::default();
                    self.ask_at = now;
                    return;
                }
                _ => self.state = State::StandsBy { seen: None },
            }
        }
        if let Some((first, revision)) = self.own_unanswered(of_holder) {
            // Its own entry, in which it has not acted: nobody had the channels in between.
            self.take = Some(Take {
                revision: Some(revision),
                epoch: self.newest + 1,
                ..first
            });
            self.ask_at = now;
            return;
        }
        self.on_other(now, asked_at, read);
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
