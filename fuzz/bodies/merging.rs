//! Updates of any bytes: what is refused changes nothing, what is taken is a
//! message again, and a delta does what its updates do.

use std::sync::LazyLock;

use lagometer_protocol::merge::{
    Delta, MergeContext, MergeLimits, MergeOptions, State, Taken, Window,
};
use lagometer_protocol::schema::{DataType, Schema};

static TYPES: LazyLock<Vec<Option<DataType>>> = LazyLock::new(|| {
    let mut schema = Schema::bundled();
    let kinds = include_str!("../../crates/protocol/tests/proto/kinds.proto");
    schema.add_proto_source("kinds.proto", kinds).unwrap();
    [
        "kinds.All",
        "kinds.Ruled",
        "tpspb.TestRepChannelData",
        "tpspb.EntityChannelData",
        "unrealpb.SpatialChannelData",
        "tankspb.TankGameChannelData",
        "chatpb.ChatChannelData",
    ]
    .into_iter()
    .map(|name| schema.find(name))
    .chain([None])
    .collect()
});

const LIMITS: MergeLimits = MergeLimits {
    max_encoded_bytes: 4000,
};

pub(crate) fn body(data: &[u8]) {
    let [which, flags, limit, cut, rest @ ..] = data else {
        return;
    };
    let data_type = &TYPES[usize::from(*which) % TYPES.len()];
    let context = MergeContext {
        options: (flags & 1 != 0).then(|| MergeOptions {
            replace_list: flags & 2 != 0,
            list_size_limit: u32::from(*limit % 8),
            truncate_top: flags & 4 != 0,
            remove_entries: flags & 8 != 0,
        }),
        now_unix_ms: 100,
    };
    let updates: Vec<&[u8]> = rest.chunks(usize::from(*cut).max(4)).collect();
    merge_raw(data_type.as_ref(), &updates, &context);
    merge_canonical(data_type.as_ref(), &updates, &context);
}

fn merge_raw(data_type: Option<&DataType>, updates: &[&[u8]], context: &MergeContext) {
    let mut state = State::new(data_type.cloned(), LIMITS);
    let mut window = Window::new(data_type.cloned(), LIMITS);
    for (sender, update) in (0..3).cycle().zip(updates) {
        let before = state.to_bytes();
        let accepted = state.merge(update, context);
        let encoded = state.to_bytes();
        match accepted {
            Ok(_) => assert!(encoded.len() <= 3 * (LIMITS.max_encoded_bytes + update.len())),
            Err(_) => assert_eq!(encoded, before),
        }
        assert_eq!(encoded.len(), state.encoded_len());
        if let Some(data_type) = data_type {
            data_type.check(&encoded).unwrap();
            if let Ok(kept) = data_type.without_skipped(update) {
                assert!(kept.len() <= update.len());
            }
        }
        let mut again = State::new(
            data_type.cloned(),
            MergeLimits {
                max_encoded_bytes: usize::MAX,
            },
        );
        again.load(&encoded).unwrap();
        assert_eq!(again.to_bytes(), encoded, "what is encoded is stable");
        assert_eq!(state.to_parts(1).concat(), encoded);
        let _ = window.merge(sender, update, context);
    }
    let encoded = window.encode();
    for sender in 0..4 {
        if let Some(stretches) = encoded.without(sender) {
            let mut state = State::new(data_type.cloned(), MergeLimits::default());
            state.merge(&stretches.concat(), context).unwrap();
        }
    }
}

/// Updates as an encoder writes them: no key twice, no oneof's member that
/// gives way within one update, no zero where zero means absent.
fn merge_canonical(data_type: Option<&DataType>, updates: &[&[u8]], context: &MergeContext) {
    let limits = MergeLimits::default();
    let mut one_by_one = State::new(data_type.cloned(), limits);
    let mut at_once = one_by_one.clone();
    let mut delta = Delta::new(data_type.cloned(), limits);
    for update in updates {
        let mut canonical = State::new(data_type.cloned(), limits);
        if canonical.load(update).is_err() {
            continue;
        }
        let update = canonical.to_bytes();
        one_by_one.merge(&update, context).unwrap();
        if delta.merge(&update, context).unwrap() == Taken::MustFollow {
            at_once.merge(&delta.to_bytes(), context).unwrap();
            delta.clear();
            assert_eq!(delta.merge(&update, context), Ok(Taken::Merged));
        }
    }
    at_once.merge(&delta.to_bytes(), context).unwrap();
    assert_eq!(at_once.to_bytes(), one_by_one.to_bytes());
}
