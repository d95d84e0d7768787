//! Channel data of a known type, taken apart: what a state and a delta share.

use crate::schema::DataType;
use crate::schema::layout::{Kind, Shape};
use crate::schema::rules::Rule;
use crate::wire::{Reader, WireError};

use super::check::check;
use super::encode::encode_message;
use super::entries::{EntryWork, Removal, Tombstones, entry_value};
use super::fields::{Entry, append_elements, drop_empty_list, merge_single};
use super::lists::TouchedLists;
use super::node::Node;
use super::oneofs::switches;
use super::saved::Counts;
use super::size::message_len;
use super::{MergeContext, MergeError, MergeLimits, MergeOptions};

#[derive(Clone, Debug)]
pub(super) struct Tree {
    pub(super) data_type: DataType,
    pub(super) root: Node,
    limits: MergeLimits,
    /// At least the size the data encodes to.
    len_bound: usize,
    /// Bytes that updates have brought since the data was counted last, those that were
    /// refused among them.
    since_count: usize,
    /// Nothing was merged since then: what does not fit still does not.
    is_count_exact: bool,
    /// Elements and bytes of the stored data that updates had to have looked at.
    work: usize,
}

/// Counting so many bytes is about as much work as looking at one element of a list.
const COUNTED_PER_ELEMENT: usize = 8;

/// Data that is nearly as large as it may be is counted anew once updates have
/// brought so large a part of the limit, one in so many: counting at each of
/// them would let a peer make the gateway walk megabytes for every few bytes.
/// Until then updates are refused.
const COUNT_AFTER: usize = 16;

/// An update takes up to so many times its bytes once merged: a negative number
/// may be written in five bytes instead of ten, an entry's key or value be
/// absent, a length grow.
const GROWTH: usize = 3;

impl Tree {
    pub(super) fn new(data_type: DataType, limits: MergeLimits) -> Self {
        Self {
            data_type,
            root: Node::default(),
            limits,
            len_bound: 0,
            since_count: usize::MAX,
            is_count_exact: false,
            work: 0,
        }
    }

    /// How many elements of the stored data were looked at since this was last asked, to
    /// merge updates that brought few: what counting takes is given in such elements, too.
    pub(super) fn take_work(&mut self) -> usize {
        std::mem::take(&mut self.work)
    }

    pub(super) fn limits(&self) -> MergeLimits {
        self.limits
    }

    pub(super) fn counts(&self) -> Counts {
        Counts {
            len_bound: self.len_bound,
            since_count: self.since_count,
            is_count_exact: self.is_count_exact,
            work: self.work,
        }
    }

    /// It goes on with what another has counted.
    pub(super) fn go_on(&mut self, limits: MergeLimits, counts: Counts) {
        self.limits = limits;
        self.len_bound = counts.len_bound;
        self.since_count = counts.since_count;
        self.is_count_exact = counts.is_count_exact;
        self.work = counts.work;
    }

    pub(super) fn clear(&mut self) {
        self.root.clear();
        self.len_bound = 0;
        self.since_count = usize::MAX;
        self.is_count_exact = false;
    }

    /// Takes `data` in as it is: nothing is skipped, removed or cut.
    pub(super) fn load(&mut self, data: &[u8]) -> Result<(), MergeError> {
        let layouts = self.data_type.layouts();
        let index = self.data_type.index();
        check(layouts, index, data)?;
        if data.len() > self.limits.max_encoded_bytes {
            return Err(self.limits.exceeded());
        }
        let layout = self.data_type.layout();
        let mut root = Node::default();
        let mut reader = Reader::new(data);
        while let Some(field) = reader.next_field()? {
            let Some(known) = layout.known(&field) else {
                root.keep_unknown(field.raw);
                continue;
            };
            match known.shape {
                Shape::Single { .. } => merge_single(&mut root, layouts, index, known, &field)?,
                Shape::List { kind, .. } => {
                    append_elements(root.list_or_empty(field.number), kind, &field)?;
                    drop_empty_list(&mut root, field.number);
                }
                Shape::Map { key, value, .. } => {
                    let entry = Entry::read(key, value, field.bytes()?)?;
                    let value = entry_value(layouts, known, entry.value)?;
                    root.map_or_empty(field.number).insert(entry.key, value);
                }
            }
        }
        self.root = root;
        self.len_bound = self.encoded_len();
        self.since_count = usize::MAX;
        self.is_count_exact = false;
        Ok(())
    }

