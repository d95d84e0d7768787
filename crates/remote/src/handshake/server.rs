//! The remote end's part of the first words.

use super::{
    CLIENT_HELLO_BYTES, Keys, MAGIC, Nonce, STATUS_BUSY, STATUS_OTHER_SECRET, STATUS_OTHER_VERSION,
    STATUS_WELCOME, take, version_of,
};
use crate::message::VERSION;
use crate::tag::{Key, TAG_BYTES};

/// The remote end's part, from the local end's hello to its own proof.
#[derive(Debug)]
pub(crate) struct ServerHandshake {
    secret: Key,
    nonce: Nonce,
    has_room: bool,
    /// Both hellos, once they are said.
    hellos: Option<[Vec<u8>; 2]>,
    input: Vec<u8>,
    output: Vec<u8>,
    over: bool,
}

/// Where the remote end's part has got to.
#[derive(Debug)]
pub(crate) enum ServerStep {
    /// More must arrive.
    Wait,
    /// Both ends have proved themselves.
    Done(Box<Keys>),
    /// Whoever is there speaks another protocol: not a word to them.
    UnknownProtocol,
    /// Whoever is there speaks this version, and is notified.
    OtherVersion(u16),
    /// Whoever is there does not know the secret, and is notified.
    OtherSecret,
    /// There is no room for one more, and they are notified.
    Busy,
}

impl ServerHandshake {
    /// A new control connection; `nonce` must be one nobody can foresee. Without
    /// room whoever comes is notified that the remote end is busy.
    pub(crate) fn new(secret: Key, nonce: Nonce, has_room: bool) -> Self {
        Self {
            secret,
            nonce,
            has_room,
            hellos: None,
            input: Vec::new(),
            output: Vec::new(),
            over: false,
        }
    }

    /// Bytes to send now.
    pub(crate) fn output(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.output)
    }

    /// Bytes that came after the local end's proof: the first frames.
    pub(crate) fn into_rest(self) -> Vec<u8> {
        self.input
    }

    /// Takes what has arrived. Once it has answered other than
    /// [`ServerStep::Wait`], everything more is from an unauthenticated peer.
    pub(crate) fn handle(&mut self, bytes: &[u8]) -> ServerStep {
        if self.over {
            return ServerStep::UnknownProtocol;
        }
        self.input.extend_from_slice(bytes);
        let step = match &self.hellos {
            None => self.handle_hello(),
            Some(_) => self.handle_proof(),
        };
        self.over = !matches!(step, ServerStep::Wait);
        step
    }

    fn handle_hello(&mut self) -> ServerStep {
        let seen = self.input.len().min(MAGIC.len());
        if self.input[..seen] != MAGIC[..seen] {
            return ServerStep::UnknownProtocol;
        }
        let Some(hello) = take(&mut self.input, CLIENT_HELLO_BYTES) else {
            return ServerStep::Wait;
        };
        let (status, step) = match version_of(&hello) {
            Some(VERSION) if self.has_room => (STATUS_WELCOME, ServerStep::Wait),
            Some(VERSION) => (STATUS_BUSY, ServerStep::Busy),
            Some(theirs) => (STATUS_OTHER_VERSION, ServerStep::OtherVersion(theirs)),
            None => return ServerStep::UnknownProtocol,
        };
        let mut answer = MAGIC.to_vec();
        answer.extend(VERSION.to_be_bytes());
        answer.push(status);
        answer.extend(self.nonce);
        self.output.extend(&answer);
        if !matches!(step, ServerStep::Wait) {
            return step;
        }
        self.hellos = Some([hello, answer]);
        self.handle_proof()
    }

    fn handle_proof(&mut self) -> ServerStep {
        let (Some([hello, answer]), Some(proof)) = (&self.hellos, take(&mut self.input, TAG_BYTES))
        else {
            return ServerStep::Wait;
        };
        let hellos: [&[u8]; 2] = [hello, answer];
        if !self.secret.accepts("client", &hellos, &proof) {
            self.output.push(STATUS_OTHER_SECRET);
            return ServerStep::OtherSecret;
        }
        self.output.push(STATUS_WELCOME);
        self.output.extend(self.secret.tag("server", &hellos));
        ServerStep::Done(Box::new(Keys::of(&self.secret, hellos)))
    }
}
