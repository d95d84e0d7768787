//! The end of a crossing: the entities have another owner and are shown to those who see the
//! cell that they have entered.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use lagometer_protocol::messages::channeldpb::{ChannelDataAccess, ChannelSubscriptionOptions};
use prost_types::Any;

use crate::core::channels::ChannelManager;
use crate::core::channels::handover_message::{Handover, MAX_DATA_BYTES};
use crate::core::channels::outgoing::Envelope;
use crate::core::channels::shard_messages::ShardMessage;
use crate::core::channels::tables::Tables;
use crate::core::ids::{ChannelId, ConnId};

use super::{Crossing, Shown};

/// Data that goes from shard to shard with a handover. Beyond it entities are shown without,
/// and their whole state follows, as it does anyway.
const SHOWN_BYTES: usize = 256 << 10;

impl ChannelManager {
    /// Gives this shard's entities to the server of the cell that they have entered. The last
    /// of their shards shows all of them to those who see it, in one message.
    pub(in crate::core::channels) fn show_crossing(&mut self, mut crossing: Crossing) {
        self.leave_out_gone(&mut crossing);
        self.change_hands(&crossing);
        if let Some(next) = self.tables.next_shard_of(&crossing) {
            self.note_data(&mut crossing);
            self.send_to_shard(next, ShardMessage::ShowCrossing(crossing));
            return;
        }
        if !crossing.objects.is_empty() {
            let handover = crossing.message();
            let only_before = crossing.before.difference(&crossing.after);
            for plain in handover.messages(&BTreeMap::new()) {
                self.tables
                    .send_to_all(only_before.clone().copied(), crossing.change.to, &plain);
            }
            self.announce(&crossing, &handover);
        }
        let here = self.tables.settings.shard.id;
        let shards = self.tables.shards_of(&crossing.together);
        for shard in shards.into_iter().filter(|&shard| shard != here) {
            let crossing = Crossing {
                shown: BTreeMap::new(),
                ..crossing.clone()
            };
            self.send_to_shard(shard, ShardMessage::SubscribeToCrossed(crossing));
        }
        self.did_step(&crossing);
    }

    /// Entities that have gone meanwhile, as some may where there are several shards, are not
    /// in the cell that they were to enter.
    fn leave_out_gone(&mut self, crossing: &mut Crossing) {
        if self.tables.settings.shard.is_whole() {
            return;
        }
        for &id in &crossing.together {
            if self.tables.is_here(id) && !crossing.is_of(&self.tables, id) {
                crossing.objects.remove(&id);
                self.forget_in_cell(crossing.change.to, id);
            }
        }
    }

    /// Subscribes those who see the cell to this shard's entities, after another shard has
    /// shown them with the data that they had then: each gets the whole state.
    pub(in crate::core::channels) fn subscribe_to_crossed(&mut self, crossing: &Crossing) {
        for &member in &crossing.after {
            for &id in crossing.objects.keys() {
                if crossing.is_of(&self.tables, id) && self.tables.is_new_to(id, member) {
                    self.subscribe_to_entity(id, member, false);
                }
            }
        }
        self.did_step(crossing);
    }

    /// Notes the data of this shard's entities, and to whom they are new.
    fn note_data(&self, crossing: &mut Crossing) {
        let entities = crossing.objects.keys().copied();
        let entities: Vec<ChannelId> = entities.filter(|&id| self.tables.is_here(id)).collect();
        for id in entities {
            let members = crossing.after.iter().copied();
            let is_new = |&member: &ConnId| self.tables.is_new_to(id, member);
            let new_to: BTreeSet<ConnId> = members.filter(is_new).collect();
            let shown_bytes = crossing.shown.values().map(|shown| shown.data.value.len());
            let room = SHOWN_BYTES.saturating_sub(shown_bytes.sum());
            let data = self.tables.handover_data(id);
            if let Some(data) = data.filter(|data| !new_to.is_empty() && data.value.len() <= room) {
                crossing.shown.insert(id, Shown { data, new_to });
            }
        }
    }

