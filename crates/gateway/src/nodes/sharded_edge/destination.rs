//! Which shard a message of a connection is for.

use std::collections::BTreeSet;

use lagometer_protocol::MessagePack;
use lagometer_protocol::messages::channeldpb::{ChannelType, MessageType};

use crate::core::{ChannelId, ConnId, Peer, ShardId, ShardMap};

/// So many removed channels are made up for at most.
const FREED_AT_MOST: usize = 1024;

/// Where a message goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Destination {
    /// To this shard.
    One(ShardId),
    /// To all, each of which does its part.
    All,
    /// To all, each of which answers for its part.
    AllParts,
}

impl Destination {
    pub(super) fn includes(self, shard: ShardId) -> bool {
        match self {
            Self::One(one) => one == shard,
            Self::All | Self::AllParts => true,
        }
    }
}

/// Where the channels go that a loop's connections make, and which shard has which.
#[derive(Debug)]
pub(super) struct Placement {
    map: ShardMap,
    /// The shard of the next channel that a server makes.
    next: u16,
    /// Shards of channels that servers removed last, each for the next channel.
    freed: Vec<ShardId>,
    /// Those that are game servers.
    servers: BTreeSet<ConnId>,
}

impl Placement {
    /// For the loop with this number: loops begin with different shards.
    pub(super) fn new(map: ShardMap, number: u16) -> Self {
        Self {
            map,
            next: number % map.count.get(),
            freed: Vec::new(),
            servers: BTreeSet::new(),
        }
    }

    /// A connection was let in.
    pub(super) fn introduce(&mut self, id: ConnId, peer: Peer) {
        if peer == Peer::Server {
            self.servers.insert(id);
        }
    }

    /// It is gone.
    pub(super) fn forget(&mut self, id: ConnId) {
        self.servers.remove(&id);
    }

    /// All are gone.
    pub(super) fn clear(&mut self) {
        self.servers.clear();
    }

    /// Where a message goes.
    pub(super) fn destination(&mut self, from: ConnId, message: &MessagePack<'_>) -> Destination {
        let channel = ChannelId(message.channel_id);
        let is_on_global = channel == ChannelId::GLOBAL;
        let kind = |kind: MessageType| message.msg_type == kind as u32;
        if kind(MessageType::RemoveChannel) {
            // It names the channel, and comes on it or on GLOBAL.
            let removed = first_field(message.body).unwrap_or(channel.0);
            let shard = self.map.shard_of(ChannelId(removed));
            // Cells and entities have the numbers that the game gives them.
            let is_spread = (1..self.map.spatial_channels_from).contains(&removed);
            if is_spread && self.servers.contains(&from) && self.freed.len() < FREED_AT_MOST {
                self.freed.push(shard);
            }
            return Destination::One(shard);
        }
        if is_on_global && kind(MessageType::ListChannel) {
            return Destination::AllParts;
        }
        if is_on_global && kind(MessageType::CreateChannel) {
            let made = first_field(message.body).unwrap_or_default();
            return Destination::One(self.place(from, made));
        }
        if kind(MessageType::CreateEntityChannel) {
            // It names the entity, and comes on a cell or on GLOBAL.
            let made = first_field(message.body).unwrap_or_default();
            return Destination::One(self.map.shard_of(ChannelId(made)));
        }
        if kind(MessageType::UpdateSpatialInterest) {
            return Destination::All;
        }
        Destination::One(self.map.shard_of(channel))
    }

    /// Where a channel of this type is made. A server's are spread one by one, but for those
    /// that take the place of removed ones, so that shards stay even; a client's are together,
    /// so that one shard counts them.
    fn place(&mut self, from: ConnId, channel_type: u32) -> ShardId {
        let at_home = [
            ChannelType::Unknown,
            ChannelType::Global,
            ChannelType::Spatial,
            ChannelType::Entity,
        ];
        if at_home.map(|kind| kind as u32).contains(&channel_type) {
            return ShardId::HOME;
        }
        let count = self.map.count.get();
        if !self.servers.contains(&from) {
            return ShardId((from.0 % u32::from(count)) as u16);
        }
        if let Some(shard) = self.freed.pop() {
            return shard;
        }
        let shard = ShardId(self.next);
        self.next = (self.next + 1) % count;
        shard
    }
}

