//! What one end of a route has to send: pieces of messages until they are acknowledged.
//!
//! A piece has a number once it has been sent for the first time, and keeps it. Windows
//! that have waited for too long, or of which too many bytes wait, are left out from the
//! oldest on: in their place, at the last of each group, stands that they are missing.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use bytes::Bytes;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::bus::{Recipients, ToConnections};
use crate::core::{ChannelId, GroupId};

use super::codec::encode_to_connections;
use super::frame::Piece;

/// The longest part of a message that is one piece: well below the megabyte that a NATS
/// server takes by default.
const PIECE_BYTES: usize = 200 << 10;

/// A frame takes pieces until it has so many bytes.
const FRAME_BYTES: usize = 200 << 10;

/// So many bytes may be under way before some are acknowledged. Far less than a NATS
/// server lets wait for one of its clients (64 MiB) before it cuts it off.
const UNDER_WAY_BYTES: usize = 1 << 20;

/// From so many bytes on windows are left out, however young they are.
const WINDOWS_BYTES: usize = 8 << 20;

/// A route for which more bytes wait is given up.
pub(super) const MOST_BYTES: usize = 64 << 20;

/// Memory that a piece takes beside its bytes.
const PIECE_COSTS: usize = 96;

#[derive(Debug)]
struct Waiting {
    piece: Piece,
    /// When it was made: the tick that a window is of.
    made_at: Time,
    /// Whose windows it has, if that is all it has.
    window: Option<(Recipients, ChannelId)>,
}

/// Pieces that are not acknowledged.
#[derive(Debug, Default)]
pub(super) struct Pending {
    pieces: VecDeque<Waiting>,
    /// The number of the first.
    first: u64,
    /// How many of them are under way.
    sent: usize,
    sent_bytes: usize,
    /// All bytes that wait.
    bytes: usize,
    /// Up to this number, old windows have been left out.
    aged_to: u64,
    /// Where it stands that windows of a group are missing.
    missed_at: BTreeMap<(GroupId, ChannelId), u64>,
    /// How many windows were left out.
    pub(super) left_out: u64,
    /// How many pieces were sent again.
    pub(super) resent: u64,
    /// Up to this number pieces have been sent at least once.
    sent_to: u64,
    /// From this number on nothing is sent yet.
    held_from: Option<u64>,
    /// It is said of each window that is left out, and not of the last of a group alone.
    says_each_missed: bool,
}

/// What is written down of it, to be sent by another node.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedPending {
    pieces: Vec<SavedPiece>,
    first: u64,
    sent_to: u64,
    missed_at: BTreeMap<(GroupId, ChannelId), u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct SavedPiece {
    goes_on: bool,
    bytes: Bytes,
    /// How long ago it was made.
    age: Duration,
    /// The group whose windows it has; those for some members alone are not left out any
    /// more.
    window: Option<(GroupId, ChannelId)>,
}

impl Pending {
    pub(super) fn save(&self, now: Time) -> SavedPending {
        let of_group = |(to, channel): &(Recipients, ChannelId)| match to {
            Recipients::Group(group) => Some((*group, *channel)),
            Recipients::These(_) => None,
        };
        let pieces = self.pieces.iter().map(|waiting| SavedPiece {
            goes_on: waiting.piece.goes_on,
            bytes: waiting.piece.bytes.clone(),
            age: now.since(waiting.made_at),
            window: waiting.window.as_ref().and_then(of_group),
        });
        SavedPending {
            pieces: pieces.collect(),
            first: self.first,
            sent_to: self.sent_to,
            missed_at: self.missed_at.clone(),
        }
    }

