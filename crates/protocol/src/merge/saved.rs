//! A state written down, and read back elsewhere to go on as it would have gone on here.

use serde::{Deserialize, Serialize};

use super::MergeLimits;
use super::state::State;
use crate::schema::DataType;

/// More bytes than any data is ever thought to have: what is written down of it is wrong.
const MOST_BYTES: usize = 1 << 40;

/// All there is of a [`State`] but its type: the data, encoded, and what it takes to
/// refuse just those updates that the state itself would refuse.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SavedState {
    pub(super) data: Vec<u8>,
    /// The most bytes that the data may have, as
    /// [`MergeLimits::max_encoded_bytes`](super::MergeLimits::max_encoded_bytes).
    pub(super) max_encoded_bytes: usize,
    /// Of data whose type is known.
    pub(super) counts: Option<Counts>,
}

/// What is known of how large data is without counting it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Counts {
    pub(super) len_bound: usize,
    pub(super) since_count: usize,
    pub(super) is_count_exact: bool,
    pub(super) work: usize,
}

impl Counts {
    /// Whether sums with them stay within what a number holds.
    pub(super) fn is_sound(self, encoded_len: usize) -> bool {
        (encoded_len..MOST_BYTES).contains(&self.len_bound) && self.work < MOST_BYTES
    }
}

impl State {
    /// Reads back what [`save`](Self::save) has written of a state with this type. It
    /// then merges, refuses and encodes as that state does. `None` if that is no data of
    /// this type.
    #[must_use]
    pub fn restore(data_type: Option<DataType>, saved: &SavedState) -> Option<Self> {
        let limits = MergeLimits {
            max_encoded_bytes: saved.max_encoded_bytes,
        };
        let mut state = Self::new(data_type, MergeLimits::NONE);
        state.load(&saved.data).ok()?;
        state.go_on(limits, saved.counts).then_some(state)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use prost::Message as _;

    use super::*;
    use crate::merge::{MergeContext, MergeOptions};
    use crate::messages::tpspb::{TestNpcState, TestRepChannelData};
    use crate::schema::Schema;

    fn update(npcs: &[(u32, Option<bool>)]) -> Vec<u8> {
        let of = |&(id, b_moving)| {
            let state = TestNpcState {
                b_moving,
                goal_location: None,
            };
            (id, state)
        };
        let data = TestRepChannelData {
            test_npc_states: npcs.iter().map(of).collect(),
            ..TestRepChannelData::default()
        };
        data.encode_to_vec()
    }

    proptest! {
        #[test]
        fn a_state_that_is_read_back_merges_and_refuses_as_the_one_that_was_written(
            updates in proptest::collection::vec(
                proptest::collection::vec((0_u32..40, any::<Option<bool>>()), 0..8), 0..40),
            at in 0_usize..40,
            limit in 20_usize..400,
            is_known in any::<bool>(),
        ) {
            let data_type = Schema::bundled().find("tpspb.TestRepChannelData").filter(|_| is_known);
            let limits = MergeLimits { max_encoded_bytes: limit };
            let context = MergeContext {
                options: Some(MergeOptions { remove_entries: true, ..MergeOptions::default() }),
                now_unix_ms: 0,
            };
            let mut state = State::new(data_type.clone(), limits);
            let mut other = state.clone();
            for (number, npcs) in updates.iter().enumerate() {
                if number == at {
                    other = State::restore(data_type.clone(), &state.save()).unwrap();
                }
                let update = update(npcs);
                prop_assert_eq!(state.merge(&update, &context), other.merge(&update, &context));
                prop_assert_eq!(state.to_bytes(), other.to_bytes());
                prop_assert_eq!(state.len_bound(), other.len_bound());
                prop_assert_eq!(state.take_work(), other.take_work());
                prop_assert_eq!(state.save(), other.save());
            }
        }
    }

    #[test]
    fn what_is_no_data_of_the_type_is_refused() {
        let data_type = Schema::bundled().find("tpspb.TestRepChannelData");
        let sound = State::new(data_type.clone(), MergeLimits::default()).save();
        let counts = |change: fn(&mut Counts)| {
            let mut saved = sound.clone();
            change(saved.counts.as_mut().unwrap());
            saved
        };
        let wrong = [
            counts(|counts| counts.len_bound = usize::MAX),
            counts(|counts| counts.work = usize::MAX),
            SavedState {
                data: vec![0xff],
                ..sound.clone()
            },
            SavedState {
                counts: None,
                ..sound.clone()
            },
        ];
        assert!(State::restore(data_type.clone(), &sound).is_some());
        assert!(State::restore(None, &sound).is_none());
        for saved in wrong {
            assert!(State::restore(data_type.clone(), &saved).is_none());
        }
    }
}
