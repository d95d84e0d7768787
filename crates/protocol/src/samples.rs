//! What the property tests of several modules draw from.

use proptest::collection::vec;
use proptest::prelude::*;
use proptest::sample::Index;
use prost::Message;

use crate::schema::Schema;

/// Numbers of every encoded length, small ones and zero among them.
pub(crate) fn varied_u32() -> impl Strategy<Value = u32> {
    prop_oneof![
        2 => Just(0),
        2 => 1u32..200,
        1 => (0u32..32, any::<u32>()).prop_map(|(bits, value)| value >> bits),
    ]
}

/// What the library reads, of the type of that full name, in bytes without the
/// fields whose wire type does not fit: those the library refuses where protobuf
/// has them unknown.
pub(crate) fn read_by_library<M: Message + Default>(full_name: &str, bytes: &[u8]) -> Option<M> {
    let data_type = Schema::bundled().find(full_name).expect("a bundled type");
    let fitting = data_type.without_misfits(bytes).ok()?;
    M::decode(&*fitting).ok()
}

/// What `valid` draws, and the same with bytes changed, cut out, put in, or
/// the end missing.
pub(crate) fn mutated(valid: impl Strategy<Value = Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let edits = prop_oneof![
        1 => Just(Vec::new()),
        3 => vec((any::<Index>(), any::<u8>(), 0u8..5), 1..4),
    ];
    (valid, edits).prop_map(|(mut bytes, edits)| {
        for (at, byte, edit) in edits {
            if bytes.is_empty() {
                bytes.push(byte);
                continue;
            }
            let at = at.index(bytes.len());
            match edit {
                0 => bytes[at] = byte,
                1 => bytes[at] ^= 1 << (byte & 7),
                2 => bytes.insert(at, byte),
                3 => drop(bytes.remove(at)),
                _ => bytes.truncate(at),
            }
        }
        bytes
    })
}
