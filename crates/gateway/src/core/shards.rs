//! How the channels of one gateway are divided: into shards, each with a channel manager of
//! its own.
//!
//! Which shard has a channel follows from the channel's number alone, so that every edge
//! knows where a message goes without asking anybody. [The first](ShardId::HOME) has GLOBAL,
//! the grid, entities and logins; the other channels are spread over all of them by their
//! numbers' remainder. A gateway of one process has one shard, which has everything.

use std::fmt;
use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use super::ids::ChannelId;

/// One of the shards, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ShardId(pub u16);

impl ShardId {
    /// The one with GLOBAL, the grid, entities and logins.
    pub const HOME: Self = Self(0);

    /// A place in a list with one entry for each shard.
    #[must_use]
    pub fn index(self) -> usize {
        usize::from(self.0)
    }
}

impl fmt::Display for ShardId {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "shard {}", self.0)
    }
}

/// Into how many shards channels are divided.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShardCount(NonZeroU16);

impl ShardCount {
    /// All channels are together.
    pub const ONE: Self = Self(NonZeroU16::MIN);

    /// The most: each costs every node a lease to read and every edge a route.
    pub const MOST: u16 = 64;

    /// So many, from 1 to [`MOST`](Self::MOST).
    #[must_use]
    pub fn new(count: u16) -> Option<Self> {
        let count = NonZeroU16::new(count)?;
        (count.get() <= Self::MOST).then_some(Self(count))
    }

    /// How many.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0.get()
    }

    /// All of them, in order.
    pub fn all(self) -> impl Iterator<Item = ShardId> {
        (0..self.get()).map(ShardId)
    }

    /// Which shard has a channel, where cells and entities have numbers from
    /// `spatial_channels_from` on.
    #[must_use]
    pub fn shard_of(self, channel: ChannelId, spatial_channels_from: u32) -> ShardId {
        match channel.0.checked_sub(1) {
            // Less than the count, which is 16 bits wide.
            Some(place) if channel.0 < spatial_channels_from => {
                ShardId((place % u32::from(self.get())) as u16)
            }
            _ => ShardId::HOME,
        }
    }
}

/// Which shard a channel manager has, and of how many.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Shard {
    /// Which one.
    pub id: ShardId,
    /// Of how many.
    pub count: ShardCount,
}

impl Shard {
    /// All channels are together, here.
    pub const WHOLE: Self = Self {
        id: ShardId::HOME,
        count: ShardCount::ONE,
    };

    /// Whether it has GLOBAL, the grid, entities and logins.
    #[must_use]
    pub fn is_home(self) -> bool {
        self.id == ShardId::HOME
    }

    /// Whether it has all that, and others have channels beside.
    #[must_use]
    pub fn is_home_of_several(self) -> bool {
        self.is_home() && !self.is_whole()
    }

    /// Whether it is the only one.
    #[must_use]
    pub fn is_whole(self) -> bool {
        self.count == ShardCount::ONE
    }
}

impl Default for Shard {
    fn default() -> Self {
        Self::WHOLE
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_channel_is_in_one_shard() {
        let count = ShardCount::new(3).expect("a count");
        let of = |number| count.shard_of(ChannelId(number), 100);
        assert_eq!(of(0), ShardId::HOME, "GLOBAL");
        assert_eq!(
            [of(2), of(3), of(4)],
            [ShardId(1), ShardId(2), ShardId::HOME]
        );
        assert_eq!([of(100), of(101)], [ShardId::HOME; 2], "cells and entities");
        assert_eq!(ShardCount::ONE.shard_of(ChannelId(7), 100), ShardId::HOME);
        assert_eq!(ShardCount::new(0), None);
        assert_eq!(ShardCount::new(ShardCount::MOST + 1), None);
    }
}
