//! What carries one member's bytes.

use std::io::{ErrorKind, Read, Write};
use std::net::{TcpStream, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use lagometer_transport::kcp::{Prover, Stream, StreamProfile};
use lagometer_transport::{ByteStream as _, State};
use lagometer_units::Time;
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use super::{EndReason, Traffic};
use crate::event::Handler;
use crate::session::Session;
use crate::stream_transport::{WebSocketTransport, fill};

/// Reads from one connection before the others get their turn.
const READS_IN_A_ROW: usize = 8;

/// Datagrams of one conversation before the others get their turn.
const DATAGRAMS_IN_A_ROW: usize = 64;

/// A connection's socket, and what is spoken over it. It may be on its way
/// still if its socket does not wait.
#[derive(Debug)]
pub enum Wire {
    /// The frames as they are.
    Tcp(TcpStream),
    /// Frames in the messages of a WebSocket.
    WebSocket(TcpStream),
    /// Frames in a KCP conversation, over a socket that is connected.
    Kcp(UdpSocket, StreamProfile),
}

impl From<TcpStream> for Wire {
    fn from(stream: TcpStream) -> Self {
        Self::Tcp(stream)
    }
}

/// A wire at work.
#[derive(Debug)]
pub(super) enum StreamTransport {
    Tcp(TcpStream),
    WebSocket(Box<WebSocketTransport<TcpStream>>),
    Kcp(Box<Conversation>),
}

/// A KCP conversation over a socket of its own.
#[derive(Debug)]
pub(super) struct Conversation {
    socket: UdpSocket,
    stream: Stream,
    /// Shows the gateway that the client is where it says.
    prover: Prover,
    /// When it is to be woken, as the swarm has noted it.
    pub(super) noted: Option<Time>,
}

impl StreamTransport {
    /// Prepares a wire; `number` tells conversations of one address apart.
    pub(super) fn new(wire: Wire, number: u32, now: Time) -> Result<Self, EndReason> {
        let prepare = |stream: &TcpStream| {
            stream.set_nodelay(true)?;
            stream.set_nonblocking(true)
        };
        Ok(match wire {
            Wire::Tcp(stream) => {
                prepare(&stream)?;
                Self::Tcp(stream)
            }
            Wire::WebSocket(stream) => {
                prepare(&stream)?;
                Self::WebSocket(Box::new(WebSocketTransport::connect(stream, "gateway")?))
            }
            Wire::Kcp(socket, profile) => {
                socket.set_nonblocking(true)?;
                Self::Kcp(Box::new(Conversation {
                    socket,
                    stream: Stream::new(number, profile, now),
                    // channeld, whose peers speak like kcp-go, knows nothing of
                    // it: it must not be waited for.
                    prover: Prover::new(number, profile != StreamProfile::KcpGo, now),
                    noted: None,
                }))
            }
        })
    }

    /// The socket to watch; none once a handshake has failed.
    pub(super) fn socket(&self) -> Option<BorrowedFd<'_>> {
        match self {
            Self::Tcp(stream) => Some(stream.as_fd()),
            Self::WebSocket(transport) => transport.stream().map(AsFd::as_fd),
            Self::Kcp(conversation) => Some(conversation.socket.as_fd()),
        }
    }

    /// Hands what has arrived to the session, through `buffer`.
    pub(super) fn read(
        &mut self,
        now: Time,
        session: &mut Session,
        handler: &mut impl Handler,
        buffer: &mut [u8],
        traffic: &mut Traffic,
    ) -> Result<(), EndReason> {
        match self {
            Self::Tcp(stream) => read_tcp(stream, session, handler, buffer, traffic),
            Self::WebSocket(transport) => {
                // The library reads further than one message, so the system
                // would not report the others: all of them.
                loop {
                    traffic.reads += 1;
                    let mut received = Ok(());
                    let is_more = transport.read(|bytes| {
                        traffic.received_bytes += bytes.len() as u64;
                        received = session.receive(bytes, handler);
                    })?;
                    received?;
                    if !is_more {
                        return Ok(());
                    }
                }
            }
            Self::Kcp(conversation) => {
                conversation.take_datagrams(now, buffer, traffic)?;
                conversation.read(session, handler)
            }
        }
    }

    /// Writes what the session has to say. Whether all of it went.
    pub(super) fn write(
        &mut self,
        now: Time,
        session: &mut Session,
        traffic: &mut Traffic,
    ) -> Result<bool, EndReason> {
        match self {
            Self::Tcp(stream) => write_tcp(stream, session, traffic),
            Self::WebSocket(transport) => {
                let outbox = session.outbox();
                let before = outbox.pending().len();
                let all_went = transport.write(outbox)?;
                traffic.writes += 1;
                traffic.sent_bytes += (before - outbox.pending().len()) as u64;
                Ok(all_went)
            }
            Self::Kcp(conversation) => {
                if fill(&mut conversation.stream, now, session.outbox()) > 0 {
                    conversation.send(now, traffic);
                }
                // Room comes with datagrams and deadlines, not with the socket.
                Ok(true)
            }
        }
    }
}

