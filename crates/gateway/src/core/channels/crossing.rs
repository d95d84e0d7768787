//! What follows where entities [cross](super::handover) the edge of a cell: a handover.
//!
//! Home, which knows who goes along and has those that go together take [one handover at a
//! time](super::handovers), has it done: the shards of the entities say which objects they are,
//! the one of the cell that they leave who sees them, the one of the cell that they enter takes
//! them in; then the entities get another owner, each by its own shard, the last of which shows
//! them to those who see the cell ([`showing`]).

mod showing;

use std::collections::{BTreeMap, BTreeSet};

use lagometer_protocol::messages::unrealpb::UnrealObjectRef;
use prost::Message;
use prost_types::Any;
use serde::{Deserialize, Serialize};

use crate::core::events::Event;
use crate::core::ids::{ChannelId, ConnId};
use crate::core::shards::ShardId;

use super::ChannelManager;
use super::entity::Object;
use super::handover::CellChange;
use super::handover_message::Handover;
use super::handovers::Begun;
use super::shard_messages::ShardMessage;
use super::tables::Tables;
use super::unreal::OBJ_REF;

/// References to objects that go from shard to shard with a handover. Those of a group that
/// has more do not go: a reference is some hundred bytes long.
const OBJECT_BYTES: usize = 256 << 10;

/// A handover that is under way, and what is known of it so far.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Crossing {
    number: u64,
    /// The one that has moved.
    entity: ChannelId,
    change: CellChange,
    /// All that go, that one among them.
    together: BTreeSet<ChannelId>,
    /// What they are, as far as they say so.
    objects: BTreeMap<ChannelId, Object>,
    /// Which of all that had their numbers they are.
    serials: BTreeMap<ChannelId, u64>,
    /// The servers of the cells.
    old_owner: Option<ConnId>,
    new_owner: Option<ConnId>,
    /// Who is subscribed to the cells.
    before: BTreeSet<ConnId>,
    after: BTreeSet<ConnId>,
    /// What entities of other shards than the last are shown with.
    shown: BTreeMap<ChannelId, Shown>,
}

impl Crossing {
    fn new(
        number: u64,
        entity: ChannelId,
        change: CellChange,
        together: BTreeSet<ChannelId>,
    ) -> Self {
        Self {
            number,
            entity,
            change,
            together,
            objects: BTreeMap::new(),
            serials: BTreeMap::new(),
            old_owner: None,
            new_owner: None,
            before: BTreeSet::new(),
            after: BTreeSet::new(),
            shown: BTreeMap::new(),
        }
    }

    /// Whether one of this shard's entities is the one that goes, and is there.
    fn is_of(&self, tables: &Tables, id: ChannelId) -> bool {
        let serial = tables.entity_serial(id);
        serial.is_some() && serial.as_ref() == self.serials.get(&id)
    }

    fn object_bytes(&self) -> usize {
        let objects = self.objects.values();
        objects.map(|Object(object)| object.encoded_len()).sum()
    }

    /// What is sent of it.
    fn message(&self) -> Handover<'_> {
        Handover {
            change: self.change,
            objects: &self.objects,
        }
    }
}

/// An entity's data, for those to whom it is new.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Shown {
    #[serde(with = "super::protobuf")]
    data: Any,
    new_to: BTreeSet<ConnId>,
}

impl ChannelManager {
    /// An entity has moved from one cell to another.
    pub(super) fn moved(&mut self, entity: ChannelId, change: CellChange) {
        self.handovers.ask(entity, change);
        self.begin_crossings();
    }

    /// Begins the handovers that wait for nothing. What that leads to may end others, whose
    /// successors are begun by the same loop.
    pub(super) fn begin_crossings(&mut self) {
        if std::mem::replace(&mut self.begins_crossings, true) {
            return;
        }
        loop {
            let (tables, groups) = (&self.tables, &self.groups);
            // Each of the entities' shards has a part in it, and the one of the cell that they
            // leave.
            let steps = |together: &BTreeSet<ChannelId>| tables.shards_of(together).len() + 1;
            let begun = self.handovers.begin(|id| groups.together(id), steps);
            match begun {
                Some((entity, change, Begun::Handover(number, together))) => {
                    let first = self.tables.first_shard_of(&together);
                    let crossing = Crossing::new(number, entity, change, together);
                    self.send_to_shard(first, ShardMessage::CollectObjects(crossing));
                }
                Some((entity, change, Begun::Nothing)) if !self.groups.has_entity(entity) => {
                    self.forget_in_cell(change.from, entity);
                }
                Some(_) => {}
                None => break,
            }
        }
        self.begins_crossings = false;
    }

    /// There is no such entity any more: it is in no cell either.
    pub(super) fn forget_in_cell(&mut self, cell: ChannelId, entity: ChannelId) {
        // In one process nothing is under way when an entity goes.
        if !self.tables.settings.shard.is_whole() {
            self.send_to_shard_of(cell, ShardMessage::ForgetInCell { cell, entity });
        }
    }

