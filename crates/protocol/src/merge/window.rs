//! One delta for many subscribers, each of whom is to get all but his own.

use std::collections::{BTreeMap, BTreeSet, btree_map};
use std::ops::Range;

use crate::schema::DataType;
use crate::schema::layout::{Layout, Shape};
use crate::schema::rules::Rule;
use crate::wire::{Reader, WireError};

use super::delta::{Delta, Taken};
use super::encode::{encode_entry, encode_slot, encode_unknown};
use super::fields::entry_key;
use super::key::Key;
use super::node::{Slot, UNKNOWN, Value};
use super::tree::Tree;
use super::{MergeContext, MergeError, MergeLimits, overlay, side_by_side};

/// The updates of a window of time, merged, with the knowledge of who sent
/// what.
///
/// A subscriber usually does not want to receive its own updates. Instead
/// of merging anew for each of them, a window is encoded once, sender by
/// sender, and what a subscriber sent himself is cut out as one range of the
/// bytes. Only where two senders touched the same thing (a field of the data,
/// or one entry of a map) does that not work for these two.
///
/// ```
/// use lagometer_protocol::merge::{MergeContext, MergeLimits, Window};
///
/// // Without a type what is known of the data is who sent it.
/// let mut window = Window::new(None, MergeLimits::default());
/// window.merge(7, &[0x08, 1], &MergeContext::default())?;
/// let encoded = window.encode();
/// assert_eq!(encoded.all(), [0x08, 1]);
/// assert_eq!(encoded.without(8), Some([&[0x08, 1][..], &[]]));
/// assert_eq!(encoded.without(7), Some([&[][..], &[]]));
/// # Ok::<_, lagometer_protocol::merge::MergeError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Window {
    delta: Delta,
    senders: Senders,
}

/// Who sent what is in the window.
#[derive(Clone, Debug, Default)]
enum Senders {
    #[default]
    Nobody,
    /// As long as there is one sender, it need not be noted what he sent.
    One(u32),
    Many {
        owners: BTreeMap<Piece, Owner>,
        /// Senders of a piece that has more than one.
        contested: BTreeSet<u32>,
    },
}

/// What is cut out whole: an entry of a map, or a field that is no map. The
/// members of a oneof are one field.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Piece {
    field: u32,
    key: Option<Key>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Owner {
    One(u32),
    Several,
}

/// A [`Window`], encoded.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct WindowBytes {
    pub(super) bytes: Vec<u8>,
    /// What each sender sent, in order of the senders; `None` where that
    /// cannot be cut out.
    pub(super) own: Vec<(u32, Option<Range<usize>>)>,
}

impl Window {
    /// An empty window. Without a type updates are put one after the other,
    /// and nothing can be cut out once there is more than one sender.
    #[must_use]
    pub fn new(data_type: Option<DataType>, limits: MergeLimits) -> Self {
        Self {
            delta: Delta::new(data_type, limits),
            senders: Senders::Nobody,
        }
    }

    /// Merges an update of the connection `sender`.
    ///
    /// # Errors
    ///
    /// [`MergeError`]; the window is then as it was.
    pub fn merge(
        &mut self,
        sender: u32,
        update: &[u8],
        context: &MergeContext,
    ) -> Result<Taken, MergeError> {
        let is_only_sender = match self.senders {
            Senders::Nobody => true,
            Senders::One(one) => one == sender,
            Senders::Many { .. } => false,
        };
        if is_only_sender {
            let taken = self.delta.merge(update, context)?;
            if taken == Taken::Merged {
                self.senders = Senders::One(sender);
            }
            return Ok(taken);
        }
        if let Senders::One(one) = self.senders {
            self.senders = self.all_owned_by(one);
        }
        let pieces = self.pieces_of(update)?;
        let Some(removals) = self.delta.merge_and_report(update, context)? else {
            return Ok(Taken::MustFollow);
        };
        for piece in pieces {
            self.note(sender, piece);
        }
        for removal in removals {
            for field in self.also_removed(removal.field) {
                let piece = Piece {
                    field,
                    key: Some(removal.key.clone()),
                };
                self.note_if_present(sender, &piece);
            }
        }
        Ok(Taken::Merged)
    }

    /// Forgets all updates.
    pub fn clear(&mut self) {
        self.delta.clear();
        self.senders = Senders::Nobody;
    }

