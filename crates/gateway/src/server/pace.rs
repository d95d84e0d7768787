//! How fast one client is read, and all clients of one address together: so many
//! messages and bytes a second on average.
//!
//! Nothing is refused and nobody is hung up on. Who has sent more than its share
//! is not read for as long as it takes to even out; what it sends meanwhile
//! waits in its own socket, and TCP and KCP make it wait itself. What was read
//! at once may be twice a second's share, so that a burst, such as the
//! subscriptions when a level is loaded, passes unhindered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lagometer_units::Time;

use crate::core::Budget;

/// How far ahead of the average a burst may be.
const BURST: Duration = Duration::from_secs(2);

/// What is read of one client in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rates {
    pub(super) messages_per_s: u64,
    pub(super) bytes_per_s: u64,
}

/// How many datagrams of KCP count as a message, and bytes of datagrams as one byte:
/// acknowledgements have datagrams of their own, and what is lost comes again.
const DATAGRAMS: u64 = 4;

impl Rates {
    /// At which a client's datagrams are looked at, whatever is in them.
    pub(super) fn of_datagrams(self) -> Self {
        Self {
            messages_per_s: self.messages_per_s.saturating_mul(DATAGRAMS),
            bytes_per_s: self.bytes_per_s.saturating_mul(DATAGRAMS),
        }
    }
}

/// Until when what one client has sent is paid for, at its rates: the virtual
/// scheduling form of the generic cell rate algorithm (ITU-T I.371, annex A).
#[derive(Clone, Copy, Debug)]
pub(super) struct Pace {
    messages_paid_at: Time,
    bytes_paid_at: Time,
}

/// A client has sent more than its share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TooFast {
    /// It is to be read again then.
    pub(super) until: Time,
    /// Of bytes; otherwise of messages.
    pub(super) of_bytes: bool,
}

impl TooFast {
    /// What it has too little of.
    pub(super) fn budget(self) -> Budget {
        if self.of_bytes {
            Budget::Bytes
        } else {
            Budget::Messages
        }
    }
}

impl Default for Pace {
    fn default() -> Self {
        Self {
            messages_paid_at: Time::ZERO,
            bytes_paid_at: Time::ZERO,
        }
    }
}

impl Pace {
    /// So much was read. Returns until when nothing more is to be read, if that
    /// was too much.
    pub(super) fn spend(
        &mut self,
        now: Time,
        rates: Rates,
        messages: usize,
        bytes: usize,
    ) -> Option<TooFast> {
        let paid = |since: Time, count, per_s| since.max(now) + cost(count, per_s);
        self.messages_paid_at = paid(self.messages_paid_at, messages, rates.messages_per_s);
        self.bytes_paid_at = paid(self.bytes_paid_at, bytes, rates.bytes_per_s);
        self.too_fast(now)
    }

    /// Until when nothing more is to be read, if too much was.
    pub(super) fn too_fast(&self, now: Time) -> Option<TooFast> {
        let of_bytes = self.bytes_paid_at > self.messages_paid_at;
        let until = pause_until(now, self.paid_at())?;
        Some(TooFast { until, of_bytes })
    }

    /// When all that was read is paid for.
    pub(super) fn paid_at(&self) -> Time {
        self.bytes_paid_at.max(self.messages_paid_at)
    }

    /// Takes over what another still owes, beside its own debts, as far as that only
    /// takes its burst away: nobody is silenced for what another sent.
    pub(super) fn take_over(&mut self, now: Time, other: Self) {
        let both = |own: Time, other: Time| {
            let own = own.max(now);
            own.max((own + other.since(now)).min(now + BURST))
        };
        self.messages_paid_at = both(self.messages_paid_at, other.messages_paid_at);
        self.bytes_paid_at = both(self.bytes_paid_at, other.bytes_paid_at);
    }
}

/// The same for the messages of all clients of one address, whichever threads
/// own them.
#[derive(Debug, Default)]
pub(super) struct SharedPace {
    /// Until when what they have sent is paid for, in nanoseconds.
    paid_at_ns: AtomicU64,
}

