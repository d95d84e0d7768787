//! The local end's part of the first words.

use super::{
    CLIENT_HELLO_BYTES, Keys, MAGIC, Nonce, SERVER_HELLO_BYTES, STATUS_BUSY, STATUS_OTHER_SECRET,
    STATUS_OTHER_VERSION, STATUS_WELCOME, take, version_of,
};
use crate::message::VERSION;
use crate::tag::{Key, TAG_BYTES};

/// The local end's part, from its hello to the remote end's proof.
#[derive(Debug)]
pub(crate) struct ClientHandshake {
    secret: Key,
    hello: Vec<u8>,
    /// The remote end's hello, once it is here.
    answer: Option<Vec<u8>>,
    input: Vec<u8>,
    output: Vec<u8>,
}

/// Where the local end's part has got to.
#[derive(Debug)]
pub(crate) enum ClientStep {
    /// More must arrive.
    Wait,
    /// Both ends have proved themselves.
    Done(Box<Keys>),
    /// What answers speaks another protocol.
    UnknownProtocol,
    /// It speaks this version.
    OtherVersion(u16),
    /// It has another secret, or is an impostor.
    OtherSecret,
    /// It serves as many as it can.
    Busy,
}

impl ClientHandshake {
    /// A new control connection; `nonce` must be one nobody can foresee.
    pub(crate) fn new(secret: Key, nonce: Nonce) -> Self {
        let mut hello = MAGIC.to_vec();
        hello.extend(VERSION.to_be_bytes());
        hello.extend(nonce);
        hello.resize(CLIENT_HELLO_BYTES, 0);
        Self {
            secret,
            hello,
            answer: None,
            input: Vec::new(),
            output: Vec::new(),
        }
    }

    /// The first bytes to send.
    pub(crate) fn start(&mut self) -> Vec<u8> {
        self.hello.clone()
    }

    /// Bytes to send now.
    pub(crate) fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Bytes that came after the remote end's proof: the first frames.
    pub(crate) fn into_rest(self) -> Vec<u8> {
        self.input
    }

    /// Takes what has arrived.
    pub(crate) fn handle(&mut self, bytes: &[u8]) -> ClientStep {
        self.input.extend_from_slice(bytes);
        let Some(answer) = &self.answer else {
            return self.handle_hello();
        };
        let Some(proof) = take(&mut self.input, 1 + TAG_BYTES) else {
            // A refusal is its status alone.
            return match self.input.first() {
                Some(&STATUS_OTHER_SECRET) => ClientStep::OtherSecret,
                _ => ClientStep::Wait,
            };
        };
        let hellos: [&[u8]; 2] = [&self.hello, answer];
        if proof[0] == STATUS_WELCOME && self.secret.accepts("server", &hellos, &proof[1..]) {
            ClientStep::Done(Box::new(Keys::of(&self.secret, hellos)))
        } else {
            ClientStep::OtherSecret
        }
    }

    fn handle_hello(&mut self) -> ClientStep {
        let seen = self.input.len().min(MAGIC.len());
        if self.input[..seen] != MAGIC[..seen] {
            return ClientStep::UnknownProtocol;
        }
        let Some(answer) = take(&mut self.input, SERVER_HELLO_BYTES) else {
            return ClientStep::Wait;
        };
        match (version_of(&answer), answer[MAGIC.len() + 2]) {
            (Some(VERSION), STATUS_WELCOME) => {}
            (Some(VERSION), STATUS_BUSY) => return ClientStep::Busy,
            (Some(VERSION) | None, _) => return ClientStep::UnknownProtocol,
            (Some(theirs), STATUS_OTHER_VERSION) => return ClientStep::OtherVersion(theirs),
            // It is of another version and yet it goes on: it is not ours.
            (Some(_), _) => return ClientStep::UnknownProtocol,
        }
        let proof = self.secret.tag("client", &[&self.hello, &answer]);
        self.output.extend(proof);
        self.answer = Some(answer);
        // What followed the hello, if anything did.
        self.handle(&[])
    }
}
