//! What types of channel data look like, learned at run time.
//!
//! A channel's data is a protobuf message of a type the game chose. A
//! [`Schema`] knows such types from `.proto` files or descriptor sets read
//! when the gateway starts, and the types of Unreal games, the chat rooms and
//! the tanks from the beginning. With a [`DataType`] from it, encoded data is
//! [merged](crate::merge) and [masked](crate::Mask) as its type says.
//!
//! Where a type does not say otherwise, merging follows protobuf and the
//! channel's merge options. It says otherwise with the option
//! `(lagometer.merge)` of `lagometer/merge.proto`, which any `.proto` file may
//! import; types whose rules games rely on (see [`rules`]) need no option.
//!
//! ```
//! use lagometer_protocol::schema::Schema;
//!
//! let mut schema = Schema::bundled();
//! assert!(schema.find("tpspb.EntityChannelData").is_some());
//! schema.add_proto_source("game.proto", r#"
//!     syntax = "proto3";
//!     package game;
//!     import "lagometer/merge.proto";
//!     message Player { bool removed = 1; float x = 2; float y = 3; }
//!     message Arena {
//!         map<uint32, Player> players = 1 [(lagometer.merge).entries = DEEP];
//!     }
//! "#)?;
//! assert!(schema.find("game.Arena").is_some());
//! # Ok::<_, lagometer_protocol::schema::SchemaError>(())
//! ```

pub(crate) mod layout;
mod load;
mod misfits;
pub mod rules;
mod values;

use std::borrow::Cow;
use std::fmt;
use std::path::Path;
use std::sync::{Arc, LazyLock};

use thiserror::Error;

use crate::wire::{Field, Reader, WireError};
use layout::{Kind, Layout, Layouts, Shape};
use rules::Rule;

/// The types of channel data that are known.
#[derive(Clone, Debug, Default)]
pub struct Schema {
    layouts: Arc<Layouts>,
}

/// One type of channel data. Cheap to clone.
#[derive(Clone)]
pub struct DataType {
    layouts: Arc<Layouts>,
    index: usize,
}

/// Why types could not be learned.
#[derive(Debug, Error)]
pub enum SchemaError {
    /// A `.proto` file is missing or wrong. The text names file, line and
    /// mistake.
    #[error("{0}")]
    Proto(String),
    /// A file could not be read.
    #[error("{path}: {source}")]
    Unreadable {
        /// Which file.
        path: String,
        /// What the system said.
        source: std::io::Error,
    },
    /// A descriptor set is not one, or lacks a file it imports.
    #[error("{path}: {reason}")]
    DescriptorSet {
        /// Which file.
        path: String,
        /// What is wrong with it.
        reason: String,
    },
    /// An option `(lagometer.merge)` asks for what its field cannot do.
    #[error("{field}: {reason}")]
    Rule {
        /// The field's full name.
        field: String,
        /// What is wrong with it.
        reason: String,
    },
}

impl Schema {
    /// A schema that knows no type: all data is merged by concatenation.
    #[must_use]
    pub fn empty() -> Self {
        Self::default()
    }

    /// A schema with the types that are known from the beginning: the
    /// gateway's own, Unreal's, those of the published benchmarks, the chat
    /// rooms and the tanks.
    ///
    /// # Panics
    ///
    /// Never: what is bundled is checked by a test.
    #[must_use]
    pub fn bundled() -> Self {
        static BUNDLED: LazyLock<Schema> = LazyLock::new(|| {
            let mut schema = Schema::empty();
            schema
                .add_pool(&load::bundled_pool())
                .expect("the bundled types are sound");
            schema
        });
        BUNDLED.clone()
    }

