//! Merging against a reference, and deltas against the updates they replace.

mod reference;

use std::sync::LazyLock;

use lagometer_protocol::merge::{
    Delta, MergeContext, MergeLimits, MergeOptions, State, Taken, Window, WindowBytes,
};
use lagometer_protocol::schema::Schema;
use lagometer_protocol::wire::Reader;
use proptest::prelude::*;
use prost::Message;
use prost_reflect::{DescriptorPool, DynamicMessage, MessageDescriptor};
use reference::Source;

const TYPES: [&str; 9] = [
    "kinds.All",
    "kinds.Ruled",
    "tpspb.TestRepChannelData",
    "tpspb.EntityChannelData",
    "unrealpb.SpatialChannelData",
    "tankspb.TankGameChannelData",
    "chatpb.ChatChannelData",
    "channeldpb.TransformState",
    "channeldpb.ListChannelResultMessage",
];

const NOW_UNIX_MS: i64 = 50_000;

static POOL: LazyLock<DescriptorPool> = LazyLock::new(|| {
    let mut compiler = protox::Compiler::new(["proto", "tests/proto"]).unwrap();
    compiler
        .include_imports(true)
        .open_files([
            "tps.proto",
            "tanks.proto",
            "chat.proto",
            "channeld.proto",
            "kinds.proto",
        ])
        .unwrap();
    compiler.descriptor_pool()
});

static SCHEMA: LazyLock<Schema> = LazyLock::new(|| {
    let mut schema = Schema::bundled();
    let no_includes: [&str; 0] = [];
    schema
        .add_files(&["tests/proto/kinds.proto"], &no_includes)
        .unwrap();
    schema
});

fn descriptor(name: &str) -> MessageDescriptor {
    POOL.get_message_by_name(name).unwrap()
}

/// The fields of an update, each as it lies.
fn fields(update: &[u8]) -> Vec<Vec<u8>> {
    let mut reader = Reader::new(update);
    let mut fields = Vec::new();
    while let Some(field) = reader.next_field().expect("a message") {
        fields.push(field.raw.to_vec());
    }
    fields
}

fn state(name: &str) -> State {
    let data_type = SCHEMA.find(name);
    assert!(data_type.is_some(), "{name} is known");
    State::new(data_type, MergeLimits::default())
}

fn decoded(name: &str, bytes: &[u8]) -> DynamicMessage {
    DynamicMessage::decode(descriptor(name), bytes).unwrap()
}

fn context() -> impl Strategy<Value = MergeContext> {
    let options = (any::<bool>(), 0u32..4, any::<bool>(), any::<bool>()).prop_map(
        |(replace_list, list_size_limit, truncate_top, remove_entries)| MergeOptions {
            replace_list,
            list_size_limit,
            truncate_top,
            remove_entries,
        },
    );
    proptest::option::of(options).prop_map(|options| MergeContext {
        options,
        now_unix_ms: NOW_UNIX_MS,
    })
}

/// Messages as text: some types contain themselves, which the library's
/// debugging form does not survive.
fn text(message: &DynamicMessage) -> String {
    message.to_text_format()
}

