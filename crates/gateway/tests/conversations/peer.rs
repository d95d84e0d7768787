//! A peer's end of a connection: reads frames and judges what it is sent.

use std::collections::BTreeSet;

use lagometer_gateway::core::{ConnId, ConnKey};
use lagometer_protocol::messages::channeldpb::{
    ChannelDataRecoveryMessage, MessagePack as OwnedPack, RemoveChannelMessage,
    SubscribedToChannelResultMessage, UnsubscribedFromChannelResultMessage,
};
use lagometer_protocol::{FrameDecoder, FrameLimits, MessagePack, Packet};
use prost::Message;

/// The most bytes a packet from the gateway may unpack to.
const PACKET_BYTES: usize = 1 << 20;

/// One end of a connection.
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub(crate) struct TestPeer {
    pub(crate) side: usize,
    pub(crate) key: ConnKey,
    pub(crate) is_open: bool,
    pub(crate) stalls: bool,
    /// The core has it not read for now.
    pub(crate) paused: bool,
    /// Its driver does not read it for now, of its own.
    pub(crate) held_back: bool,
    /// What it has sent and was not read.
    pub(crate) unread: Vec<u8>,
    /// What it has read and nobody has looked at.
    pub(crate) inbox: Vec<OwnedPack>,
    /// What it has received that it is subscribed to.
    subscribed: BTreeSet<u32>,
    decoder: FrameDecoder,
}

impl TestPeer {
    pub(crate) fn new(side: usize, key: ConnKey) -> Self {
        Self {
            side,
            key,
            is_open: true,
            stalls: false,
            paused: false,
            held_back: false,
            unread: Vec::new(),
            inbox: Vec::new(),
            subscribed: BTreeSet::new(),
            decoder: FrameDecoder::new(FrameLimits::default()),
        }
    }

    /// Whether what it sends is read now.
    pub(crate) fn is_read(&self) -> bool {
        !self.paused && !self.held_back
    }

    /// Takes bytes of the gateway. `id` and `admitted` are what the gateway
    /// says of this connection.
    pub(crate) fn read(
        &mut self,
        mut bytes: &[u8],
        id: Option<ConnId>,
        admitted: bool,
    ) -> Result<(), String> {
        let mut scratch = Vec::new();
        loop {
            let frame = match self.decoder.next(&mut bytes) {
                Ok(Some(frame)) => frame,
                Ok(None) => return Ok(()),
                Err(error) => return Err(format!("{id:?} is sent what is no frame: {error}")),
            };
            let packet = frame
                .packet_bytes(PACKET_BYTES, &mut scratch)
                .map_err(|error| format!("{id:?} is sent what cannot be unpacked: {error}"))?;
            let packet = Packet::new_checked(packet)
                .map_err(|error| format!("{id:?} is sent what is no packet: {error}"))?;
            for message in packet.messages() {
                judge(&mut self.subscribed, &message, id, admitted)?;
                self.inbox.push(OwnedPack::from(message));
            }
        }
    }
}

/// Whether a peer may be sent a message, by what it was sent before.
fn judge(
    subscribed: &mut BTreeSet<u32>,
    message: &MessagePack<'_>,
    id: Option<ConnId>,
    admitted: bool,
) -> Result<(), String> {
    let who = id.map_or(0, |id| id.0);
    if !admitted && message.msg_type != 1 {
        return Err(format!(
            "connection {who}, which was not let in, is sent type {}",
            message.msg_type
        ));
    }
    let malformed = |error| format!("{who} is sent type {}: {error}", message.msg_type);
    match message.msg_type {
        4 => {
            let removed = RemoveChannelMessage::decode(message.body).map_err(malformed)?;
            subscribed.remove(&removed.channel_id);
        }
        6 => {
            let result =
                SubscribedToChannelResultMessage::decode(message.body).map_err(malformed)?;
            let access = result.sub_options.and_then(|options| options.data_access);
            if result.conn_id == who && access != Some(0) {
                subscribed.insert(message.channel_id);
            } else if result.conn_id == who {
                subscribed.remove(&message.channel_id);
            }
        }
        7 => {
            let result =
                UnsubscribedFromChannelResultMessage::decode(message.body).map_err(malformed)?;
            if result.conn_id == who {
                subscribed.remove(&message.channel_id);
            }
        }
        8 if !subscribed.contains(&message.channel_id) => {
            return Err(format!(
                "{who} is sent data of channel {}, which it has not received access to",
                message.channel_id
            ));
        }
        20 => {
            let data = ChannelDataRecoveryMessage::decode(message.body).map_err(malformed)?;
            subscribed.insert(data.channel_id);
        }
        _ => {}
    }
    Ok(())
}