    /// Learns the types of files: `.proto` files, or descriptor sets (any
    /// other name) as `protoc --descriptor_set_out --include_imports` writes
    /// them. A `.proto` file finds its imports beside itself, in `includes`,
    /// and among the bundled files. A type that was known is replaced.
    ///
    /// # Errors
    ///
    /// [`SchemaError`]; no type of any of the files is then known.
    pub fn add_files(
        &mut self,
        files: &[impl AsRef<Path>],
        includes: &[impl AsRef<Path>],
    ) -> Result<(), SchemaError> {
        let mut learned = self.clone();
        for pool in load::pools_of_files(files, includes)? {
            learned.add_pool(&pool)?;
        }
        *self = learned;
        Ok(())
    }

    /// Learns the types of one `.proto` file given as text. It may import
    /// bundled files only.
    ///
    /// # Errors
    ///
    /// [`SchemaError`]; nothing is then learned.
    pub fn add_proto_source(&mut self, name: &str, source: &str) -> Result<(), SchemaError> {
        let pool = load::pool_of_source(name, source)?;
        self.add_pool(&pool)
    }

    /// The type of that full name, such as `tpspb.EntityChannelData`.
    #[must_use]
    pub fn find(&self, full_name: &str) -> Option<DataType> {
        let index = self.layouts.find(full_name)?;
        Some(DataType {
            layouts: Arc::clone(&self.layouts),
            index,
        })
    }

    /// The full names of all types, in alphabetical order.
    pub fn type_names(&self) -> impl Iterator<Item = &str> {
        self.layouts.names()
    }

    fn add_pool(&mut self, pool: &prost_reflect::DescriptorPool) -> Result<(), SchemaError> {
        let mut layouts = (*self.layouts).clone();
        layouts.add_pool(pool)?;
        self.layouts = Arc::new(layouts);
        Ok(())
    }
}

impl DataType {
    /// The full name, such as `tpspb.EntityChannelData`.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.layout().name
    }

    /// Checks that `encoded` is a message of this type, to its depths: every
    /// field has the wire type and every string the encoding that the type
    /// asks for. Numbers that the type does not know may hold anything.
    ///
    /// # Errors
    ///
    /// [`WireError`] says what is wrong first.
    pub fn check(&self, encoded: &[u8]) -> Result<(), WireError> {
        crate::merge::check(&self.layouts, self.index, encoded)
    }

    /// How many values a decoder would make of `encoded`, in it and in all messages
    /// within it: fields, elements of lists, entries of maps. No more than `most`
    /// are counted, and nothing is allocated: a short message may have very many.
    #[must_use]
    pub fn count_values(&self, encoded: &[u8], most: usize) -> usize {
        let mut left = most;
        values::count(&self.layouts, self.index, encoded, 0, &mut left);
        most - left
    }

    /// A message of the type without the fields whose wire type is not the one
    /// their type has, in it and in all messages within it.
    ///
    /// Protobuf has such a field count as one that is not known; libraries that
    /// refuse it can read what is left.
    ///
    /// # Errors
    ///
    /// [`WireError`] when the bytes are no message at all.
    pub fn without_misfits(&self, encoded: &[u8]) -> Result<Vec<u8>, WireError> {
        let mut kept = Vec::with_capacity(encoded.len());
        misfits::leave_out(&self.layouts, self.index, encoded, 0, &mut kept)?;
        Ok(kept)
    }

    /// An update without the fields that are never merged, which subscribers
    /// are not to see again either. Nothing is copied when there are none.
    ///
    /// # Errors
    ///
    /// [`WireError`] when the update is no message.
    pub fn without_skipped<'a>(&self, update: &'a [u8]) -> Result<Cow<'a, [u8]>, WireError> {
        let layout = self.layout();
        if !layout.has_skipped {
            return Ok(Cow::Borrowed(update));
        }
        let is_skipped = |field: &Field<'_>| {
            layout
                .known(field)
                .is_some_and(|field| field.rule == Rule::Skip)
        };
        let mut kept = Vec::new();
        let mut any_skipped = false;
        let mut reader = Reader::new(update);
        let mut offset = 0;
        while let Some(field) = reader.next_field()? {
            if is_skipped(&field) {
                if !any_skipped {
                    any_skipped = true;
                    kept.extend_from_slice(&update[..offset]);
                }
            } else if any_skipped {
                kept.extend_from_slice(field.raw);
            }
            offset += field.raw.len();
        }
        Ok(if any_skipped {
            Cow::Owned(kept)
        } else {
            Cow::Borrowed(update)
        })
    }

    /// The field numbers of a path of field names through messages that are
    /// neither in lists nor in maps, as [`crate::merge::State::value`] and
    /// [`crate::wire::find`] want them. `None` where the type has no such
    /// path.
    #[must_use]
    pub fn path(&self, names: &[&str]) -> Option<Vec<u32>> {
        let mut layout = Some(self.layout());
        let mut numbers = Vec::with_capacity(names.len());
        for name in names {
            let field = layout?.fields.iter().find(|field| field.name == *name)?;
            numbers.push(field.number);
            layout = match field.shape {
                Shape::Single {
                    kind: Kind::Message(inner),
                    ..
                } => Some(self.layouts.message(inner)),
                _ => None,
            };
        }
        Some(numbers)
    }

    pub(crate) fn layouts(&self) -> &Arc<Layouts> {
        &self.layouts
    }

    pub(crate) fn index(&self) -> usize {
        self.index
    }

    pub(crate) fn layout(&self) -> &Layout {
        self.layouts.message(self.index)
    }
}