/// Updates of a type.
fn updates(name: &str, seed: u64, count: usize) -> Vec<DynamicMessage> {
    let mut source = Source::new(seed);
    (0..count)
        .map(|_| {
            let drawn = source.message(&descriptor(name), 4);
            // Zeros without presence are absent once they were encoded.
            decoded(name, &drawn.encode_to_vec())
        })
        .collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: ProptestConfig::default().cases.max(600),
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    #[test]
    fn a_state_is_what_the_reference_says(
        name in proptest::sample::select(&TYPES[..]),
        seed: u64,
        count in 1usize..8,
        context in context(),
    ) {
        let mut state = state(name);
        let mut expected = DynamicMessage::new(descriptor(name));
        for update in updates(name, seed, count) {
            state.merge(&update.encode_to_vec(), &context).unwrap();
            reference::merge(&mut expected, &update, &context);
            let bytes = state.to_bytes();
            let merged = decoded(name, &bytes);
            prop_assert!(merged == expected, "{}\n{}", text(&merged), text(&expected));
            prop_assert_eq!(bytes.len(), state.encoded_len());
        }
    }

    #[test]
    fn fields_of_another_wire_type_are_kept_like_those_that_are_not_known(
        name in proptest::sample::select(&TYPES[..]),
        seed: u64,
        count in 1usize..6,
        context in context(),
    ) {
        let mut source = Source::new(!seed);
        let (mut misfit, mut unknown) = (state(name), state(name));
        let mut expected = DynamicMessage::new(descriptor(name));
        let limits = MergeLimits::default();
        let mut deltas = [(); 2].map(|()| Delta::new(SCHEMA.find(name), limits));
        for update in updates(name, seed, count) {
            let update = update.encode_to_vec();
            let [with_misfits, with_unknown] =
                reference::with_misfits(&descriptor(name), &update, &mut source);
            misfit.merge(&with_misfits, &context).unwrap();
            unknown.merge(&with_unknown, &context).unwrap();
            reference::merge(&mut expected, &decoded(name, &update), &context);
            let taken = deltas[0].merge(&with_misfits, &context).unwrap();
            prop_assert_eq!(taken, deltas[1].merge(&with_unknown, &context).unwrap());
        }
        let as_unknown = |bytes: &[u8]| reference::misfits_as_unknown(&descriptor(name), bytes);
        let merged = as_unknown(&misfit.to_bytes());
        prop_assert_eq!(&merged, &unknown.to_bytes());
        let known = reference::without_twins(&descriptor(name), &merged);
        prop_assert!(decoded(name, &known) == expected, "{}", text(&expected));
        prop_assert_eq!(as_unknown(&deltas[0].to_bytes()), deltas[1].to_bytes());
        // And what it holds is taken in again.
        let mut loaded = state(name);
        loaded.load(&misfit.to_bytes()).unwrap();
        prop_assert_eq!(loaded.to_bytes(), misfit.to_bytes());
        let without = SCHEMA.find(name).unwrap().without_misfits(&misfit.to_bytes()).unwrap();
        prop_assert_eq!(without, known);
    }

    #[test]
    fn a_delta_does_what_its_updates_do(
        name in proptest::sample::select(&TYPES[..]),
        seed: u64,
        before in 0usize..4,
        count in 1usize..8,
        context in context(),
    ) {
        let mut one_by_one = state(name);
        let all = updates(name, seed, before + count);
        let (before, after) = all.split_at(before);
        for update in before {
            one_by_one.merge(&update.encode_to_vec(), &context).unwrap();
        }
        let mut at_once = one_by_one.clone();

        let mut delta = Delta::new(SCHEMA.find(name), MergeLimits::default());
        let mut deltas = 0;
        for update in after {
            let update = update.encode_to_vec();
            one_by_one.merge(&update, &context).unwrap();
            if delta.merge(&update, &context).unwrap() == Taken::MustFollow {
                at_once.merge(&delta.to_bytes(), &context).unwrap();
                deltas += 1;
                delta.clear();
                prop_assert_eq!(delta.merge(&update, &context), Ok(Taken::Merged));
            }
        }
        at_once.merge(&delta.to_bytes(), &context).unwrap();
        prop_assert!(deltas < after.len());
        let at_once = decoded(name, &at_once.to_bytes());
        let one_by_one = decoded(name, &one_by_one.to_bytes());
        prop_assert!(at_once == one_by_one, "{}\n{}", text(&at_once), text(&one_by_one));
    }

    #[test]
    fn a_window_gives_each_subscriber_what_the_others_sent(
        name in proptest::sample::select(&TYPES[..]),
        seed: u64,
        count in 1usize..8,
        context in context(),
    ) {
        let base = updates(name, seed, 1).remove(0).encode_to_vec();
        let mut source = Source::new(!seed);
        let mut window = Window::new(SCHEMA.find(name), MergeLimits::default());
        let mut sent = Vec::new();
        for update in updates(name, seed.wrapping_add(1), count) {
            let update = update.encode_to_vec();
            let sender = source.below(4) as u32;
            if window.merge(sender, &update, &context).unwrap() == Taken::Merged {
                sent.push((sender, update));
            }
        }
        let encoded = window.encode();
        for subscriber in 0..5 {
            let mut one_by_one = state(name);
            one_by_one.load(&base).unwrap();
            // Any update cuts lists that are too long, one that says nothing too:
            // from here on it makes no difference how many there are.
            one_by_one.merge(&[], &context).unwrap();
            let mut at_once = one_by_one.clone();
            for (_, update) in sent.iter().filter(|(sender, _)| *sender != subscriber) {
                one_by_one.merge(update, &context).unwrap();
            }
            let Some(stretches) = encoded.without(subscriber) else {
                prop_assert!(sent.iter().any(|(sender, _)| *sender == subscriber));
                continue;
            };
            at_once.merge(&stretches.concat(), &context).unwrap();
            let at_once = decoded(name, &at_once.to_bytes());
            let one_by_one = decoded(name, &one_by_one.to_bytes());
            prop_assert!(at_once == one_by_one, "{}\n{}", text(&at_once), text(&one_by_one));
        }
        let mut delta = Delta::new(SCHEMA.find(name), MergeLimits::default());
        for (_, update) in &sent {
            prop_assert_eq!(delta.merge(update, &context), Ok(Taken::Merged));
        }
        prop_assert!(decoded(name, encoded.all()) == decoded(name, &delta.to_bytes()));
    }

    #[test]
    fn what_lies_side_by_side_is_what_would_be_merged(
        name in proptest::sample::select(&TYPES[..]),
        seed: u64,
        pieces in proptest::collection::vec(0usize..3, 1..6),
        context in context(),
    ) {
        let data_type = SCHEMA.find(name).unwrap();
        let base = updates(name, seed, 1).remove(0).encode_to_vec();
        // Few fields of each, so that they do not all have some in common.
        let sent: Vec<(u32, Vec<u8>)> = updates(name, !seed, pieces.len())
            .iter()
            .zip(&pieces)
            .zip((0..).map(|sender| sender ^ 2))
            .map(|((update, &piece), sender)| {
                let update = update.encode_to_vec();
                (sender, fields(&update).into_iter().skip(piece).take(2).flatten().collect())
            })
            .collect();
        let borrowed: Vec<(u32, &[u8])> =
            sent.iter().map(|(sender, update)| (*sender, &**update)).collect();
        let Some(laid) = WindowBytes::side_by_side(&data_type, &borrowed) else {
            return Ok(());
        };
        for subscriber in 0..8 {
            let mut one_by_one = state(name);
            one_by_one.load(&base).unwrap();
            // Any update cuts lists that are too long, one that says nothing too:
            // from here on it makes no difference how many there are.
            one_by_one.merge(&[], &context).unwrap();
            let mut at_once = one_by_one.clone();
            for (_, update) in sent.iter().filter(|(sender, _)| *sender != subscriber) {
                one_by_one.merge(update, &context).unwrap();
            }
            let stretches = laid.without(subscriber).expect("nothing is contested");
            at_once.merge(&stretches.concat(), &context).unwrap();
            let at_once = decoded(name, &at_once.to_bytes());
            let one_by_one = decoded(name, &one_by_one.to_bytes());
            prop_assert!(at_once == one_by_one, "{}\n{}", text(&at_once), text(&one_by_one));
        }
    }

    #[test]
    fn what_is_laid_one_over_the_other_is_what_would_be_merged(
        name in proptest::sample::select(&TYPES[..]),
        seed: u64,
        pieces in proptest::collection::vec(0usize..4, 1..5),
        context in context(),
    ) {
        let data_type = SCHEMA.find(name).unwrap();
        let base = updates(name, seed, 1).remove(0).encode_to_vec();
        // Few fields of each: a list or a map is in most of them.
        let sent: Vec<Vec<u8>> = updates(name, !seed, pieces.len())
            .iter()
            .zip(&pieces)
            .map(|(update, &piece)| {
                let update = update.encode_to_vec();
                fields(&update).into_iter().skip(piece).take(2).flatten().collect()
            })
            .collect();
        let borrowed: Vec<&[u8]> = sent.iter().map(|update| &**update).collect();
        let Some(laid) = WindowBytes::overlay(&data_type, 7, &borrowed) else {
            return Ok(());
        };
        prop_assert_eq!(laid.without(7), Some([&[][..], &[]]));
        let mut one_by_one = state(name);
        one_by_one.load(&base).unwrap();
        let mut at_once = one_by_one.clone();
        for update in &sent {
            one_by_one.merge(update, &context).unwrap();
        }
        at_once.merge(laid.all(), &context).unwrap();
        let at_once = decoded(name, &at_once.to_bytes());
        let one_by_one = decoded(name, &one_by_one.to_bytes());
        prop_assert!(at_once == one_by_one, "{}\n{}", text(&at_once), text(&one_by_one));
    }

    #[test]
    fn loaded_data_comes_back_as_it_was(
        name in proptest::sample::select(&TYPES[..]),
        seed: u64,
    ) {
        let data = updates(name, seed, 1).remove(0);
        let mut state = state(name);
        state.load(&data.encode_to_vec()).unwrap();
        let back = decoded(name, &state.to_bytes());
        prop_assert!(back == data, "{}\n{}", text(&back), text(&data));
    }

    #[test]
    fn parts_merged_in_order_are_the_whole(
        name in proptest::sample::select(&TYPES[..]),
        seed: u64,
        max_bytes in 1usize..400,
    ) {
        let data = updates(name, seed, 1).remove(0);
        let mut state = state(name);
        state.load(&data.encode_to_vec()).unwrap();
        let mut together = DynamicMessage::new(descriptor(name));
        let parts = state.to_parts(max_bytes);
        for part in &parts {
            together.merge(&**part).unwrap();
        }
        prop_assert!(together == data, "{}\n{}", text(&together), text(&data));
        let pairs = parts.windows(2);
        for pair in pairs {
            prop_assert!(pair[0].len() <= max_bytes || pair[0].len() + pair[1].len() > max_bytes);
        }
    }

    #[test]
    fn broken_updates_change_nothing(
        name in proptest::sample::select(&TYPES[..]),
        seed: u64,
        edits in proptest::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        context in context(),
    ) {
        let all = updates(name, seed, 2);
        let mut state = state(name);
        state.merge(&all[0].encode_to_vec(), &context).unwrap();
        let before = state.to_bytes();
        let mut broken = all[1].encode_to_vec();
        for (at, byte) in edits {
            if !broken.is_empty() {
                let at = at.index(broken.len());
                broken[at] = byte;
            }
        }
        let accepted = state.merge(&broken, &context).is_ok();
        if accepted {
            // What is taken must be a message that others can read. The library
            // refuses fields of another wire type, which protobuf has unknown.
            for taken in [broken.clone(), state.to_bytes()] {
                let fitting = SCHEMA.find(name).unwrap().without_misfits(&taken).unwrap();
                prop_assert!(DynamicMessage::decode(descriptor(name), &*fitting).is_ok());
            }
        } else {
            prop_assert_eq!(state.to_bytes(), before);
        }
        let mut delta = Delta::new(SCHEMA.find(name), MergeLimits::default());
        prop_assert_eq!(delta.merge(&broken, &context).is_ok(), accepted);
    }
}