    /// Subscribes those who see the cell to this shard's entities, and notifies them of all.
    fn announce(&mut self, crossing: &Crossing, handover: &Handover<'_>) {
        // Members to whom the same entities are new get the same message.
        let mut messages: BTreeMap<Vec<ChannelId>, Vec<Bytes>> = BTreeMap::new();
        // Data that no one message can hold comes as a whole state instead.
        let with_data: BTreeSet<ChannelId> = crossing
            .objects
            .keys()
            .copied()
            .filter(|&id| self.tables.fits_a_handover(id))
            .collect();
        for &member in &crossing.after {
            let mut new = Vec::new();
            for &id in crossing.objects.keys() {
                let is_new = if self.tables.is_here(id) {
                    let has_data = with_data.contains(&id);
                    self.subscribe_to_entity(id, member, has_data) && has_data
                } else {
                    let shown = crossing.shown.get(&id);
                    shown.is_some_and(|shown| shown.new_to.contains(&member))
                };
                if is_new {
                    new.push(id);
                }
            }
            let messages = messages.entry(new).or_insert_with_key(|new| {
                let data = new.iter().filter_map(|&id| {
                    let elsewhere = crossing.shown.get(&id).map(|shown| shown.data.clone());
                    Some((id, elsewhere.or_else(|| self.tables.handover_data(id))?))
                });
                handover.messages(&data.collect())
            });
            for message in messages {
                self.tables
                    .send_encoded(member, crossing.change.to, message.clone());
            }
        }
    }

    /// Subscribes somebody to one of this shard's entities. Returns whether it is new to them.
    fn subscribe_to_entity(&mut self, id: ChannelId, member: ConnId, has_data: bool) -> bool {
        let options = ChannelSubscriptionOptions {
            data_access: Some(self.tables.access_of(id, member)),
            skip_self_update_fan_out: Some(true),
            skip_first_fan_out: Some(has_data),
            ..ChannelSubscriptionOptions::default()
        };
        let now = self.tables.now;
        let is_new = self
            .subscriptions
            .subscribe(&mut self.tables, now, id, member, &options);
        if is_new {
            self.tables
                .send_subscribed(member, Envelope::from(id), id, member);
        }
        is_new
    }

    /// Between cells of different servers this shard's entities get another owner, and
    /// so do those that lost theirs while a server was away.
    fn change_hands(&mut self, crossing: &Crossing) {
        let is_there = |owner: &ConnId| self.tables.connections.get(*owner).is_some();
        let (old, new) = (crossing.old_owner, crossing.new_owner.filter(is_there));
        // Cells that nobody has take nothing from whoever has the entities. Where there are
        // several shards one that has none may be of a server that has left, which has not
        // come here: what it leaves goes its own way.
        let is_whole = self.tables.settings.shard.is_whole();
        if new.is_none() && (old.is_none() || !is_whole) {
            return;
        }
        let stays = old.is_some() && old == new;
        for &id in &crossing.together {
            let is_kept = stays && self.tables.owner(id).is_some();
            if is_kept || !crossing.is_of(&self.tables, id) {
                continue;
            }
            // One that stayed its owner's in a cell without a server leaves it now.
            let its_own = self.tables.owner(id).filter(|_| !is_whole);
            let loses_it = old.or(its_own.filter(|&owner| Some(owner) != new));
            if let Some(loser) = loses_it
                && !stays
                && !crossing.after.contains(&loser)
                && self.subscriptions.unsubscribe(&mut self.tables, id, loser)
            {
                self.tables
                    .send_unsubscribed(loser, Envelope::from(id), id, loser);
            }
            self.tables.set_owner(id, new);
        }
    }
}

impl Tables {
    /// The access that somebody who sees an entity has to it.
    fn access_of(&self, id: ChannelId, member: ConnId) -> i32 {
        if self.owner(id) == Some(member) {
            ChannelDataAccess::WriteAccess as i32
        } else {
            ChannelDataAccess::ReadAccess as i32
        }
    }

    /// Whether an entity is new to somebody who comes to see it, or the access to it.
    fn is_new_to(&self, id: ChannelId, member: ConnId) -> bool {
        let channel = self.channels.get(id);
        let subscription = channel.and_then(|channel| channel.subscribers.subscription(member));
        subscription.is_none_or(|it| it.options().access != self.access_of(id, member))
    }

    /// Whether one message can hold an entity's data.
    fn fits_a_handover(&self, id: ChannelId) -> bool {
        let channel = self.channels.get(id);
        let content = channel.and_then(|channel| channel.content());
        content.is_none_or(|content| content.state.encoded_len() <= MAX_DATA_BYTES)
    }

    /// An entity's data, if it has some that one message can hold.
    fn handover_data(&self, id: ChannelId) -> Option<Any> {
        let content = self.channels.get(id)?.content()?;
        self.fits_a_handover(id).then(|| Any {
            type_url: content.type_url.to_string(),
            value: content.state.to_bytes(),
        })
    }
}
