//! The 32-bit millisecond clock of the wire, and the 64-bit one that orders
//! what the wire's clock cannot once it has wrapped.
//!
//! The reference compares instants by the sign of their 32-bit difference.
//! That is an order only among instants less than 2^31 ms (24.8 days) apart,
//! which is also how far the two clocks here agree.

/// How far `later` lies ahead of `earlier` on a wrapping number line; negative
/// where it lies behind.
#[inline]
#[must_use]
pub const fn ahead(later: u32, earlier: u32) -> i32 {
    later.wrapping_sub(earlier).cast_signed()
}

/// The engine's clock: milliseconds, extended to 64 bits.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Clock {
    millis: i64,
}

impl Clock {
    /// Moves the clock to the instant nearest to where it stands that shows
    /// `now` on a 32-bit clock.
    pub(crate) fn move_to(&mut self, now: u32) {
        self.millis = self.extend(now);
    }

    /// Milliseconds, 64 bits.
    #[inline]
    pub(crate) const fn millis(self) -> i64 {
        self.millis
    }

    /// Milliseconds as the wire shows them.
    #[inline]
    pub(crate) const fn on_wire(self) -> u32 {
        low(self.millis)
    }

    /// The instant nearest to now that the wire shows as `stamp`.
    #[inline]
    pub(crate) const fn extend(self, stamp: u32) -> i64 {
        self.millis
            .wrapping_add(ahead(stamp, self.on_wire()) as i64)
    }
}

/// An extended instant as the wire shows it.
#[inline]
pub(crate) const fn low(millis: i64) -> u32 {
    millis.cast_unsigned() as u32
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_runs_on_over_the_wrap() {
        let mut clock = Clock::default();
        clock.move_to(u32::MAX - 9);
        assert_eq!(clock.millis(), -10);
        clock.move_to(5);
        assert_eq!(clock.millis(), 5);
        assert_eq!(clock.extend(u32::MAX), -1);
        for _ in 0..8 {
            clock.move_to(clock.on_wire().wrapping_add(1 << 30));
        }
        assert_eq!(clock.millis(), 5 + (8 << 30));
        assert_eq!(clock.on_wire(), 5);
    }
}
