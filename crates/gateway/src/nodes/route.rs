//! One end of a route between an edge's connection loop and the owner of the channels:
//! messages come out of the other end in order, each once, or the route is given up.

use std::time::Duration;

use bytes::Bytes;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::ChannelId;
use crate::core::bus::Recipients;

use super::NodeTimes;
use super::frame::Data;
use super::pending::{MOST_BYTES, Pending, SavedPending};

/// The longest message, put together of its pieces. A full state is the longest there is.
const MESSAGE_BYTES: usize = 64 << 20;

/// What routes have counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RouteCounters {
    /// Pieces of messages that were sent again.
    pub resent: u64,
    /// Windows left out at the sender, for a full state.
    pub windows_left_out: u64,
    /// Frames that were passed over because what is in them had come before.
    pub repeated: u64,
    /// Frames after which something was missing.
    pub gaps: u64,
}

impl RouteCounters {
    pub(crate) fn add(&mut self, other: Self) {
        self.resent += other.resent;
        self.windows_left_out += other.windows_left_out;
        self.repeated += other.repeated;
        self.gaps += other.gaps;
    }
}

/// The other end does not speak as it must.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Nonsense;

/// One end of a route.
#[derive(Debug)]
pub(super) struct RouteEnd {
    times: NodeTimes,
    pending: Pending,
    /// When something was acknowledged last, or began to wait.
    progress_at: Time,
    /// When what is under way is sent again, and how long that was waited for.
    resend_at: Option<Time>,
    resend_after: Duration,
    /// When all was sent again last for want of something at the other end.
    again_at: Option<Time>,
    /// When a frame was sent last.
    sent_at: Time,
    /// The next piece that is to come.
    expected: u64,
    /// What has come is to be acknowledged.
    owes_answer: bool,
    has_gap: bool,
    /// When a frame came last.
    received_at: Time,
    /// The pieces of a message that goes on.
    partial: Vec<u8>,
    /// What has come from this piece on is not acknowledged yet.
    held_received: Option<u64>,
    counters: RouteCounters,
}

/// How far an end of a route has come: pieces that were pushed, and those that were taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Position {
    pub(super) pushed: u64,
    pub(super) taken: u64,
}

/// What is written down of an end of a route, for another node to go on with.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedEnd {
    pending: SavedPending,
    expected: u64,
    partial: Bytes,
}

impl RouteEnd {
    pub(super) fn save(&self, now: Time) -> SavedEnd {
        SavedEnd {
            pending: self.pending.save(now),
            expected: self.expected,
            partial: Bytes::copy_from_slice(&self.partial),
        }
    }

    /// An end that goes on where another node's ended: what was not acknowledged there is
    /// sent again. `None` if it cannot be what was written down.
    pub(super) fn restore(now: Time, times: NodeTimes, saved: SavedEnd) -> Option<Self> {
        // Far more than any route carries.
        (saved.expected < u64::MAX / 2).then_some(())?;
        Some(Self {
            pending: Pending::restore(now, saved.pending)?,
            expected: saved.expected,
            partial: saved.partial.into(),
            ..Self::new(now, times)
        })
    }

    pub(super) fn new(now: Time, times: NodeTimes) -> Self {
        Self {
            times,
            pending: Pending::default(),
            progress_at: now,
            resend_at: None,
            resend_after: times.resend,
            again_at: None,
            sent_at: now,
            expected: 0,
            // The first frame says that the route stands.
            owes_answer: true,
            has_gap: false,
            received_at: now,
            partial: Vec::new(),
            held_received: None,
            counters: RouteCounters::default(),
        }
    }

    /// The route stands from now on: what waits has not waited for the other end until
    /// now.
    pub(super) fn begin(&mut self, now: Time) {
        self.progress_at = now;
        self.received_at = now;
        self.owes_answer = true;
    }

    /// Another node has the other end from now on, which knows what was acknowledged.
    pub(super) fn go_on(&mut self, now: Time) {
        self.begin(now);
        self.send_again();
    }

