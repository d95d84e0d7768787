//! From a connection's bytes to messages for the channel manager.

use lagometer_protocol::messages::channeldpb::auth_result_message::AuthResult;
use lagometer_protocol::messages::channeldpb::{AuthMessage, AuthResultMessage, MessageType};
use lagometer_protocol::{Compression, Frame, FrameDecoder, MessagePack, Packet};
use lagometer_units::Time;
use prost::Message;

use crate::core::budget::Budget;
use crate::core::bus::{
    AuthAttempt, CheckedEnvelope, CheckedMessages, CloseReason, Misbehaviour, ToChannels,
};
use crate::core::events::Event;
use crate::core::ids::{ConnKey, Peer};

use super::ConnectionManager;
use super::connection::{Login, fsm};
use super::outbox::whole;
use super::recorder::Kept;

/// The most messages of one frame of a game server: no plain frame has so many of a
/// length that means anything, while one of snappy unpacks to half a million empty ones.
const MESSAGES_A_SERVERS_FRAME: usize = 16_384;

/// The most messages of one frame of a client: what one of the default rate may send at
/// once after two seconds of silence.
const MESSAGES_A_CLIENTS_FRAME: usize = 4_096;

/// Room for so many messages of a packet is kept from one packet to the next.
const MESSAGES_KEPT: usize = 256;

/// What a call of [`ConnectionManager::receive_some`] came to.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Received {
    /// How many of the bytes were taken.
    pub taken_bytes: usize,
    /// Messages in the frames that were completed, allowed or not.
    pub messages: usize,
    /// Bytes of those frames' packets, unpacked.
    pub packet_bytes: usize,
}

impl ConnectionManager {
    /// Bytes have come from the peer, in pieces of any size. What they ask for
    /// comes out of [`poll_bus`](Self::poll_bus) and
    /// [`poll_close`](Self::poll_close).
    pub fn receive(&mut self, now: Time, key: ConnKey, bytes: &[u8]) {
        self.receive_some(now, key, bytes, usize::MAX);
    }

    /// Likewise, but takes no further frame once `messages_at_most` messages
    /// have been taken: a short frame may unpack to many. What was not taken is
    /// the caller's to keep and to bring again first.
    pub fn receive_some(
        &mut self,
        now: Time,
        key: ConnKey,
        bytes: &[u8],
        messages_at_most: usize,
    ) -> Received {
        let mut received = Received {
            taken_bytes: bytes.len(),
            ..Received::default()
        };
        let Some(connection) = self.table.get_mut(key) else {
            return received;
        };
        if connection.closing.is_some() || bytes.is_empty() {
            return received;
        }
        connection.last_received = now;
        // The decoder is taken out so that its frames can be read while the
        // connection changes.
        let limits = connection.decoder.limits();
        let mut decoder = std::mem::replace(&mut connection.decoder, FrameDecoder::new(limits));
        let mut rest = bytes;
        let mut frames = 0;
        let failed = loop {
            if received.messages >= messages_at_most {
                break None;
            }
            match decoder.next(&mut rest) {
                Ok(Some(frame)) => {
                    frames += 1;
                    if let Err(why) = self.frame(now, key, frame, &mut received) {
                        break Some(why);
                    }
                }
                Ok(None) => break None,
                Err(_) => break Some(CloseReason::BadBytes),
            }
        };
        received.taken_bytes = bytes.len() - rest.len();
        self.count_received(key, &decoder, frames, received.taken_bytes);
        if let Some(connection) = self.table.get_mut(key) {
            connection.decoder = decoder;
        }
        let failed = failed.or_else(|| self.over_login_bytes(now, key, received));
        if let Some(why) = failed {
            self.begin_to_close(key, why);
            received.taken_bytes = bytes.len();
        }
        received
    }

    fn count_received(&mut self, key: ConnKey, decoder: &FrameDecoder, frames: u64, bytes: usize) {
        let Some(connection) = self.table.get(key) else {
            return;
        };
        let counters = &mut self.counters.peers[connection.peer.index()];
        counters.bytes_in += bytes as u64;
        counters.packets_in += frames;
        counters.combined += frames;
        counters.fragmented += u64::from(!decoder.is_between_frames());
    }

    /// Counts what a connection that has not logged in has sent, on the wire
    /// and unpacked, and looks at what it has left unfinished: no more than a
    /// login needs. Returns why it is to be closed, if it is too much.
    fn over_login_bytes(
        &mut self,
        now: Time,
        key: ConnKey,
        received: Received,
    ) -> Option<CloseReason> {
        let connection = self.table.get_mut(key)?;
        if connection.admitted {
            return None;
        }
        let bytes = received.taken_bytes.max(received.packet_bytes);
        connection.before_login.bytes = connection.before_login.bytes.saturating_add(bytes);
        let unfinished = self.settings.logins.unfinished_bytes();
        let is_over = connection.before_login.bytes > self.settings.before_login.bytes
            || connection.decoder.unfinished_bytes() > unfinished;
        is_over.then(|| self.exceeded(now, key, Budget::LoginBytes))
    }

