//! The exchange by which a client shows that it receives what is sent to its
//! address, before anybody keeps anything for it.
//!
//! KCP has no handshake: whoever sends a datagram under any address has a
//! conversation. So a client of ours says hello first; the gateway answers with
//! a cookie, a keyed digest of the address, the conversation and the time, and
//! forgets the client; the client sends the cookie back. The three messages have
//! 20 bytes each, fewer than a header of KCP's, and any KCP passes over them:
//! the client goes on by itself where nobody answers.

use std::time::Duration;

use lagometer_units::Time;

/// Bytes of each message: hello is as long as the answer to it, so that nobody
/// is sent more than was sent in their name.
const MESSAGE_BYTES: usize = 20;

const HELLO: [u8; 4] = *b"lgH1";
const CHALLENGE: [u8; 4] = *b"lgC1";
const ANSWER: [u8; 4] = *b"lgA1";

/// How often hello is said until it is answered.
const HELLO_EVERY: Duration = Duration::from_millis(200);

/// When nobody has answered for so long, nobody will: the conversation begins
/// without a proof.
const GIVE_UP_AFTER: Duration = Duration::from_secs(3);

/// Datagrams held back until then; more are lost, and sent again by KCP.
const HELD_AT_MOST: usize = 64;

/// What only the gateway can make: when, and a digest under its key.
pub type Cookie = [u8; 12];

/// A message of the exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AddressProof {
    /// The client asks for a cookie.
    Hello {
        /// The conversation it is about to begin.
        conversation: u32,
    },
    /// The gateway's cookie for it.
    Challenge {
        /// The client's conversation.
        conversation: u32,
        /// To be sent back.
        cookie: Cookie,
    },
    /// The client returns the cookie.
    Answer {
        /// Its conversation.
        conversation: u32,
        /// As it came.
        cookie: Cookie,
    },
}

impl AddressProof {
    /// The message in a datagram, if it is one.
    #[must_use]
    pub fn parse(datagram: &[u8]) -> Option<Self> {
        let message: &[u8; MESSAGE_BYTES] = datagram.try_into().ok()?;
        let (tag, rest) = message.split_first_chunk::<4>()?;
        let (conversation, rest) = rest.split_first_chunk::<4>()?;
        let conversation = u32::from_le_bytes(*conversation);
        let cookie: Cookie = rest.try_into().ok()?;
        match *tag {
            HELLO => Some(Self::Hello { conversation }),
            CHALLENGE => Some(Self::Challenge {
                conversation,
                cookie,
            }),
            ANSWER => Some(Self::Answer {
                conversation,
                cookie,
            }),
            _ => None,
        }
    }

    /// The datagram.
    #[must_use]
    pub fn to_bytes(self) -> [u8; MESSAGE_BYTES] {
        let (tag, conversation, cookie) = match self {
            Self::Hello { conversation } => (HELLO, conversation, Cookie::default()),
            Self::Challenge {
                conversation,
                cookie,
            } => (CHALLENGE, conversation, cookie),
            Self::Answer {
                conversation,
                cookie,
            } => (ANSWER, conversation, cookie),
        };
        let mut bytes = [0; MESSAGE_BYTES];
        bytes[..4].copy_from_slice(&tag);
        bytes[4..8].copy_from_slice(&conversation.to_le_bytes());
        bytes[8..].copy_from_slice(&cookie);
        bytes
    }
}

/// The client's part of the exchange.
///
/// What the conversation sends goes through [`post`](Self::post), what arrives
/// through [`input`](Self::input) first.
#[derive(Debug)]
pub struct Prover {
    conversation: u32,
    /// When hello is to be said next; none once that is over.
    next_hello: Option<Time>,
    give_up_at: Time,
    /// Datagrams wait until the exchange is over.
    holds: bool,
    held: Vec<Vec<u8>>,
}

impl Prover {
    /// For the conversation so numbered, from `now` on. What it sends is held
    /// back until the cookie was returned, for three seconds at most, if it
    /// `waits`; otherwise the exchange goes on beside it.
    #[must_use]
    pub fn new(conversation: u32, waits: bool, now: Time) -> Self {
        Self {
            conversation,
            next_hello: Some(now),
            give_up_at: now + GIVE_UP_AFTER,
            holds: waits,
            held: Vec::new(),
        }
    }