impl SharedPace {
    /// One of them has sent so much. Returns until when it is not to be read,
    /// if all together have sent too much.
    pub(super) fn spend(&self, now: Time, messages: usize, per_s: u64) -> Option<Time> {
        let paid = |since_ns| Time::from_nanos(since_ns).max(now) + cost(messages, per_s);
        let order = Ordering::Relaxed;
        let before = self
            .paid_at_ns
            .fetch_update(order, order, |since_ns| Some(paid(since_ns).as_nanos()));
        let (Ok(before_ns) | Err(before_ns)) = before;
        pause_until(now, paid(before_ns))
    }

    /// Whether something is not paid for yet.
    pub(super) fn is_behind(&self, now: Time) -> bool {
        self.paid_at_ns.load(Ordering::Relaxed) > now.as_nanos()
    }
}

/// How long `count` things take at a rate.
fn cost(count: usize, per_s: u64) -> Duration {
    let nanos = count as u128 * 1_000_000_000 / u128::from(per_s.max(1));
    Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 4))
}

/// Until when nothing is to be read of whom has sent what is paid for then.
fn pause_until(now: Time, paid_at: Time) -> Option<Time> {
    let over = paid_at.since(now).checked_sub(BURST)?;
    (!over.is_zero()).then(|| now + over)
}

#[cfg(test)]
mod tests {
    use super::*;

    const RATES: Rates = Rates {
        messages_per_s: 100,
        bytes_per_s: 10_000,
    };

    #[test]
    fn who_keeps_to_the_average_is_never_held_up() {
        let mut pace = Pace::default();
        for turn in 0..10_000 {
            let now = Time::from_millis(turn * 10);
            assert_eq!(pace.spend(now, RATES, 1, 100), None);
        }
    }

    #[test]
    fn a_burst_of_two_seconds_passes_and_what_is_beyond_is_paid_for() {
        let mut pace = Pace::default();
        let now = Time::from_secs(100);
        assert_eq!(pace.spend(now, RATES, 200, 0), None);
        let too_fast = pace.spend(now, RATES, 50, 0).unwrap();
        assert_eq!(too_fast.until, now + Duration::from_millis(500));
        assert!(!too_fast.of_bytes);
        // Nothing was read meanwhile: it goes on at the average.
        let later = too_fast.until;
        assert_eq!(
            pace.spend(later, RATES, 1, 0).map(|it| it.until),
            Some(later + Duration::from_millis(10))
        );
    }

    #[test]
    fn clients_of_one_address_are_read_at_its_average_together() {
        let pace = SharedPace::default();
        let mut free_at = [Time::ZERO; 3];
        let mut messages = 0;
        for ms in 0..100_000 {
            let now = Time::from_millis(ms);
            for free_at in &mut free_at {
                if *free_at <= now {
                    messages += 5;
                    *free_at = pace.spend(now, 5, 100).unwrap_or(now);
                }
            }
        }
        assert!((10_000..10_300).contains(&messages), "{messages}");
        assert!(pace.is_behind(Time::from_secs(100)) && !pace.is_behind(Time::from_secs(110)));
    }

    /// A frame of sixteen thousand messages, handed on before its sender hung up.
    #[test]
    fn who_takes_over_minutes_of_debt_loses_its_burst_and_is_not_silenced() {
        let now = Time::from_secs(100);
        let mut gone = Pace::default();
        assert!(gone.spend(now, RATES, 16_385, 0).is_some());
        let mut newcomer = Pace::default();
        for _ in 0..3 {
            newcomer.take_over(now, gone);
            assert_eq!(newcomer.too_fast(now), None);
        }
        let one = newcomer.spend(now, RATES, 1, 0).unwrap();
        assert_eq!(one.until, now + Duration::from_millis(10));
        // Its own debts are not less for it.
        let mut own = gone;
        own.take_over(now, gone);
        assert_eq!(own.paid_at(), gone.paid_at());
    }

    #[test]
    fn a_flood_is_read_at_the_average_however_it_is_cut() {
        let mut pace = Pace::default();
        let (mut now, mut bytes) = (Time::ZERO, 0);
        while now < Time::from_secs(100) {
            bytes += 3_000;
            if let Some(TooFast { until, of_bytes }) = pace.spend(now, RATES, 1, 3_000) {
                assert!(of_bytes && until > now);
                now = until;
            }
        }
        assert!((1_000_000..1_025_000).contains(&bytes), "{bytes}");
    }
}