    /// Counts that a connection went over a budget, for which it is closed.
    fn exceeded(&mut self, now: Time, key: ConnKey, budget: Budget) -> CloseReason {
        self.over_budget(now, key, budget);
        CloseReason::OverBudget(budget)
    }

    fn frame(
        &mut self,
        now: Time,
        key: ConnKey,
        frame: Frame<'_>,
        received: &mut Received,
    ) -> Result<(), CloseReason> {
        let mut limit = self.settings.frames.max_packet_bytes;
        if let Some(connection) = self.table.get(key)
            && !connection.admitted
        {
            limit = limit.min(self.settings.before_login.bytes);
        }
        let mut unpacked = std::mem::take(&mut self.unpacked);
        let result = match frame.packet_bytes(limit, &mut unpacked) {
            Ok(packet) => {
                if frame.compression == Compression::Snappy
                    && let Some(connection) = self.table.get_mut(key)
                {
                    connection.outbox.compress(&mut self.compressor);
                }
                received.packet_bytes += packet.len();
                self.packet(now, key, packet, received)
            }
            Err(_) => Err(CloseReason::BadBytes),
        };
        self.unpacked = unpacked;
        result
    }

    fn packet(
        &mut self,
        now: Time,
        key: ConnKey,
        bytes: &[u8],
        received: &mut Received,
    ) -> Result<(), CloseReason> {
        let Some((messages_at_most, budget)) = self.messages_at_most(key) else {
            return Ok(());
        };
        let packet = Packet::new_checked_up_to(bytes, messages_at_most)
            .map_err(|_| CloseReason::BadBytes)?;
        // Of a packet with too many nothing is taken: it costs what was looked at.
        let Some(packet) = packet else {
            received.messages += messages_at_most + 1;
            return Err(self.exceeded(now, key, budget));
        };
        received.messages += packet.message_count();
        if let Some(connection) = self.table.get_mut(key)
            && !connection.admitted
        {
            connection.before_login.messages += packet.message_count();
        }
        self.record(now, key, &packet);
        let mut result = Ok(());
        let mut allowed = std::mem::take(&mut self.allowed);
        self.scratch.clear();
        for message in packet.messages() {
            match self.message(now, key, &message) {
                Ok(true) => {
                    // A single body goes from where it lies to where it is kept.
                    if packet.message_count() > 1 {
                        self.scratch.extend_from_slice(message.body);
                    }
                    let end = self.scratch.len().max(message.body.len());
                    allowed.push(CheckedEnvelope::new(&message, end));
                }
                Ok(false) => {}
                Err(why) => {
                    result = Err(why);
                    break;
                }
            }
        }
        if !allowed.is_empty()
            && let Some(from) = self.table.get(key).and_then(|connection| connection.id)
        {
            let single = packet
                .messages()
                .next()
                .filter(|_| packet.message_count() == 1);
            let bodies = single.map_or(&self.scratch[..], |message| message.body);
            let messages = CheckedMessages::new(&allowed, self.arena.keep(&[bodies]));
            self.to_channels
                .push_back(ToChannels::Messages { from, messages });
        }
        allowed.clear();
        allowed.shrink_to(MESSAGES_KEPT);
        self.allowed = allowed;
        result
    }

    /// How many messages the next packet of a connection may have, and which budget one
    /// with more is over.
    fn messages_at_most(&self, key: ConnKey) -> Option<(usize, Budget)> {
        let connection = self.table.get(key)?;
        let of_a_frame = match connection.peer {
            Peer::Server => MESSAGES_A_SERVERS_FRAME,
            Peer::Client => MESSAGES_A_CLIENTS_FRAME,
        };
        if connection.admitted {
            return Some((of_a_frame, Budget::Messages));
        }
        let allowed = self.settings.before_login.messages as usize;
        let left = allowed.saturating_sub(connection.before_login.messages);
        Some(if left < of_a_frame {
            (left, Budget::LoginMessages)
        } else {
            (of_a_frame, Budget::Messages)
        })
    }

