//! Sequence numbers and their order around the wrap (RFC 9293, section 3.4).

use std::fmt;
use std::ops::{Add, AddAssign, Sub};

/// A sequence number: a point on a circle of 2^32 bytes.
///
/// It has no total order, so it does not implement [`Ord`]; of two numbers less
/// than 2^31 apart one is [`before`](Self::before) the other (RFC 1982).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Seq(pub u32);

impl Seq {
    /// Whether this number comes strictly before the other.
    #[must_use]
    pub const fn before(self, other: Self) -> bool {
        self.0.wrapping_sub(other.0).cast_signed() < 0
    }

    /// Whether this number comes strictly after the other.
    #[must_use]
    pub const fn after(self, other: Self) -> bool {
        other.before(self)
    }

    /// Whether this number lies in `low..=high`.
    #[must_use]
    pub const fn between(self, low: Self, high: Self) -> bool {
        high.0.wrapping_sub(low.0) >= self.0.wrapping_sub(low.0)
    }

    /// The bytes from `other` up to this number, signed: negative when this one
    /// comes first.
    #[must_use]
    pub const fn distance(self, other: Self) -> i32 {
        self.0.wrapping_sub(other.0).cast_signed()
    }

    /// The later of the two.
    #[must_use]
    pub const fn latest(self, other: Self) -> Self {
        if self.after(other) { self } else { other }
    }

    /// The earlier of the two.
    #[must_use]
    pub const fn earliest(self, other: Self) -> Self {
        if self.before(other) { self } else { other }
    }
}

impl Add<u32> for Seq {
    type Output = Self;

    fn add(self, bytes: u32) -> Self {
        Self(self.0.wrapping_add(bytes))
    }
}

impl AddAssign<u32> for Seq {
    fn add_assign(&mut self, bytes: u32) {
        *self = *self + bytes;
    }
}

impl Sub<u32> for Seq {
    type Output = Self;

    fn sub(self, bytes: u32) -> Self {
        Self(self.0.wrapping_sub(bytes))
    }
}

/// The bytes from the right number up to the left one, around the wrap.
impl Sub for Seq {
    type Output = u32;

    fn sub(self, other: Self) -> u32 {
        self.0.wrapping_sub(other.0)
    }
}

impl fmt::Debug for Seq {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::Seq;

    #[test]
    fn order_holds_across_the_wrap() {
        let last = Seq(u32::MAX);
        let first = last + 1;
        assert_eq!(first, Seq(0));
        assert!(last.before(first) && first.after(last));
        assert_eq!(first - last, 1);
        assert_eq!(last.distance(first), -1);
        assert_eq!(last.latest(first), first);
        assert_eq!(last.earliest(first), last);
    }

    #[test]
    fn between_includes_both_ends_and_wraps() {
        assert!(Seq(3).between(Seq(u32::MAX), Seq(3)));
        assert!(Seq(u32::MAX).between(Seq(u32::MAX), Seq(3)));
        assert!(!Seq(4).between(Seq(u32::MAX), Seq(3)));
    }
}
