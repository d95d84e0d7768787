//! Nested data from hostile peers: everything that goes down level by level, in
//! merging, masking, encoding and dropping, stops at a depth of its own choosing
//! and not at the end of the stack.

use lagometer_protocol::merge::{
    Delta, Key, MergeContext, MergeLimits, State, Window, WindowBytes,
};
use lagometer_protocol::schema::{DataType, Schema};
use lagometer_protocol::wire::{MAX_DEPTH, Reader, WireError, put_bytes_field};
use lagometer_protocol::{MAX_MASK_DEPTH, Mask};

/// A small stack, so that a level too many is noticed.
const STACK_BYTES: usize = 256 << 10;

/// A type that holds itself in every way there is.
fn tree() -> DataType {
    let source = r#"
        syntax = "proto3";
        package hostile;
        message Tree {
            Tree child = 1;
            repeated Tree children = 2;
            map<string, Tree> by_name = 3;
            oneof one { Tree either = 4; Tree or = 5; }
            uint32 leaf = 6;
        }"#;
    let mut schema = Schema::bundled();
    schema.add_proto_source("hostile.proto", source).unwrap();
    schema.find("hostile.Tree").unwrap()
}

/// A tree of so many levels, through field `number`; 3 is a map.
fn nested(levels: usize, number: u32) -> Vec<u8> {
    let mut tree = vec![0x30, 7];
    for _ in 0..levels {
        let mut outer = Vec::new();
        if number == 3 {
            let mut entry = Vec::new();
            put_bytes_field(&mut entry, 1, b"k");
            put_bytes_field(&mut entry, 2, &tree);
            put_bytes_field(&mut outer, 3, &entry);
        } else {
            put_bytes_field(&mut outer, number, &tree);
        }
        tree = outer;
    }
    tree
}

fn on_a_small_stack(test: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new().stack_size(STACK_BYTES);
    thread.spawn(test).unwrap().join().unwrap();
}

/// Merges in every way; what is taken is encoded, masked, cloned and dropped.
fn take(update: &[u8]) -> bool {
    let data_type = tree();
    let limits = MergeLimits::default();
    let context = MergeContext::default();
    let mut state = State::new(Some(data_type.clone()), limits);
    let loaded = state.load(update).is_ok();
    let merged = state.merge(update, &context).is_ok();
    assert_eq!(loaded, merged);
    let _ = state.insert_entry(3, Key::Text("k".into()), update);
    let _ = state.set_message(1, update);
    let _ = (
        state.clone().to_bytes(),
        state.to_parts(100),
        state.encoded_len(),
    );
    let mut delta = Delta::new(Some(data_type.clone()), limits);
    for _ in 0..2 {
        assert_eq!(delta.merge(update, &context).is_ok(), loaded);
    }
    let _ = delta.to_bytes();
    let mut window = Window::new(Some(data_type.clone()), limits);
    for sender in [1, 1, 2] {
        assert_eq!(window.merge(sender, update, &context).is_ok(), loaded);
    }
    let _ = window.encode();
    let _ = WindowBytes::overlay(&data_type, 1, &[update, update]);
    let _ = WindowBytes::side_by_side(&data_type, &[(1, update), (2, update)]);
    let _ = data_type.check(update);
    let _ = data_type.without_skipped(update).is_ok();
    let path = vec!["child"; MAX_MASK_DEPTH].join(".");
    let mask = Mask::new(data_type, [path.as_str()]).unwrap();
    let _ = mask.apply(update, &mut Vec::new());
    loaded
}

#[test]
fn messages_nested_thousands_deep_are_refused_and_those_within_the_limit_taken() {
    on_a_small_stack(|| {
        for number in [1, 2, 3, 4, 5] {
            assert!(take(&nested(3, number)), "field {number}");
            assert!(take(&nested(MAX_DEPTH as usize / 2 - 1, number)));
            assert!(!take(&nested(MAX_DEPTH as usize + 1, number)));
            assert!(!take(&nested(5000, number)));
        }
    });
}

#[test]
fn merging_the_same_depth_over_and_over_makes_it_no_deeper() {
    on_a_small_stack(|| {
        let mut state = State::new(Some(tree()), MergeLimits::default());
        for number in [1, 2, 3, 4, 5].repeat(20) {
            let update = nested(MAX_DEPTH as usize / 2 - 1, number);
            let _ = state.merge(&update, &MergeContext::default());
        }
        assert!(state.encoded_len() > 0);
    });
}

#[test]
fn groups_nested_a_hundred_thousand_deep_are_refused() {
    on_a_small_stack(|| {
        let groups = [vec![0x0b; 100_000], vec![0x0c; 100_000]].concat();
        let read = Reader::new(&groups).next_field();
        assert_eq!(read, Err(WireError::TooDeep));
        assert!(!take(&groups));
    });
}
