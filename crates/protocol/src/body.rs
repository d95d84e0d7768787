//! Message bodies by message type.
//!
//! A message type means one body on the way to the gateway and often another
//! on the way from it. [`ToGateway`] and [`FromGateway`] decode by type;
//! messages in user space are not decoded, for only the game knows them.

use prost::Message;

use crate::messages::channeldpb::{
    AddEntityGroupMessage, AuthMessage, AuthResultMessage, ChannelDataHandoverMessage,
    ChannelDataRecoveryMessage, ChannelDataUpdateMessage, ChannelOwnerLostMessage,
    ChannelOwnerRecoveredMessage, CreateChannelMessage, CreateChannelResultMessage,
    CreateEntityChannelMessage, CreateSpatialChannelsResultMessage, DebugGetSpatialRegionsMessage,
    DisconnectMessage, EndRecoveryMesssage, ListChannelMessage, ListChannelResultMessage,
    MessageType, QuerySpatialChannelMessage, QuerySpatialChannelResultMessage,
    RemoveChannelMessage, RemoveEntityGroupMessage, SpatialChannelsReadyMessage,
    SpatialRegionsUpdateMessage, SubscribedToChannelMessage, SubscribedToChannelResultMessage,
    UnsubscribedFromChannelMessage, UnsubscribedFromChannelResultMessage,
    UpdateSpatialInterestMessage,
};
use crate::packet::MessagePack;
use crate::schema::Schema;

/// Why a body was not decoded.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BodyError {
    /// No message of that type goes this way. In user space (from 100) that
    /// is as it should be: the body is the game's.
    #[error("no message of type {0} goes this way")]
    UnknownType(u32),
    /// The bytes are not a body of that type.
    #[error("not a body of {}: {source}", msg_type.as_str_name())]
    Malformed {
        /// The type in the envelope.
        msg_type: MessageType,
        /// What the decoder said.
        source: prost::DecodeError,
    },
}

/// Decodes a body. One that the library refuses may hold a field whose wire type
/// is not the one its type has, which protobuf has count as not known: it is read
/// again without such.
fn decode<M: Message + Default>(full_name: &str, body: &[u8]) -> Result<M, prost::DecodeError> {
    M::decode(body).or_else(|error| {
        let data_type = Schema::bundled().find(full_name);
        let fitting = data_type.and_then(|data_type| data_type.without_misfits(body).ok());
        match fitting {
            Some(fitting) if fitting.len() < body.len() => M::decode(&*fitting),
            _ => Err(error),
        }
    })
}

