//! Merging as a reference: decoded messages, the protobuf library's own
//! merge, and the rules written down plainly.

mod misfits;

pub(crate) use misfits::{misfits_as_unknown, with_misfits, without_twins};

use lagometer_protocol::merge::{MergeContext, MergeOptions};
use lagometer_units::SplitMix64;
use prost::Message;
use prost_reflect::{
    DynamicMessage, FieldDescriptor, MapKey, MessageDescriptor, ReflectMessage, Value,
};

/// Merges `update` into `data` as the type of both asks.
pub(crate) fn merge(data: &mut DynamicMessage, update: &DynamicMessage, context: &MergeContext) {
    match data.descriptor().full_name() {
        "tpspb.TestRepChannelData" => test_rep(data, update),
        "tpspb.EntityChannelData" => {
            let mut update = update.clone();
            update.clear_field_by_name("objRef");
            plain(data, &update);
        }
        "unrealpb.SpatialChannelData" => {
            entries(data, update, "entities", true, |_, _| {});
        }
        "tankspb.TankGameChannelData" => {
            entries(data, update, "tankStates", true, |old, new| {
                copy_field(old, new, "health");
            });
            entries(data, update, "transformStates", true, overlay);
        }
        "chatpb.ChatChannelData" => chat(data, update, context),
        "kinds.Ruled" => ruled(data, update, context),
        _ => generic(data, update, context.options),
    }
}

/// Protobuf's own merge.
fn plain(data: &mut DynamicMessage, update: &DynamicMessage) {
    data.merge(&*update.encode_to_vec()).unwrap();
}

/// Protobuf's merge, then lists and maps as the options ask.
fn generic(data: &mut DynamicMessage, update: &DynamicMessage, options: Option<MergeOptions>) {
    plain(data, update);
    let Some(options) = options else { return };
    let fields: Vec<FieldDescriptor> = data.descriptor().fields().collect();
    for field in fields {
        if field.is_list() {
            shorten(data, update, &field, options);
        } else if field.is_map() && options.remove_entries {
            remove_removed(data, &field);
        }
    }
}

fn shorten(
    data: &mut DynamicMessage,
    update: &DynamicMessage,
    field: &FieldDescriptor,
    options: MergeOptions,
) {
    if options.replace_list && update.has_field(field) {
        data.set_field(field, update.get_field(field).into_owned());
    }
    // Every update cuts, whether it has the list or not.
    let limit = options.list_size_limit as usize;
    let mut list = data.get_field(field).as_list().unwrap().to_vec();
    if limit > 0 && list.len() > limit {
        if options.truncate_top {
            list.drain(..list.len() - limit);
        } else {
            list.truncate(limit);
        }
        data.set_field(field, Value::List(list));
    }
}

fn remove_removed(data: &mut DynamicMessage, field: &FieldDescriptor) {
    let mut map = data.get_field(field).as_map().unwrap().clone();
    map.retain(|_, value| !is_removed(value));
    set_map(data, field, map);
}

fn is_removed(value: &Value) -> bool {
    value
        .as_message()
        .and_then(|message| message.get_field_by_name("removed"))
        .is_some_and(|removed| removed.as_bool() == Some(true))
}

fn set_map(
    data: &mut DynamicMessage,
    field: &FieldDescriptor,
    map: std::collections::HashMap<MapKey, Value>,
) {
    if map.is_empty() {
        data.clear_field(field);
    } else {
        data.set_field(field, Value::Map(map));
    }
}

/// Merges the map `name`: an entry that is removed goes, one that is there is
/// changed by `change`, any other is inserted. Returns the keys that went.
fn entries(
    data: &mut DynamicMessage,
    update: &DynamicMessage,
    name: &str,
    removable: bool,
    change: impl Fn(&mut DynamicMessage, &DynamicMessage),
) -> Vec<MapKey> {
    let field = data.descriptor().get_field_by_name(name).unwrap();
    let mut map = data.get_field(&field).as_map().unwrap().clone();
    let mut gone = Vec::new();
    for (key, value) in update.get_field(&field).as_map().unwrap() {
        if removable && is_removed(value) {
            map.remove(key);
            gone.push(key.clone());
        } else if let Some(old) = map.get_mut(key) {
            change(old.as_message_mut().unwrap(), value.as_message().unwrap());
        } else {
            map.insert(key.clone(), value.clone());
        }
    }
    set_map(data, &field, map);
    gone
}

fn lose_keys(data: &mut DynamicMessage, name: &str, keys: &[MapKey]) {
    let field = data.descriptor().get_field_by_name(name).unwrap();
    let mut map = data.get_field(&field).as_map().unwrap().clone();
    for key in keys {
        map.remove(key);
    }
    set_map(data, &field, map);
}

fn copy_field(old: &mut DynamicMessage, new: &DynamicMessage, name: &str) {
    let field = old.descriptor().get_field_by_name(name).unwrap();
    if new.has_field(&field) {
        old.set_field(&field, new.get_field(&field).into_owned());
    } else {
        old.clear_field(&field);
    }
}

fn overlay(old: &mut DynamicMessage, new: &DynamicMessage) {
    for (field, value) in new.fields() {
        old.set_field(&field, value.clone());
    }
}

fn merge_field(data: &mut DynamicMessage, update: &DynamicMessage, name: &str) {
    let mut only = DynamicMessage::new(data.descriptor());
    copy_field(&mut only, update, name);
    plain(data, &only);
}

