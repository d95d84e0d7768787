//! Several updates become one.

use crate::schema::DataType;
use crate::wire::Reader;

use super::entries::{Removal, Tombstones};
use super::tree::Tree;
use super::{MergeContext, MergeError, MergeLimits};

/// What some updates amount to, as one update.
///
/// Whoever merges the delta stands where the updates one by one would have
/// brought him. That is also why a delta sometimes cannot take an update (see
/// [`Taken::MustFollow`]).
#[derive(Clone, Debug)]
pub struct Delta {
    data: DeltaData,
    is_empty: bool,
}

#[derive(Clone, Debug)]
enum DeltaData {
    Typed { tree: Tree, tombstones: Tombstones },
    Opaque { bytes: Vec<u8>, limits: MergeLimits },
}

/// What became of an update handed to a [`Delta`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Taken {
    /// It is part of the delta.
    Merged,
    /// It brings back what the delta removes: an entry of a map, or a oneof's
    /// message that gave way to another member. In one update the removal
    /// would be lost; it must be sent after this delta, as the first of
    /// another. The delta is as it was.
    MustFollow,
}

impl Delta {
    /// An empty delta. Without a type updates are put one after the other.
    #[must_use]
    pub fn new(data_type: Option<DataType>, limits: MergeLimits) -> Self {
        let data = match data_type {
            Some(data_type) => DeltaData::Typed {
                tree: Tree::new(data_type, limits),
                tombstones: Tombstones::default(),
            },
            None => DeltaData::Opaque {
                bytes: Vec::new(),
                limits,
            },
        };
        Self {
            data,
            is_empty: true,
        }
    }

    /// Merges an update.
    ///
    /// # Errors
    ///
    /// [`MergeError`]; the delta is then as it was.
    pub fn merge(&mut self, update: &[u8], context: &MergeContext) -> Result<Taken, MergeError> {
        let removals = self.merge_and_report(update, context)?;
        Ok(if removals.is_some() {
            Taken::Merged
        } else {
            Taken::MustFollow
        })
    }

    /// Merges an update and returns what it removes; `None` when it must follow.
    pub(super) fn merge_and_report(
        &mut self,
        update: &[u8],
        context: &MergeContext,
    ) -> Result<Option<Vec<Removal>>, MergeError> {
        let removals = match &mut self.data {
            DeltaData::Typed { tree, tombstones } => {
                if tree.disturbs(tombstones, update, context)? {
                    return Ok(None);
                }
                tree.merge(update, context, MergeLimits::NONE, Some(tombstones))?
            }
            DeltaData::Opaque { bytes, limits } => {
                append_opaque(bytes, *limits, update)?;
                Vec::new()
            }
        };
        self.is_empty = false;
        Ok(Some(removals))
    }

    /// Forgets all updates.
    pub fn clear(&mut self) {
        match &mut self.data {
            DeltaData::Typed { tree, tombstones } => {
                tree.clear();
                tombstones.clear();
            }
            DeltaData::Opaque { bytes, .. } => bytes.clear(),
        }
        self.is_empty = true;
    }

    /// How many bytes [`to_bytes`](Self::to_bytes) would give. This walks all of
    /// it.
    #[must_use]
    pub fn encoded_len(&self) -> usize {
        match &self.data {
            DeltaData::Typed { tree, .. } => tree.encoded_len(),
            DeltaData::Opaque { bytes, .. } => bytes.len(),
        }
    }

    /// Whether no update was merged. An update that says nothing counts as
    /// one.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.is_empty
    }

    /// The data taken apart, if its type is known.
    pub(super) fn tree(&self) -> Option<&Tree> {
        match &self.data {
            DeltaData::Typed { tree, .. } => Some(tree),
            DeltaData::Opaque { .. } => None,
        }
    }

    /// Appends the delta as one encoded update.
    pub fn encode(&self, out: &mut Vec<u8>) {
        match &self.data {
            DeltaData::Typed { tree, .. } => tree.encode(out),
            DeltaData::Opaque { bytes, .. } => out.extend_from_slice(bytes),
        }
    }

    /// The delta as one encoded update.
    #[must_use]
    pub fn to_bytes(&self) -> Vec<u8> {
        let mut out = Vec::new();
        self.encode(&mut out);
        out
    }
}

/// Appends to data of a type that is not known: concatenated messages are
/// merged messages, provided that each is whole.
pub(super) fn append_opaque(
    bytes: &mut Vec<u8>,
    limits: MergeLimits,
    update: &[u8],
) -> Result<(), MergeError> {
    let mut reader = Reader::new(update);
    while reader.next_field()?.is_some() {}
    if bytes.len().saturating_add(update.len()) > limits.max_encoded_bytes {
        return Err(limits.exceeded());
    }
    bytes.extend_from_slice(update);
    Ok(())
}