    /// Merges an update. With `tombstones` removals are kept as entries. The data may
    /// not grow beyond `limits`, nor beyond those that hold for all.
    pub(super) fn merge(
        &mut self,
        update: &[u8],
        context: &MergeContext,
        limits: MergeLimits,
        mut tombstones: Option<&mut Tombstones>,
    ) -> Result<Vec<Removal>, MergeError> {
        check(self.data_type.layouts(), self.data_type.index(), update)?;
        self.make_room_within(update.len(), limits)?;

        let options = self.options(context);
        let layouts = self.data_type.layouts();
        let index = self.data_type.index();
        let layout = self.data_type.layout();
        let mut lists = TouchedLists::default();
        let mut entries = EntryWork::default();
        let mut reader = Reader::new(update);
        while let Some(field) = reader.next_field()? {
            let Some(known) = layout.known(&field) else {
                self.root.keep_unknown(field.raw);
                continue;
            };
            match known.shape {
                _ if known.rule == Rule::Skip => {}
                Shape::Single { .. } => {
                    merge_single(&mut self.root, layouts, index, known, &field)?;
                }
                Shape::List { kind, .. } => {
                    lists.merge(&mut self.root, known.number, kind, &field, options)?;
                }
                Shape::Map { .. } => entries.merge(
                    &mut self.root,
                    layouts,
                    known,
                    &field,
                    options,
                    tombstones.as_deref_mut(),
                )?,
            }
        }
        let layout_of = |number| layout.field(number);
        let is_delta = tombstones.is_some();
        self.work += lists.finish(&mut self.root, layout, options, context, is_delta);
        Ok(entries.finish(&mut self.root, layout_of, tombstones))
    }

    /// Whether `update`, merged into this delta, would undo what a part of the
    /// delta did to the data it will be merged into.
    pub(super) fn disturbs(
        &self,
        tombstones: &Tombstones,
        update: &[u8],
        context: &MergeContext,
    ) -> Result<bool, WireError> {
        let layouts = self.data_type.layouts();
        let index = self.data_type.index();
        let layout = self.data_type.layout();
        if layout.has_message_oneofs && switches(&self.root, layouts, index, update)? {
            return Ok(true);
        }
        if tombstones.is_empty() {
            return Ok(false);
        }
        let options = self.options(context);
        let mut reader = Reader::new(update);
        while let Some(field) = reader.next_field()? {
            if let Some(known) = layout.known(&field)
                && tombstones.are_disturbed_by(known, &field, options)?
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Makes sure that `more_bytes` can be added without passing the limit.
    pub(super) fn make_room(&mut self, more_bytes: usize) -> Result<(), MergeError> {
        self.make_room_within(more_bytes, self.limits)
    }

    fn make_room_within(
        &mut self,
        more_bytes: usize,
        limits: MergeLimits,
    ) -> Result<(), MergeError> {
        let limits = limits.or_less(self.limits);
        let limit = limits.max_encoded_bytes;
        self.since_count = self.since_count.saturating_add(more_bytes);
        if self.len_bound.saturating_add(more_bytes) > limit {
            // Data that is larger than this limit takes longer to count.
            let is_too_soon = self.since_count < limit.max(self.len_bound) / COUNT_AFTER;
            if self.is_count_exact || is_too_soon {
                return Err(limits.exceeded());
            }
            // Most updates overwrite; only now is it worth counting.
            self.len_bound = self.encoded_len();
            self.since_count = 0;
            self.is_count_exact = true;
            self.work += self.len_bound / COUNTED_PER_ELEMENT;
            if self.len_bound.saturating_add(more_bytes) > limit {
                return Err(limits.exceeded());
            }
        }
        self.len_bound += GROWTH * more_bytes;
        self.is_count_exact = false;
        Ok(())
    }

    pub(super) fn encode(&self, out: &mut Vec<u8>) {
        encode_message(
            &self.root,
            self.data_type.layouts(),
            self.data_type.index(),
            out,
        );
    }

    pub(super) fn len_bound(&self) -> usize {
        self.len_bound
    }

    pub(super) fn encoded_len(&self) -> usize {
        message_len(&self.root, self.data_type.layouts(), self.data_type.index())
    }

    /// The message index of a field that is a message, neither list nor map.
    pub(super) fn message_index(&self, number: u32) -> Option<usize> {
        match self.data_type.layout().field(number)?.shape {
            Shape::Single {
                kind: Kind::Message(index),
                ..
            } => Some(index),
            _ => None,
        }
    }

    fn options(&self, context: &MergeContext) -> MergeOptions {
        context.options.unwrap_or(MergeOptions {
            remove_entries: self.data_type.layout().has_rules,
            ..MergeOptions::default()
        })
    }
}
