//! Lists of channels that connections of one loop have asked for, put together from what each
//! shard has of them.

use std::collections::{BTreeMap, VecDeque};

use bytes::Bytes;
use lagometer_protocol::messages::channeldpb::ListChannelResultMessage;
use lagometer_protocol::messages::channeldpb::list_channel_result_message::ChannelInfo;
use lagometer_protocol::{FromGateway, MessagePack};
use prost::Message as _;

use crate::core::{ChannelId, ConnId, Envelope, ShardCount, ShardId, channel_list, encode};

/// So many lists of one connection are under way at a time; what it asks for beyond that is
/// passed over.
const AT_ONCE: usize = 64;

/// Parts of one connection's lists wait for the others up to so many bytes; beyond that a shard
/// counts as one that refused.
const WAITING_BYTES: usize = 1 << 20;

/// What came of one shard.
#[derive(Clone, Debug, PartialEq, Eq)]
enum ShardAnswer {
    Awaited,
    Refused,
    /// An encoded `ListChannelResultMessage`.
    Listed(Bytes),
}

/// A list that not all shards have answered for.
#[derive(Debug)]
struct Listing {
    /// Of the request.
    envelope: Envelope,
    /// By shard.
    parts: Vec<ShardAnswer>,
}

/// Those of one connection, in the order in which it asked.
#[derive(Debug, Default)]
struct Asked {
    listings: VecDeque<Listing>,
    /// Of all parts that have come.
    waiting_bytes: usize,
}

/// All of one loop, by who asked.
#[derive(Debug)]
pub(super) struct Listings {
    shards: usize,
    by_id: BTreeMap<ConnId, Asked>,
}

impl Listings {
    pub(super) fn new(count: ShardCount) -> Self {
        Self {
            shards: usize::from(count.get()),
            by_id: BTreeMap::new(),
        }
    }

    /// A connection asks for a list. Returns whether it is to be passed on.
    pub(super) fn ask(&mut self, from: ConnId, message: &MessagePack<'_>) -> bool {
        let listings = &mut self.by_id.entry(from).or_default().listings;
        if listings.len() >= AT_ONCE {
            return false;
        }
        listings.push_back(Listing {
            envelope: Envelope {
                channel: ChannelId(message.channel_id),
                stub_id: message.stub_id,
                broadcast: message.broadcast,
            },
            parts: vec![ShardAnswer::Awaited; self.shards],
        });
        true
    }

    /// A shard's part has come, of the first list that it has not answered for. Returns the
    /// answer's messages once all have.
    pub(super) fn take(
        &mut self,
        shard: ShardId,
        to: ConnId,
        part: Option<Bytes>,
    ) -> Option<Vec<Bytes>> {
        let asked = self.by_id.get_mut(&to)?;
        let fits = |part: &Bytes| asked.waiting_bytes + part.len() <= WAITING_BYTES;
        let part = part.filter(fits);
        asked.waiting_bytes += part.as_ref().map_or(0, Bytes::len);
        let listings = &mut asked.listings;
        let parts = listings.iter_mut().map(|it| &mut it.parts);
        let mut open = parts.filter_map(|parts| parts.get_mut(shard.index()));
        *open.find(|part| **part == ShardAnswer::Awaited)? =
            part.map_or(ShardAnswer::Refused, ShardAnswer::Listed);
        // Each shard answers in order, so that the first is whole before the others are.
        let is_whole = !listings.front()?.parts.contains(&ShardAnswer::Awaited);
        let listing = is_whole.then(|| listings.pop_front())??;
        asked.waiting_bytes -= listing.bytes();
        if listings.is_empty() {
            self.by_id.remove(&to);
        }
        Some(listing.answer())
    }

    /// A connection is gone.
    pub(super) fn forget(&mut self, id: ConnId) {
        self.by_id.remove(&id);
    }

    /// All are gone.
    pub(super) fn clear(&mut self) {
        self.by_id.clear();
    }
}

impl Listing {
    /// Of the parts that have come.
    fn bytes(&self) -> usize {
        let parts = self.parts.iter().map(|part| match part {
            ShardAnswer::Listed(channels) => channels.len(),
            ShardAnswer::Awaited | ShardAnswer::Refused => 0,
        });
        parts.sum()
    }

