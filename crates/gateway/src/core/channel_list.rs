//! A list of channels, divided into the messages that it takes.

use lagometer_protocol::MAX_MESSAGE_LEN;
use lagometer_protocol::messages::channeldpb::list_channel_result_message::ChannelInfo;
use prost::Message as _;

/// Room for a message's envelope.
const ENVELOPE_BYTES: usize = 64;

/// What an entry of the list has beside the entry itself: its key and length.
const ENTRY_BYTES: usize = 4;

/// How many bytes an entry takes.
pub(crate) fn entry_bytes(channel: &ChannelInfo) -> usize {
    channel.encoded_len() + ENTRY_BYTES
}

/// What goes into each message. There is at least one.
pub(crate) fn divide(channels: Vec<ChannelInfo>) -> Vec<Vec<ChannelInfo>> {
    let (mut messages, mut message, mut bytes) = (Vec::new(), Vec::new(), 0);
    for channel in channels {
        let more = entry_bytes(&channel);
        if bytes + more > MAX_MESSAGE_LEN - ENVELOPE_BYTES {
            messages.push(std::mem::take(&mut message));
            bytes = 0;
        }
        bytes += more;
        message.push(channel);
    }
    messages.push(message);
    messages
}
