//! Controlled delay (`CoDel`): packets are dropped from the head, ever more
//! often, while none of the last interval waited for less than the target
//! (RFC 8289, section 5).
//!
//! The arithmetic is Linux's (`include/net/codel_impl.h`), for it is Linux's that
//! routers run: time in steps of 1024 ns, and the root of the count by one step of
//! Newton's method for each drop, so that the second drop comes after half an
//! interval rather than after 0.71.

use super::fifo::Fifo;
use super::{Packet, Waiting};

/// The largest packet of the interface: while no more than one waits, nothing
/// is dropped (RFC 8289, section 5.5: `maxpacket_`).
const LARGEST_PACKET: u64 = 1500;

/// What `CoDel` aims at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CoDel {
    /// A wait that is no harm, in nanoseconds; 5 ms in RFC 8289, section 4.3.
    pub target: u64,
    /// How long all must wait for longer before one is dropped, in nanoseconds:
    /// a usual round trip, 100 ms in RFC 8289, section 4.4.
    pub interval: u64,
    /// Marks packets whose transport understands it instead of dropping them.
    pub ecn: bool,
}

/// Nanoseconds as `CoDel` counts them, in steps of 1024 (Linux `CODEL_SHIFT`).
const fn steps(nanoseconds: u64) -> u64 {
    nanoseconds >> 10
}

/// The reciprocal of the root of a count, in units of 2^-16, to which steps of
/// Newton's method come nearer (Linux `rec_inv_sqrt`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct InverseRoot(u16);

impl InverseRoot {
    /// Of one drop.
    const ONE: Self = Self(u16::MAX);

    /// One step towards that of `count` (Linux `codel_Newton_step`):
    /// `x * (3 - count * x * x) / 2`.
    fn approach(self, count: u32) -> Self {
        let root = u64::from(self.0) << 16;
        let square = (root * root) >> 32;
        let factor = (3_u64 << 32).wrapping_sub(u64::from(count).wrapping_mul(square)) >> 2;
        Self((factor.wrapping_mul(root) >> 31 >> 16) as u16)
    }

    /// So long after `at` the next packet is dropped (RFC 8289, section 5.4; Linux
    /// `codel_control_law`); all in steps.
    fn after(self, at: u64, interval: u64) -> u64 {
        at.saturating_add(interval.saturating_mul(u64::from(self.0)) >> 16)
    }
}

/// The state of one queue's control.
#[derive(Clone, Copy, Debug)]
pub(super) struct Control {
    /// Drops since dropping began.
    count: u32,
    /// What `count` began with.
    last_count: u32,
    root: InverseRoot,
    /// When all will have waited too long for an interval, in steps; `None` while
    /// they do not.
    first_above: Option<u64>,
    /// When the next is dropped, in steps.
    drop_next: u64,
    is_dropping: bool,
}

impl Default for Control {
    fn default() -> Self {
        Self {
            count: 0,
            last_count: 0,
            root: InverseRoot(0),
            first_above: None,
            drop_next: 0,
            is_dropping: false,
        }
    }
}

impl Control {
    /// Takes the next packet out of `fifo` at `now`; those to be dropped before
    /// it are handed to `drop`. Beside it `others` bytes wait for the same
    /// bottleneck (Linux counts them for each flow of `fq_codel`, too).
    pub(super) fn pop(
        &mut self,
        codel: &CoDel,
        now: u64,
        (fifo, others): (&mut Fifo, u64),
        drop: &mut dyn FnMut(Packet),
    ) -> Option<Waiting> {
        let now = steps(now);
        let interval = steps(codel.interval);
        let mut next = self.next(codel, now, fifo, others);
        if self.is_dropping {
            if !next.0 {
                self.is_dropping = false;
            }
            while self.is_dropping && now >= self.drop_next {
                self.count = self.count.saturating_add(1);
                self.root = self.root.approach(self.count);
                if let Some(marked) = mark(codel, next.1) {
                    self.drop_next = self.root.after(self.drop_next, interval);
                    return Some(marked);
                }
                drop(next.1?.packet);
                next = self.next(codel, now, fifo, others);
                if next.0 {
                    self.drop_next = self.root.after(self.drop_next, interval);
                } else {
                    self.is_dropping = false;
                }
            }
        } else if next.0 {
            let marked = mark(codel, next.1);
            if marked.is_none() {
                drop(next.1?.packet);
                next = self.next(codel, now, fifo, others);
            }
            self.start_dropping(interval, now);
            return marked.or(next.1);
        }
        next.1
    }

