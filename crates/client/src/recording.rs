//! What a client once sent, as a gateway recorded it: files of channeld's replay
//! sessions, `.cpr`.

use std::time::Duration;

use lagometer_protocol::MessagePack;
use lagometer_protocol::messages::channeldpb::{
    self, AuthMessage, MessageType, UnsubscribedFromChannelMessage,
};
use lagometer_protocol::messages::replaypb::ReplaySession;
use prost::Message;
use thiserror::Error;

/// The longest pause that a recording may have.
const PAUSE_AT_MOST: Duration = Duration::from_hours(24);

/// One client's session: what it sent, and when.
///
/// Logins are not part of it: whoever plays it logs in anew.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Recording {
    player: Option<String>,
    packets: Vec<Packet>,
}

/// Messages that were sent together.
#[derive(Clone, Debug, PartialEq)]
pub struct Packet {
    /// When, counted from the first packet of the session.
    pub at: Duration,
    messages: Vec<channeldpb::MessagePack>,
}

/// A file that is no recording.
#[derive(Debug, Error)]
pub enum RecordingError {
    /// The bytes are not a session's.
    #[error("no recording of a session: {0}")]
    Malformed(#[from] prost::DecodeError),
    /// A packet comes before the one before it, or days after it.
    #[error("no recording of a session: packet {index} comes {offset_ns} ns after the one before")]
    Offset {
        /// Which packet, from 0.
        index: usize,
        /// What its offset says.
        offset_ns: i64,
    },
}

impl Recording {
    /// Reads a file's content.
    ///
    /// # Errors
    ///
    /// [`RecordingError`] if it is no session.
    pub fn parse(content: &[u8]) -> Result<Self, RecordingError> {
        let session = ReplaySession::decode(content)?;
        let mut recording = Self::default();
        let mut at = Duration::ZERO;
        for (index, packet) in session.packets.into_iter().enumerate() {
            let offset_ns = packet.offset_time;
            let offset = u64::try_from(offset_ns).map(Duration::from_nanos).ok();
            let Some(offset) = offset.filter(|&offset| offset <= PAUSE_AT_MOST) else {
                return Err(RecordingError::Offset { index, offset_ns });
            };
            // The first one's is since the connection was made, or nothing.
            if index > 0 {
                at += offset;
            }
            let mut messages = packet.packet.unwrap_or_default().messages;
            messages.retain(|message| {
                let is_login = message.msg_type == MessageType::Auth as u32;
                if is_login && let Ok(login) = AuthMessage::decode(&*message.msg_body) {
                    recording
                        .player
                        .get_or_insert(login.player_identifier_token);
                }
                !is_login
            });
            recording.packets.push(Packet { at, messages });
        }
        Ok(recording)
    }

    /// Who it was, if the recording says.
    #[must_use]
    pub fn player(&self) -> Option<&str> {
        self.player.as_deref()
    }

    /// The packets, in order; those that held nothing but a login are empty.
    #[must_use]
    pub fn packets(&self) -> &[Packet] {
        &self.packets
    }
}

impl Packet {
    /// Hands each message to `send` as the connection of that number would send
    /// it: who unsubscribes itself names itself.
    ///
    /// # Errors
    ///
    /// The first that `send` gives; the messages after it are not sent.
    pub fn each_as<E>(
        &self,
        conn_id: u32,
        mut send: impl FnMut(&MessagePack<'_>) -> Result<(), E>,
    ) -> Result<(), E> {
        let unsubscribe = UnsubscribedFromChannelMessage { conn_id }.encode_to_vec();
        for message in &self.messages {
            let is_unsubscribe = message.msg_type == MessageType::UnsubFromChannel as u32;
            send(&MessagePack {
                channel_id: message.channel_id,
                broadcast: message.broadcast,
                stub_id: message.stub_id,
                msg_type: message.msg_type,
                body: if is_unsubscribe {
                    &unsubscribe
                } else {
                    &message.msg_body
                },
            })?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use lagometer_protocol::messages::replaypb::ReplayPacket;
    use proptest::prelude::*;

    use super::*;

    fn packet(offset_time: i64, messages: &[(MessageType, Vec<u8>)]) -> ReplayPacket {
        let messages = messages
            .iter()
            .map(|(msg_type, body)| channeldpb::MessagePack {
                msg_type: *msg_type as u32,
                msg_body: body.clone().into(),
                ..Default::default()
            })
            .collect();
        ReplayPacket {
            offset_time,
            packet: Some(channeldpb::Packet { messages }),
        }
    }

    fn session(packets: Vec<ReplayPacket>) -> Vec<u8> {
        ReplaySession { packets }.encode_to_vec()
    }

    #[test]
    fn offsets_add_up_logins_are_left_out_and_who_leaves_names_itself() {
        let login = AuthMessage {
            player_identifier_token: "ada".into(),
            login_token: String::new(),
        };
        let leave = UnsubscribedFromChannelMessage { conn_id: 9 };
        let file = session(vec![
            packet(7_000_000, &[(MessageType::Auth, login.encode_to_vec())]),
            packet(5_000_000, &[(MessageType::ListChannel, vec![])]),
            packet(
                2_000_000,
                &[(MessageType::UnsubFromChannel, leave.encode_to_vec())],
            ),
        ]);
        let recording = Recording::parse(&file).unwrap();
        assert_eq!(recording.player(), Some("ada"));
        let mut sent = Vec::new();
        for packet in recording.packets() {
            let each = packet.each_as(4, |message| {
                sent.push((
                    packet.at.as_millis(),
                    message.msg_type,
                    message.body.to_vec(),
                ));
                Ok::<_, ()>(())
            });
            each.unwrap();
        }
        let own = UnsubscribedFromChannelMessage { conn_id: 4 };
        assert_eq!(sent, [(5, 5, vec![]), (7, 7, own.encode_to_vec())]);
    }

    #[test]
    fn time_that_goes_back_or_stands_for_days_is_no_recording() {
        for offset in [-1, i64::MAX] {
            let error = Recording::parse(&session(vec![packet(offset, &[])])).unwrap_err();
            assert!(matches!(error, RecordingError::Offset { index: 0, .. }));
        }
    }

    proptest! {
        #[test]
        fn no_file_makes_it_panic(content: Vec<u8>) {
            let _ = Recording::parse(&content);
        }
    }
}