    /// All of it is to be sent again. `None` if it cannot be what was written down.
    pub(super) fn restore(now: Time, saved: SavedPending) -> Option<Self> {
        let end = saved.first.checked_add(saved.pieces.len() as u64)?;
        if !(saved.first..=end).contains(&saved.sent_to) {
            return None;
        }
        let mut pending = Self {
            first: saved.first,
            aged_to: saved.first,
            sent_to: saved.sent_to,
            missed_at: saved.missed_at,
            ..Self::default()
        };
        for piece in saved.pieces {
            pending.bytes += piece.bytes.len() + PIECE_COSTS;
            let age_ns = u64::try_from(piece.age.as_nanos()).unwrap_or(u64::MAX);
            pending.pieces.push_back(Waiting {
                piece: Piece {
                    goes_on: piece.goes_on,
                    bytes: piece.bytes,
                },
                made_at: Time::from_nanos(now.as_nanos().saturating_sub(age_ns)),
                window: (piece.window).map(|(group, channel)| (Recipients::Group(group), channel)),
            });
        }
        Some(pending)
    }

    pub(super) fn push(
        &mut self,
        now: Time,
        bytes: &Bytes,
        window: Option<(Recipients, ChannelId)>,
    ) {
        let mut rest = bytes.clone();
        // What is in several pieces is never left out.
        let window = window.filter(|_| bytes.len() <= PIECE_BYTES);
        loop {
            let part = rest.split_to(rest.len().min(PIECE_BYTES));
            let goes_on = !rest.is_empty();
            self.bytes += part.len() + PIECE_COSTS;
            self.pieces.push_back(Waiting {
                piece: Piece {
                    goes_on,
                    bytes: part,
                },
                made_at: now,
                window: window.clone(),
            });
            if !goes_on {
                break;
            }
        }
        if self.bytes > WINDOWS_BYTES {
            self.leave_out_old(now, Duration::MAX);
        }
    }

    pub(super) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(super) fn is_empty(&self) -> bool {
        self.pieces.is_empty()
    }

    /// Whether something is under way.
    pub(super) fn is_under_way(&self) -> bool {
        self.sent > 0
    }

    /// Whether something could be sent now.
    pub(super) fn may_send(&self) -> bool {
        let next = self.first + self.sent as u64;
        let is_held = self.held_from.is_some_and(|from| from <= next);
        self.sent < self.pieces.len() && self.sent_bytes < UNDER_WAY_BYTES && !is_held
    }

    /// The number of the next piece that is pushed.
    pub(super) fn pushed_to(&self) -> u64 {
        self.first + self.pieces.len() as u64
    }

    /// All pieces before this one were acknowledged.
    pub(super) fn acknowledged_to(&self) -> u64 {
        self.first
    }

    /// Nothing from this number on is sent until it is held no longer.
    pub(super) fn hold_from(&mut self, number: Option<u64>) {
        self.held_from = number;
    }

    pub(super) fn held_from(&self) -> Option<u64> {
        self.held_from
    }

    /// Another node may have to go on with what is pushed here, and does not know what was
    /// left out: so it is said at each place, for whatever of it arrives must do.
    pub(super) fn say_each_missed(&mut self, says: bool) {
        self.says_each_missed = says;
    }

    /// Any of it may have been sent by another node.
    pub(super) fn assume_sent(&mut self) {
        self.sent_to = self.pushed_to();
    }

    /// All pieces before `received` have come. Returns whether any of them is news;
    /// `None` if they were never sent.
    pub(super) fn received(&mut self, received: u64) -> Option<bool> {
        let Some(come) = received.checked_sub(self.first) else {
            return Some(false);
        };
        if received > self.sent_to {
            return None;
        }
        for _ in 0..come {
            let waiting = self.pieces.pop_front()?;
            let bytes = waiting.piece.bytes.len() + PIECE_COSTS;
            self.bytes -= bytes;
            // After a resend some have come that are not under way again yet.
            if self.sent > 0 {
                self.sent -= 1;
                self.sent_bytes -= bytes;
            }
        }
        self.first = received;
        if self.pieces.is_empty() {
            self.missed_at.clear();
        }
        Some(come > 0)
    }

    /// Everything is to be sent again.
    pub(super) fn send_again(&mut self) {
        self.resent += self.sent as u64;
        self.sent = 0;
        self.sent_bytes = 0;
        self.aged_to = self.first;
    }