    /// Another node's end, which is gone, is this one from now on. What was sent there may
    /// have come.
    pub(super) fn take_over(&mut self, now: Time) {
        self.pending.assume_sent();
        self.pending.say_each_missed(false);
        self.open();
        self.go_on(now);
    }

    pub(super) fn position(&self) -> Position {
        Position {
            pushed: self.pending.pushed_to(),
            taken: self.expected,
        }
    }

    /// Nothing that comes after this position is sent or acknowledged, until it is released:
    /// another node is to have it before.
    pub(super) fn hold_from(&mut self, position: Position) {
        let has_more = self.held_received.is_some_and(|to| to < position.taken);
        self.owes_answer |= has_more;
        self.pending.hold_from(Some(position.pushed));
        self.held_received = Some(position.taken);
    }

    /// The position from which on all is held back, if anything is.
    pub(super) fn held_from(&self) -> Option<Position> {
        Some(Position {
            pushed: self.pending.held_from()?,
            taken: self.held_received?,
        })
    }

    /// All that is pushed from now on may have to be sent by another node.
    pub(super) fn has_follower(&mut self, has_one: bool) {
        self.pending.say_each_missed(has_one);
    }

    /// Nothing is held back any more.
    pub(super) fn open(&mut self) {
        self.owes_answer |= self.held_received.is_some_and(|to| to < self.expected);
        self.pending.hold_from(None);
        self.held_received = None;
    }

    /// All pieces before this one were acknowledged.
    pub(super) fn acknowledged_to(&self) -> u64 {
        self.pending.acknowledged_to()
    }

    /// A frame is to be sent, whether there is anything to say or not.
    pub(super) fn answer_at_once(&mut self) {
        self.owes_answer = true;
    }

    /// When a frame came last.
    pub(super) fn received_at(&self) -> Time {
        self.received_at
    }

    /// What of a frame's content has not come before: all that another node needs that is
    /// to have the same end. `None` if there is nothing.
    pub(super) fn news(&self, data: &Data) -> Option<Data> {
        let known = self.expected.checked_sub(data.first);
        let known = known.and_then(|known| usize::try_from(known).ok());
        let pieces = known.and_then(|known| data.pieces.get(known..));
        let news = Data {
            received: data.received,
            has_gap: false,
            first: self.expected,
            pieces: pieces.unwrap_or_default().to_vec(),
        };
        let acknowledges = data.received > self.pending.acknowledged_to();
        (acknowledges || !news.pieces.is_empty()).then_some(news)
    }

    /// Takes what another node's end has taken, which has sent all that was pushed here.
    pub(super) fn replay(
        &mut self,
        now: Time,
        data: Data,
        messages: &mut Vec<Bytes>,
    ) -> Result<(), Nonsense> {
        if data.first != self.expected {
            return Err(Nonsense);
        }
        self.pending.assume_sent();
        self.take(now, data, messages)
    }

    /// A message for the other end. With `window`, whose windows it has, if that is all.
    pub(super) fn push(
        &mut self,
        now: Time,
        bytes: &Bytes,
        window: Option<(Recipients, ChannelId)>,
    ) {
        if self.pending.is_empty() {
            self.progress_at = now;
        }
        self.pending.push(now, bytes, window);
    }

    /// Bytes that wait for the other end.
    pub(super) fn waiting(&self) -> usize {
        self.pending.bytes()
    }

