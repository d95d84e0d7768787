//! Messages of a packet that its connection manager has checked, as they cross the bus.

use bytes::Bytes;
use lagometer_protocol::MessagePack;

/// Messages of one packet, checked and taken out of their envelopes: nobody reads the
/// packet again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedMessages {
    envelopes: Envelopes,
    bodies: Bytes,
}

/// What the envelopes say: mostly of a single message.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Envelopes {
    One(CheckedEnvelope),
    Several(Box<[CheckedEnvelope]>),
}

/// A message's envelope, and where its body ends among the bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CheckedEnvelope {
    pub(crate) channel_id: u32,
    pub(crate) broadcast: u32,
    pub(crate) stub_id: u32,
    pub(crate) msg_type: u32,
    pub(crate) body_end: u32,
}

impl CheckedEnvelope {
    /// That of a message whose body is to end there.
    #[must_use]
    pub fn new(message: &MessagePack<'_>, body_end: usize) -> Self {
        Self {
            channel_id: message.channel_id,
            broadcast: message.broadcast,
            stub_id: message.stub_id,
            msg_type: message.msg_type,
            // Packets are at most as long as what is unpacked at once.
            body_end: u32::try_from(body_end).unwrap_or(u32::MAX),
        }
    }
}

impl CheckedMessages {
    /// Messages whose bodies lie in `bodies`, one after the other.
    #[must_use]
    pub fn new(envelopes: &[CheckedEnvelope], bodies: Bytes) -> Self {
        Self {
            envelopes: match envelopes {
                &[one] => Envelopes::One(one),
                several => Envelopes::Several(several.into()),
            },
            bodies,
        }
    }

    /// The messages, in order, each with its body as part of the
    /// [`bodies`](Self::bodies).
    pub fn iter(&self) -> impl Iterator<Item = MessagePack<'_>> {
        let mut begin = 0;
        self.envelopes().iter().map(move |envelope| {
            let end = envelope.body_end as usize;
            let body = self.bodies.get(begin..end).unwrap_or_default();
            begin = end;
            MessagePack {
                channel_id: envelope.channel_id,
                broadcast: envelope.broadcast,
                stub_id: envelope.stub_id,
                msg_type: envelope.msg_type,
                body,
            }
        })
    }

    /// Those messages whose places are wanted, in order.
    pub(crate) fn pick(&self, is_wanted: impl Fn(usize) -> bool) -> Self {
        let (mut envelopes, mut bodies) = (Vec::new(), Vec::new());
        for (_, message) in self
            .iter()
            .enumerate()
            .filter(|(place, _)| is_wanted(*place))
        {
            bodies.extend_from_slice(message.body);
            envelopes.push(CheckedEnvelope::new(&message, bodies.len()));
        }
        Self::new(&envelopes, bodies.into())
    }

    pub(crate) fn envelopes(&self) -> &[CheckedEnvelope] {
        match &self.envelopes {
            Envelopes::One(one) => std::slice::from_ref(one),
            Envelopes::Several(several) => several,
        }
    }

    /// All bodies, one after the other.
    #[must_use]
    pub fn bodies(&self) -> &Bytes {
        &self.bodies
    }
}
