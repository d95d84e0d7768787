//! One connection: a request that comes in pieces, and its answer.

use std::io::{self, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use crate::Answer;

/// The longest request that is read.
const REQUEST_BYTES: usize = 8 << 10;

/// How long a request may take to arrive, and the answer to be taken.
const TIME_LIMIT: Duration = Duration::from_secs(5);

/// Whether a connection goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Progress {
    /// It waits for its peer.
    Goes,
    /// It is over, one way or the other.
    Over,
}

/// A connection that is never waited for.
#[derive(Debug)]
pub(crate) struct Connection {
    stream: TcpStream,
    state: State,
    /// When it is over in any case; from the first reading or writing on.
    give_up_at: Option<Instant>,
}

#[derive(Debug)]
enum State {
    Request(Vec<u8>),
    Answer { bytes: Vec<u8>, written: usize },
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> io::Result<Self> {
        stream.set_nonblocking(true)?;
        Ok(Self {
            stream,
            state: State::Request(Vec::new()),
            give_up_at: None,
        })
    }

    pub(crate) fn stream(&self) -> &TcpStream {
        &self.stream
    }

    pub(crate) fn is_answering(&self) -> bool {
        matches!(self.state, State::Answer { .. })
    }

    /// When it is over, whatever its peer does.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.give_up_at
    }

    /// Reads and writes as far as that goes without waiting; `answer` is given
    /// the request's first line.
    pub(crate) fn advance(
        &mut self,
        now: Instant,
        answer: impl FnOnce(&str) -> Answer,
    ) -> Progress {
        if *self.give_up_at.get_or_insert(now + TIME_LIMIT) <= now {
            return Progress::Over;
        }
        match self.try_advance(now, answer) {
            Ok(progress) => progress,
            Err(error) if error.kind() == ErrorKind::WouldBlock => Progress::Goes,
            // Whoever goes before the answer does not want it.
            Err(_) => Progress::Over,
        }
    }

    fn try_advance(
        &mut self,
        now: Instant,
        answer: impl FnOnce(&str) -> Answer,
    ) -> io::Result<Progress> {
        if let State::Request(request) = &mut self.state {
            if !read_request(&mut self.stream, request)? {
                return Ok(Progress::Over);
            }
            let line = request.split(|&byte| byte == b'\r').next();
            let line = line.unwrap_or_default();
            let answer = answer(&String::from_utf8_lossy(line));
            self.state = State::Answer {
                bytes: encode(&answer, line.starts_with(b"HEAD ")),
                written: 0,
            };
            self.give_up_at = Some(now + TIME_LIMIT);
        }
        if let State::Answer { bytes, written } = &mut self.state {
            while *written < bytes.len() {
                match self.stream.write(&bytes[*written..])? {
                    0 => return Ok(Progress::Over),
                    some => *written += some,
                }
            }
            self.stream.shutdown(Shutdown::Write)?;
        }
        Ok(Progress::Over)
    }
}

/// Reads until a request is whole. Returns whether it will ever be one.
fn read_request(stream: &mut TcpStream, request: &mut Vec<u8>) -> io::Result<bool> {
    let mut buffer = [0; 1024];
    loop {
        if request.windows(4).any(|end| end == b"\r\n\r\n") {
            return Ok(true);
        }
        if request.len() > REQUEST_BYTES {
            return Ok(false);
        }
        match stream.read(&mut buffer)? {
            0 => return Ok(false),
            bytes => request.extend_from_slice(&buffer[..bytes]),
        }
    }
}

fn encode(answer: &Answer, head_only: bool) -> Vec<u8> {
    let mut bytes = format!(
        "HTTP/1.1 {}\r\ncontent-type: {}\r\ncontent-length: {}\r\nconnection: close\r\n\r\n",
        answer.status,
        answer.content_type,
        answer.body.len()
    )
    .into_bytes();
    if !head_only {
        bytes.extend_from_slice(&answer.body);
    }
    bytes
}