    /// Whether no update was merged.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.delta.is_empty()
    }

    /// Encodes what was merged.
    #[must_use]
    pub fn encode(&self) -> WindowBytes {
        let mut encoded = WindowBytes::default();
        match (&self.senders, self.delta.tree()) {
            (Senders::Nobody, _) => {}
            (Senders::One(sender), _) => {
                self.delta.encode(&mut encoded.bytes);
                let all = 0..encoded.bytes.len();
                encoded.own.push((*sender, Some(all)));
            }
            (Senders::Many { contested, .. }, None) => {
                self.delta.encode(&mut encoded.bytes);
                encoded.own = contested.iter().map(|&sender| (sender, None)).collect();
            }
            (Senders::Many { owners, contested }, Some(tree)) => {
                let mut own = BTreeMap::new();
                let mut by_owner: Vec<(Owner, &Piece)> = owners
                    .iter()
                    .map(|(piece, &owner)| (owner, piece))
                    .collect();
                by_owner.sort_unstable();
                for (owner, piece) in by_owner {
                    let start = encoded.bytes.len();
                    encode_piece(tree, piece, &mut encoded.bytes);
                    let end = encoded.bytes.len();
                    if let Owner::One(sender) = owner {
                        match own.entry(sender) {
                            btree_map::Entry::Vacant(vacant) => {
                                vacant.insert(Some(start..end));
                            }
                            btree_map::Entry::Occupied(occupied) => {
                                let range: &mut Option<Range<usize>> = occupied.into_mut();
                                if let Some(range) = range {
                                    range.end = end;
                                }
                            }
                        }
                    }
                }
                own.extend(contested.iter().map(|&sender| (sender, None)));
                encoded.own = own.into_iter().collect();
            }
        }
        encoded
    }

    fn note(&mut self, sender: u32, piece: Piece) {
        if let Senders::Many { owners, contested } = &mut self.senders {
            let owner = owners.entry(piece).or_insert(Owner::One(sender));
            contest(owner, sender, contested);
        }
    }

    fn note_if_present(&mut self, sender: u32, piece: &Piece) {
        if let Senders::Many { owners, contested } = &mut self.senders
            && let Some(owner) = owners.get_mut(piece)
        {
            contest(owner, sender, contested);
        }
    }

    /// Notes all that was merged so far as sent by `sender`.
    fn all_owned_by(&self, sender: u32) -> Senders {
        let mut owners = BTreeMap::new();
        let owner = Owner::One(sender);
        match self.delta.tree() {
            None => {
                owners.insert(Piece::field(UNKNOWN), owner);
            }
            Some(tree) => {
                let layout = tree.data_type.layout();
                for slot in tree.root.slots() {
                    if let Value::Map(map) = &slot.value {
                        for key in map.keys() {
                            owners.insert(Piece::entry(slot.number, key.clone()), owner);
                        }
                    } else {
                        owners.insert(Piece::field(oneof_field(layout, slot.number)), owner);
                    }
                }
            }
        }
        Senders::Many {
            owners,
            contested: BTreeSet::new(),
        }
    }

    /// What an update touches.
    fn pieces_of(&self, update: &[u8]) -> Result<Vec<Piece>, WireError> {
        let Some(tree) = self.delta.tree() else {
            return Ok(vec![Piece::field(UNKNOWN)]);
        };
        let layout = tree.data_type.layout();
        let mut pieces = Vec::new();
        let mut reader = Reader::new(update);
        while let Some(field) = reader.next_field()? {
            let piece = match layout.known(&field) {
                None => Piece::field(UNKNOWN),
                Some(known) if known.rule == Rule::Skip => continue,
                Some(known) => match known.shape {
                    Shape::Map { key, .. } => {
                        Piece::entry(known.number, entry_key(key, field.bytes()?)?)
                    }
                    _ => Piece::field(oneof_field(layout, known.number)),
                },
            };
            if pieces.last() != Some(&piece) {
                pieces.push(piece);
            }
        }
        Ok(pieces)
    }

    fn also_removed(&self, field: u32) -> Vec<u32> {
        let rule = self
            .delta
            .tree()
            .and_then(|tree| tree.data_type.layout().field(field))
            .map(|known| &known.rule);
        match rule {
            Some(Rule::Entries(rule)) => rule.also_remove.clone(),
            _ => Vec::new(),
        }
    }
}

