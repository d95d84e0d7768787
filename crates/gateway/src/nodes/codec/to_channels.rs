//! What an edge sends to the channels.

use bytes::Bytes;

use crate::core::bus::{
    AdmittedConnection, AuthAttempt, CheckedEnvelope, CheckedMessages, HomeVersion, Misbehaviour,
    ToChannels,
};
use crate::core::{ChannelId, ConnId, Peer, ShardId};

use super::super::wire::{Malformed, Put as _, Reader};
use super::{
    address, duration, id, key, owner, put_address, put_duration, put_key, put_owner, put_pair,
};

pub(in crate::nodes) fn encode_to_channels(message: &ToChannels) -> Bytes {
    let mut out = Vec::new();
    match message {
        ToChannels::Auth(attempt) => {
            out.put_u8(0);
            put_key(&mut out, attempt.key);
            out.put_u8(attempt.peer.index() as u8);
            put_address(&mut out, attempt.address);
            out.put_u8(u8::from(attempt.is_address_forgeable));
            out.put_u32(attempt.stub_id);
            out.put_u32(attempt.broadcast);
            out.put_bytes(attempt.player.as_bytes());
            out.put_bytes(attempt.login_token.as_bytes());
        }
        ToChannels::Messages { from, messages } => {
            out.put_u8(1);
            out.put_u32(from.0);
            out.put_len(messages.envelopes().len());
            for envelope in messages.envelopes() {
                out.put_u32(envelope.channel_id);
                out.put_u32(envelope.broadcast);
                out.put_u32(envelope.stub_id);
                out.put_u32(envelope.msg_type);
                out.put_u32(envelope.body_end);
            }
            out.put_bytes(messages.bodies());
        }
        ToChannels::AddressProven { key } => {
            out.put_u8(2);
            put_key(&mut out, *key);
        }
        ToChannels::Closed { key, broke_off } => {
            out.put_u8(3);
            put_key(&mut out, *key);
            out.put_u8(u8::from(*broke_off));
        }
        ToChannels::Misbehaved(Misbehaviour::NoLogin { address }) => {
            out.put_u8(4);
            put_address(&mut out, Some(*address));
        }
        ToChannels::Misbehaved(Misbehaviour::Refused { player, address }) => {
            out.put_u8(5);
            out.put_bytes(player.as_bytes());
            put_address(&mut out, *address);
        }
        ToChannels::Congested {
            sender,
            receiver,
            pause,
        } => {
            out.put_u8(6);
            put_pair(&mut out, *sender, *receiver);
            put_duration(&mut out, *pause);
        }
        ToChannels::AskCongestion { sender, receiver } => {
            out.put_u8(7);
            put_pair(&mut out, *sender, *receiver);
        }
        ToChannels::Relieved { sender, receiver } => {
            out.put_u8(8);
            put_pair(&mut out, *sender, *receiver);
        }
        ToChannels::Undelivered {
            sender,
            bytes,
            is_notice,
        } => {
            out.put_u8(9);
            out.put_u32(sender.0);
            out.put_u64(*bytes as u64);
            out.put_u8(u8::from(*is_notice));
        }
        ToChannels::Resync { id, channel } => {
            out.put_u8(10);
            put_pair(&mut out, *id, ConnId(channel.0));
        }
        ToChannels::Admitted(_)
        | ToChannels::Introduced { .. }
        | ToChannels::GlobalOwner { .. }
        | ToChannels::Relayed { .. }
        | ToChannels::RouteLost => put_of_shards(&mut out, message),
    }
    out.into()
}

/// What an edge says of other shards, and of itself.
fn put_of_shards(out: &mut Vec<u8>, message: &ToChannels) {
    match message {
        ToChannels::Admitted(connection) => {
            out.put_u8(11);
            put_key(out, connection.key);
            out.put_u32(connection.id.0);
            out.put_u8(connection.peer.index() as u8);
            put_address(out, connection.address);
            out.put_u8(u8::from(connection.is_address_forgeable));
            out.put_bytes(connection.player.as_bytes());
            put_version(out, connection.version);
            out.put_u8(u8::from(connection.recovers));
        }
        ToChannels::Introduced { key } => {
            out.put_u8(12);
            put_key(out, *key);
        }
        ToChannels::GlobalOwner { owner, version } => {
            out.put_u8(13);
            put_owner(out, *owner);
            put_version(out, *version);
        }
        ToChannels::Relayed { from, frame } => {
            out.put_u8(14);
            out.put_u16(from.0);
            out.put_bytes(frame);
        }
        ToChannels::RouteLost => out.put_u8(15),
        _ => {}
    }
}