    /// The next pieces to send, and the number of the first.
    pub(super) fn take(&mut self, now: Time, window_age: Duration) -> (u64, Vec<Piece>) {
        self.leave_out_old(now, window_age);
        let first = self.first + self.sent as u64;
        let (mut pieces, mut bytes) = (Vec::new(), 0);
        while bytes < FRAME_BYTES && self.may_send() {
            let Some(waiting) = self.pieces.get(self.sent) else {
                break;
            };
            bytes += waiting.piece.bytes.len();
            pieces.push(waiting.piece.clone());
            self.sent += 1;
            self.sent_bytes += waiting.piece.bytes.len() + PIECE_COSTS;
        }
        self.sent_to = self.sent_to.max(self.first + self.sent as u64);
        (first, pieces)
    }

    /// Leaves out windows that are too old, and the oldest while too much waits. Those
    /// under way may have come: they are left alone until they are to be sent again.
    fn leave_out_old(&mut self, now: Time, window_age: Duration) {
        self.aged_to = self.aged_to.max(self.first + self.sent as u64);
        loop {
            let index = (self.aged_to - self.first) as usize;
            let is_too_much = self.bytes > WINDOWS_BYTES;
            let Some(waiting) = self.pieces.get_mut(index) else {
                return;
            };
            if now.since(waiting.made_at) < window_age && !is_too_much {
                return;
            }
            if let Some((to, channel)) = waiting.window.take() {
                self.left_out += 1;
                let at = self.aged_to;
                let before = match to {
                    Recipients::Group(group) => self.missed_at.insert((group, channel), at),
                    Recipients::These(_) => None,
                };
                let missed = ToConnections::Missed { to, channel };
                self.replace(index, encode_to_connections(now, &missed));
                if !self.says_each_missed
                    && let Some(before) = before
                    && let Some(before) = before.checked_sub(self.first + self.sent as u64)
                {
                    self.replace(self.sent + before as usize, Bytes::new());
                }
            }
            self.aged_to += 1;
        }
    }

