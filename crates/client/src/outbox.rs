//! What a session is to send: requests become frames here.

use lagometer_protocol::messages::channeldpb::{
    AuthMessage, ChannelSubscriptionOptions, ChannelType, CreateChannelMessage,
    CreateEntityChannelMessage, DisconnectMessage, ListChannelMessage, MessageType,
    QuerySpatialChannelMessage, RemoveChannelMessage, SpatialInfo, SpatialInterestQuery,
    SubscribedToChannelMessage, UnsubscribedFromChannelMessage, UpdateSpatialInterestMessage,
};
use lagometer_protocol::{
    Broadcast, ChannelDataUpdate, Compressor, FrameBuilder, MessagePack, PushError, ServerForward,
    ToGateway,
};
use thiserror::Error;

/// The number of a request, which its answer bears too. 0 is no request.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct Stub(pub u32);

/// Why something was not taken for sending; nothing else is harmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum SendError {
    /// No frame has room for a message of that size.
    #[error("a message of {size_bytes} bytes is longer than a frame can carry")]
    TooLarge {
        /// The encoded size of the message.
        size_bytes: usize,
    },
    /// As much as is allowed waits to be sent already: the gateway does not
    /// read, or the driver does not write.
    #[error("{limit_bytes} bytes wait to be sent already")]
    Full {
        /// The most that may wait.
        limit_bytes: usize,
    },
}

/// Requests, updates and messages on their way to the gateway.
///
/// What is put in before the gateway has let the session in waits for that;
/// a gateway refuses everything but a login until then.
#[derive(Debug)]
pub struct Outbox {
    /// Frames, of which the first `sent_bytes` are gone.
    frames: Vec<u8>,
    sent_bytes: usize,
    /// Frames that may go once the gateway has let the session in.
    held: Vec<u8>,
    /// The frame that is being filled.
    open: FrameBuilder,
    body: Vec<u8>,
    next_stub: u32,
    is_let_in: bool,
    compressor: Option<Compressor>,
    limit_bytes: usize,
}

/// Room that is given back once everything is sent.
const KEPT_CAPACITY_BYTES: usize = 16 * 1024;

impl Outbox {
    pub(crate) fn new(limit_bytes: usize) -> Self {
        Self {
            frames: Vec::new(),
            sent_bytes: 0,
            held: Vec::new(),
            open: FrameBuilder::new(),
            body: Vec::new(),
            next_stub: 1,
            is_let_in: false,
            compressor: None,
            limit_bytes,
        }
    }

    /// Says who the peer is: the first message of every session. A server's
    /// token also names what it may recover.
    ///
    /// # Errors
    ///
    /// [`SendError`], as for every request.
    pub fn authenticate(
        &mut self,
        player_token: &str,
        login_token: &str,
    ) -> Result<Stub, SendError> {
        let login = ToGateway::Auth(AuthMessage {
            player_identifier_token: player_token.to_owned(),
            login_token: login_token.to_owned(),
        });
        // In a frame of its own, ahead of what waits for the answer.
        let waiting = std::mem::take(&mut self.open);
        let asked = self.ask(0, &login);
        if let Some(frame) = self.open.finish() {
            self.frames.extend_from_slice(frame);
        }
        self.open = waiting;
        asked
    }

