//! Keeping what a client sent, for replaying it later.
//!
//! A recording begins when its client is let in: who has not logged in leaves nothing
//! behind. It is kept as the bytes of the file it will be, so that it takes as
//! much memory as it says, and it never holds a login token: it opens with the
//! login that was accepted, the token left out, and later logins are left out
//! altogether.

use lagometer_protocol::messages::channeldpb::{AuthMessage, MessageType};
use lagometer_protocol::wire::{WireType, put_bytes_field, put_key, put_varint};
use lagometer_protocol::{MessagePack, Packet};
use lagometer_units::Time;
use prost::Message;

/// Numbers of the fields of `replaypb.ReplaySession` and `ReplayPacket`.
const PACKETS: u32 = 1;
const OFFSET_TIME: u32 = 1;
const PACKET: u32 = 2;

/// The packets of one session so far.
#[derive(Debug)]
pub(super) struct Recorder {
    file: Vec<u8>,
    last: Time,
    /// It has reached its limit: the beginning is kept.
    is_full: bool,
}

/// What became of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kept {
    /// It is in the recording, which grew by so many bytes.
    Bytes(usize),
    /// The recording ends here: there is no more room.
    Ended,
    /// The recording has ended before.
    Nothing,
}

impl Recorder {
    /// Begins with the login of a player who was let in.
    pub(super) fn new(now: Time, player: &str) -> Self {
        let login = AuthMessage {
            player_identifier_token: player.to_owned(),
            login_token: String::new(),
        };
        let mut packet = Vec::new();
        MessagePack {
            msg_type: MessageType::Auth as u32,
            body: &login.encode_to_vec(),
            ..MessagePack::default()
        }
        .encode_in_packet(&mut packet);
        let mut recorder = Self {
            file: Vec::new(),
            last: now,
            is_full: false,
        };
        recorder.append(now, &packet);
        recorder
    }

    /// Keeps a packet, unless more than `most` bytes would be kept.
    pub(super) fn keep(&mut self, now: Time, packet: &Packet<'_>, most: usize) -> Kept {
        if self.is_full {
            return Kept::Nothing;
        }
        let mut kept = Vec::new();
        for message in packet.messages() {
            if message.msg_type != MessageType::Auth as u32 {
                message.encode_in_packet(&mut kept);
            }
        }
        // Beside the packet: its keys, lengths and time.
        if self.file.len() + kept.len() + 32 > most {
            self.is_full = true;
            return Kept::Ended;
        }
        let before = self.file.len();
        self.append(now, &kept);
        Kept::Bytes(self.file.len() - before)
    }

    /// Bytes kept.
    pub(super) fn len(&self) -> usize {
        self.file.len()
    }

    /// The file's content.
    pub(super) fn into_file(self) -> Vec<u8> {
        self.file
    }

    fn append(&mut self, now: Time, packet: &[u8]) {
        let offset_ns = now.since(self.last).as_nanos();
        self.last = now;
        let mut one = Vec::with_capacity(packet.len() + 16);
        let offset_ns = i64::try_from(offset_ns).unwrap_or(i64::MAX);
        if offset_ns > 0 {
            put_key(&mut one, OFFSET_TIME, WireType::Varint);
            put_varint(&mut one, offset_ns.cast_unsigned());
        }
        put_bytes_field(&mut one, PACKET, packet);
        put_bytes_field(&mut self.file, PACKETS, &one);
    }
}

#[cfg(test)]
mod tests {
    use lagometer_protocol::messages::replaypb::{ReplayPacket, ReplaySession};

    use super::*;

    #[test]
    fn the_file_is_a_replay_session_without_login_tokens() {
        let mut recorder = Recorder::new(Time::ZERO, "alice");
        let login = AuthMessage {
            player_identifier_token: "alice".to_owned(),
            login_token: "hunter2".to_owned(),
        };
        let mut packet = Vec::new();
        for (msg_type, body) in [(1, login.encode_to_vec()), (150, b"hello".to_vec())] {
            MessagePack {
                msg_type,
                body: &body,
                ..MessagePack::default()
            }
            .encode_in_packet(&mut packet);
        }
        let packet = Packet::new_checked(&packet).unwrap();
        let kept = recorder.keep(Time::from_millis(7), &packet, 1 << 20);
        assert!(matches!(kept, Kept::Bytes(_)));
        let file = recorder.into_file();
        assert!(!file.windows(7).any(|bytes| bytes == b"hunter2"));
        let session = ReplaySession::decode(&*file).unwrap();
        let listed: Vec<(i64, Vec<u32>)> = session
            .packets
            .iter()
            .map(|one: &ReplayPacket| {
                let messages = &one.packet.as_ref().unwrap().messages;
                (
                    one.offset_time,
                    messages.iter().map(|it| it.msg_type).collect(),
                )
            })
            .collect();
        assert_eq!(listed, [(0, vec![1]), (7_000_000, vec![150])]);
    }

    #[test]
    fn a_recording_keeps_no_more_bytes_than_it_may() {
        let mut recorder = Recorder::new(Time::ZERO, "alice");
        let mut packet = Vec::new();
        // Empty messages: two bytes each, and many times that once decoded.
        for _ in 0..1000 {
            MessagePack::default().encode_in_packet(&mut packet);
        }
        let packet = Packet::new_checked(&packet).unwrap();
        let all: Vec<Kept> = (0..10)
            .map(|_| recorder.keep(Time::ZERO, &packet, 10_000))
            .collect();
        assert_eq!(all.iter().filter(|&&one| one == Kept::Ended).count(), 1);
        assert_eq!(all.last(), Some(&Kept::Nothing));
        assert!(recorder.file.capacity() <= 20_000);
    }
}
