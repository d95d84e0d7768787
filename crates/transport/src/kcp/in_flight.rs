//! The segments that have been sent and not been acknowledged, by sequence
//! number: a ring in which each is found at once.

use std::collections::VecDeque;

use super::clock::ahead;
use super::pool::Pool;
use super::send_queue::Queued;

/// A segment in flight, or the hole that an acknowledged one leaves until
/// those before it are acknowledged too.
#[derive(Debug)]
pub(crate) struct Segment {
    /// Room for the header, then the payload. Empty in a hole.
    pub(crate) buffer: Vec<u8>,
    /// When it was last sent, in extended milliseconds.
    pub(crate) sent: i64,
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
    pub(crate) outstanding: bool,
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

/// Segments `first()..next()`. The first is always outstanding.
#[derive(Debug)]
pub(crate) struct InFlight {
    ring: VecDeque<Segment>,
    first: u32,
    outstanding: usize,
}

impl InFlight {
    /// Nothing in flight, and `first` the next number.
    pub(crate) const fn new(first: u32) -> Self {
        Self {
            ring: VecDeque::new(),
            first,
            outstanding: 0,
        }
    }

    /// Appends a segment under the next number.
    pub(crate) fn push(&mut self, queued: Queued, now: i64) {
        self.ring.push_back(Segment {
            buffer: queued.buffer,
            sent: now,
            due: now,
            timeout: 0,
            skips: 0,
            transmissions: 0,
            fragment: queued.fragment,
            outstanding: true,
        });
        self.outstanding += 1;
    }

    /// Everything below `una` has arrived at the peer.
    pub(crate) fn remove_below(&mut self, una: u32, pool: &mut Pool) {
        while ahead(una, self.first) > 0 {
            let Some(segment) = self.ring.pop_front() else {
                return;
            };
            self.first = self.first.wrapping_add(1);
            if segment.outstanding {
                self.outstanding -= 1;
                pool.give(segment.buffer);
            }
        }
        self.drop_leading_holes();
    }

    /// One segment has arrived at the peer.
    pub(crate) fn acknowledge(&mut self, sequence: u32, pool: &mut Pool) -> Acknowledged {
        let offset = sequence.wrapping_sub(self.first) as usize;
        let Some(segment) = self.ring.get_mut(offset) else {
            return Acknowledged::NotInFlight;
        };
        if !segment.outstanding {
            return Acknowledged::Before;
        }
        segment.outstanding = false;
        pool.give(std::mem::take(&mut segment.buffer));
        self.outstanding -= 1;
        if offset == 0 {
            self.drop_leading_holes();
        }
        Acknowledged::Now
    }

    pub(crate) fn outstanding_mut(&mut self, sequence: u32) -> Option<&mut Segment> {
        let offset = sequence.wrapping_sub(self.first) as usize;
        self.ring
            .get_mut(offset)
            .filter(|segment| segment.outstanding)
    }

    pub(crate) fn outstanding(&self, sequence: u32) -> Option<&Segment> {
        let offset = sequence.wrapping_sub(self.first) as usize;
        self.ring.get(offset).filter(|segment| segment.outstanding)
    }

    /// Every segment that is not a hole, with its number.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u32, &Segment)> {
        let numbered = (0_u32..).zip(&self.ring);
        numbered
            .filter(|(_, segment)| segment.outstanding)
            .map(|(offset, segment)| (self.first.wrapping_add(offset), segment))
    }

    /// The first segment that the peer has not acknowledged.
    pub(crate) const fn first(&self) -> u32 {
        self.first
    }

    /// The number that the next new segment gets.
    pub(crate) fn next(&self) -> u32 {
        self.first.wrapping_add(self.span() as u32)
    }

    /// Segments and holes.
    pub(crate) fn span(&self) -> usize {
        self.ring.len()
    }

    /// Segments without the holes.
    pub(crate) const fn count(&self) -> usize {
        self.outstanding
    }

    fn drop_leading_holes(&mut self) {
        let is_hole = |segment: &Segment| !segment.outstanding;
        while self.ring.front().is_some_and(is_hole) {
            self.ring.pop_front();
            self.first = self.first.wrapping_add(1);
        }
    }
}
