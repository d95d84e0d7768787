//! How the channels of one gateway are divided: into shards, each with a channel manager of
//! its own.
//!
//! Which shard has a channel follows from the channel's number alone, so that every edge
//! knows where a message goes without asking anybody. [The first](ShardId::HOME) has GLOBAL
//! and logins, and knows which server has which block of the grid and which entities belong
//! together. Cells are spread by blocks, all other channels, entities among them, by their
//! numbers' remainder: wherever in the world entities crowd, each shard has its share of
//! them. A gateway of one process has one shard, which has everything.

use std::fmt;
use std::num::NonZeroU16;

use serde::{Deserialize, Serialize};

use super::ids::ChannelId;
use super::settings::Grid;

/// One of the shards, from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ShardId(pub u16);

impl ShardId {
    /// The one with GLOBAL and logins.
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

    /// The number of shards, 1 to 64.
    #[must_use]
    pub fn get(self) -> u16 {
        self.0.get()
    }

    /// All of them, in order.
    pub fn all(self) -> impl Iterator<Item = ShardId> {
        (0..self.get()).map(ShardId)
    }

    /// The one after another.
    #[must_use]
    pub fn after(self, shard: ShardId) -> Option<ShardId> {
        let next = shard.0 + 1;
        (next < self.get()).then_some(ShardId(next))
    }

    /// The shard of something with this number, where such things are numbered from 0 and
    /// spread one by one.
    #[must_use]
    pub fn spread(self, number: u32) -> ShardId {
        // Less than the count, which is 16 bits wide.
        ShardId((number % u32::from(self.get())) as u16)
    }
}

/// Which shard has which channel.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShardMap {
    /// Into how many shards channels are divided.
    pub count: ShardCount,
    /// The first channel number that is a cell's.
    pub spatial_channels_from: u32,
    /// The first channel number that is an entity's.
    pub entity_channels_from: u32,
    /// The world's grid, if there is one.
    pub grid: Option<Grid>,
}

impl ShardMap {
    /// Which shard has a channel. Those of one block of the grid are together.
    #[must_use]
    pub fn shard_of(&self, channel: ChannelId) -> ShardId {
        if channel == ChannelId::GLOBAL || self.count == ShardCount::ONE {
            return ShardId::HOME;
        }
        if let Some(entity) = channel.0.checked_sub(self.entity_channels_from) {
            return self.count.spread(entity);
        }
        match (
            channel.0.checked_sub(self.spatial_channels_from),
            &self.grid,
        ) {
            (None, _) => self.count.spread(channel.0 - 1),
            (Some(cell), Some(grid)) if cell < grid.cells() => self.of_block(grid.server_of(cell)),
            (Some(_), _) => ShardId::HOME,
        }
    }

    /// Which shard has the cells of a server's block.
    #[must_use]
    pub fn of_block(&self, block: u32) -> ShardId {
        self.count.spread(block)
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

    /// Whether it has GLOBAL and logins.
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
        let grid = r#"{ "Config": { "WorldOffsetX": 0, "WorldOffsetZ": 0, "GridWidth": 1,
            "GridHeight": 1, "GridCols": 4, "GridRows": 2, "ServerCols": 4, "ServerRows": 1 } }"#;
        let map = ShardMap {
            count: ShardCount::new(3).expect("a count"),
            spatial_channels_from: 100,
            entity_channels_from: 200,
            grid: Some(Grid::from_json(grid).expect("a grid")),
        };
        let of = |number| map.shard_of(ChannelId(number)).0;
        assert_eq!(of(0), 0, "GLOBAL");
        assert_eq!([2, 3, 4].map(of), [1, 2, 0], "rooms");
        assert_eq!(
            [100, 101, 102, 103].map(of),
            [0, 1, 2, 0],
            "a row of blocks"
        );
        assert_eq!(
            [104, 105, 106, 107].map(of),
            [0, 1, 2, 0],
            "their other row"
        );
        assert_eq!(of(108), 0, "no cell");
        assert_eq!([200, 201, 202, 203].map(of), [0, 1, 2, 0], "entities");
        let whole = ShardMap {
            count: ShardCount::ONE,
            ..map
        };
        assert_eq!(whole.shard_of(ChannelId(101)), ShardId::HOME);
        assert_eq!(ShardCount::new(0), None);
        assert_eq!(ShardCount::new(ShardCount::MOST + 1), None);
    }
}