fn test_rep(data: &mut DynamicMessage, update: &DynamicMessage) {
    merge_field(data, update, "gameState");
    merge_field(data, update, "testGameState");
    let of_the_actor = [
        "pawnStates",
        "characterStates",
        "playerStates",
        "controllerStates",
        "playerControllerStates",
        "testRepPlayerControllerStates",
        "testNPCStates",
    ];
    for name in of_the_actor {
        entries(data, update, name, false, plain);
    }
    for name in [
        "actorComponentStates",
        "sceneComponentStates",
        "staticMeshComponentStates",
    ] {
        entries(data, update, name, true, plain);
    }
    let gone = entries(data, update, "actorStates", true, plain);
    for name in of_the_actor {
        lose_keys(data, name, &gone);
    }
}

fn chat(data: &mut DynamicMessage, update: &DynamicMessage, context: &MergeContext) {
    const SPAN_MS: i64 = 10_000;
    let options = context.options.unwrap_or_default();
    let field = data.descriptor().get_field_by_name("chatMessages").unwrap();
    if options.replace_list && update.has_field(&field) {
        data.clear_field(&field);
    }
    plain(data, update);
    let limit = options.list_size_limit as usize;
    let mut list = data.get_field(&field).as_list().unwrap().to_vec();
    if limit == 0 || list.len() <= limit {
        return;
    }
    if options.truncate_top {
        let time = |value: &Value| {
            let message = value.as_message().unwrap();
            message
                .get_field_by_name("sendTime")
                .unwrap()
                .as_i64()
                .unwrap()
        };
        let mut start = list.len() - limit;
        while start > 0 && time(&list[start - 1]) >= context.now_unix_ms - SPAN_MS {
            start -= 1;
        }
        list.drain(..start);
    } else {
        list.truncate(limit);
    }
    data.set_field(&field, Value::List(list));
}

fn ruled(data: &mut DynamicMessage, update: &DynamicMessage, context: &MergeContext) {
    let options = context.options.unwrap_or(MergeOptions {
        remove_entries: true,
        ..MergeOptions::default()
    });
    entries(data, update, "deep", options.remove_entries, plain);
    entries(data, update, "spread", options.remove_entries, overlay);
    entries(data, update, "overlay", true, overlay);
    entries(data, update, "first", true, |_, _| {});
    let replace = |old: &mut DynamicMessage, new: &DynamicMessage| *old = new.clone();
    entries(data, update, "kept", false, replace);
    merge_field(data, update, "names");
    merge_field(data, update, "list");
    let list = data.descriptor().get_field_by_name("list").unwrap();
    shorten(data, update, &list, options);
    let gone = entries(data, update, "cascade", true, replace);
    lose_keys(data, "deep", &gone);
    lose_keys(data, "names", &gone);
}

/// Draws messages of any type from a seed.
pub(crate) struct Source(SplitMix64);

impl Source {
    pub(crate) fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// A message with some of its fields, at most `depth` messages deep.
    pub(crate) fn message(&mut self, descriptor: &MessageDescriptor, depth: u32) -> DynamicMessage {
        let mut message = DynamicMessage::new(descriptor.clone());
        // Few fields of many, so that messages differ in what they have.
        let wanted = 1 + self.below(6);
        let fields: Vec<FieldDescriptor> = descriptor.fields().collect();
        for _ in 0..wanted.min(fields.len() as u64) {
            let field = &fields[self.below(fields.len() as u64) as usize];
            if let Some(value) = self.field(field, depth) {
                message.set_field(field, value);
            }
        }
        message
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.0.next_u64() % limit
    }

    fn field(&mut self, field: &FieldDescriptor, depth: u32) -> Option<Value> {
        if field.is_map() {
            let entry = field.kind().as_message()?.clone();
            let (key, value) = (entry.map_entry_key_field(), entry.map_entry_value_field());
            let mut map = std::collections::HashMap::new();
            for _ in 0..=self.below(3) {
                let key = self.scalar_or_message(&key, depth)?.into_map_key()?;
                map.insert(key, self.scalar_or_message(&value, depth)?);
            }
            Some(Value::Map(map))
        } else if field.is_list() {
            let count = 1 + self.below(3);
            let list: Option<Vec<Value>> = (0..count)
                .map(|_| self.scalar_or_message(field, depth))
                .collect();
            list.map(Value::List)
        } else {
            self.scalar_or_message(field, depth)
        }
    }

    fn scalar_or_message(&mut self, field: &FieldDescriptor, depth: u32) -> Option<Value> {
        use prost_reflect::Kind;
        let small = self.below(4) as u32;
        let signed = small.cast_signed() - 1;
        // Now and then one that takes many bytes.
        let signed = if self.below(6) == 0 {
            signed.wrapping_mul(600_000_000)
        } else {
            signed
        };
        Some(match field.kind() {
            Kind::Bool => Value::Bool(small % 2 == 1),
            Kind::Int32 | Kind::Sint32 | Kind::Sfixed32 => Value::I32(signed),
            Kind::Int64 | Kind::Sint64 | Kind::Sfixed64 => Value::I64(i64::from(signed) * 70_000),
            Kind::Uint32 | Kind::Fixed32 => Value::U32(signed.cast_unsigned()),
            Kind::Uint64 | Kind::Fixed64 => Value::U64(i64::from(signed).cast_unsigned()),
            Kind::Float => Value::F32(f32::from(i16::try_from(small).unwrap()) / 2.0),
            Kind::Double => Value::F64(f64::from(signed)),
            Kind::String => Value::String("ü".repeat(small as usize * 3)),
            Kind::Bytes => Value::Bytes(vec![0xff; small as usize * 50].into()),
            Kind::Enum(kind) => {
                let values: Vec<i32> = kind.values().map(|value| value.number()).collect();
                Value::EnumNumber(values[small as usize % values.len()])
            }
            Kind::Message(_) if depth == 0 => return None,
            Kind::Message(message) => Value::Message(self.message(&message, depth - 1)),
        })
    }
}