    /// Takes a frame's content. Appends the messages that are complete.
    pub(super) fn take(
        &mut self,
        now: Time,
        data: Data,
        messages: &mut Vec<Bytes>,
    ) -> Result<(), Nonsense> {
        self.received_at = now;
        if self.pending.received(data.received).ok_or(Nonsense)? {
            self.progress_at = now;
            self.resend_after = self.times.resend;
            self.resend_at = None;
        }
        if data.has_gap && self.pending.is_under_way() {
            let is_early = |at: Time| now.since(at) < self.times.resend / 3;
            if !self.again_at.is_some_and(is_early) {
                self.again_at = Some(now);
                self.pending.send_again();
            }
        }
        if data.pieces.is_empty() {
            return Ok(());
        }
        if data.first > self.expected {
            self.counters.gaps += 1;
            self.has_gap = true;
            self.owes_answer = true;
            return Ok(());
        }
        let known = usize::try_from(self.expected - data.first).unwrap_or(usize::MAX);
        if known >= data.pieces.len() {
            self.counters.repeated += 1;
            self.owes_answer = true;
            return Ok(());
        }
        self.has_gap = false;
        // Where it is held back there is nothing new to say until it is released.
        self.owes_answer |= self.held_received.is_none();
        for piece in data.pieces.into_iter().skip(known) {
            self.expected += 1;
            if self.partial.len() + piece.bytes.len() > MESSAGE_BYTES {
                return Err(Nonsense);
            }
            if piece.goes_on {
                self.partial.extend_from_slice(&piece.bytes);
            } else if !self.partial.is_empty() {
                self.partial.extend_from_slice(&piece.bytes);
                messages.push(std::mem::take(&mut self.partial).into());
            } else if !piece.bytes.is_empty() {
                messages.push(piece.bytes);
            }
        }
        Ok(())
    }

    /// The next frame's content, if one is due.
    pub(super) fn poll(&mut self, now: Time) -> Option<Data> {
        if self.resend_at.is_some_and(|at| at <= now) {
            self.resend_after = (2 * self.resend_after).min(4 * self.times.heartbeat);
            self.resend_at = None;
            self.pending.send_again();
        }
        let is_silent = now.since(self.sent_at) >= self.times.heartbeat;
        if !(self.pending.may_send() || self.owes_answer || is_silent) {
            return None;
        }
        let (first, pieces) = self.pending.take(now, self.times.window_age);
        if self.pending.is_under_way() {
            self.resend_at.get_or_insert(now + self.resend_after);
        }
        self.sent_at = now;
        self.owes_answer = false;
        let held = self.held_received.unwrap_or(u64::MAX);
        Some(Data {
            received: self.expected.min(held),
            has_gap: self.has_gap,
            first,
            pieces,
        })
    }

    /// All frames' contents that are due.
    pub(super) fn poll_all(&mut self, now: Time) -> Vec<Data> {
        std::iter::from_fn(|| self.poll(now)).collect()
    }

    /// The bus is there again: what was under way is most likely lost.
    pub(super) fn send_again(&mut self) {
        self.resend_at = None;
        self.resend_after = self.times.resend;
        self.pending.send_again();
        self.owes_answer = true;
    }

    /// Why the route is to be given up, if it is.
    pub(super) fn is_lost(&self, now: Time) -> Option<&'static str> {
        if now.since(self.received_at) >= self.times.route_timeout {
            return Some("nothing is received from the other node");
        }
        if !self.pending.is_empty() && now.since(self.progress_at) >= self.times.route_timeout {
            return Some("the other node takes nothing");
        }
        (self.pending.bytes() > MOST_BYTES).then_some("too much waits for the other node")
    }

    /// When [`poll`](Self::poll) or [`is_lost`](Self::is_lost) is to be called.
    pub(super) fn next_deadline(&self, now: Time) -> Time {
        if self.pending.may_send() || self.owes_answer {
            return now;
        }
        let mut due =
            (self.sent_at + self.times.heartbeat).min(self.received_at + self.times.route_timeout);
        if let Some(at) = self.resend_at {
            due = due.min(at);
        }
        due
    }

    pub(super) fn counters(&self) -> RouteCounters {
        RouteCounters {
            resent: self.pending.resent,
            windows_left_out: self.pending.left_out,
            ..self.counters
        }
    }
}

#[cfg(test)]
#[path = "route/tests.rs"]
mod tests;
