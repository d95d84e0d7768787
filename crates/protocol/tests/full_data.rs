//! Channel data that is nearly as large as it may be.

use lagometer_protocol::merge::{MergeContext, MergeLimits, State};
use lagometer_protocol::messages::tpspb::{TestNpcState, TestRepChannelData};
use lagometer_protocol::schema::Schema;
use prost::Message;

#[test]
fn data_that_is_full_is_counted_once_however_often_it_is_updated() {
    let limits = MergeLimits {
        max_encoded_bytes: 100_000,
    };
    let schema = Schema::bundled();
    let mut state = State::new(schema.find("tpspb.TestRepChannelData"), limits);
    let npc = |id: u32| {
        let state = TestNpcState {
            b_moving: Some(true),
            ..TestNpcState::default()
        };
        TestRepChannelData {
            test_npc_states: [(id, state)].into(),
            ..TestRepChannelData::default()
        }
        .encode_to_vec()
    };
    let mut fill = || {
        for id in 0..40_000 {
            let _ = state.merge(&npc(id), &MergeContext::default());
        }
        state.take_work()
    };
    // As it becomes full it is counted now and then, and then no more.
    assert!(fill() > 100_000 / 8);
    assert_eq!(fill(), 0);
}
