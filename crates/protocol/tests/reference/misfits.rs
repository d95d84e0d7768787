//! Fields whose wire type is not the one their type has, and their twins: fields
//! of numbers that no type has, with the same values.

use lagometer_protocol::wire::{Field, Reader, Value, put_bytes_field, put_varint};
use prost_reflect::{FieldDescriptor, Kind, MessageDescriptor};

use super::Source;

/// Twins' numbers are about here: no type has any.
const TWINS: u32 = 1 << 20;

/// The number of a field's twin. The largest that there are, 2^29 - 1, has one
/// beside those of small numbers.
fn twin(number: u32) -> u32 {
    TWINS + number % (TWINS - 1)
}

/// An update with fields put in that do not fit, in it and in messages within
/// it, and the same with their twins.
pub(crate) fn with_misfits(
    descriptor: &MessageDescriptor,
    update: &[u8],
    source: &mut Source,
) -> [Vec<u8>; 2] {
    let mut out = [Vec::new(), Vec::new()];
    for field in fields(update) {
        put_misfit(descriptor, source, &mut out);
        let known = descriptor.get_field(field.number);
        match (known, field.value) {
            (Some(known), Value::Bytes(bytes)) if holds_messages(&known) => {
                let message = message(&known);
                let within = if known.is_map() {
                    with_misfits_in_entry(&message, bytes, source)
                } else {
                    with_misfits(&message, bytes, source)
                };
                for (out, within) in out.iter_mut().zip(within) {
                    put_bytes_field(out, field.number, &within);
                }
            }
            _ => out.iter_mut().for_each(|out| out.extend(field.raw)),
        }
    }
    put_misfit(descriptor, source, &mut out);
    out
}

/// The same of a map's entry. What does not fit in the entry itself is dropped,
/// so that it has no twin.
fn with_misfits_in_entry(
    entry: &MessageDescriptor,
    bytes: &[u8],
    source: &mut Source,
) -> [Vec<u8>; 2] {
    let mut out = [Vec::new(), Vec::new()];
    for field in fields(bytes) {
        let mut dropped = [Vec::new(), Vec::new()];
        put_misfit(entry, source, &mut dropped);
        out[0].extend(&dropped[0]);
        let known = entry.get_field(field.number);
        match (known, field.value) {
            (Some(known), Value::Bytes(bytes)) if holds_messages(&known) => {
                let within = with_misfits(&message(&known), bytes, source);
                for (out, within) in out.iter_mut().zip(within) {
                    put_bytes_field(out, field.number, &within);
                }
            }
            _ => out.iter_mut().for_each(|out| out.extend(field.raw)),
        }
    }
    out
}

/// A message with the twins of those of its fields that do not fit.
pub(crate) fn misfits_as_unknown(descriptor: &MessageDescriptor, bytes: &[u8]) -> Vec<u8> {
    rewritten(descriptor, bytes, &|field, out| {
        put_varint(
            out,
            u64::from(twin(field.number) << 3 | (key_of(field) & 7)),
        );
        let key = key_len(field);
        out.extend_from_slice(&field.raw[key..]);
    })
}

/// A message without twins.
pub(crate) fn without_twins(descriptor: &MessageDescriptor, bytes: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields(bytes) {
        let known = descriptor.get_field(field.number);
        match (known, field.value) {
            (None, _) => {}
            (Some(known), Value::Bytes(bytes)) if holds_messages(&known) => {
                let within = without_twins(&message(&known), bytes);
                put_bytes_field(&mut out, field.number, &within);
            }
            _ => out.extend(field.raw),
        }
    }
    out
}

/// A message whose fields that do not fit are written by `write`, in it and in
/// messages within it.
fn rewritten(
    descriptor: &MessageDescriptor,
    bytes: &[u8],
    write: &dyn Fn(&Field<'_>, &mut Vec<u8>),
) -> Vec<u8> {
    let mut out = Vec::new();
    for field in fields(bytes) {
        match (descriptor.get_field(field.number), field.value) {
            (Some(known), value) if !fits(&known, &value) => write(&field, &mut out),
            (Some(known), Value::Bytes(bytes)) if holds_messages(&known) => {
                let within = rewritten(&message(&known), bytes, write);
                put_bytes_field(&mut out, field.number, &within);
            }
            _ => out.extend(field.raw),
        }
    }
    out
}

/// Now and then, a field of the type with a value that does not fit, and its
/// twin.
fn put_misfit(descriptor: &MessageDescriptor, source: &mut Source, out: &mut [Vec<u8>; 2]) {
    let known: Vec<FieldDescriptor> = descriptor.fields().collect();
    if known.is_empty() || source.below(3) > 0 {
        return;
    }
    let field = &known[source.below(known.len() as u64) as usize];
    let values: [(u32, &[u8]); 4] = [
        (0, &[0x96, 0x01]),
        (1, &[1; 8]),
        (2, &[2, 0x08, 0x01]),
        (5, &[7; 4]),
    ];
    let (wire_type, value) = values[source.below(4) as usize];
    let is_it = match wire_type {
        0 => Value::Varint(150),
        1 => Value::Fixed64(1),
        2 => Value::Bytes(&[]),
        _ => Value::Fixed32(7),
    };
    if fits(field, &is_it) {
        return;
    }
    let numbers = [field.number(), twin(field.number())];
    for (out, number) in out.iter_mut().zip(numbers) {
        put_varint(out, u64::from(number << 3 | wire_type));
        out.extend_from_slice(value);
    }
}

fn fields(message: &[u8]) -> Vec<Field<'_>> {
    let mut reader = Reader::new(message);
    let mut fields = Vec::new();
    while let Some(field) = reader.next_field().expect("a message") {
        fields.push(field);
    }
    fields
}

fn message(field: &FieldDescriptor) -> MessageDescriptor {
    field.kind().as_message().expect("a message").clone()
}

fn holds_messages(field: &FieldDescriptor) -> bool {
    matches!(field.kind(), Kind::Message(_))
}

/// Whether the wire type of a value is one that the field is written in.
fn fits(field: &FieldDescriptor, value: &Value<'_>) -> bool {
    let of_kind = match field.kind() {
        Kind::Double | Kind::Fixed64 | Kind::Sfixed64 => matches!(value, Value::Fixed64(_)),
        Kind::Float | Kind::Fixed32 | Kind::Sfixed32 => matches!(value, Value::Fixed32(_)),
        Kind::String | Kind::Bytes | Kind::Message(_) => matches!(value, Value::Bytes(_)),
        _ => matches!(value, Value::Varint(_)),
    };
    let is_packable =
        field.is_list() && !matches!(field.kind(), Kind::String | Kind::Bytes | Kind::Message(_));
    of_kind || (is_packable && matches!(value, Value::Bytes(_)))
}

fn key_of(field: &Field<'_>) -> u32 {
    let mut reader = Reader::new(field.raw);
    reader.varint().expect("a key") as u32
}

fn key_len(field: &Field<'_>) -> usize {
    let ends = field.raw.iter().position(|byte| *byte < 0x80);
    ends.expect("a key") + 1
}
