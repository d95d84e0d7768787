//! Keeping what a client sent, for replaying it later.

use lagometer_protocol::messages::channeldpb;
use lagometer_protocol::messages::replaypb::{ReplayPacket, ReplaySession};
use lagometer_units::Time;
use prost::Message;

/// The most bytes of packets kept of one connection.
const KEPT_BYTES: usize = 64 << 20;

/// The packets of one session so far.
#[derive(Debug)]
pub(super) struct Recorder {
    session: ReplaySession,
    last: Time,
    bytes: usize,
}

impl Recorder {
    pub(super) fn new(now: Time) -> Self {
        Self {
            session: ReplaySession::default(),
            last: now,
            bytes: 0,
        }
    }

    /// Keeps a packet; of a session that is too long the beginning is kept.
    pub(super) fn keep(&mut self, now: Time, packet: &[u8]) {
        self.bytes = self.bytes.saturating_add(packet.len());
        if self.bytes > KEPT_BYTES {
            return;
        }
        if let Ok(packet) = channeldpb::Packet::decode(packet) {
            let offset = now.since(self.last).as_nanos();
            self.session.packets.push(ReplayPacket {
                offset_time: i64::try_from(offset).unwrap_or(i64::MAX),
                packet: Some(packet),
            });
            self.last = now;
        }
    }

    /// The file's content.
    pub(super) fn into_file(self) -> Vec<u8> {
        self.session.encode_to_vec()
    }
}
