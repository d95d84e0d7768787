//! Floods: a few connections that send what a source makes, as fast as it is
//! taken, and come back when they are closed.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::attacker::{Attacker, Target, is_later, reset, rest};

/// Makes what one connection sends: appends the next piece each time.
pub(super) type Source = Box<dyn FnMut(&mut Vec<u8>) + Send>;

/// As much as is sent or read at once.
const AT_ONCE: usize = 256 << 10;

/// How long a connection that was refused is left alone.
const PAUSE: Duration = Duration::from_millis(20);

/// What state the connections of a flood are brought to before they send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConnectionState {
    /// Connected, not logged in.
    Connected,
    /// Logged in.
    LoggedIn,
    /// A `WebSocket` is open.
    WebSocket,
}

/// A flood.
#[derive(Clone, Copy)]
pub(super) struct Flood {
    /// The state from which it sends.
    pub(super) state: ConnectionState,
    /// How many connections.
    pub(super) connections: usize,
    /// Whether answers are read.
    pub(super) reads: bool,
    /// The most bytes of one write.
    pub(super) write_bytes: usize,
    /// What the `usize`th connection sends.
    pub(super) source: fn(&Target, usize) -> Source,
}

impl Flood {
    /// One connection that is not let in, reads answers, and writes as much as
    /// it can.
    pub(super) const fn of(source: fn(&Target, usize) -> Source) -> Self {
        Self {
            state: ConnectionState::Connected,
            connections: 1,
            reads: true,
            write_bytes: usize::MAX,
            source,
        }
    }

    /// The same, let in.
    pub(super) const fn logged_in(source: fn(&Target, usize) -> Source) -> Self {
        Self {
            state: ConnectionState::LoggedIn,
            ..Self::of(source)
        }
    }

    /// The same as a WebSocket that is not let in.
    pub(super) const fn websocket(source: fn(&Target, usize) -> Source) -> Self {
        Self {
            state: ConnectionState::WebSocket,
            ..Self::of(source)
        }
    }

    /// The same over so many connections.
    pub(super) const fn over(self, connections: usize) -> Self {
        Self {
            connections,
            ..self
        }
    }
}

/// A source that says the same again and again.
pub(super) fn again(piece: Vec<u8>) -> Source {
    Box::new(move |out| out.extend_from_slice(&piece))
}

/// A source that says one thing once and then another again and again.
pub(super) fn first_then(first: Vec<u8>, then: Vec<u8>) -> Source {
    let mut first = Some(first);
    Box::new(move |out| out.extend_from_slice(first.take().as_deref().unwrap_or(&then)))
}

/// A source that says different things in turn.
pub(super) fn in_turn(pieces: Vec<Vec<u8>>) -> Source {
    let mut turn = 0;
    Box::new(move |out| {
        out.extend_from_slice(&pieces[turn % pieces.len()]);
        turn += 1;
    })
}

/// One connection of a flood.
struct Line {
    number: usize,
    stream: Option<TcpStream>,
    /// Not tried again before.
    pause_until: Instant,
    source: Source,
    pending: Vec<u8>,
    sent: usize,
}

/// Floods until the attack is over. Who is closed comes back.
pub(super) fn run(attacker: &Attacker, flood: &Flood) {
    let mut buffer = vec![0; AT_ONCE];
    let mut lines: Vec<Line> = (0..flood.connections)
        .map(|number| Line {
            number,
            stream: None,
            pause_until: Instant::now(),
            source: (flood.source)(&attacker.target, number),
            pending: Vec::new(),
            sent: 0,
        })
        .collect();
    while attacker.goes_on() {
        let mut moved = false;
        for line in &mut lines {
            moved |= line.go(attacker, flood, &mut buffer);
        }
        if !moved {
            rest();
        }
    }
    for stream in lines.into_iter().filter_map(|line| line.stream) {
        reset(stream);
    }
}

impl Line {
    /// Sends and reads once. Whether anything moved.
    fn go(&mut self, attacker: &Attacker, flood: &Flood, buffer: &mut [u8]) -> bool {
        if self.stream.is_none() && !self.open(attacker, flood) {
            return false;
        }
        let Some(mut stream) = self.stream.take() else {
            return false;
        };
        let wrote = self.write(attacker, flood, &mut stream);
        let read = if flood.reads {
            read(attacker, &mut stream, buffer)
        } else {
            Ok(false)
        };
        if let (Ok(wrote), Ok(read)) = (wrote, read) {
            self.stream = Some(stream);
            wrote || read
        } else {
            // It was closed, as it may have deserved.
            reset(stream);
            true
        }
    }

    fn open(&mut self, attacker: &Attacker, flood: &Flood) -> bool {
        if Instant::now() < self.pause_until {
            return false;
        }
        let opened = match flood.state {
            ConnectionState::Connected => {
                attacker.connect(self.number, attacker.target.endpoints.tcp)
            }
            ConnectionState::LoggedIn => attacker.log_in(self.number),
            ConnectionState::WebSocket => attacker.open_websocket(self.number),
        };
        let opened = opened.filter(|stream| stream.set_nonblocking(true).is_ok());
        if opened.is_none() {
            self.pause_until = Instant::now() + PAUSE;
            return false;
        }
        // Whoever comes back begins again.
        self.source = (flood.source)(&attacker.target, self.number);
        self.pending.clear();
        self.sent = 0;
        self.stream = opened;
        true
    }

    fn write(
        &mut self,
        attacker: &Attacker,
        flood: &Flood,
        stream: &mut TcpStream,
    ) -> io::Result<bool> {
        if self.sent == self.pending.len() {
            self.pending.clear();
            self.sent = 0;
            (self.source)(&mut self.pending);
        }
        let piece = &self.pending[self.sent..];
        let piece = &piece[..piece.len().min(flood.write_bytes).min(AT_ONCE)];
        if piece.is_empty() {
            return Ok(false);
        }
        match stream.write(piece) {
            Ok(bytes) => {
                attacker.sent(bytes);
                self.sent += bytes;
                Ok(bytes > 0)
            }
            Err(error) if is_later(&error) => Ok(false),
            Err(error) => Err(error),
        }
    }
}

fn read(attacker: &Attacker, stream: &mut TcpStream, buffer: &mut [u8]) -> io::Result<bool> {
    match stream.read(buffer) {
        Ok(0) => Err(io::ErrorKind::ConnectionReset.into()),
        Ok(bytes) => {
            attacker.received(bytes);
            Ok(true)
        }
        Err(error) if is_later(&error) => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(source: &mut Source, times: usize) -> Vec<u8> {
        let mut out = Vec::new();
        for _ in 0..times {
            source(&mut out);
        }
        out
    }

    #[test]
    fn sources_say_what_they_are_to_say_in_order() {
        assert_eq!(said(&mut again(vec![1, 2]), 2), [1, 2, 1, 2]);
        assert_eq!(said(&mut first_then(vec![9], vec![1]), 3), [9, 1, 1]);
        let mut turns = in_turn(vec![vec![1], vec![2, 3]]);
        assert_eq!(said(&mut turns, 3), [1, 2, 3, 1]);
    }
}