    /// So many packets were dropped because there was no room: the next signals
    /// come sooner (Linux `fq_codel_drop`).
    pub(super) const fn lost(&mut self, packets: u32) {
        self.count = self.count.saturating_add(packets);
    }

    /// RFC 8289, section 5.6: where dropping ended a short while ago it goes on
    /// at nearly the rate that it had.
    fn start_dropping(&mut self, interval: u64, now: u64) {
        self.is_dropping = true;
        let since_last = self.count.saturating_sub(self.last_count);
        let is_recent = now.saturating_sub(self.drop_next) < 16 * interval;
        if since_last > 1 && is_recent {
            self.count = since_last;
            self.root = self.root.approach(since_last);
        } else {
            self.count = 1;
            self.root = InverseRoot::ONE;
        }
        self.last_count = self.count;
        self.drop_next = self.root.after(now, interval);
    }

    /// The next packet, and whether it may be dropped (RFC 8289, section 5.5:
    /// `dodequeue`). `now` in steps.
    fn next(
        &mut self,
        codel: &CoDel,
        now: u64,
        fifo: &mut Fifo,
        others: u64,
    ) -> (bool, Option<Waiting>) {
        let Some(waiting) = fifo.pop() else {
            self.first_above = None;
            return (false, None);
        };
        let waited = now.saturating_sub(steps(waiting.since));
        let is_short = waited < steps(codel.target);
        if is_short || fifo.bytes().saturating_add(others) <= LARGEST_PACKET {
            self.first_above = None;
            return (false, Some(waiting));
        }
        let limit = now.saturating_add(steps(codel.interval));
        let first_above = self.first_above.get_or_insert(limit);
        (now > *first_above, Some(waiting))
    }
}

/// The packet with a mark, where it can be marked.
fn mark(codel: &CoDel, waiting: Option<Waiting>) -> Option<Waiting> {
    let waiting = waiting.filter(|it| codel.ecn && it.packet.is_ecn_capable)?;
    Some(Waiting {
        is_marked: true,
        ..waiting
    })
}

/// One queue with its control.
#[derive(Clone, Debug)]
pub(super) struct CoDelQueue {
    codel: CoDel,
    control: Control,
    fifo: Fifo,
}

impl CoDelQueue {
    pub(super) fn new(codel: CoDel) -> Self {
        Self {
            codel,
            control: Control::default(),
            fifo: Fifo::default(),
        }
    }

    pub(super) fn push(&mut self, waiting: Waiting) {
        self.fifo.push(waiting);
    }

    pub(super) fn pop(&mut self, now: u64, drop: &mut dyn FnMut(Packet)) -> Option<Waiting> {
        self.control
            .pop(&self.codel, now, (&mut self.fifo, 0), drop)
    }