    /// Makes a channel, or takes GLOBAL. The answer names its id.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn create_channel(&mut self, channel: CreateChannelMessage) -> Result<Stub, SendError> {
        self.ask(0, &ToGateway::CreateChannel(channel))
    }

    /// Makes the channel of an entity, in GLOBAL (0) or a spatial channel.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn create_entity_channel(
        &mut self,
        in_channel_id: u32,
        channel: CreateEntityChannelMessage,
    ) -> Result<Stub, SendError> {
        self.ask(in_channel_id, &ToGateway::CreateEntityChannel(channel))
    }

    /// Makes a server's share of the spatial channels.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn create_spatial_channels(
        &mut self,
        channel: CreateChannelMessage,
    ) -> Result<Stub, SendError> {
        self.ask(0, &ToGateway::CreateSpatialChannel(channel))
    }

    /// Unmakes a channel.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn remove_channel(&mut self, channel_id: u32) -> Result<Stub, SendError> {
        let message = RemoveChannelMessage { channel_id };
        self.ask(channel_id, &ToGateway::RemoveChannel(message))
    }

    /// Asks which channels there are: all, or those of one type, or those
    /// whose metadata holds one of `filters`.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn list_channels(
        &mut self,
        of_type: ChannelType,
        filters: &[&str],
    ) -> Result<Stub, SendError> {
        let message = ListChannelMessage {
            type_filter: of_type.into(),
            metadata_filters: filters.iter().map(|&filter| filter.to_owned()).collect(),
        };
        self.ask(0, &ToGateway::ListChannel(message))
    }

    /// Subscribes `conn_id` to a channel, or changes its subscription. A
    /// client subscribes itself, whatever it names. A change of interval or
    /// masks alone is not answered.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn subscribe(
        &mut self,
        channel_id: u32,
        conn_id: u32,
        options: Option<ChannelSubscriptionOptions>,
    ) -> Result<Stub, SendError> {
        let message = SubscribedToChannelMessage {
            conn_id,
            sub_options: options,
        };
        self.ask(channel_id, &ToGateway::SubToChannel(message))
    }

    /// Ends the subscription of `conn_id`.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn unsubscribe(&mut self, channel_id: u32, conn_id: u32) -> Result<Stub, SendError> {
        let message = UnsubscribedFromChannelMessage { conn_id };
        self.ask(channel_id, &ToGateway::UnsubFromChannel(message))
    }

    /// Updates a channel's data with what has changed, an encoded message of
    /// the type `type_url` names. Updates are not answered.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn update(
        &mut self,
        channel_id: u32,
        type_url: &str,
        value: &[u8],
    ) -> Result<(), SendError> {
        self.update_for(channel_id, 0, type_url, value)
    }

    /// As [`update`](Self::update), on behalf of a client.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn update_for(
        &mut self,
        channel_id: u32,
        context_conn_id: u32,
        type_url: &str,
        value: &[u8],
    ) -> Result<(), SendError> {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        ChannelDataUpdate {
            data: Some(lagometer_protocol::AnyView { type_url, value }),
            context_conn_id,
        }
        .encode(&mut body);
        let sent = self.send(&MessagePack {
            channel_id,
            msg_type: MessageType::ChannelDataUpdate as u32,
            body: &body,
            ..MessagePack::default()
        });
        self.body = body;
        sent
    }

    /// A client's message of the game's own (`msg_type` from 100) to the
    /// channel's owner.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn message_owner(
        &mut self,
        channel_id: u32,
        msg_type: u32,
        payload: &[u8],
    ) -> Result<(), SendError> {
        self.send(&MessagePack {
            channel_id,
            msg_type,
            body: payload,
            ..MessagePack::default()
        })
    }

    /// A server's message of the game's own (`msg_type` from 100) to whom the
    /// flags say; `client_conn_id` is the addressee of
    /// `SINGLE_CONNECTION`, otherwise 0.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn message(
        &mut self,
        channel_id: u32,
        broadcast: Broadcast,
        client_conn_id: u32,
        msg_type: u32,
        payload: &[u8],
    ) -> Result<(), SendError> {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        ServerForward {
            client_conn_id,
            payload,
        }
        .encode(&mut body);
        let sent = self.send(&MessagePack {
            channel_id,
            broadcast: broadcast.0,
            msg_type,
            body: &body,
            ..MessagePack::default()
        });
        self.body = body;
        sent
    }

    /// Asks which spatial channels places lie in.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn query_spatial(&mut self, places: Vec<SpatialInfo>) -> Result<Stub, SendError> {
        let message = QuerySpatialChannelMessage {
            spatial_info: places,
        };
        self.ask(0, &ToGateway::QuerySpatialChannel(message))
    }

    /// Says what part of the world a client is to see.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn update_interest(
        &mut self,
        spatial_channel_id: u32,
        conn_id: u32,
        query: SpatialInterestQuery,
    ) -> Result<Stub, SendError> {
        let message = UpdateSpatialInterestMessage {
            conn_id,
            query: Some(query),
        };
        self.ask(
            spatial_channel_id,
            &ToGateway::UpdateSpatialInterest(message),
        )
    }

    /// Has the gateway close a connection, this session's own to leave for
    /// good.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn disconnect(&mut self, conn_id: u32) -> Result<(), SendError> {
        self.ask(0, &ToGateway::Disconnect(DisconnectMessage { conn_id }))
            .map(drop)
    }

    /// Any request, with a number of its own.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn ask(&mut self, channel_id: u32, request: &ToGateway) -> Result<Stub, SendError> {
        let mut body = std::mem::take(&mut self.body);
        body.clear();
        request.encode_body(&mut body);
        let stub = Stub(self.next_stub);
        let sent = self.send(&MessagePack {
            channel_id,
            stub_id: stub.0,
            msg_type: request.msg_type() as u32,
            body: &body,
            ..MessagePack::default()
        });
        self.body = body;
        sent?;
        self.next_stub = self.next_stub.checked_add(1).unwrap_or(1);
        Ok(stub)
    }

    /// Any message, as it is.
    ///
    /// # Errors
    ///
    /// [`SendError`].
    pub fn send(&mut self, message: &MessagePack<'_>) -> Result<(), SendError> {
        if self.waiting_bytes() + message.encoded_len_in_packet() > self.limit_bytes {
            return Err(SendError::Full {
                limit_bytes: self.limit_bytes,
            });
        }
        match self.open.push(message) {
            Ok(()) => Ok(()),
            Err(PushError::TooLarge { size_bytes }) => Err(SendError::TooLarge { size_bytes }),
            Err(PushError::Full) => {
                self.close_frame();
                self.open.push(message).map_err(|_| SendError::TooLarge {
                    size_bytes: message.encoded_len(),
                })
            }
        }
    }

    /// The bytes to be sent now, none if there are none.
    pub fn pending(&mut self) -> &[u8] {
        if self.is_let_in {
            self.close_frame();
            self.frames.append(&mut self.held);
        }
        &self.frames[self.sent_bytes..]
    }

    /// Says that the first `bytes` of [`pending`](Self::pending) are sent.
    ///
    /// # Panics
    ///
    /// When fewer were pending.
    pub fn sent(&mut self, bytes: usize) {
        self.sent_bytes += bytes;
        assert!(
            self.sent_bytes <= self.frames.len(),
            "more sent than pending"
        );
        if self.sent_bytes == self.frames.len() {
            self.frames.clear();
            self.frames.shrink_to(KEPT_CAPACITY_BYTES);
            self.sent_bytes = 0;
        }
    }

    /// How many bytes wait, those of messages held back among them.
    #[must_use]
    pub fn waiting_bytes(&self) -> usize {
        self.frames.len() - self.sent_bytes + self.held.len() + self.open.packet_len()
    }

    pub(crate) fn let_in(&mut self, compressed: bool) {
        self.is_let_in = true;
        if compressed && self.compressor.is_none() {
            self.compressor = Some(Compressor::new());
        }
    }

    fn close_frame(&mut self) {
        let frame = match &mut self.compressor {
            Some(compressor) => self.open.finish_compressed(compressor),
            None => self.open.finish(),
        };
        if let Some(frame) = frame {
            // What was held before goes first.
            let goes_at_once = self.is_let_in && self.held.is_empty();
            let frames = if goes_at_once {
                &mut self.frames
            } else {
                &mut self.held
            };
            frames.extend_from_slice(frame);
        }
        self.open.clear();
    }
}
