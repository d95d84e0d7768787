//! The state of a player as it travels: a transform of about 46 bytes in
//! `tankspb.TankGameChannelData`, written and read by hand because a load
//! generator handles tens of millions a second.
//!
//! `position.x` holds the microsecond at which the state was to be sent and
//! `position.y` its number, both modulo what a `float` holds exactly.

use lagometer_protocol::wire::{Reader, WireError};

/// The type of the channel's data.
pub(crate) const TYPE_URL: &str = "type.googleapis.com/tankspb.TankGameChannelData";

/// Whole numbers below this are exact in a `float`.
pub(crate) const EXACT: u32 = 1 << 24;

/// One state that arrived.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Arrived {
    /// Whose it is.
    pub(crate) id: u32,
    /// When it was to be sent, microseconds modulo [`EXACT`].
    pub(crate) stamp_us: u32,
    /// Its number, from 1.
    pub(crate) number: u16,
}

const POSITION_LEN: usize = 15;
const ROTATION_LEN: usize = 20;
const TRANSFORM_LEN: usize = 2 + POSITION_LEN + 2 + ROTATION_LEN;

/// Appends the state of `id` as an entry of the channel data's map.
pub(crate) fn put_state(out: &mut Vec<u8>, id: u32, stamp_us: u64, number: u16) {
    let mut key = [0u8; 5];
    let key_len = varint(&mut key, id);
    let entry_len = 1 + key_len + 2 + TRANSFORM_LEN;
    out.extend_from_slice(&[0x0a, entry_len as u8, 0x08]);
    out.extend_from_slice(&key[..key_len]);
    out.extend_from_slice(&[0x12, TRANSFORM_LEN as u8, 0x12, POSITION_LEN as u8]);
    // Zeros are left out on the wire, which would change the length.
    let stamp = ((stamp_us % u64::from(EXACT)) as u32).max(1);
    for (tag, value) in [(0x0d, stamp as f32), (0x15, f32::from(number)), (0x1d, 3.5)] {
        out.push(tag);
        out.extend_from_slice(&value.to_le_bytes());
    }
    out.extend_from_slice(&[0x1a, ROTATION_LEN as u8]);
    for (tag, value) in [(0x0d, 0.5f32), (0x15, 0.5), (0x1d, 0.5), (0x25, 0.5)] {
        out.push(tag);
        out.extend_from_slice(&value.to_le_bytes());
    }
}

/// Calls `on_state` for every state in encoded channel data.
///
/// # Errors
///
/// [`WireError`] when it is none.
pub(crate) fn for_each_state(
    mut data: &[u8],
    mut on_state: impl FnMut(Arrived),
) -> Result<(), WireError> {
    while !data.is_empty() {
        if let Some((state, len)) = read_as_written(data) {
            on_state(state);
            data = &data[len..];
            continue;
        }
        // Another order of fields, or a field more: read it by the book.
        let mut reader = Reader::new(data);
        let Some(field) = reader.next_field()? else {
            return Ok(());
        };
        if field.number == 1 {
            on_state(read_entry(field.bytes()?)?);
        }
        data = &data[field.raw.len()..];
    }
    Ok(())
}

/// Reads an entry laid out as [`put_state`] does. Returns its length too.
fn read_as_written(data: &[u8]) -> Option<(Arrived, usize)> {
    let [0x0a, entry_len, 0x08, ..] = *data else {
        return None;
    };
    let entry = data.get(2..2 + usize::from(entry_len))?;
    let key_len = entry.len().checked_sub(1 + 2 + TRANSFORM_LEN)?;
    let id = match *entry.get(1..=key_len)? {
        [a] if a < 0x80 => u32::from(a),
        [a, b] if a >= 0x80 && b < 0x80 => u32::from(a & 0x7f) | u32::from(b) << 7,
        [a, b, c] if a >= 0x80 && b >= 0x80 && c < 0x80 => {
            u32::from(a & 0x7f) | u32::from(b & 0x7f) << 7 | u32::from(c) << 14
        }
        _ => return None,
    };
    let transform = &entry[1 + key_len..];
    let [
        0x12,
        39,
        0x12,
        15,
        0x0d,
        x0,
        x1,
        x2,
        x3,
        0x15,
        y0,
        y1,
        y2,
        y3,
        0x1d,
        ..,
    ] = *transform
    else {
        return None;
    };
    let arrived = Arrived {
        id,
        stamp_us: f32::from_le_bytes([x0, x1, x2, x3]) as u32,
        number: f32::from_le_bytes([y0, y1, y2, y3]) as u16,
    };
    Some((arrived, 2 + entry.len()))
}

fn read_entry(entry: &[u8]) -> Result<Arrived, WireError> {
    let mut arrived = Arrived {
        id: 0,
        stamp_us: 0,
        number: 0,
    };
    let mut reader = Reader::new(entry);
    while let Some(field) = reader.next_field()? {
        match field.number {
            1 => arrived.id = field.uint32()?,
            2 => {
                let mut transform = Reader::new(field.bytes()?);
                while let Some(field) = transform.next_field()? {
                    if field.number == 2 {
                        read_position(field.bytes()?, &mut arrived)?;
                    }
                }
            }
            _ => {}
        }
    }
    Ok(arrived)
}

fn read_position(position: &[u8], arrived: &mut Arrived) -> Result<(), WireError> {
    let mut reader = Reader::new(position);
    while let Some(field) = reader.next_field()? {
        // A float's key and its four bytes.
        if let [_, a, b, c, d] = *field.raw {
            let value = f32::from_le_bytes([a, b, c, d]);
            match field.number {
                1 => arrived.stamp_us = value as u32,
                2 => arrived.number = value as u16,
                _ => {}
            }
        }
    }
    Ok(())
}

fn varint(out: &mut [u8; 5], mut value: u32) -> usize {
    let mut len = 0;
    loop {
        let low = (value & 0x7f) as u8;
        value >>= 7;
        out[len] = if value == 0 { low } else { low | 0x80 };
        len += 1;
        if value == 0 {
            return len;
        }
    }
}

#[cfg(test)]
mod tests {
    use lagometer_protocol::messages::tankspb::TankGameChannelData;
    use prost::Message;

    use super::*;

    fn read(data: &[u8]) -> Vec<Arrived> {
        let mut states = Vec::new();
        for_each_state(data, |state| states.push(state)).unwrap();
        states
    }

    #[test]
    fn what_is_written_is_the_message_and_is_read_back() {
        let mut data = Vec::new();
        let expected: Vec<Arrived> = [(1, 5), (300, 6), (70_000, 7)]
            .map(|(id, number)| {
                put_state(&mut data, id, 1234, number);
                Arrived {
                    id,
                    stamp_us: 1234,
                    number,
                }
            })
            .to_vec();
        let message = TankGameChannelData::decode(&*data).unwrap();
        let position = message.transform_states[&300].position.unwrap();
        assert_eq!((position.x, position.y), (1234.0, 6.0));
        assert_eq!(read(&data), expected);
    }

    #[test]
    fn entries_laid_out_otherwise_are_read_too() {
        let mut data = Vec::new();
        put_state(&mut data, 9, 77, 2);
        // A field this program never writes, before the entry.
        let mut strange = vec![0x12, 0x00];
        strange.extend_from_slice(&data);
        assert_eq!(read(&strange), read(&data));
        let entry = &data[2..];
        let (key, transform) = entry.split_at(2);
        let swapped = [&[0x0a, entry.len() as u8], transform, key].concat();
        assert_eq!(read(&swapped), read(&data));
        assert!(for_each_state(&[0x0a, 9], |_| {}).is_err());
    }
}