    pub(super) const fn fifo(&self) -> &Fifo {
        &self.fifo
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::queue::Flow;

    const MS: u64 = 1_000_000;
    const CODEL: CoDel = CoDel {
        target: 5 * MS,
        interval: 100 * MS,
        ecn: false,
    };

    fn waiting(tag: u64, since: u64, is_ecn_capable: bool) -> Waiting {
        Waiting {
            packet: Packet {
                tag,
                flow: Flow::default(),
                bytes: 1000,
                is_ecn_capable,
            },
            since,
            is_marked: false,
        }
    }

    /// A queue in which every packet has waited for 50 ms, from which one is
    /// taken each millisecond: when packets were dropped or marked.
    fn disturbed(codel: CoDel, is_ecn_capable: bool, until: u64) -> Vec<u64> {
        let mut queue = CoDelQueue::new(codel);
        let mut at = Vec::new();
        for tag in 0..20 {
            queue.push(waiting(tag, 0, is_ecn_capable));
        }
        for now in (50 * MS..until).step_by(MS as usize) {
            queue.push(waiting(now, now - 50 * MS, is_ecn_capable));
            queue.push(waiting(now + 1, now - 50 * MS, is_ecn_capable));
            let next = queue.pop(now, &mut |_| at.push(now)).unwrap();
            if next.is_marked {
                at.push(now);
            }
        }
        at
    }

    #[test]
    fn drops_come_as_the_law_has_it_after_a_bad_interval() {
        let dropped = disturbed(CODEL, false, 1000 * MS);
        // The first after an interval of bad waits, then x, x / 2, … as Newton's
        // method comes to the interval over the root of the count.
        let mut expected = vec![151 * MS];
        let (mut next, mut root) = (151.0e6 + 100.0e6, 1.0);
        let mut count = 1.0;
        while expected.len() < dropped.len() {
            expected.push((next as u64).div_ceil(MS) * MS);
            count += 1.0;
            root *= (3.0 - count * root * root) / 2.0;
            next += 100.0e6 * root;
        }
        assert!(dropped.len() > 15, "{dropped:?}");
        let apart = |(one, other): (&u64, &u64)| one.abs_diff(*other) <= MS;
        assert!(
            dropped.iter().zip(&expected).all(apart),
            "{dropped:?} {expected:?}"
        );
    }

    #[test]
    fn pauses_are_the_interval_over_the_root_of_the_count() {
        let mut root = InverseRoot::ONE;
        assert_eq!(root.after(7, 1 << 16), 7 + 65_535);
        root = root.approach(2);
        assert_eq!(root.after(0, 100_000), 50_001);
        for count in 3..10_000_u32 {
            root = root.approach(count);
            let exact = 1e6 / f64::from(count).sqrt();
            let pause = root.after(0, 1_000_000) as f64;
            // As far as 16 bits go.
            let allowed = 0.03 * exact + 40.0;
            assert!((pause - exact).abs() < allowed, "{count}: {pause} {exact}");
        }
        assert_eq!(InverseRoot::ONE.after(u64::MAX - 1, 9), u64::MAX);
    }

    #[test]
    fn what_understands_marks_is_marked_and_never_dropped() {
        let codel = CoDel { ecn: true, ..CODEL };
        assert_eq!(
            disturbed(codel, true, 600 * MS),
            disturbed(CODEL, false, 600 * MS)
        );
        let mut queue = CoDelQueue::new(codel);
        for now in (0..600 * MS).step_by(MS as usize) {
            queue.push(waiting(now, now.saturating_sub(50 * MS), true));
            queue.push(waiting(now, now.saturating_sub(50 * MS), true));
            queue.pop(now, &mut |packet| panic!("{packet:?} was dropped"));
        }
    }

    #[test]
    fn a_short_wait_or_a_single_packet_is_left_alone() {
        let mut queue = CoDelQueue::new(CODEL);
        for now in (0..2000 * MS).step_by(MS as usize) {
            queue.push(waiting(now, now.saturating_sub(4 * MS), false));
            queue.push(waiting(now, now.saturating_sub(4 * MS), false));
            for _ in 0..2 {
                queue.pop(now, &mut |_| panic!("nobody waited for 5 ms"));
            }
        }
        let mut alone = CoDelQueue::new(CODEL);
        for now in (1000 * MS..2000 * MS).step_by(10 * MS as usize) {
            alone.push(waiting(now, 0, false));
            assert!(
                alone
                    .pop(now, &mut |_| panic!("it is the only one"))
                    .is_some()
            );
        }
    }
}
