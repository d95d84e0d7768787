//! Channels that clients made and that outlived them, by the settings of their
//! type.
//!
//! They belong to nobody's budget any more. They are kept up to a number and to so many
//! bytes of data, so that connecting, making and leaving over and over adds up to nothing.
//! Whoever has left most makes room: one address cannot push out what others left, many
//! with little each can.

use std::collections::BTreeMap;
use std::net::IpAddr;
use std::sync::Arc;

use lagometer_limits::{Shares, Weights, source_prefix};
use serde::{Deserialize, Serialize};

use crate::core::ids::ChannelId;

/// Who left orphans: clients behind one address are one, and so are those
/// without an address that log in as the same player.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub(super) enum Maker {
    Address(IpAddr),
    Player(#[serde(with = "text")] Arc<str>),
}

impl Maker {
    pub(super) fn new(address: Option<IpAddr>, player: &str) -> Self {
        match address {
            Some(address) => Self::Address(source_prefix(address)),
            None => Self::Player(player.into()),
        }
    }
}

/// A player's name, written as a text.
mod text {
    use std::sync::Arc;

    use serde::{Deserialize, Deserializer, Serializer};

    pub(super) fn serialize<S: Serializer>(text: &str, to: S) -> Result<S::Ok, S::Error> {
        to.serialize_str(text)
    }

    pub(super) fn deserialize<'de, D: Deserializer<'de>>(from: D) -> Result<Arc<str>, D::Error> {
        Ok(String::deserialize(from)?.into())
    }
}

/// The orphans, by who made them.
#[derive(Debug)]
pub(super) struct Orphans {
    /// By their age: the least is the oldest.
    by_age: BTreeMap<u64, (Maker, ChannelId)>,
    shares: Shares<Maker, u64>,
    data_bytes: Weights<Maker, u64>,
    last: u64,
}

/// What is written down of the orphans: the age, the maker, the channel and the bytes of
/// data of each.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SavedOrphans {
    orphans: Vec<(u64, Maker, ChannelId, usize)>,
    last: u64,
}

impl Default for Orphans {
    fn default() -> Self {
        Self {
            by_age: BTreeMap::new(),
            shares: Shares::default(),
            data_bytes: Weights::new(1),
            last: 0,
        }
    }
}

impl Orphans {
    pub(super) fn save(&self) -> SavedOrphans {
        let orphans = self.by_age.iter().map(|(&age, (maker, id))| {
            let data_bytes = self.data_bytes.amount(age).unwrap_or_default();
            (age, maker.clone(), *id, data_bytes)
        });
        SavedOrphans {
            orphans: orphans.collect(),
            last: self.last,
        }
    }

    pub(super) fn restore(saved: SavedOrphans) -> Self {
        let mut all = Self {
            last: saved.last,
            ..Self::default()
        };
        for (age, maker, id, data_bytes) in saved.orphans {
            all.shares.insert(maker.clone(), age);
            all.data_bytes.set(maker.clone(), age, data_bytes);
            all.by_age.insert(age, (maker, id));
        }
        all
    }

    /// Takes in a channel that has so many bytes of data. Returns its age among the
    /// orphans.
    pub(super) fn add(&mut self, maker: Maker, id: ChannelId, data_bytes: usize) -> u64 {
        self.last += 1;
        self.shares.insert(maker.clone(), self.last);
        self.data_bytes.set(maker.clone(), self.last, data_bytes);
        self.by_age.insert(self.last, (maker, id));
        self.last
    }

    pub(super) fn remove(&mut self, age: u64) -> Option<ChannelId> {
        let (maker, id) = self.by_age.remove(&age)?;
        self.shares.remove(maker, age);
        self.data_bytes.remove(age);
        Some(id)
    }

    /// One has so many bytes of data now.
    pub(super) fn weigh(&mut self, age: u64, data_bytes: usize) {
        if let Some((maker, _)) = self.by_age.get(&age) {
            self.data_bytes.set(maker.clone(), age, data_bytes);
        }
    }

    /// How many bytes of data all have.
    pub(super) fn data_bytes(&self) -> usize {
        self.data_bytes.total()
    }

    pub(super) fn len(&self) -> usize {
        self.by_age.len()
    }

    /// Takes out the oldest channel of whoever has left most; of several the one
    /// whose oldest is oldest.
    pub(super) fn pop(&mut self) -> Option<ChannelId> {
        let age = self.shares.first_to_go(None)?;
        self.remove(age)
    }

    /// Takes out the largest of whoever has left most data.
    pub(super) fn pop_largest(&mut self) -> Option<ChannelId> {
        let age = self.data_bytes.first_to_go()?;
        self.remove(age)
    }
}
