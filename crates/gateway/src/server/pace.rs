//! How fast one client is read: so many messages and bytes a second on average.
//!
//! Nothing is refused and nobody is hung up on. Who has sent more than its share
//! is not read for as long as it takes to even out; what it sends meanwhile
//! waits in its own socket, and TCP and KCP make it wait itself. What was read
//! at once may be twice a second's share, so that a burst, such as the
//! subscriptions when a level is loaded, passes unhindered.

use std::time::Duration;

use lagometer_units::Time;

/// How far ahead of the average a burst may be.
const BURST: Duration = Duration::from_secs(2);

/// What is read of one client in a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Rates {
    pub(super) messages_per_s: u64,
    pub(super) bytes_per_s: u64,
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
        let paid = |since: Time, count: usize, per_s: u64| {
            let nanos = count as u128 * 1_000_000_000 / u128::from(per_s.max(1));
            let cost = Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 4));
            since.max(now) + cost
        };
        self.messages_paid_at = paid(self.messages_paid_at, messages, rates.messages_per_s);
        self.bytes_paid_at = paid(self.bytes_paid_at, bytes, rates.bytes_per_s);
        let of_bytes = self.bytes_paid_at > self.messages_paid_at;
        let paid_at = self.bytes_paid_at.max(self.messages_paid_at);
        let over = paid_at.since(now).checked_sub(BURST)?;
        (!over.is_zero()).then(|| TooFast {
            until: now + over,
            of_bytes,
        })
    }
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
