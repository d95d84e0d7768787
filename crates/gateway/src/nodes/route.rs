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
    pub(super) fn add(&mut self, other: Self) {
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
    heard_at: Time,
    /// The pieces of a message that goes on.
    partial: Vec<u8>,
    counters: RouteCounters,
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
            heard_at: now,
            partial: Vec::new(),
            counters: RouteCounters::default(),
        }
    }

    /// The route stands from now on: what waits has not waited for the other end until
    /// now.
    pub(super) fn begin(&mut self, now: Time) {
        self.progress_at = now;
        self.heard_at = now;
        self.owes_answer = true;
    }

    /// Another node has the other end from now on, which knows what was acknowledged.
    pub(super) fn go_on(&mut self, now: Time) {
        self.begin(now);
        self.send_again();
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
        self.heard_at = now;
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
        self.owes_answer = true;
        if data.first > self.expected {
            self.counters.gaps += 1;
            self.has_gap = true;
            return Ok(());
        }
        let known = usize::try_from(self.expected - data.first).unwrap_or(usize::MAX);
        if known >= data.pieces.len() {
            self.counters.repeated += 1;
            return Ok(());
        }
        self.has_gap = false;
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
        Some(Data {
            received: self.expected,
            has_gap: self.has_gap,
            first,
            pieces,
        })
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
        if now.since(self.heard_at) >= self.times.route_timeout {
            return Some("nothing is heard of the other node");
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
            (self.sent_at + self.times.heartbeat).min(self.heard_at + self.times.route_timeout);
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
mod tests {
    use super::*;

    fn end() -> RouteEnd {
        RouteEnd::new(Time::ZERO, NodeTimes::default())
    }

    /// Carries what each has for the other, but for the frames of `one` that `loses`
    /// names by their number; returns what came to the other.
    fn carry(
        one: &mut RouteEnd,
        other: &mut RouteEnd,
        now: Time,
        mut loses: impl FnMut(usize) -> bool,
    ) -> Vec<Bytes> {
        let (mut out, mut none) = (Vec::new(), Vec::new());
        for number in 0.. {
            let mut moved = false;
            if let Some(data) = one.poll(now) {
                moved = true;
                if !loses(number) {
                    other.take(now, data, &mut out).unwrap();
                }
            }
            if let Some(data) = other.poll(now) {
                moved = true;
                one.take(now, data, &mut none).unwrap();
            }
            if !moved {
                break;
            }
        }
        assert!(none.is_empty());
        out
    }

    #[test]
    fn what_is_lost_is_sent_again_and_comes_in_order_and_once() {
        let (mut one, mut other) = (end(), end());
        let mut now = Time::from_millis(1);
        let long: Vec<u8> = (0..500_000_u32).map(|n| n as u8).collect();
        let wanted = [
            Bytes::from_static(b"a"),
            long.into(),
            Bytes::from_static(b"z"),
        ];
        for message in &wanted {
            one.push(now, message, None);
        }
        let mut out = carry(&mut one, &mut other, now, |number| number % 2 == 1);
        while out.len() < wanted.len() {
            now += Duration::from_millis(50);
            assert!(now < Time::from_secs(5));
            out.extend(carry(&mut one, &mut other, now, |number| number % 2 == 1));
        }
        assert_eq!(out, wanted);
        assert!(one.counters().resent > 0 && other.counters().gaps > 0);
        assert_eq!(one.waiting(), 0);
    }

    #[test]
    fn a_frame_that_comes_twice_is_taken_once() {
        let (mut one, mut other) = (end(), end());
        one.push(Time::ZERO, &Bytes::from_static(b"a"), None);
        let data = one.poll(Time::ZERO).unwrap();
        let mut out = Vec::new();
        other.take(Time::ZERO, data.clone(), &mut out).unwrap();
        other.take(Time::ZERO, data, &mut out).unwrap();
        assert_eq!(out.len(), 1);
        assert_eq!(other.counters().repeated, 1);
    }

    #[test]
    fn silence_and_what_nobody_takes_give_a_route_up() {
        let (mut one, mut other) = (end(), end());
        let at = Time::from_secs;
        assert_eq!(one.is_lost(at(4)), None);
        assert!(one.is_lost(at(5)).is_some());
        // Heard, but nothing that was sent arrives there.
        one.push(at(8), &Bytes::from_static(b"a"), None);
        let _ = one.poll(at(8));
        for second in 9..13 {
            let data = other.poll(at(second)).unwrap();
            one.take(at(second), data, &mut Vec::new()).unwrap();
            assert_eq!(one.is_lost(at(second)), None, "{second}");
        }
        assert_eq!(one.is_lost(at(13)), Some("the other node takes nothing"));
    }

    #[test]
    fn who_acknowledges_what_was_never_sent_speaks_nonsense() {
        let data = Data {
            received: 1,
            ..Data::default()
        };
        assert_eq!(end().take(Time::ZERO, data, &mut Vec::new()), Err(Nonsense));
    }
}
