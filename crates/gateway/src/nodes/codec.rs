//! The messages of the [bus](crate::core::bus) as bytes.
//!
//! Instants do not cross, for every node has a clock of its own: the end of a ban crosses
//! as what is left of it.

mod to_channels;
mod to_connections;

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;
use std::time::Duration;

use lagometer_protocol::merge::MergeOptions;

use crate::core::bus::{Member, Own, Recipients, Window};
use crate::core::{ChannelId, ConnId, ConnKey, GroupId};

use super::wire::{Malformed, Put as _, Reader};

pub(super) use to_channels::{decode_to_channels, encode_to_channels};
pub(super) use to_connections::{decode_to_connections, encode_to_connections};

fn put_window(out: &mut Vec<u8>, window: &Window) {
    put_recipients(out, &window.to);
    out.put_u32(window.channel.0);
    out.put_bytes(window.type_url.as_bytes());
    match window.merge_options {
        None => out.put_u8(0),
        Some(options) => {
            out.put_u8(1);
            for flag in [
                options.replace_list,
                options.truncate_top,
                options.remove_entries,
            ] {
                out.put_u8(u8::from(flag));
            }
            out.put_u32(options.list_size_limit);
        }
    }
    out.put_bytes(&window.value);
    out.put_len(window.own.len());
    for own in window.own.iter() {
        out.put_u32(own.id.0);
        // Values are some ten kilobytes long at most.
        out.put_len(own.range.start);
        out.put_len(own.range.end);
    }
    put_ids(out, &window.except);
}

fn window(reader: &mut Reader) -> Result<Window, Malformed> {
    let to = recipients(reader)?;
    let channel = ChannelId(reader.u32()?);
    let type_url = reader.text()?.into();
    let merge_options = if reader.flag()? {
        Some(MergeOptions {
            replace_list: reader.flag()?,
            truncate_top: reader.flag()?,
            remove_entries: reader.flag()?,
            list_size_limit: reader.u32()?,
        })
    } else {
        None
    };
    let value = reader.bytes()?;
    let own = reader.list(12, |reader| {
        let id = id(reader)?;
        let range = reader.u32()? as usize..reader.u32()? as usize;
        // Whoever cuts it out takes it for granted.
        if range.start > range.end || range.end > value.len() {
            return Err(Malformed);
        }
        Ok(Own { id, range })
    })?;
    Ok(Window {
        to,
        channel,
        type_url,
        merge_options,
        own: own.into(),
        except: ids(reader)?,
        value,
    })
}

fn put_recipients(out: &mut Vec<u8>, to: &Recipients) {
    match to {
        Recipients::Group(group) => {
            out.put_u8(0);
            out.put_u32(group.0);
        }
        Recipients::These(members) => {
            out.put_u8(1);
            out.put_len(members.len());
            for &member in members.iter() {
                put_member(out, member);
            }
        }
    }
}

fn recipients(reader: &mut Reader) -> Result<Recipients, Malformed> {
    match reader.u8()? {
        0 => Ok(Recipients::Group(GroupId(reader.u32()?))),
        1 => Ok(Recipients::These(reader.list(5, member)?.into())),
        _ => Err(Malformed),
    }
}

fn put_member(out: &mut Vec<u8>, member: Member) {
    out.put_u32(member.id.0);
    out.put_u8(u8::from(member.skip_self));
}

fn member(reader: &mut Reader) -> Result<Member, Malformed> {
    Ok(Member {
        id: id(reader)?,
        skip_self: reader.flag()?,
    })
}

fn put_ids(out: &mut Vec<u8>, ids: &[ConnId]) {
    out.put_len(ids.len());
    for id in ids {
        out.put_u32(id.0);
    }
}

fn ids(reader: &mut Reader) -> Result<Arc<[ConnId]>, Malformed> {
    Ok(reader.list(4, id)?.into())
}

fn id(reader: &mut Reader) -> Result<ConnId, Malformed> {
    reader.u32().map(ConnId)
}

fn put_pair(out: &mut Vec<u8>, one: ConnId, other: ConnId) {
    out.put_u32(one.0);
    out.put_u32(other.0);
}

fn put_key(out: &mut Vec<u8>, key: ConnKey) {
    out.put_u32(key.slot);
    out.put_u32(key.generation);
}

fn key(reader: &mut Reader) -> Result<ConnKey, Malformed> {
    Ok(ConnKey {
        slot: reader.u32()?,
        generation: reader.u32()?,
    })
}

fn put_owner(out: &mut Vec<u8>, owner: Option<ConnId>) {
    out.put_u8(u8::from(owner.is_some()));
    if let Some(owner) = owner {
        out.put_u32(owner.0);
    }
}

fn owner(reader: &mut Reader) -> Result<Option<ConnId>, Malformed> {
    reader.flag()?.then(|| id(reader)).transpose()
}

fn put_duration(out: &mut Vec<u8>, duration: Duration) {
    out.put_u64(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX));
}

fn duration(reader: &mut Reader) -> Result<Duration, Malformed> {
    reader.u64().map(Duration::from_nanos)
}

fn put_address(out: &mut Vec<u8>, address: Option<IpAddr>) {
    match address {
        None => out.put_u8(0),
        Some(IpAddr::V4(address)) => {
            out.put_u8(4);
            out.put_u32(address.to_bits());
        }
        Some(IpAddr::V6(address)) => {
            out.put_u8(6);
            let bits = address.to_bits();
            out.put_u64(bits as u64);
            out.put_u64((bits >> 64) as u64);
        }
    }
}

fn address(reader: &mut Reader) -> Result<Option<IpAddr>, Malformed> {
    Ok(match reader.u8()? {
        0 => None,
        4 => Some(Ipv4Addr::from_bits(reader.u32()?).into()),
        6 => {
            let low = u128::from(reader.u64()?);
            let high = u128::from(reader.u64()?);
            Some(Ipv6Addr::from_bits(high << 64 | low).into())
        }
        _ => return Err(Malformed),
    })
}

#[cfg(test)]
mod tests;