    /// The messages of the answer, each encoded as one of a packet's: the first bears the
    /// stub number. None where every shard refused.
    fn answer(self) -> Vec<Bytes> {
        let parts = self.parts.into_iter().filter_map(|part| match part {
            ShardAnswer::Listed(channels) => Some(channels),
            ShardAnswer::Awaited | ShardAnswer::Refused => None,
        });
        let parts: Vec<Bytes> = parts.collect();
        if parts.is_empty() {
            return Vec::new();
        }
        let lists = parts.into_iter();
        let lists = lists.filter_map(|part| ListChannelResultMessage::decode(part).ok());
        let mut channels: Vec<ChannelInfo> = lists.flat_map(|list| list.channels).collect();
        channels.sort_by_key(|channel| channel.channel_id);
        let mut envelope = self.envelope;
        let encode = |channels| {
            let message = FromGateway::ListChannel(ListChannelResultMessage { channels });
            let encoded = encode(envelope, &message);
            envelope = envelope.copy();
            encoded.into()
        };
        channel_list::divide(channels)
            .into_iter()
            .map(encode)
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use lagometer_protocol::MAX_MESSAGE_LEN;

    use super::*;

    fn part(ids: &[u32]) -> Bytes {
        let channels = ids.iter().map(|&channel_id| ChannelInfo {
            channel_id,
            metadata: "x".repeat(1000),
            ..ChannelInfo::default()
        });
        let channels = channels.collect();
        ListChannelResultMessage { channels }.encode_to_vec().into()
    }

    #[test]
    fn a_list_is_whole_once_all_shards_have_answered() {
        let mut listings = Listings::new(ShardCount::new(2).expect("a count"));
        let asks = ConnId(3);
        let message = MessagePack {
            stub_id: 9,
            ..MessagePack::default()
        };
        assert!(listings.ask(asks, &message) && listings.ask(asks, &message));
        let (home, other) = (ShardId::HOME, ShardId(1));
        assert_eq!(listings.take(home, asks, Some(part(&[0, 2]))), None);
        assert_eq!(listings.take(home, asks, None), None, "of the second");
        let answer = listings
            .take(other, asks, Some(part(&[1])))
            .expect("an answer");
        let order = [b"\x08\x01", b"\x08\x02"];
        let at = order.map(|id| answer[0].windows(2).position(|bytes| bytes == id));
        assert!(
            at[0].is_some() && at[0] < at[1],
            "in order of their numbers"
        );
        assert_eq!(
            listings.take(other, asks, None),
            Some(Vec::new()),
            "refused"
        );
        assert_eq!(
            listings.take(other, asks, Some(part(&[5]))),
            None,
            "nobody asked"
        );

        for _ in 0..AT_ONCE {
            assert!(listings.ask(asks, &message));
        }
        assert!(!listings.ask(asks, &message), "too many");
    }

    #[test]
    fn what_waits_for_one_connection_is_bounded() {
        let mut listings = Listings::new(ShardCount::new(2).expect("a count"));
        let (asks, message) = (ConnId(1), MessagePack::default());
        let long = part(&(0..200).collect::<Vec<u32>>());
        for _ in 0..10 {
            assert!(listings.ask(asks, &message));
            listings.take(ShardId::HOME, asks, Some(long.clone()));
        }
        let kept = WAITING_BYTES / long.len();
        let answers = (0..10).map(|_| listings.take(ShardId(1), asks, None));
        let answers: Vec<bool> = answers.map(|it| !it.expect("whole").is_empty()).collect();
        assert_eq!(answers.iter().filter(|full| **full).count(), kept);
        assert!(listings.by_id.is_empty());
    }

    #[test]
    fn a_long_list_takes_several_messages() {
        let mut listings = Listings::new(ShardCount::ONE);
        assert!(listings.ask(ConnId(1), &MessagePack::default()));
        let ids: Vec<u32> = (0..200).collect();
        let answer = listings.take(ShardId::HOME, ConnId(1), Some(part(&ids)));
        let answer = answer.expect("an answer");
        assert!(answer.len() > 2);
        assert!(answer.iter().all(|it| it.len() <= MAX_MESSAGE_LEN + 8));
    }
}
