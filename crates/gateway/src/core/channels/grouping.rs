//! What is asked of the [groups](super::entity_groups) of entities: who may, and which
//! entities.
//!
//! An entity's owner asks on its channel, whose shard knows that; home, which has the groups,
//! does it. A client may group only what is its own: for that each shard looks through what is
//! asked for first, and leaves out what of its own entities is not.

use lagometer_protocol::messages::channeldpb::{
    AddEntityGroupMessage, ChannelType, EntityGroupType, RemoveEntityGroupMessage,
};
use serde::{Deserialize, Serialize};

use crate::core::budget::Budget;
use crate::core::ids::ChannelId;
use crate::core::shards::ShardId;

use super::ChannelManager;
use super::dispatch::Request;
use super::entity_groups::Bond;
use super::shard_messages::ShardMessage;

/// Entities that are to be put into the group of one, or taken out of it.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct GroupChange {
    /// On that one's channel.
    request: Request,
    bond: Bond,
    /// Put into it rather than taken out.
    is_added: bool,
    entities: Vec<ChannelId>,
    /// Not all shards have looked yet which of them are the sender's: others are left out.
    is_unchecked: bool,
}

impl ChannelManager {
    pub(super) fn group_add(&mut self, request: &Request, message: &AddEntityGroupMessage) {
        self.group(request, message.r#type, true, &message.entities_to_add);
    }

    pub(super) fn group_remove(&mut self, request: &Request, message: &RemoveEntityGroupMessage) {
        self.group(request, message.r#type, false, &message.entities_to_remove);
    }

    fn group(&mut self, request: &Request, kind: i32, is_added: bool, entities: &[u32]) {
        let Some(bond) = self.group_kind(request, kind) else {
            return;
        };
        if !self.tables.pays(request, 1) {
            return;
        }
        let most = self.tables.budgets_of(request).group_size;
        // The request is cut to what a group may hold.
        if entities.len() > most {
            self.tables.over_budget(request, Budget::GroupSize);
        }
        let entities = entities.iter().take(most);
        let change = GroupChange {
            request: *request,
            bond,
            is_added,
            entities: entities.copied().map(ChannelId).collect(),
            is_unchecked: !self.tables.may_act_for_others(request),
        };
        self.send_to_shard(ShardId::HOME, ShardMessage::ChangeGroup(change));
    }

    /// Does this shard's part.
    pub(super) fn change_group(&mut self, mut change: GroupChange) {
        if !change.is_unchecked {
            self.regroup(change);
            return;
        }
        let (tables, sender) = (&self.tables, change.request.from);
        let is_its_own = |&id: &ChannelId| !tables.is_here(id) || tables.owner(id) == Some(sender);
        change.entities.retain(is_its_own);
        let shard = tables.settings.shard;
        let next = shard.count.after(shard.id);
        change.is_unchecked = next.is_some();
        self.send_to_shard(
            next.unwrap_or(ShardId::HOME),
            ShardMessage::ChangeGroup(change),
        );
    }

    fn regroup(&mut self, change: GroupChange) {
        let request = change.request.at(self.tables.now);
        let GroupChange {
            bond, mut entities, ..
        } = change;
        if !self.tables.settings.shard.is_whole() {
            // It may have gone while the change was on its way.
            if !self.groups.has_entity(request.channel) {
                return;
            }
            let most = self.tables.budgets_of(&request).group_size;
            entities.retain(|&id| {
                let is_known = self.groups.has_entity(id);
                if !is_known && change.is_added {
                    // It may have been made in another shard, which has not said so yet.
                    self.groups.expect(id, request.channel, bond, most);
                } else if !is_known {
                    self.groups.expect_no_more(id, bond);
                }
                is_known
            });
        }
        if change.is_added {
            let most = self.tables.budgets_of(&request).group_size;
            let grouped = self.groups.add(request.channel, bond, entities, most);
            self.tables.worked(&request, grouped.looked_at as u64);
            if grouped.is_full {
                self.tables.refuse(&request, Budget::GroupSize);
            }
        } else {
            self.tables.worked(&request, entities.len() as u64);
            if !self.groups.remove(request.channel, bond, entities) {
                self.tables
                    .drop_message(&request, "the entity is in no such group");
            }
        }
    }

    /// What kind of group a message is about, if it is in order.
    fn group_kind(&mut self, request: &Request, number: i32) -> Option<Bond> {
        let is_owner = self.tables.owner(request.channel) == Some(request.from);
        if !is_owner || !self.tables.is_of_kind(request.channel, ChannelType::Entity) {
            self.tables
                .drop_message(request, "only an entity's owner groups it");
            return None;
        }
        match EntityGroupType::try_from(number) {
            Ok(EntityGroupType::Handover) => Some(Bond::Handover),
            Ok(EntityGroupType::Lock) => Some(Bond::Lock),
            Err(_) => {
                self.tables
                    .drop_message(request, "there is no such kind of group");
                None
            }
        }
    }
}
