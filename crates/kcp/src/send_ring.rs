//! Everything handed over that the peer has not acknowledged, in order: first
//! the segments in flight, by sequence number, then those that wait for room
//! in the send window. To be sent for the first time a segment does not move.

use std::collections::VecDeque;

use crate::clock::ahead;
use crate::pool::Pool;

/// A segment that waits or is in flight, or the hole that an acknowledged one
/// leaves until those before it are acknowledged too.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Room for the header, then the payload. Empty in a hole.
    pub(crate) buffer: Vec<u8>,
    /// When it was last sent, in extended milliseconds.
    pub(crate) sent: i64,
    /// When it was sent for the first time.
    pub(crate) first_sent: i64,
    /// When it is to be resent for want of an acknowledgement.
    pub(crate) due: i64,
    /// The timeout in milliseconds that led to `due`. It wraps as the
    /// reference's does.
    pub(crate) timeout: u32,
    /// How often it has been skipped; not counted past the threshold.
    pub(crate) skips: u32,
    /// How often it has been sent.
    pub(crate) transmissions: u32,
    pub(crate) fragment: u8,
    /// No hole.
    outstanding: bool,
}

impl Segment {
    /// A segment that has never been sent. `buffer` has room for the header in
    /// front of the payload.
    pub(crate) const fn new(buffer: Vec<u8>, fragment: u8) -> Self {
        Self {
            buffer,
            sent: 0,
            first_sent: 0,
            due: 0,
            timeout: 0,
            skips: 0,
            transmissions: 0,
            fragment,
            outstanding: true,
        }
    }
}

/// What an acknowledgement of one segment met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Acknowledged {
    /// It was in flight and is now gone.
    Now,
    /// It lies between segments in flight and was gone already.
    Before,
    /// It is not between the first in flight and the next to be sent.
    NotInFlight,
}

/// Segments `first()..next()` in flight, the first of them no hole unless holes
/// keep their place, and those that wait.
#[derive(Debug)]
pub(crate) struct SendRing {
    ring: VecDeque<Segment>,
    /// How many at the front are in flight, or holes.
    span: usize,
    holes: usize,
    first: u32,
    /// Holes at the front stay until the peer's cumulative number passes them.
    holes_stay: bool,
}

impl SendRing {
    /// Nothing yet, and `first` the next number. `holes_stay` as in
    /// [`Rules::acknowledged_keep_place`](super::Rules::acknowledged_keep_place).
    pub(crate) const fn new(first: u32, holes_stay: bool) -> Self {
        Self {
            ring: VecDeque::new(),
            span: 0,
            holes: 0,
            first,
            holes_stay,
        }
    }

    /// Appends a segment to those that wait.
    pub(crate) fn enqueue(&mut self, segment: Segment) {
        self.ring.push_back(segment);
    }

    /// The last segment that waits.
    pub(crate) fn last_waiting(&mut self) -> Option<&mut Segment> {
        if self.ring.len() > self.span {
            self.ring.back_mut()
        } else {
            None
        }
    }

    /// Puts the first segment that waits into flight under the next number.
    pub(crate) fn admit(&mut self) -> Option<&mut Segment> {
        let segment = self.ring.get_mut(self.span)?;
        self.span += 1;
        Some(segment)
    }

    /// Everything below `una` has arrived at the peer.
    pub(crate) fn remove_below(&mut self, una: u32, pool: &mut Pool) {
        while self.span > 0 && ahead(una, self.first) > 0 {
            self.drop_first(pool);
        }
        self.drop_leading_holes(pool);
    }

    /// One segment has arrived at the peer.
    pub(crate) fn acknowledge(&mut self, sequence: u32, pool: &mut Pool) -> Acknowledged {
        let offset = sequence.wrapping_sub(self.first) as usize;
        if offset >= self.span {
            return Acknowledged::NotInFlight;
        }
        let Some(segment) = self.ring.get_mut(offset).filter(|it| it.outstanding) else {
            return Acknowledged::Before;
        };
        segment.outstanding = false;
        pool.give(std::mem::take(&mut segment.buffer));
        self.holes += 1;
        if offset == 0 {
            self.drop_leading_holes(pool);
        }
        Acknowledged::Now
    }

    #[inline]
    pub(crate) fn outstanding_mut(&mut self, sequence: u32) -> Option<&mut Segment> {
        let offset = sequence.wrapping_sub(self.first) as usize;
        if offset >= self.span {
            return None;
        }
        self.ring.get_mut(offset).filter(|it| it.outstanding)
    }

    #[inline]
    pub(crate) fn outstanding(&self, sequence: u32) -> Option<&Segment> {
        let offset = sequence.wrapping_sub(self.first) as usize;
        if offset >= self.span {
            return None;
        }
        self.ring.get(offset).filter(|it| it.outstanding)
    }

    /// Every segment in flight with its number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Segment)> {
        (0_u32..)
            .zip(self.ring.iter().take(self.span))
            .filter(|(_, segment)| segment.outstanding)
            .map(|(offset, segment)| (self.first.wrapping_add(offset), segment))
    }

    /// The first segment that the peer has not acknowledged.
    #[inline]
    pub(crate) const fn first(&self) -> u32 {
        self.first
    }

    /// The number that the next new segment gets.
    #[inline]
    pub(crate) const fn next(&self) -> u32 {
        self.first.wrapping_add(self.span as u32)
    }

    /// Segments in flight, and holes.
    pub(crate) const fn span(&self) -> usize {
        self.span
    }

    /// Segments in flight, without holes.
    pub(crate) const fn in_flight(&self) -> usize {
        self.span - self.holes
    }

    /// Whether any segment waits.
    pub(crate) fn any_waits(&self) -> bool {
        self.ring.len() > self.span
    }

    /// Segments in flight and waiting, without holes unless these keep their
    /// place.
    #[inline]
    pub(crate) fn len(&self) -> usize {
        if self.holes_stay {
            self.ring.len()
        } else {
            self.ring.len() - self.holes
        }
    }

    fn drop_first(&mut self, pool: &mut Pool) {
        if let Some(segment) = self.ring.pop_front() {
            self.span -= 1;
            self.first = self.first.wrapping_add(1);
            if segment.outstanding {
                pool.give(segment.buffer);
            } else {
                self.holes -= 1;
            }
        }
    }

    fn drop_leading_holes(&mut self, pool: &mut Pool) {
        if self.holes_stay {
            return;
        }
        let is_hole = |segment: &Segment| !segment.outstanding;
        while self.holes > 0 && self.ring.front().is_some_and(is_hole) {
            self.drop_first(pool);
        }
    }
}