pub(in crate::nodes) fn decode_to_channels(bytes: Bytes) -> Result<ToChannels, Malformed> {
    let mut reader = Reader(bytes);
    let message = match reader.u8()? {
        0 => ToChannels::Auth(AuthAttempt {
            key: key(&mut reader)?,
            peer: *Peer::ALL.get(usize::from(reader.u8()?)).ok_or(Malformed)?,
            address: address(&mut reader)?,
            is_address_forgeable: reader.flag()?,
            stub_id: reader.u32()?,
            broadcast: reader.u32()?,
            player: reader.text()?,
            login_token: reader.text()?,
        }),
        1 => messages(&mut reader)?,
        2 => ToChannels::AddressProven {
            key: key(&mut reader)?,
        },
        3 => ToChannels::Closed {
            key: key(&mut reader)?,
            broke_off: reader.flag()?,
        },
        4 => ToChannels::Misbehaved(Misbehaviour::NoLogin {
            address: address(&mut reader)?.ok_or(Malformed)?,
        }),
        5 => ToChannels::Misbehaved(Misbehaviour::Refused {
            player: reader.text()?,
            address: address(&mut reader)?,
        }),
        6 => ToChannels::Congested {
            sender: id(&mut reader)?,
            receiver: id(&mut reader)?,
            pause: duration(&mut reader)?,
        },
        7 => ToChannels::AskCongestion {
            sender: id(&mut reader)?,
            receiver: id(&mut reader)?,
        },
        8 => ToChannels::Relieved {
            sender: id(&mut reader)?,
            receiver: id(&mut reader)?,
        },
        9 => ToChannels::Undelivered {
            sender: id(&mut reader)?,
            bytes: usize::try_from(reader.u64()?).map_err(|_| Malformed)?,
            is_notice: reader.flag()?,
        },
        10 => ToChannels::Resync {
            id: id(&mut reader)?,
            channel: ChannelId(reader.u32()?),
        },
        11 => ToChannels::Admitted(AdmittedConnection {
            key: key(&mut reader)?,
            id: id(&mut reader)?,
            peer: *Peer::ALL.get(usize::from(reader.u8()?)).ok_or(Malformed)?,
            address: address(&mut reader)?,
            is_address_forgeable: reader.flag()?,
            player: reader.text()?,
            version: version(&mut reader)?,
            recovers: reader.flag()?,
        }),
        12 => ToChannels::Introduced {
            key: key(&mut reader)?,
        },
        13 => ToChannels::GlobalOwner {
            owner: owner(&mut reader)?,
            version: version(&mut reader)?,
        },
        14 => ToChannels::Relayed {
            from: ShardId(reader.u16()?),
            frame: reader.bytes()?,
        },
        15 => ToChannels::RouteLost,
        _ => return Err(Malformed),
    };
    reader.end()?;
    Ok(message)
}

fn put_version(out: &mut Vec<u8>, version: HomeVersion) {
    out.put_u64(version.epoch);
    out.put_u64(version.number);
}

fn version(reader: &mut Reader) -> Result<HomeVersion, Malformed> {
    Ok(HomeVersion {
        epoch: reader.u64()?,
        number: reader.u64()?,
    })
}

/// The messages of a packet. Their bodies' ends are in order and within the bodies, as
/// whoever walks them expects.
fn messages(reader: &mut Reader) -> Result<ToChannels, Malformed> {
    let from = id(reader)?;
    let envelopes = reader.list(20, |reader| {
        Ok(CheckedEnvelope {
            channel_id: reader.u32()?,
            broadcast: reader.u32()?,
            stub_id: reader.u32()?,
            msg_type: reader.u32()?,
            body_end: reader.u32()?,
        })
    })?;
    let bodies = reader.bytes()?;
    let last = envelopes.last().map_or(0, |envelope| envelope.body_end);
    if !envelopes.is_sorted_by_key(|it| it.body_end) || last as usize > bodies.len() {
        return Err(Malformed);
    }
    let messages = CheckedMessages::new(&envelopes, bodies);
    Ok(ToChannels::Messages { from, messages })
}
