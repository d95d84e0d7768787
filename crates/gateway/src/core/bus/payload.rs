//! How much of what a peer wrote a message on the bus carries.
//!
//! Whoever lets messages wait bounds them by it: a message may be a word of a few bytes or
//! as long as the longest packet.

use super::{ToChannels, ToConnections, Window};

impl ToChannels {
    /// Bytes of it that a peer wrote, which may be many; what is always short counts as
    /// nothing.
    pub(crate) fn payload_bytes(&self) -> usize {
        match self {
            Self::Messages { messages, .. } => {
                let envelopes = size_of_val(messages.envelopes());
                envelopes + messages.bodies().len()
            }
            Self::Auth(attempt) => attempt.player.len() + attempt.login_token.len(),
            Self::Admitted(connection) => connection.player.len(),
            Self::Relayed { frame, .. } => frame.len(),
            Self::AddressProven { .. }
            | Self::Introduced { .. }
            | Self::RouteLost
            | Self::GlobalOwner { .. }
            | Self::Closed { .. }
            | Self::Misbehaved(_)
            | Self::Congested { .. }
            | Self::AskCongestion { .. }
            | Self::Relieved { .. }
            | Self::Undelivered { .. }
            | Self::Resync { .. } => 0,
        }
    }
}

impl ToConnections {
    /// Bytes of it that peers wrote, and of lists as long as there are peers. What several
    /// of these messages share counts in each.
    pub(crate) fn payload_bytes(&self) -> usize {
        match self {
            Self::AuthAnswer { message, .. }
            | Self::Send { message, .. }
            | Self::Forward { message, .. } => message.len(),
            Self::SendMany { to, message } => size_of_val(&**to) + message.len(),
            Self::State { to, messages, .. } => {
                let messages: usize = messages.iter().map(bytes::Bytes::len).sum();
                size_of_val(&**to) + messages
            }
            Self::Window(Window {
                value, own, except, ..
            }) => value.len() + size_of_val(&**own) + size_of_val(&**except),
            Self::Relay { frame, .. } => frame.len(),
            Self::ListPart { channels, .. } => channels.as_ref().map_or(0, bytes::Bytes::len),
            Self::Pause { .. }
            | Self::Known { .. }
            | Self::GlobalOwner { .. }
            | Self::AskCongestion { .. }
            | Self::Resume { .. }
            | Self::Join { .. }
            | Self::Leave { .. }
            | Self::Forget { .. }
            | Self::Missed { .. }
            | Self::Close { .. }
            | Self::Ban { .. } => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use bytes::Bytes;

    use super::super::{CheckedEnvelope, CheckedMessages, Recipients};
    use super::*;
    use crate::core::ids::{ChannelId, ConnId};

    #[test]
    fn what_a_peer_makes_long_counts() {
        let body = Bytes::from(vec![7; 5000]);
        let envelope = CheckedEnvelope {
            channel_id: 0,
            broadcast: 0,
            stub_id: 0,
            msg_type: 100,
            body_end: 0,
        };
        let messages = |bodies: &Bytes, count| ToChannels::Messages {
            from: ConnId(1),
            messages: CheckedMessages::new(&vec![envelope; count], bodies.clone()),
        };
        assert!((5000..5100).contains(&messages(&body, 1).payload_bytes()));
        // Messages without bodies are not for nothing.
        assert!(messages(&Bytes::new(), 1000).payload_bytes() >= 16_000);
        let forward = ToConnections::Forward {
            cause: ConnId(1),
            source_prefix: None,
            to: ConnId(2),
            message: body.clone(),
        };
        assert_eq!(forward.payload_bytes(), 5000);
        let state = ToConnections::State {
            to: Arc::from([]),
            channel: ChannelId(1),
            messages: vec![body.clone(), body.clone()],
        };
        assert_eq!(state.payload_bytes(), 10_000);
        let window = ToConnections::Window(Window {
            to: Recipients::These(Arc::from([])),
            channel: ChannelId(1),
            type_url: Arc::from("a"),
            merge_options: None,
            value: body,
            own: Arc::from([]),
            except: Arc::from([]),
        });
        assert_eq!(window.payload_bytes(), 5000);
    }
}
