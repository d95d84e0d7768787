//! Masks over any bytes: what a mask keeps is a message of the same type.

use std::sync::LazyLock;

use lagometer_protocol::Mask;
use lagometer_protocol::schema::{DataType, Schema};

static TYPES: LazyLock<Vec<DataType>> = LazyLock::new(|| {
    let schema = Schema::bundled();
    [
        "tpspb.TestRepChannelData",
        "tpspb.EntityChannelData",
        "unrealpb.SpatialChannelData",
        "chatpb.ChatChannelData",
    ]
    .into_iter()
    .filter_map(|name| schema.find(name))
    .collect()
});

/// Names that lead somewhere, for paths that do more than miss.
const NAMES: [&str; 16] = [
    "actorState",
    "actorStates",
    "replicatedMovement",
    "location",
    "x",
    "objRef",
    "netGUID",
    "context",
    "pathName",
    "gameState",
    "entities",
    "removed",
    "chatMessages",
    "content",
    "",
    "nowhere",
];

pub(crate) fn body(data: &[u8]) {
    let [which, one, two, three, encoded @ ..] = data else {
        return;
    };
    let data_type = &TYPES[usize::from(*which) % TYPES.len()];
    let name = |byte: u8| NAMES[usize::from(byte % 16)];
    let paths = [
        format!("{}.{}", name(one >> 4), name(*one)),
        format!("{}.{}.{}", name(one >> 4), name(two >> 4), name(*two)),
        name(*three).to_owned(),
    ];
    let Some(mask) = Mask::new(data_type.clone(), paths.iter().map(String::as_str)) else {
        return;
    };
    let mut kept = Vec::new();
    let applied = mask.apply(encoded, &mut kept);
    if data_type.check(encoded).is_ok() {
        applied.unwrap();
        data_type.check(&kept).unwrap();
        let mut again = Vec::new();
        mask.apply(&kept, &mut again).unwrap();
        assert_eq!(again, kept, "a mask takes nothing more the second time");
    }
}