macro_rules! bodies {
    (
        $(#[doc = $doc:literal])* $direction:ident
        $($(#[doc = $variant_doc:literal])* $msg_type:ident => $body:ident,)*
    ) => {
        $(#[doc = $doc])*
        #[derive(Clone, Debug, PartialEq)]
        pub enum $direction {
            $($(#[doc = $variant_doc])* $msg_type($body),)*
        }

        impl $direction {
            /// Decodes the body of a message.
            ///
            /// # Errors
            ///
            /// [`BodyError`] when the type has no body this way or the bytes
            /// are not one.
            pub fn decode(message: &MessagePack<'_>) -> Result<Self, BodyError> {
                let msg_type = i32::try_from(message.msg_type)
                    .ok()
                    .and_then(|number| MessageType::try_from(number).ok())
                    .ok_or(BodyError::UnknownType(message.msg_type))?;
                match msg_type {
                    $(MessageType::$msg_type => decode::<$body>(
                            concat!("channeldpb.", stringify!($body)),
                            message.body,
                        )
                        .map(Self::$msg_type)
                        .map_err(|source| BodyError::Malformed { msg_type, source }),)*
                    _ => Err(BodyError::UnknownType(message.msg_type)),
                }
            }

            /// How many values the body of a message would be decoded to, up to
            /// `most`; see [`DataType::count_values`](crate::schema::DataType::count_values).
            /// None for a type that has no body this way.
            #[must_use]
            pub fn count_values(message: &MessagePack<'_>, most: usize) -> usize {
                let msg_type = i32::try_from(message.msg_type)
                    .ok()
                    .and_then(|number| MessageType::try_from(number).ok());
                let name = match msg_type {
                    $(Some(MessageType::$msg_type) => {
                        concat!("channeldpb.", stringify!($body))
                    })*
                    _ => return 0,
                };
                let data_type = Schema::bundled().find(name);
                data_type.map_or(0, |data_type| data_type.count_values(message.body, most))
            }

            /// The type that goes into the envelope.
            #[must_use]
            pub fn msg_type(&self) -> MessageType {
                match self {
                    $(Self::$msg_type(_) => MessageType::$msg_type,)*
                }
            }

            /// Appends the encoded body.
            pub fn encode_body(&self, out: &mut Vec<u8>) {
                match self {
                    $(Self::$msg_type(body) => body.encode_raw(out),)*
                }
            }
        }

    };
}

bodies! {
    /// A message on its way to the gateway.
    ToGateway
    /// Who the peer is; the first message of a connection.
    Auth => AuthMessage,
    /// Make a channel, or take GLOBAL.
    CreateChannel => CreateChannelMessage,
    /// Unmake a channel.
    RemoveChannel => RemoveChannelMessage,
    /// Which channels there are.
    ListChannel => ListChannelMessage,
    /// Subscribe, or change a subscription.
    SubToChannel => SubscribedToChannelMessage,
    /// End a subscription.
    UnsubFromChannel => UnsubscribedFromChannelMessage,
    /// New channel data. The hot path reads it with
    /// [`ChannelDataUpdate`](crate::ChannelDataUpdate) instead.
    ChannelDataUpdate => ChannelDataUpdateMessage,
    /// Close a connection.
    Disconnect => DisconnectMessage,
    /// Make a server's share of the spatial channels.
    CreateSpatialChannel => CreateChannelMessage,
    /// Which spatial channels places lie in.
    QuerySpatialChannel => QuerySpatialChannelMessage,
    /// What part of the world a client is to see.
    UpdateSpatialInterest => UpdateSpatialInterestMessage,
    /// Make an entity's channel.
    CreateEntityChannel => CreateEntityChannelMessage,
    /// Let entities change hands together, or not at all.
    EntityGroupAdd => AddEntityGroupMessage,
    /// Undo that.
    EntityGroupRemove => RemoveEntityGroupMessage,
    /// The grid, for debugging.
    DebugGetSpatialRegions => DebugGetSpatialRegionsMessage,
}

bodies! {
    /// A message on its way from the gateway.
    FromGateway
    /// Whether the peer, or for GLOBAL's owner another, is let in.
    Auth => AuthResultMessage,
    /// A channel was made.
    CreateChannel => CreateChannelResultMessage,
    /// A channel is gone.
    RemoveChannel => RemoveChannelMessage,
    /// The channels there are.
    ListChannel => ListChannelResultMessage,
    /// A subscription began, or what it may do changed.
    SubToChannel => SubscribedToChannelResultMessage,
    /// A subscription ended.
    UnsubFromChannel => UnsubscribedFromChannelResultMessage,
    /// New channel data.
    ChannelDataUpdate => ChannelDataUpdateMessage,
    /// Spatial channels were made.
    CreateSpatialChannel => CreateSpatialChannelsResultMessage,
    /// Which spatial channels the places lie in.
    QuerySpatialChannel => QuerySpatialChannelResultMessage,
    /// Entities went from one spatial channel to another.
    ChannelDataHandover => ChannelDataHandoverMessage,
    /// The grid and who serves which part.
    SpatialRegionsUpdate => SpatialRegionsUpdateMessage,
    /// An entity's channel was made.
    CreateEntityChannel => CreateChannelResultMessage,
    /// Every part of the grid has its server.
    SpatialChannelsReady => SpatialChannelsReadyMessage,
    /// All of a channel, for an owner that came back.
    RecoveryChannelData => ChannelDataRecoveryMessage,
    /// That was all.
    RecoveryEnd => EndRecoveryMesssage,
    /// A channel has lost its owner.
    ChannelOwnerLost => ChannelOwnerLostMessage,
    /// Its owner came back.
    ChannelOwnerRecovered => ChannelOwnerRecoveredMessage,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_type_has_two_bodies() {
        let there = ToGateway::Auth(AuthMessage {
            player_identifier_token: "pit".into(),
            login_token: "lt".into(),
        });
        let back = FromGateway::Auth(AuthResultMessage {
            conn_id: 7,
            ..Default::default()
        });
        let mut body = Vec::new();
        there.encode_body(&mut body);
        let message = MessagePack {
            msg_type: there.msg_type() as u32,
            body: &body,
            ..MessagePack::default()
        };
        assert_eq!(ToGateway::decode(&message), Ok(there));
        let mut body = Vec::new();
        back.encode_body(&mut body);
        let message = MessagePack {
            msg_type: back.msg_type() as u32,
            body: &body,
            ..MessagePack::default()
        };
        assert_eq!(FromGateway::decode(&message), Ok(back));
    }

    #[test]
    fn types_without_a_body_are_distinguished_from_malformed_bodies() {
        let of = |msg_type, body| MessagePack {
            msg_type,
            body,
            ..MessagePack::default()
        };
        for msg_type in [0, 2, 12, 19, 100, 102, u32::MAX] {
            assert_eq!(
                ToGateway::decode(&of(msg_type, b"")),
                Err(BodyError::UnknownType(msg_type))
            );
        }
        assert!(matches!(
            ToGateway::decode(&of(1, b"\x0a\x05")),
            Err(BodyError::Malformed {
                msg_type: MessageType::Auth,
                ..
            })
        ));
    }

    #[test]
    fn a_field_of_another_wire_type_counts_as_not_known() {
        let body = [
            &b"\x0a\x03pit"[..],
            b"\x0d\x01\x02\x03\x04",
            b"\x10\x05",
            b"\x12\x02lt",
        ]
        .concat();
        let message = MessagePack {
            msg_type: MessageType::Auth as u32,
            body: &body,
            ..MessagePack::default()
        };
        let expected = ToGateway::Auth(AuthMessage {
            player_identifier_token: "pit".into(),
            login_token: "lt".into(),
        });
        assert_eq!(ToGateway::decode(&message), Ok(expected));
    }

    #[test]
    fn values_are_counted_in_messages_lists_and_packed_numbers_up_to_a_most() {
        use crate::messages::channeldpb::{ChannelSubscriptionOptions, SpatialInfo};
        let count = |asked: &ToGateway, most| {
            let mut body = Vec::new();
            asked.encode_body(&mut body);
            let message = MessagePack {
                msg_type: asked.msg_type() as u32,
                body: &body,
                ..MessagePack::default()
            };
            ToGateway::count_values(&message, most)
        };
        let masks = ToGateway::SubToChannel(SubscribedToChannelMessage {
            conn_id: 5,
            sub_options: Some(ChannelSubscriptionOptions {
                data_field_masks: vec![String::new(); 1000],
                ..ChannelSubscriptionOptions::default()
            }),
        });
        assert_eq!(count(&masks, usize::MAX), 1002);
        assert_eq!(count(&masks, 300), 300);
        let entities = ToGateway::EntityGroupAdd(AddEntityGroupMessage {
            r#type: 0,
            entities_to_add: vec![0x80_001; 700],
        });
        assert_eq!(count(&entities, usize::MAX), 700);
        assert_eq!(count(&entities, 300), 300);
        let places = ToGateway::QuerySpatialChannel(QuerySpatialChannelMessage {
            spatial_info: vec![SpatialInfo::default(); 40],
        });
        assert_eq!(count(&places, usize::MAX), 40);
        // What no decoder reads is not counted either.
        let cut_off = MessagePack {
            msg_type: MessageType::ListChannel as u32,
            body: b"\x12\x00\x12\x00\x12\x09",
            ..MessagePack::default()
        };
        assert_eq!(ToGateway::count_values(&cut_off, usize::MAX), 2);
    }

    #[test]
    fn every_type_that_has_a_number_goes_one_way_or_both() {
        let to_gateway = [1, 3, 4, 5, 6, 7, 8, 9, 10, 11, 14, 15, 16, 17, 99];
        let from_gateway = [1, 3, 4, 5, 6, 7, 8, 10, 11, 12, 13, 15, 18, 20, 21, 22, 23];
        for msg_type in 0..=100 {
            let message = MessagePack {
                msg_type,
                ..MessagePack::default()
            };
            assert_eq!(
                ToGateway::decode(&message).is_ok(),
                to_gateway.contains(&msg_type),
                "{msg_type} to the gateway"
            );
            assert_eq!(
                FromGateway::decode(&message).is_ok(),
                from_gateway.contains(&msg_type),
                "{msg_type} from the gateway"
            );
        }
    }
}
