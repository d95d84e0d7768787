//! What the channels send to an edge.

use bytes::Bytes;
use lagometer_units::Time;

use crate::core::bus::ToConnections;
use crate::core::{Budget, ChannelId, CloseReason, GroupId, ShardId};

use super::super::wire::{Malformed, Put as _, Reader};
use super::{
    address, duration, id, ids, key, member, owner, put_address, put_duration, put_ids, put_key,
    put_member, put_owner, put_pair, put_recipients, put_window, recipients, window,
};

/// Why a connection was closed, where nothing more belongs to it, by its number.
const REASONS: [CloseReason; 18] = [
    CloseReason::PeerClosed,
    CloseReason::TransportFailed,
    CloseReason::BadBytes,
    CloseReason::BadAuth,
    CloseReason::Banned,
    CloseReason::AuthTimeout,
    CloseReason::TooManyRefused,
    CloseReason::Evicted,
    CloseReason::Silent,
    CloseReason::TooMuchWaiting,
    CloseReason::NotReading,
    CloseReason::Disconnected,
    CloseReason::LeftByItself,
    CloseReason::ProviderFailed,
    CloseReason::NoNumberLeft,
    CloseReason::Shutdown,
    CloseReason::ChannelsLost,
    // Stands for a budget, whose number follows.
    CloseReason::OverBudget(Budget::LoginBytes),
];

/// The place of the reason that stands for all budgets.
const OVER_BUDGET: u8 = 17;

pub(in crate::nodes) fn encode_to_connections(now: Time, message: &ToConnections) -> Bytes {
    let mut out = Vec::new();
    match message {
        ToConnections::AuthAnswer {
            key,
            id,
            admitted,
            player,
            message,
            number,
            recovers,
        } => {
            out.put_u8(0);
            put_key(&mut out, *key);
            out.put_u32(id.0);
            out.extend([*admitted, *recovers].map(u8::from));
            out.put_bytes(player.as_bytes());
            out.put_bytes(message);
            out.put_u64(*number);
        }
        ToConnections::Send { to, message } => {
            out.put_u8(1);
            out.put_u32(to.0);
            out.put_bytes(message);
        }
        ToConnections::Forward {
            cause,
            source_prefix,
            to,
            message,
        } => {
            out.put_u8(2);
            put_pair(&mut out, *cause, *to);
            put_address(&mut out, *source_prefix);
            out.put_bytes(message);
        }
        ToConnections::Pause {
            id,
            receiver,
            pause,
        } => {
            out.put_u8(3);
            put_pair(&mut out, *id, *receiver);
            put_duration(&mut out, *pause);
        }
        ToConnections::AskCongestion { sender, receiver } => {
            put_two(&mut out, 4, sender.0, receiver.0);
        }
        ToConnections::Resume { id, receiver } => put_two(&mut out, 5, id.0, receiver.0),
        ToConnections::SendMany { to, message } => {
            out.put_u8(6);
            put_ids(&mut out, to);
            out.put_bytes(message);
        }
        ToConnections::State {
            to,
            channel,
            messages,
        } => {
            out.put_u8(7);
            put_ids(&mut out, to);
            out.put_u32(channel.0);
            put_messages(&mut out, messages);
        }
        ToConnections::Join {
            group,
            channel,
            member,
        } => {
            out.put_u8(8);
            out.put_u32(group.0);
            out.put_u32(channel.0);
            put_member(&mut out, *member);
        }
        ToConnections::Leave { group, id } => put_two(&mut out, 9, group.0, id.0),
        ToConnections::Forget { id, channel } => put_two(&mut out, 10, id.0, channel.0),
        ToConnections::Window(window) => {
            out.put_u8(11);
            put_window(&mut out, window);
        }
        ToConnections::Missed { to, channel } => {
            out.put_u8(12);
            put_recipients(&mut out, to);
            out.put_u32(channel.0);
        }
        ToConnections::Close { key, why } => {
            out.put_u8(13);
            put_key(&mut out, *key);
            put_reason(&mut out, *why);
        }
        ToConnections::Ban { address, until } => {
            out.put_u8(14);
            put_address(&mut out, Some(*address));
            put_duration(&mut out, until.since(now));
        }
        ToConnections::Known { .. }
        | ToConnections::GlobalOwner { .. }
        | ToConnections::Relay { .. }
        | ToConnections::ListPart { .. } => put_for_edge(&mut out, message),
    }
    out.into()
}