impl PartialEq for DataType {
    /// The same type of the same schema.
    fn eq(&self, other: &Self) -> bool {
        self.index == other.index && Arc::ptr_eq(&self.layouts, &other.layouts)
    }
}

impl Eq for DataType {}

impl fmt::Debug for DataType {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_tuple("DataType")
            .field(&self.name())
            .finish()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_skipped_field_is_cut_out_and_nothing_else() {
        let schema = Schema::bundled();
        let entity = schema.find("tpspb.EntityChannelData").unwrap();
        let obj_ref = [0x0a, 2, 0x08, 5];
        let actor = [0x12, 2, 0x10, 7];
        let npc = [0x62, 2, 0x08, 1];
        assert_eq!(
            entity
                .without_skipped(&[actor, obj_ref, npc].concat())
                .unwrap(),
            [actor, npc].concat()
        );
        let without = [actor, npc].concat();
        assert!(matches!(
            entity.without_skipped(&without).unwrap(),
            Cow::Borrowed(bytes) if bytes == without
        ));
        assert!(entity.without_skipped(&[0x0a, 9]).is_err());
    }

    #[test]
    fn a_path_of_names_is_one_of_numbers() {
        let entity = Schema::bundled().find("tpspb.EntityChannelData").unwrap();
        let path = |names: &[&str]| entity.path(names);
        assert_eq!(
            path(&["actorState", "replicatedMovement", "location"]),
            Some(vec![2, 11, 3])
        );
        assert_eq!(path(&["actorState", "location"]), None);
        assert_eq!(path(&["actorState", "removed", "deeper"]), None);
        assert_eq!(path(&[]), Some(vec![]));
    }

    #[test]
    fn a_type_given_later_replaces_a_bundled_one() {
        let mut schema = Schema::bundled();
        schema
            .add_proto_source(
                "mine.proto",
                "syntax = \"proto3\"; package chatpb; message ChatChannelData { string topic = 1; }",
            )
            .unwrap();
        let chat = schema.find("chatpb.ChatChannelData").unwrap();
        assert!(chat.check(&[0x0a, 1, 0xff]).is_err(), "field 1 is text now");
        assert!(schema.find("chatpb.ChatMessage").is_some());
    }

    #[test]
    fn a_check_goes_to_the_depths() {
        let schema = Schema::bundled();
        let game = schema.find("tpspb.TestRepChannelData").unwrap();
        // playerStates[7].playerName
        let good = [0x2a, 7, 0x08, 7, 0x12, 3, 0x2a, 1, b'x'];
        assert_eq!(game.check(&good), Ok(()));
        let mut bad = good;
        bad[8] = 0xff;
        assert_eq!(game.check(&bad), Err(WireError::NotUtf8));
    }
}
