//! A channel's data written down, and read back with the schema.

use lagometer_protocol::any::type_name;
use lagometer_protocol::merge::{MergeOptions, SavedState, State};
use lagometer_protocol::schema::Schema;
use serde::{Deserialize, Serialize};

use crate::core::ids::ChannelId;

use super::{Content, Data, MAX_URL_BYTES};

/// What is written down of a channel's data.
#[derive(Debug, Serialize, Deserialize)]
pub(in crate::core::channels) struct SavedData {
    options: Option<MergeOptions>,
    content: Option<SavedContent>,
}

/// What is written down of data that there is.
#[derive(Debug, Serialize, Deserialize)]
struct SavedContent {
    type_url: String,
    state: SavedState,
    is_provisional: bool,
    /// The whole state was at hand as it is sent: to send it costs less then.
    is_encoded: bool,
}

impl Data {
    pub(in crate::core::channels) fn save(&self) -> SavedData {
        let save = |content: &Content| SavedContent {
            type_url: content.type_url.to_string(),
            state: content.state.save(),
            is_provisional: content.is_provisional,
            is_encoded: content.is_encoded(),
        };
        SavedData {
            options: self.options,
            content: self.content.as_ref().map(save),
        }
    }
}

impl SavedData {
    /// The data of channel `id`. `None` if it is not of the type that it is said to be of:
    /// it was written with another schema.
    pub(in crate::core::channels) fn restore(self, id: ChannelId, schema: &Schema) -> Option<Data> {
        let content = match self.content {
            Some(content) => Some(content.restore(id, schema)?),
            None => None,
        };
        Some(Data {
            options: self.options,
            content,
        })
    }
}

impl SavedContent {
    fn restore(self, id: ChannelId, schema: &Schema) -> Option<Content> {
        // The URLs of types that the schema knows are as long as it likes.
        let data_type = schema.find(type_name(&self.type_url));
        if data_type.is_none() && self.type_url.len() > MAX_URL_BYTES {
            return None;
        }
        let mut content = Content {
            state: State::restore(data_type, &self.state)?,
            type_url: self.type_url.into(),
            is_provisional: self.is_provisional,
            encoded: None,
        };
        if self.is_encoded {
            content.whole_state(id, None);
        }
        Some(content)
    }
}