    fn replace(&mut self, index: usize, bytes: Bytes) {
        if let Some(waiting) = self.pieces.get_mut(index) {
            self.bytes = self.bytes - waiting.piece.bytes.len() + bytes.len();
            waiting.piece.bytes = bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::nodes::codec::decode_to_connections;

    const AGE: Duration = Duration::from_secs(1);

    fn of(group: u32) -> (Recipients, ChannelId) {
        (Recipients::Group(GroupId(group)), ChannelId(5))
    }

    fn text(text: &str) -> Bytes {
        text.to_owned().into()
    }

    /// All that is sent now, in words.
    fn sent(pending: &mut Pending, now: Time) -> Vec<String> {
        let (_, pieces) = pending.take(now, AGE);
        let words =
            pieces.into_iter().map(
                |piece| match decode_to_connections(now, piece.bytes.clone()) {
                    Ok(ToConnections::Missed {
                        to: Recipients::Group(group),
                        ..
                    }) => format!("missed {}", group.0),
                    _ => String::from_utf8_lossy(&piece.bytes).into_owned(),
                },
            );
        words.collect()
    }

    #[test]
    fn old_windows_are_left_out_and_the_last_of_each_group_says_so() {
        let mut pending = Pending::default();
        let at = Time::from_millis;
        pending.push(at(0), &text("w1"), Some(of(1)));
        pending.push(at(0), &text("join"), None);
        pending.push(at(10), &text("w2"), Some(of(2)));
        pending.push(at(20), &text("w1"), Some(of(1)));
        pending.push(at(900), &text("w1 young"), Some(of(1)));
        let now = at(1500);
        let wanted = ["", "join", "missed 2", "missed 1", "w1 young"];
        assert_eq!(sent(&mut pending, now), wanted);
        assert_eq!(pending.left_out, 3);
        // Under way they stay as they are, and old ones are left out of what goes again.
        assert!(sent(&mut pending, at(5000)).is_empty());
        assert_eq!(pending.received(2), Some(true));
        pending.send_again();
        let wanted = ["missed 2", "", "missed 1"];
        assert_eq!(sent(&mut pending, at(5000)), wanted);
    }

    #[test]
    fn where_another_node_may_go_on_each_window_that_is_left_out_is_said_to_be_missing() {
        let mut pending = Pending::default();
        pending.say_each_missed(true);
        for _ in 0..3 {
            pending.push(Time::ZERO, &text("w"), Some(of(1)));
        }
        let wanted = ["missed 1", "missed 1", "missed 1"];
        assert_eq!(sent(&mut pending, Time::from_secs(2)), wanted);
    }

    #[test]
    fn another_node_goes_on_with_what_waits_and_its_numbers_and_ages() {
        let mut pending = Pending::default();
        let at = Time::from_millis;
        for (millis, word) in [(0, "gone"), (0, "sent"), (200, "w"), (900, "young")] {
            pending.push(at(millis), &text(word), (word == "w").then(|| of(1)));
        }
        assert_eq!(pending.take(at(900), AGE).1.len(), 4);
        assert_eq!(pending.received(1), Some(true));
        let bytes = postcard::to_allocvec(&pending.save(at(1_000))).unwrap();
        let saved = || postcard::from_bytes::<SavedPending>(&bytes).unwrap();
        // Its clock is another one.
        let mut other = Pending::restore(at(50_000), saved()).unwrap();
        assert_eq!(other.received(5), None, "there are four");
        assert_eq!(other.bytes(), pending.bytes());
        assert_eq!(sent(&mut other, at(50_100)), ["sent", "w", "young"]);
        other.send_again();
        assert_eq!(other.take(at(50_100), AGE).0, 1);
        other.send_again();
        assert_eq!(sent(&mut other, at(50_300)), ["sent", "missed 1", "young"]);
        assert_eq!(other.received(4), Some(true));
        let mut wrong = saved();
        wrong.sent_to = 9;
        assert!(Pending::restore(at(0), wrong).is_none());
    }

    #[test]
    fn what_was_received_is_forgotten_however_often_it_is_said() {
        let mut pending = Pending::default();
        for _ in 0..4 {
            pending.push(Time::ZERO, &text("x"), None);
        }
        assert_eq!(pending.received(1), None, "nothing was sent");
        assert_eq!(pending.take(Time::ZERO, AGE).0, 0);
        assert_eq!(pending.received(2), Some(true));
        pending.send_again();
        assert_eq!(
            pending.received(3),
            Some(true),
            "what was under way had come"
        );
        assert_eq!(pending.received(2), Some(false));
        assert_eq!(pending.take(Time::ZERO, AGE).0, 3);
        assert_eq!(pending.received(4), Some(true));
        assert!(pending.is_empty() && !pending.is_under_way());
        assert_eq!((pending.bytes, pending.sent_bytes), (0, 0));
        assert_eq!(pending.received(5), None);
    }

    #[test]
    fn little_is_under_way_and_windows_beyond_a_bound_are_left_out_at_once() {
        let mut pending = Pending::default();
        let kilobytes = Bytes::from(vec![b'x'; 32 << 10]);
        for _ in 0..1000 {
            pending.push(Time::ZERO, &kilobytes, Some(of(1)));
        }
        assert!(pending.bytes() <= WINDOWS_BYTES + PIECE_BYTES);
        let mut bytes = 0;
        while pending.may_send() {
            let (_, pieces) = pending.take(Time::ZERO, AGE);
            bytes += pieces.iter().map(|piece| piece.bytes.len()).sum::<usize>();
        }
        assert!(bytes <= UNDER_WAY_BYTES + FRAME_BYTES, "{bytes}");
    }

    #[test]
    fn a_long_message_is_in_pieces_and_never_left_out() {
        let mut pending = Pending::default();
        let long = Bytes::from(vec![b'x'; PIECE_BYTES + 1]);
        pending.push(Time::ZERO, &long, Some(of(1)));
        let (_, one) = pending.take(Time::from_secs(9), AGE);
        let (_, other) = pending.take(Time::from_secs(9), AGE);
        let pieces: Vec<_> = one.iter().chain(&other).collect();
        assert_eq!(pieces.len(), 2);
        assert!(pieces[0].goes_on && !pieces[1].goes_on);
    }
}
