//! The sending side: what waits, what is in flight, and which of that is to
//! be sent again.

use crate::clock::ahead;
use crate::config::Config;
use crate::cutting::{Cutting, TooManySegments};
use crate::deadlines::Deadlines;
use crate::pool::Pool;
use crate::rules::{Backoff, SkipCounting};
use crate::send_ring::{Acknowledged, Segment, SendRing};
use crate::skips::SkipIndex;

/// What one flush did with segments already sent before.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Resent {
    /// At least one on its timeout.
    pub(crate) on_timeout: bool,
    /// At least one for skips.
    pub(crate) on_skips: bool,
    /// At least one, new ones included, for the last time the settings allow.
    pub(crate) dead: bool,
}

/// The segments of one direction on the sender's side.
#[derive(Debug)]
pub(crate) struct Sender {
    pub(crate) ring: SendRing,
    cutting: Cutting,
    deadlines: Deadlines,
    skips: SkipIndex,
    /// Skipped often enough to be resent; a superset, checked when used.
    ripe: Vec<u32>,
    policy: Policy,
    /// Segments of the current flush, in order. Kept for its memory.
    pub(crate) batch: Vec<u32>,
    skipped: Vec<(u32, i64)>,
}

/// What decides about resending.
#[derive(Clone, Copy, Debug)]
struct Policy {
    nodelay: u8,
    resend: u32,
    fast_limit: u32,
    dead_link: u32,
    backoff: Backoff,
    skip_counting: SkipCounting,
    timeout_resets_skips: bool,
    early_resend: bool,
}

impl Sender {
    pub(crate) fn new(config: &Config) -> Self {
        Self {
            ring: SendRing::new(config.first_sequence, config.rules.acknowledged_keep_place),
            cutting: Cutting {
                stream: config.stream,
                limit: usize::from(config.rules.fragment_limit),
            },
            deadlines: Deadlines::default(),
            skips: SkipIndex::default(),
            ripe: Vec::new(),
            policy: Policy {
                nodelay: config.nodelay,
                resend: config.resend,
                fast_limit: config.fast_limit,
                dead_link: config.dead_link,
                backoff: config.rules.backoff,
                skip_counting: config.rules.skip_counting,
                timeout_resets_skips: config.rules.timeout_resets_skips,
                early_resend: config.rules.early_resend,
            },
            batch: Vec::new(),
            skipped: Vec::new(),
        }
    }

    /// Appends a message to what waits; see [`Cutting::push`].
    pub(crate) fn push(
        &mut self,
        bytes: &[u8],
        segment_bytes: usize,
        pool: &mut Pool,
    ) -> Result<usize, TooManySegments> {
        self.cutting
            .push(bytes, segment_bytes, &mut self.ring, pool)
    }

    /// The peer has everything below `una`.
    #[inline]
    pub(crate) fn on_unacknowledged(&mut self, una: u32, pool: &mut Pool) {
        self.ring.remove_below(una, pool);
    }

    /// The peer has segment `sequence`, which was sent at `sent`.
    pub(crate) fn on_acknowledge(&mut self, sequence: u32, sent: i64, pool: &mut Pool) {
        let (first, span) = (self.ring.first(), self.ring.span());
        let met = self.ring.acknowledge(sequence, pool);
        if !self.policy.watches_skips() {
            return;
        }
        let left = self.ring.first() != first;
        if met == Acknowledged::Now && !left {
            self.skips.ignore(sequence);
        }
        let below = sequence.wrapping_sub(first) as usize;
        match (self.policy.skip_counting, met) {
            (SkipCounting::NewestInDatagram | SkipCounting::HighestInDatagram, _)
            | (_, Acknowledged::NotInFlight) => {}
            (SkipCounting::EveryAcknowledgementByTime, _) => {
                self.count_skips(first, below, Some(sent));
            }
            (SkipCounting::EveryAcknowledgement2015, Acknowledged::Now) => {
                self.count_skips(first, below, None);
            }
            (SkipCounting::EveryAcknowledgement2015, Acknowledged::Before) => {
                self.count_skips(first, span, None);
            }
        }
    }