pub(in crate::nodes) fn decode_to_connections(
    now: Time,
    bytes: Bytes,
) -> Result<ToConnections, Malformed> {
    let mut reader = Reader(bytes);
    let message = match reader.u8()? {
        0 => ToConnections::AuthAnswer {
            key: key(&mut reader)?,
            id: id(&mut reader)?,
            admitted: reader.flag()?,
            recovers: reader.flag()?,
            player: reader.text()?,
            message: reader.bytes()?,
            number: reader.u64()?,
        },
        1 => ToConnections::Send {
            to: id(&mut reader)?,
            message: reader.bytes()?,
        },
        2 => {
            let (cause, to) = (id(&mut reader)?, id(&mut reader)?);
            ToConnections::Forward {
                cause,
                source_prefix: address(&mut reader)?,
                to,
                message: reader.bytes()?,
            }
        }
        3 => ToConnections::Pause {
            id: id(&mut reader)?,
            receiver: id(&mut reader)?,
            pause: duration(&mut reader)?,
        },
        4 => ToConnections::AskCongestion {
            sender: id(&mut reader)?,
            receiver: id(&mut reader)?,
        },
        5 => ToConnections::Resume {
            id: id(&mut reader)?,
            receiver: id(&mut reader)?,
        },
        6 => ToConnections::SendMany {
            to: ids(&mut reader)?,
            message: reader.bytes()?,
        },
        7 => ToConnections::State {
            to: ids(&mut reader)?,
            channel: ChannelId(reader.u32()?),
            messages: reader.list(4, Reader::bytes)?,
        },
        8 => ToConnections::Join {
            group: GroupId(reader.u32()?),
            channel: ChannelId(reader.u32()?),
            member: member(&mut reader)?,
        },
        9 => ToConnections::Leave {
            group: GroupId(reader.u32()?),
            id: id(&mut reader)?,
        },
        10 => ToConnections::Forget {
            id: id(&mut reader)?,
            channel: ChannelId(reader.u32()?),
        },
        11 => ToConnections::Window(window(&mut reader)?),
        12 => ToConnections::Missed {
            to: recipients(&mut reader)?,
            channel: ChannelId(reader.u32()?),
        },
        13 => ToConnections::Close {
            key: key(&mut reader)?,
            why: reason(&mut reader)?,
        },
        14 => ToConnections::Ban {
            address: address(&mut reader)?.ok_or(Malformed)?,
            until: now + duration(&mut reader)?,
        },
        15 => ToConnections::Known {
            key: key(&mut reader)?,
        },
        16 => ToConnections::GlobalOwner {
            owner: owner(&mut reader)?,
            number: reader.u64()?,
        },
        17 => {
            let to = id(&mut reader)?;
            let (is_answer, channels) = (reader.flag()?, reader.bytes()?);
            ToConnections::ListPart {
                to,
                channels: is_answer.then_some(channels),
            }
        }
        18 => ToConnections::Relay {
            to: ShardId(reader.u16()?),
            frame: reader.bytes()?,
        },
        _ => return Err(Malformed),
    };
    reader.end()?;
    Ok(message)
}

fn put_messages(out: &mut Vec<u8>, messages: &[Bytes]) {
    out.put_len(messages.len());
    for message in messages {
        out.put_bytes(message);
    }
}

/// Puts what an edge takes out before it reaches a connection loop.
fn put_for_edge(out: &mut Vec<u8>, message: &ToConnections) {
    match message {
        ToConnections::Known { key } => {
            out.put_u8(15);
            put_key(out, *key);
        }
        ToConnections::GlobalOwner { owner, number } => {
            out.put_u8(16);
            put_owner(out, *owner);
            out.put_u64(*number);
        }
        ToConnections::ListPart { to, channels } => {
            out.put_u8(17);
            out.put_u32(to.0);
            out.put_u8(u8::from(channels.is_some()));
            out.put_bytes(channels.as_deref().unwrap_or_default());
        }
        ToConnections::Relay { to, frame } => {
            out.put_u8(18);
            out.put_u16(to.0);
            out.put_bytes(frame);
        }
        _ => {}
    }
}

/// A message of two numbers.
fn put_two(out: &mut Vec<u8>, kind: u8, one: u32, other: u32) {
    out.put_u8(kind);
    out.put_u32(one);
    out.put_u32(other);
}

fn put_reason(out: &mut Vec<u8>, why: CloseReason) {
    if let CloseReason::OverBudget(budget) = why {
        out.put_u8(OVER_BUDGET);
        out.put_u8(budget.index() as u8);
    } else {
        let place = REASONS.iter().position(|&reason| reason == why);
        out.put_u8(place.unwrap_or_default() as u8);
    }
}

fn reason(reader: &mut Reader) -> Result<CloseReason, Malformed> {
    let place = reader.u8()?;
    if place == OVER_BUDGET {
        let budget = Budget::ALL.get(usize::from(reader.u8()?));
        return Ok(CloseReason::OverBudget(*budget.ok_or(Malformed)?));
    }
    REASONS.get(usize::from(place)).copied().ok_or(Malformed)
}
