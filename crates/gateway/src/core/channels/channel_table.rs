//! The channels there are, by number, and which numbers are free.

mod numbers;

use lagometer_protocol::schema::Schema;
use serde::{Deserialize, Serialize};

use crate::core::by_number::ByNumber;
use crate::core::ids::ChannelId;
use crate::core::shards::Shard;

use super::channel::{Channel, Data, SavedData};

use numbers::TakenNumbers;

/// All channels.
#[derive(Debug)]
pub(super) struct ChannelTable {
    by_id: ByNumber<ChannelId, Box<Channel>>,
    /// Numbers from here on are not given out: they are cells' and entities'.
    given_below: u32,
    /// Whose numbers are given out.
    shard: Shard,
    /// Those of the shard's numbers below that are taken, by their place among them.
    taken: TakenNumbers,
    /// The place where the search for a free number begins.
    next: u32,
}

/// What is written down of the channels: `C` is one of them, or where one is.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedChannels<C> {
    channels: Vec<(C, Option<SavedData>)>,
    next: u32,
}

impl ChannelTable {
    pub(super) fn save(&self) -> SavedChannels<&Channel> {
        let channels = self.values();
        let channels = channels.map(|channel| (channel, channel.data.as_ref().map(Data::save)));
        SavedChannels {
            channels: channels.collect(),
            next: self.next,
        }
    }

    /// A table with channels that were written down, and gives out numbers below
    /// `given_below` that are a shard's. `None` if the data of one is not of the type that it
    /// is said to be of.
    pub(super) fn restore(
        given_below: u32,
        shard: Shard,
        schema: &Schema,
        saved: SavedChannels<Channel>,
    ) -> Option<Self> {
        let mut table = Self::new(given_below, shard);
        for (mut channel, data) in saved.channels {
            if let Some(data) = data {
                channel.data = Some(data.restore(channel.id, schema)?);
            }
            table.insert(channel);
        }
        table.next = saved.next;
        Some(table)
    }

    /// A table without channels, which gives out a shard's numbers from 1 to below
    /// `given_below`.
    pub(super) fn new(given_below: u32, shard: Shard) -> Self {
        Self {
            by_id: ByNumber::default(),
            given_below,
            shard,
            taken: TakenNumbers::default(),
            next: 0,
        }
    }

    pub(super) fn get(&self, id: ChannelId) -> Option<&Channel> {
        self.by_id.get(&id).map(|channel| &**channel)
    }

    pub(super) fn get_mut(&mut self, id: ChannelId) -> Option<&mut Channel> {
        self.by_id.get_mut(&id).map(|channel| &mut **channel)
    }

    pub(super) fn contains_key(&self, id: ChannelId) -> bool {
        self.by_id.contains_key(&id)
    }

    /// All of them, in order.
    pub(super) fn iter(&self) -> impl Iterator<Item = (ChannelId, &Channel)> {
        self.by_id.iter().map(|(id, channel)| (id, &**channel))
    }

    /// Likewise, without their numbers.
    pub(super) fn values(&self) -> impl Iterator<Item = &Channel> {
        self.by_id.values().map(|channel| &**channel)
    }

    pub(super) fn insert(&mut self, channel: Channel) {
        let id = channel.id;
        self.by_id.insert(id, Box::new(channel));
        if let Some(place) = self.place(id) {
            self.taken.insert(place);
        }
    }

    /// Takes a channel out; its number is the next to be given out.
    pub(super) fn remove(&mut self, id: ChannelId) {
        self.by_id.remove(&id);
        if let Some(place) = self.place(id) {
            self.taken.remove(place);
            self.next = place;
        }
    }

    /// The next free number, from the last one on. `None` where all are taken, or all
    /// but one in `left_to_others`.
    pub(super) fn free_number(&mut self, left_to_others: Option<u32>) -> Option<ChannelId> {
        let end = self.numbers();
        let is_rest_left = |part: u32| self.taken.len() >= end - end.div_ceil(part);
        if left_to_others.is_some_and(is_rest_left) {
            return None;
        }
        let from = self.next.min(end.saturating_sub(1));
        let place = (self.taken.free(from, end)).or_else(|| self.taken.free(0, from))?;
        self.next = place;
        let step = u32::from(self.shard.count.get());
        Some(ChannelId(1 + place * step + u32::from(self.shard.id.0)))
    }

    /// How many numbers there are for the shard to give out.
    fn numbers(&self) -> u32 {
        let above = self
            .given_below
            .saturating_sub(1 + u32::from(self.shard.id.0));
        above.div_ceil(u32::from(self.shard.count.get()))
    }

    /// Where a number is among those that the shard gives out; `None` if it does not.
    fn place(&self, id: ChannelId) -> Option<u32> {
        let Shard { id: own, count } = self.shard;
        let place = id.0.checked_sub(1).filter(|_| id.0 < self.given_below)?;
        let is_own = count.spread(place) == own;
        is_own.then(|| place / u32::from(count.get()))
    }
}

#[cfg(test)]
mod tests {
    use crate::core::shards::{ShardCount, ShardId};

    use super::super::channel::Channel;
    use super::*;

    #[test]
    fn shards_give_out_all_numbers_and_none_twice() {
        let count = ShardCount::new(3).expect("a count");
        let mut given: Vec<u32> = Vec::new();
        for id in count.all() {
            let mut table = ChannelTable::new(11, Shard { id, count });
            table.insert(Channel::new(ChannelId::GLOBAL, 1, None));
            while let Some(number) = table.free_number(None) {
                table.insert(Channel::new(number, 3, None));
                given.push(number.0);
            }
            if id == ShardId(1) {
                table.remove(ChannelId(5));
                assert_eq!(table.free_number(None), Some(ChannelId(5)));
            }
        }
        given.sort_unstable();
        assert_eq!(given, (1..11).collect::<Vec<u32>>());
    }
}
