//! The data of GLOBAL and of rooms, entries that are numbered, and what a player sees of it:
//! windows that go on where the last one ended.

use std::collections::BTreeSet;

use lagometer_protocol::any::type_url;
use lagometer_protocol::messages::channeldpb::ChannelDataUpdateMessage;
use lagometer_protocol::messages::tpspb::{TestNpcState, TestRepChannelData};
use prost::Message;
use prost_types::Any;

const TYPE: &str = "tpspb.TestRepChannelData";

/// The entry that only a whole state has.
const MARK: u32 = 0;

/// What a player has seen of a channel, in this session.
#[derive(Clone, Debug, Default)]
pub(crate) struct View {
    pub(crate) seen: BTreeSet<u32>,
    /// Something was left out, which a whole state is to make good.
    pub(crate) misses: bool,
}

impl View {
    /// A window goes on where the last one ended, unless something was left out, which a
    /// whole state makes good. Returns what is wrong with it, if anything is.
    pub(crate) fn take(&mut self, keys: &BTreeSet<u32>, missed: &mut u64) -> Option<String> {
        let (&first, &last) = (keys.first()?, keys.last()?);
        let newest = self.seen.last().copied();
        let wrong = if keys.len() as u32 != last - first + 1 {
            Some("got a window with holes")
        } else if keys.contains(&MARK) {
            // What it has, the whole state has too: nothing is ever taken back.
            self.misses = false;
            newest
                .is_some_and(|newest| newest > last)
                .then_some("saw the past")
        } else if let Some(newest) = newest {
            *missed += u64::from(first > newest + 1);
            self.misses |= first > newest + 1;
            (first <= newest).then_some("saw something again")
        } else {
            self.misses = true;
            None
        };
        self.seen.extend(keys);
        wrong.map(|wrong| format!("{wrong}: {keys:?} after {newest:?}"))
    }
}

/// The numbers of the entries in an update.
pub(crate) fn keys(update: &[u8]) -> BTreeSet<u32> {
    let update = ChannelDataUpdateMessage::decode(update).expect("an update");
    let data = update.data.expect("data");
    let data = TestRepChannelData::decode(&*data.value).expect("data of the type");
    data.test_npc_states.keys().copied().collect()
}

pub(crate) fn data(entries: impl Iterator<Item = u32>) -> Any {
    let state = TestNpcState {
        b_moving: Some(true),
        goal_location: None,
    };
    let data = TestRepChannelData {
        test_npc_states: entries.map(|entry| (entry, state)).collect(),
        ..TestRepChannelData::default()
    };
    Any {
        type_url: type_url(TYPE),
        value: data.encode_to_vec(),
    }
}