    /// Notes which objects this shard's entities are. Without its object's reference nobody
    /// could know what came over.
    pub(super) fn collect_objects(&mut self, mut crossing: Crossing) {
        let mut unknown = Vec::new();
        let is_whole = self.tables.settings.shard.is_whole();
        for &id in &crossing.together {
            if let Some(object) = self.tables.object(id) {
                crossing.objects.insert(id, Object(object));
            }
            if let Some(serial) = self.tables.entity_serial(id) {
                crossing.serials.insert(id, serial);
            }
            if self.tables.is_here(id) && !crossing.objects.contains_key(&id) {
                unknown.push(id);
            }
        }
        for id in unknown {
            if self.tables.channels.contains_key(id) {
                self.leaves_unknown(id);
            } else {
                self.forget_in_cell(crossing.change.from, id);
            }
        }
        if let Some(next) = self.tables.next_shard_of(&crossing) {
            self.send_to_shard(next, ShardMessage::CollectObjects(crossing));
        } else if crossing.objects.contains_key(&crossing.entity)
            && (is_whole || crossing.object_bytes() <= OBJECT_BYTES)
        {
            self.send_to_shard_of(crossing.change.from, ShardMessage::LeaveCell(crossing));
        } else {
            self.ends_early(&crossing);
        }
    }

    /// Notes who sees the entities in the cell that they leave.
    pub(super) fn leave_cell(&mut self, mut crossing: Crossing) {
        let from = crossing.change.from;
        if !self.tables.channels.contains_key(from) {
            self.ends_early(&crossing);
            return;
        }
        crossing.old_owner = self.tables.owner(from);
        crossing.before = self.tables.subscribers(from).collect();
        self.send_to_shard_of(crossing.change.to, ShardMessage::EnterCell(crossing));
    }

    /// Takes entities into a cell's data, and has the other shards do the rest.
    pub(super) fn enter_cell(&mut self, mut crossing: Crossing) {
        let CellChange { from, to, .. } = crossing.change;
        if !self.tables.channels.contains_key(to) {
            self.ends_early(&crossing);
            return;
        }
        self.tables.charge_cause(0, crossing.together.len());
        crossing.new_owner = self.tables.owner(to);
        crossing.after = self.tables.subscribers(to).collect();
        for (&entity, Object(object)) in &crossing.objects {
            self.add_entity_to(to, entity.0, object);
            self.tables.telemetry.counters.handovers += 1;
            self.tables
                .telemetry
                .event(Event::HandedOver { entity, from, to });
        }
        self.send_to_shard_of(from, ShardMessage::RemoveFromCell(crossing.clone()));
        let first = self.tables.first_shard_of(&crossing.together);
        self.send_to_shard(first, ShardMessage::ShowCrossing(crossing));
    }

    /// Removes entities from the data of the cell that they have left. Who has come to see it
    /// since it was looked who does has them still, and is notified by this shard.
    pub(super) fn remove_from_cell(&mut self, crossing: &Crossing) {
        for entity in crossing.objects.keys() {
            self.remove_entity_from(crossing.change.from, entity.0);
        }
        let since = self.tables.subscribers(crossing.change.from);
        let since =
            since.filter(|id| !crossing.before.contains(id) && !crossing.after.contains(id));
        let since: Vec<ConnId> = since.collect();
        if !since.is_empty() {
            for plain in crossing.message().messages(&BTreeMap::new()) {
                self.tables
                    .send_to_all(since.iter().copied(), crossing.change.to, &plain);
            }
        }
        self.did_step(crossing);
    }

    fn did_step(&mut self, crossing: &Crossing) {
        let went = crossing.objects.keys().copied().collect();
        self.report_step(crossing.number, went, false);
    }

    /// Nothing more comes of a handover.
    pub(super) fn ends_early(&mut self, crossing: &Crossing) {
        self.report_step(crossing.number, BTreeSet::new(), true);
    }

    fn report_step(&mut self, number: u64, went: BTreeSet<ChannelId>, is_over: bool) {
        let message = ShardMessage::Crossed {
            number,
            went,
            is_over,
        };
        self.send_to_shard(ShardId::HOME, message);
    }

    /// A shard has done its part.
    pub(super) fn crossed(&mut self, number: u64, went: BTreeSet<ChannelId>, is_over: bool) {
        self.handovers.did_step(number, went, is_over);
        // What has waited for it is not at the cost of whoever moved here.
        let cause = self.tables.cause.take();
        self.begin_crossings();
        self.tables.cause = cause;
    }
}

impl Tables {
    /// The shards of entities, in the order in which they have their turns.
    fn shards_of(&self, entities: &BTreeSet<ChannelId>) -> BTreeSet<ShardId> {
        let map = self.settings.shard_map();
        entities.iter().map(|&id| map.shard_of(id)).collect()
    }

    fn first_shard_of(&self, entities: &BTreeSet<ChannelId>) -> ShardId {
        let shards = self.shards_of(entities);
        shards.first().copied().unwrap_or(ShardId::HOME)
    }

    /// The shard of entities that cross whose turn comes after this one's.
    fn next_shard_of(&self, crossing: &Crossing) -> Option<ShardId> {
        let here = self.settings.shard.id;
        let shards = self.shards_of(&crossing.together);
        shards.into_iter().find(|&shard| shard > here)
    }

    fn subscribers(&self, id: ChannelId) -> impl Iterator<Item = ConnId> {
        self.channels
            .get(id)
            .into_iter()
            .flat_map(|channel| channel.subscribers.ids())
    }

    /// The reference in an entity's data.
    pub(super) fn object(&self, id: ChannelId) -> Option<UnrealObjectRef> {
        let channel = self.channels.get(id)?;
        let encoded = channel.content()?.state.message(&[OBJ_REF])?;
        UnrealObjectRef::decode(&*encoded).ok()
    }
}