    /// Keeps a packet of a client that is recorded.
    fn record(&mut self, now: Time, key: ConnKey, packet: &Packet<'_>) {
        let limits = self.settings.recordings;
        let Some(connection) = self.table.get_mut(key) else {
            return;
        };
        let Some(recorder) = &mut connection.recorder else {
            return;
        };
        let room = limits.side_bytes.saturating_sub(self.recorded_bytes);
        let most = limits.client_bytes.min(recorder.len() + room);
        match recorder.keep(now, packet, most) {
            Kept::Bytes(bytes) => self.recorded_bytes += bytes,
            Kept::Ended => self.over_budget(now, key, Budget::Recording),
            Kept::Nothing => {}
        }
    }

    /// Holds a message against its sender's state machine. Returns whether it is one
    /// for the channel manager.
    fn message(
        &mut self,
        now: Time,
        key: ConnKey,
        message: &MessagePack<'_>,
    ) -> Result<bool, CloseReason> {
        let Some(connection) = self.table.get_mut(key) else {
            return Ok(false);
        };
        let is_client = connection.peer == Peer::Client;
        let machine = fsm(&self.settings, connection.peer);
        let counters = &mut self.counters.peers[connection.peer.index()];
        if !machine.allows(connection.state, message.msg_type) {
            counters.refused += 1;
            connection.refused += 1;
            let most = self
                .settings
                .anti_ddos
                .map_or(0, |limits| limits.max_refused);
            if is_client && most > 0 && connection.refused >= most {
                if connection.admitted && !connection.is_address_forgeable() {
                    let what = Misbehaviour::Refused {
                        player: connection.player.clone(),
                        address: connection.address,
                    };
                    self.to_channels.push_back(ToChannels::Misbehaved(what));
                }
                return Err(CloseReason::TooManyRefused);
            }
            self.events.push(Event::Refused {
                id: connection.id,
                peer: connection.peer,
                msg_type: message.msg_type,
            });
            return Ok(false);
        }
        if message.msg_type == MessageType::Auth as u32 {
            counters.messages_in += 1;
            return self.auth(now, key, message).map(|()| false);
        }
        connection.state = machine.after(connection.state, message.msg_type);
        if connection.admitted {
            counters.messages_in += 1;
        } else {
            counters.refused += 1;
        }
        Ok(connection.admitted)
    }

    /// One login of a connection is decided at a time; what comes meanwhile is
    /// dropped.
    fn auth(
        &mut self,
        now: Time,
        key: ConnKey,
        message: &MessagePack<'_>,
    ) -> Result<(), CloseReason> {
        if message.channel_id != 0 {
            return Err(CloseReason::BadAuth);
        }
        let Ok(auth) = AuthMessage::decode(message.body) else {
            return Ok(());
        };
        let Some(connection) = self.table.get_mut(key) else {
            return Ok(());
        };
        let machine = fsm(&self.settings, connection.peer);
        connection.state = machine.after(connection.state, message.msg_type);
        if connection.admitted {
            return Ok(());
        }
        if connection.login == Login::Pending {
            self.over_budget(now, key, Budget::LoginAttempts);
            return Ok(());
        }
        connection.before_login.attempts += 1;
        if connection.before_login.attempts > self.settings.before_login.attempts {
            return Err(self.exceeded(now, key, Budget::LoginAttempts));
        }
        let limits = self.settings.logins;
        let (wrong, budget) = if auth.player_identifier_token.len() > limits.player_bytes {
            (AuthResult::InvalidPit, Budget::PlayerName)
        } else if auth.login_token.len() > limits.token_bytes {
            (AuthResult::InvalidLt, Budget::LoginToken)
        } else {
            (AuthResult::Successful, Budget::LoginAttempts)
        };
        if wrong != AuthResult::Successful {
            self.answer_at_once(now, key, message, wrong);
            self.over_budget(now, key, budget);
            return Ok(());
        }
        connection.login = Login::Pending;
        self.to_channels.push_back(ToChannels::Auth(AuthAttempt {
            key,
            peer: connection.peer,
            address: connection.address,
            is_address_forgeable: connection.is_address_forgeable(),
            stub_id: message.stub_id,
            broadcast: message.broadcast,
            player: auth.player_identifier_token,
            login_token: auth.login_token,
        }));
        Ok(())
    }

    /// Refuses a login that nobody needs to decide about.
    fn answer_at_once(
        &mut self,
        now: Time,
        key: ConnKey,
        asked: &MessagePack<'_>,
        result: AuthResult,
    ) {
        let body = AuthResultMessage {
            result: result as i32,
            ..AuthResultMessage::default()
        }
        .encode_to_vec();
        let mut answer = Vec::new();
        MessagePack {
            channel_id: 0,
            broadcast: asked.broadcast,
            stub_id: asked.stub_id,
            msg_type: MessageType::Auth as u32,
            body: &body,
        }
        .encode_in_packet(&mut answer);
        let parts = whole(answer.len());
        self.queue(now, key.slot, &[], &answer.into(), &parts);
    }
}
