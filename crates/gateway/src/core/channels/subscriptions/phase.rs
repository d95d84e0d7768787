//! When windows end: at multiples of a group's interval, counted from its phase,
//! each brought up to the tick of the channel's type.

use std::time::Duration;

use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::ids::ChannelId;

/// What a group's windows are counted from: nanoseconds after any multiple of its
/// interval.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Phase(u64);

impl Phase {
    /// Windows that are counted from a time. Those that are no longer than a tick
    /// end at every tick, whatever they are counted from.
    pub(super) fn counted_from(start: Time, interval_ms: u32, tick: Duration) -> Self {
        let interval = nanos_of(interval_ms);
        let is_every_tick = interval <= nanos(tick);
        Self(if is_every_tick {
            0
        } else {
            start.as_nanos() % interval
        })
    }

    /// A place of each channel's own, so that not all channels of a long interval
    /// are due at once.
    pub(super) fn of_channel(channel: ChannelId, interval_ms: u32, tick: Duration) -> Self {
        let (interval, tick) = (nanos_of(interval_ms), nanos(tick));
        if interval <= tick {
            return Self(0);
        }
        // A multiplicative hash spreads neighbouring numbers far apart.
        let spread = u64::from(channel.0.wrapping_mul(0x9e37_79b1));
        Self(((spread * (interval / tick)) >> 32) * tick)
    }

    /// Whether it is less than the interval.
    pub(super) fn is_within(self, interval_ms: u32) -> bool {
        self.0 < nanos_of(interval_ms)
    }

    /// The first fan-out tick after `now`.
    pub(super) fn next_tick(self, now: Time, interval_ms: u32, tick: Duration) -> Time {
        let (interval, offset) = (nanos_of(interval_ms), self.0);
        // The last multiple at or before now; its tick may be still to come.
        let passed = (now.as_nanos() + interval - offset) / interval;
        // Before the first there is none: the grid begins at the offset.
        let next = passed * interval + offset;
        let mut tick_at = next.checked_sub(interval).unwrap_or(offset);
        loop {
            let at = Time::from_nanos(tick_at).round_up_to(tick);
            if at > now {
                return at;
            }
            tick_at += interval;
        }
    }
}

fn nanos_of(interval_ms: u32) -> u64 {
    u64::from(interval_ms).max(1) * 1_000_000
}

/// At least one.
fn nanos(tick: Duration) -> u64 {
    u64::try_from(tick.as_nanos()).unwrap_or(u64::MAX).max(1)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn fan_out_ticks_keep_their_interval_on_the_grid_of_ticks(
            now_us in 0u64..10_000_000_000,
            interval_ms in 1u32..5000,
            tick_ms in 1u64..200,
            channel: u32,
            start_us in proptest::option::of(0u64..10_000_000_000),
        ) {
            let tick = Duration::from_millis(tick_ms);
            let phase = match start_us {
                Some(start) => Phase::counted_from(Time::from_micros(start), interval_ms, tick),
                None => Phase::of_channel(ChannelId(channel), interval_ms, tick),
            };
            let now = Time::from_micros(now_us);
            let first = phase.next_tick(now, interval_ms, tick);
            prop_assert!(first > now);
            prop_assert_eq!(first.round_up_to(tick), first);
            let longest = u64::from(interval_ms) + tick_ms;
            prop_assert!(first.since(now) <= Duration::from_millis(longest));
            // Many fan-out ticks take as long as so many intervals.
            let mut tick_at = first;
            for _ in 0..20 {
                tick_at = phase.next_tick(tick_at, interval_ms, tick);
            }
            let taken = tick_at.since(first).as_nanos() as f64;
            let asked = 20.0 * f64::from(interval_ms).max(tick_ms as f64) * 1e6;
            let slack = tick_ms as f64 * 1e6;
            if u64::from(interval_ms) >= tick_ms {
                prop_assert!((taken - asked).abs() <= slack, "{taken} {asked}");
            }
        }

        #[test]
        fn windows_counted_from_a_tick_are_as_long_as_the_interval(
            start in 0u64..100_000,
            interval_ms in 1u32..5000,
            tick_ms in 1u64..200,
        ) {
            let tick = Duration::from_millis(tick_ms);
            let start = Time::from_millis(start * tick_ms);
            let phase = Phase::counted_from(start, interval_ms, tick);
            let end = start + Duration::from_millis(u64::from(interval_ms));
            prop_assert_eq!(phase.next_tick(start, interval_ms, tick), end.round_up_to(tick));
        }
    }

    #[test]
    fn the_first_fan_out_ticks_keep_their_interval_too() {
        let tick = Duration::from_millis(1);
        let phase = Phase::of_channel(ChannelId(1), 387, tick);
        let first = phase.next_tick(Time::ZERO, 387, tick);
        let second = phase.next_tick(first, 387, tick);
        assert_eq!(second.since(first), Duration::from_millis(387));
    }

    #[test]
    fn channels_of_a_long_interval_are_spread_out() {
        let tick = Duration::from_millis(20);
        let tick_at = |id| {
            let phase = Phase::of_channel(id, 1000, tick);
            phase.next_tick(Time::from_secs(5), 1000, tick)
        };
        let different: std::collections::BTreeSet<Time> = (0x80000..0x80064)
            .map(|id| tick_at(ChannelId(id)))
            .collect();
        assert!(different.len() > 30, "{} different ticks", different.len());
        assert_eq!(tick_at(ChannelId::GLOBAL), Time::from_secs(6));
    }
}