    /// A datagram has been read whole, and `sequence`, sent at `sent`, is the
    /// acknowledgement in it that counts.
    pub(crate) fn on_datagram_read(&mut self, sequence: u32, sent: i64) {
        let limit = match self.policy.skip_counting {
            SkipCounting::NewestInDatagram => Some(sent),
            SkipCounting::HighestInDatagram => None,
            SkipCounting::EveryAcknowledgementByTime | SkipCounting::EveryAcknowledgement2015 => {
                return;
            }
        };
        let first = self.ring.first();
        let below = sequence.wrapping_sub(first) as usize;
        if self.policy.resend > 0 && below < self.ring.span() {
            self.count_skips(first, below, limit);
        }
    }

    /// Gathers in `batch` what may have to be sent again at `now`, in order.
    pub(crate) fn gather_overdue(&mut self, now: i64) {
        let Self {
            deadlines,
            ring,
            batch,
            ..
        } = self;
        batch.clear();
        deadlines.take_due(now, |sn, due| still_due(ring, sn, due), batch);
        if batch.is_empty() && self.ripe.is_empty() {
            return;
        }
        batch.append(&mut self.ripe);
        let first = ring.first();
        batch.retain(|&sequence| ring.outstanding(sequence).is_some());
        batch.sort_unstable_by_key(|sequence| sequence.wrapping_sub(first));
        batch.dedup();
    }

    /// Decides about a segment gathered: returns whether it is to be sent
    /// again at `now`, and has then counted it as sent. `any_new` says whether
    /// the flush sends segments for the first time as well.
    pub(crate) fn renew(
        &mut self,
        sequence: u32,
        now: i64,
        timeout_ms: u32,
        any_new: bool,
        resent: &mut Resent,
    ) -> bool {
        let policy = self.policy;
        let Some(segment) = self.ring.outstanding_mut(sequence) else {
            return false;
        };
        if policy.early_resend && policy.hurries(segment, any_new) {
            segment.skips = 0;
            segment.timeout = timeout_ms;
            resent.on_skips = true;
        } else if segment.due <= now {
            segment.timeout = policy.longer(segment.timeout, timeout_ms);
            if policy.timeout_resets_skips {
                segment.skips = 0;
            }
            resent.on_timeout = true;
        } else if policy.ripe(segment) {
            segment.skips = 0;
            resent.on_skips = true;
        } else {
            if policy.early_resend && segment.skips > 0 {
                self.ripe.push(sequence);
            }
            return false;
        }
        segment.sent = now;
        segment.due = wire_sum(now, segment.timeout);
        segment.transmissions += 1;
        resent.dead |= policy.dead_link > 0 && segment.transmissions >= policy.dead_link;
        self.deadlines.add(segment.due, sequence);
        if policy.watches_skips() {
            if policy.ripe(segment) {
                self.ripe.push(sequence);
            }
            if policy.counts(segment) {
                self.skips.watch(sequence, now);
            } else {
                self.skips.ignore(sequence);
            }
        }
        true
    }

    /// Puts segments into flight while fewer than `window` are, and counts
    /// them as sent at `now`. Returns the first of them; the others follow up
    /// to the next number.
    pub(crate) fn admit(
        &mut self,
        window: u32,
        now: i64,
        timeout_ms: u32,
        grace_ms: u32,
        resent: &mut Resent,
    ) -> u32 {
        let first = self.ring.next();
        let last_allowed = self.ring.first().wrapping_add(window);
        let due = wire_sum(now, timeout_ms.wrapping_add(grace_ms));
        while ahead(self.ring.next(), last_allowed) < 0 {
            let Some(segment) = self.ring.admit() else {
                break;
            };
            segment.sent = now;
            segment.first_sent = now;
            segment.due = due;
            segment.timeout = timeout_ms;
            segment.transmissions = 1;
        }
        let end = self.ring.next();
        let count = end.wrapping_sub(first);
        if count == 0 {
            return first;
        }
        resent.dead |= self.policy.dead_link == 1;
        self.deadlines.add_run(due, first, end);
        if self.policy.watches_skips() {
            self.watch_new(first, count as usize, now);
        }
        let ring = &self.ring;
        let holds = |sn, due| still_due(ring, sn, due);
        self.deadlines.sweep(ring.in_flight(), ring.first(), holds);
        first
    }

    /// When the next segment is due, if any is in flight.
    pub(crate) fn earliest_due(&mut self) -> Option<i64> {
        let ring = &self.ring;
        self.deadlines
            .earliest(ring.first(), |sn, due| still_due(ring, sn, due))
    }

