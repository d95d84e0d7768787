//! The handovers that are under way between cells, and those that wait for one, at home.
//!
//! A handover takes several steps, at several shards. Entities that go together take one at a
//! time, so that the steps of two never mix: what moves on meanwhile waits, and where it has
//! moved several times the moves become one.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use serde::{Deserialize, Serialize};

use crate::core::ids::ChannelId;

use super::handover::CellChange;

/// One that is under way.
#[derive(Debug, Serialize, Deserialize)]
struct UnderWay {
    entities: BTreeSet<ChannelId>,
    change: CellChange,
    /// So many shards have to do their part yet.
    steps_left: usize,
    /// Those that are in the new cell.
    went: BTreeSet<ChannelId>,
    /// Entities that have moved and wait for its end.
    held_up: Vec<ChannelId>,
}

/// All of them.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Handovers {
    last: u64,
    under_way: BTreeMap<u64, UnderWay>,
    /// Which of them an entity is part of.
    busy: BTreeMap<ChannelId, u64>,
    /// The moves that wait, by entity.
    waiting: BTreeMap<ChannelId, CellChange>,
    /// Those of them that are to be looked at, in order.
    to_begin: VecDeque<ChannelId>,
}

/// What comes of a move.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Begun {
    /// A handover with this number, of these.
    Handover(u64, BTreeSet<ChannelId>),
    /// Nothing: there is no such entity, or it is locked.
    Nothing,
}

impl Handovers {
    /// The channels began in this epoch: no number of an earlier one is used again.
    pub(super) fn began_in(&mut self, epoch: u64) {
        self.last = epoch << 32;
    }

    /// How many are under way.
    pub(super) fn under_way(&self) -> usize {
        self.under_way.len()
    }

    /// An entity has moved from one cell to another.
    pub(super) fn ask(&mut self, entity: ChannelId, change: CellChange) {
        let Some(before) = self.waiting.get_mut(&entity) else {
            self.waiting.insert(entity, change);
            self.to_begin.push_back(entity);
            return;
        };
        // One that does not go on where the last ended knows better where the entity is.
        let goes_on = before.to == change.from;
        *before = CellChange {
            from: if goes_on { before.from } else { change.from },
            ..change
        };
    }

    /// An entity is gone. Returns the cell that it was to leave.
    pub(super) fn cancel(&mut self, entity: ChannelId) -> Option<ChannelId> {
        self.waiting.remove(&entity).map(|change| change.from)
    }

    /// Takes out the next move of which nothing is under way with those that go along.
    pub(super) fn begin(
        &mut self,
        together: impl Fn(ChannelId) -> BTreeSet<ChannelId>,
        steps: impl Fn(&BTreeSet<ChannelId>) -> usize,
    ) -> Option<(ChannelId, CellChange, Begun)> {
        while let Some(entity) = self.to_begin.pop_front() {
            let Some(&change) = self.waiting.get(&entity) else {
                continue;
            };
            let entities = together(entity);
            let blocked_by = entities.iter().find_map(|id| self.busy.get(id));
            if let Some(under_way) = blocked_by.and_then(|number| self.under_way.get_mut(number)) {
                under_way.held_up.push(entity);
                continue;
            }
            self.waiting.remove(&entity);
            if change.from == change.to {
                continue;
            }
            if entities.is_empty() {
                return Some((entity, change, Begun::Nothing));
            }
            self.last += 1;
            let number = self.last;
            self.busy.extend(entities.iter().map(|&id| (id, number)));
            let under_way = UnderWay {
                entities: entities.clone(),
                change,
                steps_left: steps(&entities),
                went: BTreeSet::new(),
                held_up: Vec::new(),
            };
            self.under_way.insert(number, under_way);
            return Some((entity, change, Begun::Handover(number, entities)));
        }
        None
    }

    /// A shard has done its part of one, after which these are in the new cell; or nothing more
    /// comes of it.
    pub(super) fn did_step(&mut self, number: u64, went: BTreeSet<ChannelId>, is_over: bool) {
        let Some(under_way) = self.under_way.get_mut(&number) else {
            return;
        };
        under_way.steps_left = under_way.steps_left.saturating_sub(1);
        under_way.went.extend(went);
        if is_over || under_way.steps_left == 0 {
            self.end(number);
        }
    }

    /// These entities and cells are lost: of what is under way with them nothing more comes.
    pub(super) fn forget(&mut self, is_lost: impl Fn(ChannelId) -> bool) {
        let with_lost = self.under_way.iter().filter(|(_, under_way)| {
            let CellChange { from, to, .. } = under_way.change;
            let entities = under_way.entities.iter().copied();
            entities.chain([from, to]).any(&is_lost)
        });
        let numbers: Vec<u64> = with_lost.map(|(&number, _)| number).collect();
        for number in numbers {
            self.end(number);
        }
    }