impl Conversation {
    /// Sends what was written.
    fn send(&mut self, now: Time, traffic: &mut Traffic) {
        let Self {
            socket,
            stream,
            prover,
            ..
        } = self;
        let mut output = sender(socket, traffic);
        stream.send(now, &mut |bytes| prover.post(bytes, &mut output));
    }

    /// Does what is due.
    pub(super) fn tick(&mut self, now: Time, traffic: &mut Traffic) {
        let Self {
            socket,
            stream,
            prover,
            ..
        } = self;
        let mut output = sender(socket, traffic);
        prover.tick(now, &mut output);
        stream.tick(now, &mut |bytes| prover.post(bytes, &mut output));
    }

    /// When it is to be woken.
    pub(super) fn next_deadline(&mut self, now: Time) -> Option<Time> {
        let deadlines = [self.stream.next_deadline(now), self.prover.next_deadline()];
        deadlines.into_iter().flatten().min()
    }

    fn take_datagrams(
        &mut self,
        now: Time,
        buffer: &mut [u8],
        traffic: &mut Traffic,
    ) -> Result<(), EndReason> {
        for _ in 0..DATAGRAMS_IN_A_ROW {
            traffic.reads += 1;
            match self.socket.recv(buffer) {
                Ok(bytes) => {
                    traffic.received_bytes += bytes as u64;
                    let Self {
                        socket,
                        stream,
                        prover,
                        ..
                    } = self;
                    let mut output = sender(socket, traffic);
                    let datagram = &buffer[..bytes];
                    if !prover.input(datagram, &mut output) {
                        stream.input(now, datagram, &mut |bytes| {
                            prover.post(bytes, &mut output);
                        });
                    }
                }
                Err(error) => match error.kind() {
                    ErrorKind::WouldBlock => break,
                    ErrorKind::Interrupted => {}
                    _ => return Err(error.into()),
                },
            }
        }
        Ok(())
    }

    fn read(&mut self, session: &mut Session, handler: &mut impl Handler) -> Result<(), EndReason> {
        let mut received = Ok(());
        self.stream.read(&mut |bytes| {
            if received.is_ok() {
                received = session.receive(bytes, handler);
            }
        });
        received?;
        match self.stream.state() {
            State::Closed(_) => Err(EndReason::Silent),
            _ => Ok(()),
        }
    }
}

/// Sends datagrams. One that finds no room is lost like any other.
fn sender<'a>(socket: &'a UdpSocket, traffic: &'a mut Traffic) -> impl FnMut(&[u8]) + 'a {
    move |datagram| {
        traffic.writes += 1;
        if socket.send(datagram).is_ok() {
            traffic.sent_bytes += datagram.len() as u64;
        }
    }
}

/// Throws away what has arrived, without a copy of it. Returns how many bytes that
/// were.
pub(super) fn discard(
    stream: &TcpStream,
    buffer: &mut [u8],
    traffic: &mut Traffic,
) -> Result<u64, EndReason> {
    let mut discarded_bytes = 0;
    for _ in 0..READS_IN_A_ROW {
        traffic.reads += 1;
        match recv(stream, &mut *buffer, RecvFlags::TRUNC) {
            Ok((_, 0)) => return Err(EndReason::Closed),
            Ok((_, bytes)) => {
                discarded_bytes += bytes as u64;
                if bytes < buffer.len() {
                    break;
                }
            }
            Err(Errno::INTR) => {}
            Err(Errno::AGAIN) => break,
            Err(error) => return Err(EndReason::Io(error.into())),
        }
    }
    traffic.received_bytes += discarded_bytes;
    Ok(discarded_bytes)
}

fn read_tcp(
    stream: &mut TcpStream,
    session: &mut Session,
    handler: &mut impl Handler,
    buffer: &mut [u8],
    traffic: &mut Traffic,
) -> Result<(), EndReason> {
    for _ in 0..READS_IN_A_ROW {
        traffic.reads += 1;
        let bytes = match stream.read(buffer) {
            Ok(0) => return Err(EndReason::Closed),
            Ok(bytes) => bytes,
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return Ok(()),
                ErrorKind::Interrupted => continue,
                _ => return Err(error.into()),
            },
        };
        traffic.received_bytes += bytes as u64;
        session.receive(&buffer[..bytes], handler)?;
        if bytes < buffer.len() {
            return Ok(());
        }
    }
    Ok(())
}

fn write_tcp(
    stream: &mut TcpStream,
    session: &mut Session,
    traffic: &mut Traffic,
) -> Result<bool, EndReason> {
    let outbox = session.outbox();
    loop {
        let pending = outbox.pending();
        if pending.is_empty() {
            return Ok(true);
        }
        traffic.writes += 1;
        match stream.write(pending) {
            Ok(bytes) => {
                traffic.sent_bytes += bytes as u64;
                outbox.sent(bytes);
            }
            Err(error) => match error.kind() {
                ErrorKind::WouldBlock => return Ok(false),
                ErrorKind::Interrupted => {}
                _ => return Err(error.into()),
            },
        }
    }
}