    /// Sends a datagram of the conversation, now or later.
    pub fn post(&mut self, datagram: &[u8], output: &mut dyn FnMut(&[u8])) {
        if !self.holds {
            output(datagram);
        } else if self.held.len() < HELD_AT_MOST {
            self.held.push(datagram.to_vec());
        }
    }

    /// Looks at what has arrived. Returns whether it was a message of the
    /// exchange, and so none of the conversation.
    pub fn input(&mut self, datagram: &[u8], output: &mut dyn FnMut(&[u8])) -> bool {
        let Some(message) = AddressProof::parse(datagram) else {
            return false;
        };
        if let AddressProof::Challenge {
            conversation,
            cookie,
        } = message
            && conversation == self.conversation
            && self.next_hello.is_some()
        {
            let answer = AddressProof::Answer {
                conversation,
                cookie,
            };
            output(&answer.to_bytes());
            self.finish(output);
        }
        true
    }

    /// When [`tick`](Self::tick) has something to do.
    #[must_use]
    pub fn next_deadline(&self) -> Option<Time> {
        self.next_hello
    }

    /// Says hello if that is due, or goes on without an answer.
    pub fn tick(&mut self, now: Time, output: &mut dyn FnMut(&[u8])) {
        if self.next_hello.is_none_or(|at| now < at) {
            return;
        }
        if now >= self.give_up_at {
            self.finish(output);
            return;
        }
        self.next_hello = Some(now + HELLO_EVERY);
        let conversation = self.conversation;
        output(&AddressProof::Hello { conversation }.to_bytes());
    }

    fn finish(&mut self, output: &mut dyn FnMut(&[u8])) {
        self.next_hello = None;
        self.holds = false;
        for datagram in std::mem::take(&mut self.held) {
            output(&datagram);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_read_back_and_no_kcp_takes_them_for_its_own() {
        let (conversation, cookie) = (0x0102_0304, [7; 12]);
        for message in [
            AddressProof::Hello { conversation },
            AddressProof::Challenge {
                conversation,
                cookie,
            },
            AddressProof::Answer {
                conversation,
                cookie,
            },
        ] {
            let bytes = message.to_bytes();
            assert_eq!(AddressProof::parse(&bytes), Some(message));
            assert!(bytes.len() < lagometer_kcp::HEADER_BYTES);
            assert_eq!(AddressProof::parse(&bytes[..19]), None);
        }
    }

    /// What a prover sends when `act` is done to it.
    fn sent(
        prover: &mut Prover,
        act: impl FnOnce(&mut Prover, &mut dyn FnMut(&[u8])),
    ) -> Vec<Vec<u8>> {
        let mut sent = Vec::new();
        act(prover, &mut |datagram| sent.push(datagram.to_vec()));
        sent
    }

    #[test]
    fn what_is_held_back_follows_the_returned_cookie() {
        let mut prover = Prover::new(7, true, Time::ZERO);
        let hello = sent(&mut prover, |it, output| it.tick(Time::ZERO, output));
        let conversation = 7;
        assert_eq!(hello, [AddressProof::Hello { conversation }.to_bytes()]);
        assert!(sent(&mut prover, |it, output| it.post(b"data", output)).is_empty());
        let cookie = [9; 12];
        let strange = AddressProof::Challenge {
            conversation: 8,
            cookie,
        };
        let ours = AddressProof::Challenge {
            conversation,
            cookie,
        };
        let answer = AddressProof::Answer {
            conversation,
            cookie,
        };
        for (challenge, expected) in [
            (strange, vec![]),
            (ours, vec![answer.to_bytes().to_vec(), b"data".to_vec()]),
            (ours, vec![]),
        ] {
            let replied = sent(&mut prover, |it, output| {
                assert!(it.input(&challenge.to_bytes(), output));
            });
            assert_eq!(replied, expected);
        }
        assert_eq!(prover.next_deadline(), None);
        assert!(!prover.input(&[0; 24], &mut |_| {}));
    }

    #[test]
    fn where_nobody_answers_the_conversation_begins_after_three_seconds() {
        let mut prover = Prover::new(7, true, Time::ZERO);
        prover.post(b"data", &mut |_| {});
        let mut all = Vec::new();
        while let Some(at) = prover.next_deadline() {
            all.extend(sent(&mut prover, |it, output| it.tick(at, output)));
            assert!(at <= Time::from_secs(3));
        }
        assert_eq!(all.len(), 16);
        assert_eq!(all[15], b"data");
    }
}