impl WindowBytes {
    /// The window of updates, each of another sender, that need not be merged
    /// because no two of them touch the same thing and none removes anything.
    /// `None` where they do, or are malformed: [`Window`] knows what to do.
    #[must_use]
    pub fn side_by_side(data_type: &DataType, updates: &[(u32, &[u8])]) -> Option<Self> {
        side_by_side::lay(data_type, updates).ok().flatten()
    }

    /// The window of one sender's updates that say nothing but what fields
    /// without lists, maps and oneofs are now: of each the last. They are to be
    /// such as a [`State`](super::State) of the type has merged. `None` where
    /// there is more to them, or they are malformed: [`Window`] knows what to
    /// do.
    #[must_use]
    pub fn overlay(data_type: &DataType, sender: u32, updates: &[&[u8]]) -> Option<Self> {
        let bytes = overlay::overlay(data_type, updates).ok().flatten()?;
        let own = vec![(sender, Some(0..bytes.len()))];
        Some(Self { bytes, own })
    }

    /// The update for a subscriber who sent none of it, or wants to
    /// receive his own too.
    #[must_use]
    pub fn all(&self) -> &[u8] {
        &self.bytes
    }

    /// The update for a subscriber who does not want his own: two
    /// stretches of the bytes, to be sent one after the other. Both are empty
    /// when nobody else sent anything. `None` when he and another sender
    /// touched the same thing: what the others sent then has to be merged
    /// again without him.
    #[must_use]
    pub fn without(&self, sender: u32) -> Option<[&[u8]; 2]> {
        let Ok(place) = self.own.binary_search_by_key(&sender, |(id, _)| *id) else {
            return Some([&self.bytes, &[]]);
        };
        let own = self.own[place].1.as_ref()?;
        Some([&self.bytes[..own.start], &self.bytes[own.end..]])
    }

    /// The senders of what is in it, in order.
    pub fn senders(&self) -> impl Iterator<Item = u32> {
        self.own.iter().map(|(sender, _)| *sender)
    }

    /// The senders, in order, each with the range of [`all`](Self::all) that
    /// is his own; without one where that cannot be cut out.
    pub fn own(&self) -> impl Iterator<Item = (u32, Option<Range<usize>>)> {
        self.own.iter().cloned()
    }

    /// [`all`](Self::all), to be kept.
    #[must_use]
    pub fn into_bytes(self) -> Vec<u8> {
        self.bytes
    }
}

impl Piece {
    pub(super) fn field(field: u32) -> Self {
        Self { field, key: None }
    }

    pub(super) fn entry(field: u32, key: Key) -> Self {
        Self {
            field,
            key: Some(key),
        }
    }
}

fn contest(owner: &mut Owner, sender: u32, contested: &mut BTreeSet<u32>) {
    match *owner {
        Owner::One(one) if one == sender => {}
        Owner::One(one) => {
            *owner = Owner::Several;
            contested.extend([one, sender]);
        }
        Owner::Several => {
            contested.insert(sender);
        }
    }
}

/// The field that stands for a field's oneof; the field itself if it is in
/// none.
pub(super) fn oneof_field(layout: &Layout, number: u32) -> u32 {
    let Some(oneof) = layout.field(number).and_then(|known| known.oneof) else {
        return number;
    };
    layout
        .fields
        .iter()
        .find(|field| field.oneof == Some(oneof))
        .map_or(number, |first| first.number)
}

/// Appends one piece; nothing if it was removed since.
fn encode_piece(tree: &Tree, piece: &Piece, out: &mut Vec<u8>) {
    let layouts = tree.data_type.layouts();
    let layout = tree.data_type.layout();
    if let Some(key) = &piece.key {
        if let (Some(Value::Map(map)), Some(known)) =
            (tree.root.get(piece.field), layout.field(piece.field))
            && let Shape::Map {
                key: key_scalar,
                value: value_kind,
                ..
            } = known.shape
            && let Some(value) = map.get(key)
        {
            encode_entry(
                piece.field,
                key_scalar,
                value_kind,
                key,
                value,
                layouts,
                out,
            );
        }
        return;
    }
    let belongs = |slot: &&Slot| oneof_field(layout, slot.number) == piece.field;
    for slot in tree.root.slots().iter().filter(belongs) {
        match layout.field(slot.number) {
            Some(known) => encode_slot(slot, layouts, known, out),
            None => encode_unknown(slot, out),
        }
    }
}