    fn end(&mut self, number: u64) {
        let Some(ended) = self.under_way.remove(&number) else {
            return;
        };
        for id in &ended.entities {
            self.busy.remove(id);
            // It has come along: it leaves the new cell, if it has moved itself.
            if let Some(waiting) = self.waiting.get_mut(id)
                && ended.went.contains(id)
                && waiting.from == ended.change.from
            {
                waiting.from = ended.change.to;
            }
        }
        self.to_begin.extend(ended.held_up);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(from: u32, to: u32) -> CellChange {
        CellChange {
            from: ChannelId(from),
            to: ChannelId(to),
            context: 0,
        }
    }

    /// Entities 1 and 2 go together, 9 is none, all others go alone.
    fn together(id: ChannelId) -> BTreeSet<ChannelId> {
        match id.0 {
            1 | 2 => [ChannelId(1), ChannelId(2)].into(),
            9 => BTreeSet::new(),
            _ => [id].into(),
        }
    }

    fn begin(handovers: &mut Handovers) -> Option<(u64, u32, CellChange)> {
        match handovers.begin(together, |_| 2)? {
            (entity, change, Begun::Handover(number, _)) => Some((number, entity.0, change)),
            (entity, change, Begun::Nothing) => Some((0, entity.0, change)),
        }
    }

    /// A shard has done its part, and all that go together went.
    fn did_step(handovers: &mut Handovers, number: u64) {
        let went = [1, 2, 3].map(ChannelId);
        handovers.did_step(number, went.into(), false);
    }

    #[test]
    fn those_that_go_together_take_one_at_a_time() {
        let mut handovers = Handovers::default();
        handovers.ask(ChannelId(1), change(10, 11));
        handovers.ask(ChannelId(2), change(11, 12));
        handovers.ask(ChannelId(3), change(10, 11));
        assert_eq!(begin(&mut handovers), Some((1, 1, change(10, 11))));
        assert_eq!(begin(&mut handovers), Some((2, 3, change(10, 11))));
        assert_eq!(begin(&mut handovers), None, "2 goes with 1");
        did_step(&mut handovers, 1);
        assert_eq!(begin(&mut handovers), None, "one step of 1 is left");
        did_step(&mut handovers, 1);
        assert_eq!(begin(&mut handovers), Some((3, 2, change(11, 12))));
        handovers.did_step(3, BTreeSet::new(), true);
        did_step(&mut handovers, 3);
        assert_eq!(handovers.under_way(), 1, "it was over");
    }

    #[test]
    fn what_moves_on_while_it_waits_goes_at_once_to_where_it_is_then() {
        let mut handovers = Handovers::default();
        handovers.ask(ChannelId(1), change(10, 11));
        assert!(begin(&mut handovers).is_some());
        handovers.ask(ChannelId(2), change(11, 12));
        handovers.ask(ChannelId(2), change(12, 13));
        handovers.ask(ChannelId(1), change(11, 12));
        handovers.ask(ChannelId(1), change(12, 11));
        assert_eq!(begin(&mut handovers), None);
        handovers.did_step(1, BTreeSet::new(), true);
        assert_eq!(begin(&mut handovers), Some((2, 2, change(11, 13))));
        assert_eq!(begin(&mut handovers), None);
        handovers.did_step(2, BTreeSet::new(), true);
        assert_eq!(begin(&mut handovers), None, "1 is where it was");
    }

    #[test]
    fn what_was_taken_along_leaves_the_cell_it_was_taken_to() {
        let mut handovers = Handovers::default();
        handovers.ask(ChannelId(1), change(10, 11));
        assert!(begin(&mut handovers).is_some());
        // The other reports the same border, and the next.
        handovers.ask(ChannelId(2), change(10, 11));
        handovers.ask(ChannelId(2), change(11, 12));
        assert_eq!(begin(&mut handovers), None);
        did_step(&mut handovers, 1);
        did_step(&mut handovers, 1);
        assert_eq!(begin(&mut handovers), Some((2, 2, change(11, 12))));
        // One that reports only the border that it was taken over has nothing to do.
        handovers.ask(ChannelId(1), change(11, 12));
        assert_eq!(begin(&mut handovers), None);
        did_step(&mut handovers, 2);
        did_step(&mut handovers, 2);
        assert_eq!(begin(&mut handovers), None);
        assert_eq!(handovers.under_way(), 0);
    }

    #[test]
    fn what_is_lost_or_gone_holds_up_nothing() {
        let mut handovers = Handovers::default();
        handovers.ask(ChannelId(9), change(10, 11));
        handovers.ask(ChannelId(1), change(10, 11));
        assert_eq!(begin(&mut handovers), Some((0, 9, change(10, 11))));
        assert_eq!(begin(&mut handovers), Some((1, 1, change(10, 11))));
        handovers.ask(ChannelId(1), change(11, 12));
        handovers.ask(ChannelId(2), change(11, 12));
        assert_eq!(begin(&mut handovers), None);
        assert_eq!(handovers.cancel(ChannelId(2)), Some(ChannelId(11)));
        handovers.forget(|id| id == ChannelId(11));
        assert_eq!(begin(&mut handovers), Some((2, 1, change(11, 12))));
        assert_eq!(begin(&mut handovers), None);
    }
}
