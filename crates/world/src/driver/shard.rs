//! What one of several processes plays of a world.

use serde::{Deserialize, Serialize};

/// Some of what is numbered from 0: every so many from a first one on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Share {
    first: u32,
    /// From one to the next; none at all where it is 0.
    step: u32,
}

impl Share {
    /// All of them.
    pub const ALL: Self = Self { first: 0, step: 1 };
    /// None of them.
    pub const NONE: Self = Self { first: 0, step: 0 };

    /// The share of the `nth` of `many`, counted from 0: one in turn each, so
    /// that all have as much to do at every moment of a ramp.
    #[must_use]
    pub const fn even(nth: u32, many: u32) -> Self {
        Self {
            first: nth,
            step: many,
        }
    }

    /// The same of those from `first` on.
    #[must_use]
    pub const fn even_from(first: u32, nth: u32, many: u32) -> Self {
        Self {
            first: first + nth,
            step: many,
        }
    }

    /// One of them alone.
    #[must_use]
    pub const fn only(number: u32) -> Self {
        Self {
            first: number,
            step: u32::MAX,
        }
    }

    /// Whether a number is among them.
    #[must_use]
    pub const fn has(self, number: u32) -> bool {
        self.step > 0 && number >= self.first && (number - self.first).is_multiple_of(self.step)
    }

    /// Those of `total` that are among them.
    pub(crate) fn numbers(self, total: u32) -> impl Iterator<Item = u32> {
        (0..total).filter(move |number| self.has(*number))
    }

    /// How many of `total` are among them.
    #[must_use]
    pub const fn of(self, total: u32) -> u32 {
        if self.step == 0 || total <= self.first {
            0
        } else {
            (total - self.first).div_ceil(self.step)
        }
    }
}

/// What one process plays of a world.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Shard {
    /// The game servers, in the order in which they begin.
    pub servers: Share,
    /// The players.
    pub players: Share,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Self = Self {
        servers: Share::ALL,
        players: Share::ALL,
    };
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn shares_are_a_whole_cut_evenly(total in 0_u32..500, many in 1_u32..40) {
            let shares: Vec<Share> = (0..many).map(|nth| Share::even(nth, many)).collect();
            for number in 0..total {
                let holders = shares.iter().filter(|share| share.has(number)).count();
                prop_assert_eq!(holders, 1);
            }
            for share in &shares {
                let counted = (0..total).filter(|number| share.has(*number)).count() as u32;
                prop_assert_eq!(share.of(total), counted);
                prop_assert!(counted.abs_diff(total / many) <= 1);
            }
        }
    }

    #[test]
    fn all_none_and_one() {
        let held = |share: Share| (0..5).filter(|n| share.has(*n)).collect::<Vec<u32>>();
        assert_eq!(held(Share::ALL), [0, 1, 2, 3, 4]);
        assert!(held(Share::NONE).is_empty());
        assert_eq!(held(Share::only(3)), [3]);
        assert_eq!(Share::only(3).of(3), 0);
        assert_eq!(Share::only(3).of(4), 1);
        assert_eq!(held(Share::even_from(1, 0, 2)), [1, 3]);
        assert_eq!(held(Share::even_from(1, 1, 2)), [2, 4]);
    }
}
