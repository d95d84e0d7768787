//! The channels there are, by number, and which numbers are free.

mod numbers;

use lagometer_protocol::schema::Schema;
use serde::{Deserialize, Serialize};

use crate::core::by_number::ByNumber;
use crate::core::ids::ChannelId;

use super::channel::{Channel, Data, SavedData};

use numbers::TakenNumbers;

/// All channels.
#[derive(Debug)]
pub(super) struct ChannelTable {
    by_id: ByNumber<ChannelId, Box<Channel>>,
    /// Numbers from here on are not given out: they are cells' and entities'.
    given_below: u32,
    /// Those of the numbers below that are taken.
    taken: TakenNumbers,
    /// Where the search for a free number begins.
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
    /// `given_below`. `None` if the data of one is not of the type that it is said to be of.
    pub(super) fn restore(
        given_below: u32,
        schema: &Schema,
        saved: SavedChannels<Channel>,
    ) -> Option<Self> {
        let mut table = Self::new(given_below);
        for (mut channel, data) in saved.channels {
            if let Some(data) = data {
                channel.data = Some(data.restore(channel.id, schema)?);
            }
            table.insert(channel);
        }
        table.next = saved.next;
        Some(table)
    }

    /// A table without channels, which gives out the numbers from 1 to below
    /// `given_below`.
    pub(super) fn new(given_below: u32) -> Self {
        Self {
            by_id: ByNumber::default(),
            given_below,
            taken: TakenNumbers::default(),
            next: 1,
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
        if id.0 < self.given_below {
            self.taken.insert(id.0);
        }
    }

    /// Takes a channel out; its number is the next to be given out.
    pub(super) fn remove(&mut self, id: ChannelId) {
        self.by_id.remove(&id);
        if id.0 < self.given_below {
            self.taken.remove(id.0);
            self.next = id.0;
        }
    }

    /// The next free number, from the last one on. `None` where all are taken, or all
    /// but one in `left_to_others`.
    pub(super) fn free_number(&mut self, left_to_others: Option<u32>) -> Option<ChannelId> {
        let end = self.given_below;
        let is_rest_left = |part: u32| self.taken.len() >= end - end / part;
        if left_to_others.is_some_and(is_rest_left) {
            return None;
        }
        let from = self.next.clamp(1, end.saturating_sub(1).max(1));
        let number = (self.taken.free(from, end)).or_else(|| self.taken.free(1, from))?;
        self.next = number;
        Some(ChannelId(number))
    }
}