    /// Whether a flush has more to send under a window of so many segments
    /// than what is due.
    pub(crate) fn would_send_more(&self, window: u32) -> bool {
        !self.ripe.is_empty() || self.would_send_new(window)
    }

    /// Whether a flush under a window of so many segments sends any for the
    /// first time.
    pub(crate) fn would_send_new(&self, window: u32) -> bool {
        let last_allowed = self.ring.first().wrapping_add(window);
        ahead(self.ring.next(), last_allowed) < 0 && self.ring.any_waits()
    }

    /// Segments in flight and waiting.
    pub(crate) fn waiting(&self) -> usize {
        self.ring.len()
    }

    /// Counts one skip for those of the `count` segments from `first` on that
    /// are outstanding and were last sent at `limit` or before.
    fn count_skips(&mut self, first: u32, count: usize, limit: Option<i64>) {
        let latest = limit.unwrap_or(i64::MAX - 1);
        // A timestamp more than 2^31 ms ahead of a transmission lies behind
        // it on the wire's clock.
        let earliest = limit.map_or(i64::MIN, |limit| limit - i64::from(i32::MAX));
        self.skipped.clear();
        self.skips.sent_by(first, count, latest, &mut self.skipped);
        for &(sequence, sent) in &self.skipped {
            if sent < earliest {
                continue;
            }
            if let Some(segment) = self.ring.outstanding_mut(sequence) {
                segment.skips += 1;
                let enough = segment.skips >= self.policy.enough_skips();
                if enough {
                    self.skips.ignore(sequence);
                }
                // From its first skip on a flush without anything new may
                // resend a segment early; it is noted once.
                let is_noted = if self.policy.early_resend {
                    segment.skips == 1
                } else {
                    enough
                };
                if is_noted {
                    self.ripe.push(sequence);
                }
            }
        }
    }

    /// Watches new segments for skips, first making room for them.
    fn watch_new(&mut self, first: u32, count: usize, now: i64) {
        if self.ring.span() <= self.skips.leaves() {
            self.skips.watch_run(first, count, now);
            return;
        }
        self.skips.reset(2 * self.ring.span());
        for (sequence, segment) in self.ring.iter() {
            if self.policy.counts(segment) {
                self.skips.watch(sequence, segment.sent);
            }
        }
    }
}

impl Policy {
    /// Whether a segment may be resent before its timeout.
    const fn may_hurry(&self, segment: &Segment) -> bool {
        self.fast_limit == 0 || segment.transmissions <= self.fast_limit
    }

    /// Whether a segment is to be resent before its timeout.
    const fn ripe(&self, segment: &Segment) -> bool {
        self.resend > 0 && segment.skips >= self.resend && self.may_hurry(segment)
    }

    /// Whether a segment is to be resent early, by kcp-go's rule: it has been
    /// skipped often enough, or at all while nothing new is sent.
    const fn hurries(&self, segment: &Segment, any_new: bool) -> bool {
        self.ripe(segment) || (segment.skips > 0 && !any_new)
    }

    /// Whether skips are counted at all.
    const fn watches_skips(&self) -> bool {
        self.resend > 0 || self.early_resend
    }

    /// Skips beyond which further ones change nothing.
    const fn enough_skips(&self) -> u32 {
        if self.resend == 0 { 1 } else { self.resend }
    }

    /// Whether further skips of a segment change anything.
    const fn counts(&self, segment: &Segment) -> bool {
        segment.skips < self.enough_skips() && self.may_hurry(segment)
    }

    /// The timeout after one that ran out, `current` being that of the path.
    fn longer(&self, timeout: u32, current: u32) -> u32 {
        let more = match (self.backoff, self.nodelay) {
            (Backoff::ByNodelay, 0) => timeout.max(current),
            // The reference halves a signed number.
            (Backoff::ByNodelay, 1) => (timeout.cast_signed() / 2).cast_unsigned(),
            (Backoff::Linear2015, 0) => current,
            _ => current / 2,
        };
        timeout.wrapping_add(more)
    }
}

/// Whether a deadline noted for a segment is still the segment's.
fn still_due(ring: &SendRing, sequence: u32, due: i64) -> bool {
    ring.outstanding(sequence)
        .is_some_and(|segment| segment.due == due)
}

/// `span` milliseconds after `now`. A span of 2^31 or more, to which repeated
/// doubling can grow, lies in the past on the wire's clock.
fn wire_sum(now: i64, span: u32) -> i64 {
    now + i64::from(span.cast_signed())
}
