//! Messages of each direction as a text.

use std::time::Duration;

use lagometer_results::{FlowMessage, FlowRecords};
use serde::{Deserialize, Serialize};

use super::{SavedRecord, load_record, save_record};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(super) struct SavedFlows {
    /// In nanoseconds, as `within`.
    played: u64,
    within: u64,
    answers: bool,
    /// Each message with its bytes, up and down.
    ways: [Vec<(SavedRecord, u32)>; 2],
}

impl From<&FlowRecords> for SavedFlows {
    fn from(flows: &FlowRecords) -> Self {
        Self {
            played: flows.played.as_nanos() as u64,
            within: flows.within.as_nanos() as u64,
            answers: flows.answers,
            ways: [0, 1].map(|way: usize| {
                let each = flows.ways[way].iter();
                each.map(|message| (save_record(&message.record), message.bytes))
                    .collect()
            }),
        }
    }
}

impl From<SavedFlows> for FlowRecords {
    fn from(saved: SavedFlows) -> Self {
        Self {
            played: Duration::from_nanos(saved.played),
            within: Duration::from_nanos(saved.within),
            answers: saved.answers,
            ways: saved.ways.map(|way| {
                let each = way.into_iter();
                each.map(|(record, bytes)| FlowMessage {
                    record: load_record(record),
                    bytes,
                })
                .collect()
            }),
        }
    }
}
