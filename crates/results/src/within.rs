//! Shares of all intended messages whose echo arrived within a limit.

use std::collections::BTreeMap;

use crate::document::{Milliseconds, WITHIN_LIMITS_MS};
use crate::metric::Metric;

/// The shares for the limits that every document gives,
/// [`WITHIN_LIMITS_MS`], and for those that budgets ask for ([`asked()`](crate::asked())).
///
/// `sorted_rtts` are the round trips in nanoseconds, ascending; `intended`
/// counts all messages the workload meant to send, so that lost ones are late
/// at every limit. A run that meant to send nothing delivered a share of zero.
pub(crate) fn within(
    sorted_rtts: &[u64],
    intended: u64,
    asked: &[Metric],
) -> BTreeMap<Milliseconds, f64> {
    limits_ms(asked)
        .map(|limit_ms| {
            let limit_nanos = u64::from(limit_ms) * 1_000_000;
            let arrived = sorted_rtts.partition_point(|&rtt| rtt <= limit_nanos);
            (Milliseconds(limit_ms), share(arrived as u64, intended))
        })
        .collect()
}

/// The limits of every document and those that were asked for, in no order.
pub(crate) fn limits_ms(asked: &[Metric]) -> impl Iterator<Item = u32> + '_ {
    let asked = asked.iter().filter_map(|metric| match *metric {
        Metric::Within(limit_ms) => Some(limit_ms),
        _ => None,
    });
    WITHIN_LIMITS_MS.into_iter().chain(asked)
}

/// `part` of `whole`; zero of nothing.
pub(crate) fn share(part: u64, whole: u64) -> f64 {
    if whole == 0 {
        0.0
    } else {
        part as f64 / whole as f64
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_limit_itself_is_in_time_and_lost_messages_are_late() {
        let shares = within(&[10_000_000, 50_000_000, 50_000_001], 4, &[]);
        assert_eq!(shares.len(), WITHIN_LIMITS_MS.len());
        assert!((shares[&Milliseconds(50)] - 0.5).abs() < 1e-12);
        assert!((shares[&Milliseconds(2000)] - 0.75).abs() < 1e-12);
    }

    #[test]
    fn further_limits_are_answered_in_order() {
        let shares = within(&[10_000_000], 1, &[Metric::Within(5), Metric::Within(120)]);
        let limits: Vec<_> = shares.keys().map(|limit| limit.0).collect();
        assert_eq!(limits[..4], [5, 50, 100, 120]);
        assert!(shares[&Milliseconds(5)].abs() < 1e-12);
    }

    #[test]
    fn nothing_intended_is_nothing_delivered() {
        assert!(
            within(&[], 0, &[])
                .values()
                .all(|share| share.abs() < 1e-12)
        );
    }
}