/// The number in a message's field 1, if it has one that is whole: the last, where there are
/// several, as whoever decodes the message has it.
fn first_field(body: &[u8]) -> Option<u32> {
    let mut rest = body;
    let mut found = None;
    while !rest.is_empty() {
        let key = varint(&mut rest)?;
        match (key >> 3, key & 7) {
            (1, 0) => found = Some(varint(&mut rest)? as u32),
            (_, 0) => {
                varint(&mut rest)?;
            }
            (_, 1) => rest = rest.get(8..)?,
            (_, 2) => {
                let len = usize::try_from(varint(&mut rest)?).ok()?;
                rest = rest.get(len..)?;
            }
            (_, 5) => rest = rest.get(4..)?,
            _ => return None,
        }
    }
    found
}

fn varint(rest: &mut &[u8]) -> Option<u64> {
    prost::encoding::decode_varint(rest).ok()
}

#[cfg(test)]
mod tests {
    use lagometer_protocol::messages::channeldpb::{
        CreateChannelMessage, CreateEntityChannelMessage, RemoveChannelMessage,
    };
    use prost::Message as _;

    use crate::core::ShardCount;

    use super::*;

    fn message(msg_type: MessageType, channel_id: u32, body: &[u8]) -> MessagePack<'_> {
        MessagePack {
            msg_type: msg_type as u32,
            channel_id,
            body,
            ..MessagePack::default()
        }
    }

    #[test]
    fn a_message_goes_to_the_shard_of_its_channel() {
        let map = ShardMap {
            count: ShardCount::new(3).expect("a count"),
            spatial_channels_from: 1000,
            entity_channels_from: 2000,
            grid: None,
        };
        let mut placement = Placement::new(map, 1);
        let (server, client) = (ConnId(5), ConnId(7));
        placement.introduce(server, Peer::Server);
        placement.introduce(client, Peer::Client);
        let mut of = |from, msg_type, channel, body: &[u8]| {
            placement.destination(from, &message(msg_type, channel, body))
        };
        let one = |number| Destination::One(ShardId(number));
        assert_eq!(of(client, MessageType::ChannelDataUpdate, 6, &[]), one(2));
        assert_eq!(
            of(client, MessageType::ChannelDataUpdate, 1001, &[]),
            one(0)
        );
        assert_eq!(
            of(client, MessageType::ListChannel, 0, &[]),
            Destination::AllParts
        );
        assert_eq!(
            of(server, MessageType::UpdateSpatialInterest, 0, &[]),
            Destination::All
        );
        let entity = CreateEntityChannelMessage {
            entity_id: 2002,
            ..CreateEntityChannelMessage::default()
        };
        let entity = entity.encode_to_vec();
        for on in [0, 1001] {
            assert_eq!(
                of(server, MessageType::CreateEntityChannel, on, &entity),
                one(2)
            );
        }
        let remove = RemoveChannelMessage { channel_id: 5 }.encode_to_vec();
        assert_eq!(of(client, MessageType::RemoveChannel, 0, &remove), one(1));

        let create = |channel_type| {
            let message = CreateChannelMessage {
                channel_type,
                metadata: "what comes after it is passed over".to_owned(),
                ..CreateChannelMessage::default()
            };
            message.encode_to_vec()
        };
        for at_home in [0, 1, 4, 5] {
            let body = create(at_home);
            assert_eq!(of(server, MessageType::CreateChannel, 0, &body), one(0));
        }
        let room = create(3);
        let mut made = || of(server, MessageType::CreateChannel, 0, &room);
        assert_eq!([made(), made(), made(), made()], [1, 2, 0, 1].map(one));
        assert_eq!(of(client, MessageType::CreateChannel, 0, &room), one(1));
        assert_eq!(of(client, MessageType::CreateChannel, 0, &room), one(1));
        // The place of one that is removed is taken first.
        assert_eq!(of(server, MessageType::RemoveChannel, 0, &remove), one(1));
        let mut made = || of(server, MessageType::CreateChannel, 0, &room);
        assert_eq!([made(), made()], [1, 2].map(one));
        // Cut off, or no message at all: home refuses it.
        assert_eq!(
            of(server, MessageType::CreateChannel, 0, &room[..5]),
            one(0)
        );
    }
}
