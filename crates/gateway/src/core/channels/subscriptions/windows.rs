//! From updates to windows: merged and encoded once, whoever they go to.

use std::sync::Arc;

use bytes::Bytes;
use lagometer_protocol::Mask;
use lagometer_protocol::merge::{
    MergeContext, MergeLimits, MergeOptions, Taken, Window as MergedWindow, WindowBytes,
};
use lagometer_protocol::schema::DataType;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::bus::Own;
use crate::core::ids::ConnId;

use super::super::cut::cut;

/// One update as it came, or several of one sender merged.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Update {
    pub(super) sender: ConnId,
    /// When the first of them came.
    pub(super) at: Time,
    pub(super) value: Bytes,
}

/// Updates merged and encoded.
#[derive(Clone, Debug)]
pub(super) struct Built {
    pub(super) value: Bytes,
    /// In order of the senders.
    pub(super) own: Arc<[Own]>,
    /// Senders whose own part cannot be cut out, in order.
    pub(super) contested: Vec<ConnId>,
}

/// How updates of a channel are merged.
#[derive(Clone, Debug)]
pub(super) struct Recipe {
    pub(super) data_type: Option<DataType>,
    pub(super) options: Option<MergeOptions>,
    pub(super) now_unix_ms: i64,
    /// The longest value that goes into one message.
    pub(super) max_value_bytes: usize,
}

/// Merges updates into as few windows as can be, in order: mostly one. More
/// where an update brings back what another removed, or where one message
/// cannot hold all. A field that no message can hold is left out, and its size
/// put into `too_long`.
pub(super) fn build(updates: &[&Update], recipe: &Recipe, too_long: &mut Vec<usize>) -> Vec<Built> {
    match updates {
        [] => Vec::new(),
        [one] if one.value.len() <= recipe.max_value_bytes => {
            vec![of_one(one, one.value.clone())]
        }
        // What comes compressed may be longer than what goes out.
        [one] => {
            let cut = cut(&one.value, recipe.max_value_bytes);
            too_long.extend(cut.too_long);
            let parts = cut.parts.into_iter();
            parts
                .map(|part| of_one(one, one.value.slice(part)))
                .collect()
        }
        _ => merge(updates, recipe, too_long),
    }
}

/// A window that is one sender's alone.
fn of_one(update: &Update, value: Bytes) -> Built {
    Built {
        own: Arc::new([Own {
            id: update.sender,
            range: 0..value.len(),
        }]),
        value,
        contested: Vec::new(),
    }
}

/// What a mask keeps of a window, own parts and all. A window of which nothing
/// is kept is empty.
pub(super) fn masked(built: &Built, mask: &Mask) -> Built {
    let mut value = Vec::new();
    let mut own = Vec::new();
    let mut by_place: Vec<&Own> = built.own.iter().collect();
    by_place.sort_unstable_by_key(|own| own.range.start);
    let mut keep = |range: std::ops::Range<usize>| {
        let start = value.len();
        // What cannot be read was not merged in the first place.
        if mask.apply(&built.value[range], &mut value).is_err() {
            value.truncate(start);
        }
        start..value.len()
    };
    let mut at = 0;
    for one in by_place {
        keep(at..one.range.start.max(at));
        let range = keep(one.range.start.max(at)..one.range.end.max(at));
        own.push(Own { id: one.id, range });
        at = one.range.end.max(at);
    }
    keep(at..built.value.len());
    own.sort_unstable_by_key(|own| own.id);
    Built {
        value: Bytes::from(value),
        own: own.into(),
        contested: built.contested.clone(),
    }
}

/// Several updates as one, where that is simple.
pub(super) fn as_one(updates: &[&Update], recipe: &Recipe) -> Option<Update> {
    let laid = overlaid(updates, recipe)?;
    Some(Update {
        sender: updates[0].sender,
        at: updates[0].at,
        value: laid.value,
    })
}

fn merge(updates: &[&Update], recipe: &Recipe, too_long: &mut Vec<usize>) -> Vec<Built> {
    if let Some(built) = overlaid(updates, recipe).or_else(|| side_by_side(updates, recipe)) {
        return vec![built];
    }
    let context = MergeContext {
        options: recipe.options,
        now_unix_ms: recipe.now_unix_ms,
    };
    // One update grows by what is written out in full; more than a message
    // holds is cut in two below.
    let limits = MergeLimits {
        max_encoded_bytes: recipe.max_value_bytes * 4,
    };
    let mut window = MergedWindow::new(recipe.data_type.clone(), limits);
    let mut built = Vec::new();
    let mut first = 0;
    for (index, update) in updates.iter().enumerate() {
        let taken = window.merge(update.sender.0, &update.value, &context);
        if taken == Ok(Taken::Merged) {
            continue;
        }
        let before = &updates[first..index];
        built.extend(finish(&window, before, recipe, too_long));
        window.clear();
        first = index;
        if window.merge(update.sender.0, &update.value, &context) != Ok(Taken::Merged) {
            built.extend(build(&updates[index..=index], recipe, too_long));
            first = index + 1;
            window.clear();
        }
    }
    built.extend(finish(&window, &updates[first..], recipe, too_long));
    built
}

/// Encodes a window; if it is too long, each half of its updates instead.
fn finish(
    window: &MergedWindow,
    updates: &[&Update],
    recipe: &Recipe,
    too_long: &mut Vec<usize>,
) -> Vec<Built> {
    if let [] | [_] = updates {
        return build(updates, recipe, too_long);
    }
    let encoded = window.encode();
    if encoded.all().len() <= recipe.max_value_bytes {
        return vec![of_window(encoded)];
    }
    let (earlier, later) = updates.split_at(updates.len() / 2);
    let mut built = build(earlier, recipe, too_long);
    built.extend(build(later, recipe, too_long));
    built
}

/// One window of one sender's updates that only set plain fields, if one
/// message can hold it.
fn overlaid(updates: &[&Update], recipe: &Recipe) -> Option<Built> {
    let data_type = recipe.data_type.as_ref()?;
    let sender = updates[0].sender;
    if updates.iter().any(|update| update.sender != sender) {
        return None;
    }
    let values: Vec<&[u8]> = updates.iter().map(|update| &*update.value).collect();
    WindowBytes::overlay(data_type, sender.0, &values)
        .filter(|laid| laid.all().len() <= recipe.max_value_bytes)
        .map(of_window)
}

/// One window of updates that have nothing in common, if one message can hold
/// it.
fn side_by_side(updates: &[&Update], recipe: &Recipe) -> Option<Built> {
    let len: usize = updates.iter().map(|update| update.value.len()).sum();
    if len > recipe.max_value_bytes {
        return None;
    }
    let data_type = recipe.data_type.as_ref()?;
    let of_one = |update: &&Update| update.sender == updates[0].sender;
    if updates.iter().skip(1).any(of_one) {
        return None;
    }
    let updates: Vec<(u32, &[u8])> = updates
        .iter()
        .map(|update| (update.sender.0, &*update.value))
        .collect();
    WindowBytes::side_by_side(data_type, &updates).map(of_window)
}

fn of_window(encoded: WindowBytes) -> Built {
    let mut own = Vec::new();
    let mut contested = Vec::new();
    for (sender, range) in encoded.own() {
        match range {
            Some(range) => own.push(Own {
                id: ConnId(sender),
                range,
            }),
            None => contested.push(ConnId(sender)),
        }
    }
    Built {
        value: Bytes::from(encoded.into_bytes()),
        own: own.into(),
        contested,
    }
}
