//! Merging channel data on the wire format, with the knowledge of its type.
//!
//! Two things are kept for a channel: its [`State`], into which every update
//! is merged, and for a window of time a [`Delta`], which several updates
//! become before they go out. Both follow the same rules and differ in
//! removals only: an entry that an update removes is gone from the state, but
//! stays in the delta as a removal, for subscribers are to receive it.
//!
//! A [`Window`] is a delta that also knows who sent what, so that what goes to
//! many subscribers is encoded once and each gets it without his own.
//!
//! The rules, field by field:
//!
//! - a number, text or bytes: the update's value, if it has one;
//! - a message: its fields are merged in the same way;
//! - a list: the update's elements are appended, or take the place of all
//!   ([`MergeOptions::replace_list`]), and the list is cut to its limit;
//! - a map: the update's entries take the place of those with the same keys,
//!   or are merged as the type's [rules](crate::schema::rules) say; an entry
//!   whose value says `removed` is deleted where the rules or
//!   [`MergeOptions::remove_entries`] ask for it;
//! - of a oneof the member that was given last;
//! - fields that the type does not know, and those whose wire type is not the one
//!   that the type says, are kept as they came, one after the other.
//!
//! Lists are cut and entries removed in the fields of the channel data itself;
//! within its messages protobuf's own rules hold. Data of a type that is not
//! known at all is concatenated, which protobuf defines as merging.
//!
//! ```
//! use lagometer_protocol::merge::{Delta, MergeContext, MergeLimits, State, Taken};
//! use lagometer_protocol::messages::tpspb::{TestNpcState, TestRepChannelData};
//! use lagometer_protocol::schema::Schema;
//! use prost::Message;
//!
//! let data_type = Schema::bundled().find("tpspb.TestRepChannelData");
//! let npc = |id, moving| {
//!     let state = TestNpcState { b_moving: Some(moving), goal_location: None };
//!     let data = TestRepChannelData {
//!         test_npc_states: [(id, state)].into(),
//!         ..TestRepChannelData::default()
//!     };
//!     data.encode_to_vec()
//! };
//!
//! let context = MergeContext::default();
//! let mut state = State::new(data_type.clone(), MergeLimits::default());
//! let mut delta = Delta::new(data_type, MergeLimits::default());
//! for update in [npc(1, true), npc(2, true), npc(1, false)] {
//!     state.merge(&update, &context)?;
//!     assert_eq!(delta.merge(&update, &context)?, Taken::Merged);
//! }
//! let both = TestRepChannelData::decode(&*delta.to_bytes())?;
//! assert_eq!(both.test_npc_states[&1].b_moving, Some(false));
//! assert_eq!(both.test_npc_states[&2].b_moving, Some(true));
//! assert_eq!(state.to_bytes(), delta.to_bytes());
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

mod check;
mod delta;
mod encode;
mod entries;
mod fields;
mod in_place;
mod key;
mod lists;
mod node;
mod oneofs;
mod overlay;
mod saved;
mod side_by_side;
mod size;
mod state;
mod tree;
mod window;

pub(crate) use check::check;
pub use delta::{Delta, Taken};
pub use key::Key;
pub use saved::SavedState;
pub use state::{Removal, State};
pub use window::{Window, WindowBytes};

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::messages::channeldpb::ChannelDataMergeOptions;
use crate::wire::WireError;

/// What a merge depends on beside the data.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MergeContext {
    /// The channel's merge options. `None` is how a channel that was created
    /// without any merges: as protobuf says, save for types with rules of
    /// their own.
    pub options: Option<MergeOptions>,
    /// The time, milliseconds of Unix time, for lists that keep what is
    /// recent.
    pub now_unix_ms: i64,
}

/// A channel's merge options.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MergeOptions {
    /// A list in an update takes the place of the stored one. An update that
    /// has nothing in the list leaves it as it is.
    pub replace_list: bool,
    /// The most elements a list keeps; 0 is no limit.
    pub list_size_limit: u32,
    /// A list that is too long keeps its last elements, not its first.
    pub truncate_top: bool,
    /// Entries whose value says `removed` are deleted.
    pub remove_entries: bool,
}

impl From<ChannelDataMergeOptions> for MergeOptions {
    fn from(message: ChannelDataMergeOptions) -> Self {
        Self {
            replace_list: message.should_replace_list,
            list_size_limit: message.list_size_limit,
            truncate_top: message.truncate_top,
            remove_entries: message.should_check_removable_map_field,
        }
    }
}

/// How large channel data may grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MergeLimits {
    /// The most bytes the data may encode to before an update is refused.
    /// The last update may pass it by as much as it grows when its numbers
    /// and map entries are written out in full.
    pub max_encoded_bytes: usize,
}

impl MergeLimits {
    /// As large as it likes.
    pub const NONE: Self = Self {
        max_encoded_bytes: usize::MAX,
    };

    /// What both allow.
    fn or_less(self, other: Self) -> Self {
        Self {
            max_encoded_bytes: self.max_encoded_bytes.min(other.max_encoded_bytes),
        }
    }

    fn exceeded(self) -> MergeError {
        MergeError::TooLarge {
            limit_bytes: self.max_encoded_bytes,
        }
    }
}

impl Default for MergeLimits {
    /// 1 MiB.
    fn default() -> Self {
        Self {
            max_encoded_bytes: 1 << 20,
        }
    }
}

/// Why an update was not merged; the data is as it was.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum MergeError {
    /// The update is not a message of the data's type.
    #[error("the update is malformed: {0}")]
    Malformed(#[from] WireError),
    /// The data would grow past its limit.
    #[error("the data would grow past {limit_bytes} bytes")]
    TooLarge {
        /// The limit.
        limit_bytes: usize,
    },
}
