//! `lagometer gateway replay`: recorded sessions played to a gateway again.
//!
//! Each file is a connection of its own and a thread of its own. It logs in, sends
//! what was sent when it was sent, and counts what comes back.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use lagometer_client::recording::Recording;
use lagometer_protocol::messages::channeldpb::{AuthMessage, AuthResultMessage, MessageType};
use lagometer_protocol::{FrameBuilder, FrameDecoder, FrameLimits, MessagePack, Packet};
use lagometer_units::{Size, read_file};
use prost::Message as _;

use crate::cli::ReplayArguments;
use crate::failure::Failure;
use crate::output::print;

/// The largest file that is read.
const FILE_BYTES: Size = Size(256 << 20);

/// The most sessions at once: each has a thread.
const SESSIONS: usize = 1024;

/// How long connecting, logging in or writing may take.
const ANSWER_AT_MOST: Duration = Duration::from_secs(10);

/// The longest that one reading waits while there is something else to do.
const TURN: Duration = Duration::from_secs(1);

/// The shortest wait that the system takes for one.
const LEAST_WAIT: Duration = Duration::from_micros(1);

/// What went to and fro in a session.
#[derive(Debug, Default)]
struct Traffic {
    sent: Count,
    received: Count,
    /// The messages that came, by type.
    by_type: BTreeMap<u32, u64>,
    took: Duration,
    /// The gateway hung up before all was sent.
    cut_short: bool,
}

#[derive(Clone, Copy, Debug, Default)]
struct Count {
    packets: u64,
    messages: u64,
    bytes: u64,
}

/// Plays all files, and reports what each came to.
pub(super) fn replay(arguments: &ReplayArguments) -> Result<ExitCode, Failure> {
    if arguments.files.len() > SESSIONS {
        return Err(Failure::Input(format!(
            "{} files: at most {SESSIONS} sessions are played at once",
            arguments.files.len()
        )));
    }
    // All are read before the first is played: a bad one is reported at once.
    let files = arguments.files.iter();
    let recordings = files
        .map(|path| read(path))
        .collect::<Result<Vec<_>, _>>()?;
    let played: Vec<Result<Traffic, Failure>> = std::thread::scope(|scope| {
        let threads: Vec<_> = recordings
            .iter()
            .map(|recording| scope.spawn(|| play(recording, arguments)))
            .collect();
        let ended = threads.into_iter().map(std::thread::ScopedJoinHandle::join);
        ended
            .map(|ended| {
                ended.unwrap_or_else(|_| Err(Failure::Environment("a session panicked".into())))
            })
            .collect()
    });
    let mut cut_short = false;
    for (path, traffic) in arguments.files.iter().zip(played) {
        let traffic = traffic?;
        cut_short |= traffic.cut_short;
        print(&line(path, &traffic))?;
    }
    if cut_short {
        return Err(Failure::Environment(
            "the gateway hung up before all was sent; its log says why".into(),
        ));
    }
    Ok(ExitCode::SUCCESS)
}

fn read(path: &Path) -> Result<Recording, Failure> {
    let failed = |why| Failure::Read {
        path: path.to_owned(),
        why,
    };
    let content = read_file(path, FILE_BYTES).map_err(failed)?;
    Recording::parse(&content).map_err(|why| Failure::Input(format!("{}: {why}", path.display())))
}

fn play(recording: &Recording, arguments: &ReplayArguments) -> Result<Traffic, Failure> {
    let failed = |why: io::Error| Failure::Environment(format!("{}: {why}", arguments.to));
    let mut session = Session::connect(&arguments.to).map_err(failed)?;
    let player = arguments.player.as_deref().or(recording.player());
    let login = AuthMessage {
        player_identifier_token: player.unwrap_or("replay").to_owned(),
        login_token: arguments.login_token.clone(),
    };
    let conn_id = session.log_in(&login)?;
    session.traffic = Traffic::default();
    let start = Instant::now();
    let speed = (!arguments.as_fast_as_possible).then_some(arguments.speed);
    for packet in recording.packets() {
        let due = speed.map_or(start, |speed| start + packet.at.div_f64(speed));
        let is_open = session.receive_until(due).map_err(failed)?;
        let mut messages = FrameBuilder::new();
        let built = packet.each_as(conn_id, |message| messages.push(message).map(drop));
        // What no frame holds was never sent in one.
        built.map_err(|why| Failure::Input(why.to_string()))?;
        if !is_open || session.send(messages).is_err() {
            session.traffic.cut_short = true;
            break;
        }
    }
    let linger = arguments.linger.duration();
    session.receive_until_quiet(linger).map_err(failed)?;
    session.traffic.took = start.elapsed();
    Ok(session.traffic)
}

/// One connection.
struct Session {
    stream: TcpStream,
    decoder: FrameDecoder,
    traffic: Traffic,
    /// Answers to the login, newest last.
    logins: Vec<AuthResultMessage>,
    buffer: Vec<u8>,
}

impl Session {
    fn connect(to: &str) -> io::Result<Self> {
        let mut last = io::Error::new(ErrorKind::InvalidInput, "no address to connect to");
        for address in std::net::ToSocketAddrs::to_socket_addrs(to)? {
            match TcpStream::connect_timeout(&address, ANSWER_AT_MOST) {
                Ok(stream) => {
                    stream.set_nodelay(true)?;
                    stream.set_write_timeout(Some(ANSWER_AT_MOST))?;
                    return Ok(Self {
                        stream,
                        decoder: FrameDecoder::new(FrameLimits::default()),
                        traffic: Traffic::default(),
                        logins: Vec::new(),
                        buffer: vec![0; 64 << 10],
                    });
                }
                Err(why) => last = why,
            }
        }
        Err(last)
    }

    fn log_in(&mut self, login: &AuthMessage) -> Result<u32, Failure> {
        let failed = |why: io::Error| Failure::Environment(format!("the login: {why}"));
        let mut builder = FrameBuilder::new();
        let body = login.encode_to_vec();
        let message = MessagePack {
            msg_type: MessageType::Auth as u32,
            stub_id: 1,
            body: &body,
            ..MessagePack::default()
        };
        builder
            .push(&message)
            .map_err(|why| Failure::Input(format!("the login: {why}")))?;
        self.send(builder).map_err(failed)?;
        let give_up = Instant::now() + ANSWER_AT_MOST;
        while self.logins.is_empty() {
            if !self.receive(give_up).map_err(failed)? || Instant::now() >= give_up {
                return Err(Failure::Environment(
                    "the gateway does not answer the login".into(),
                ));
            }
        }
        match self.logins.last() {
            Some(answer) if answer.result == 0 => Ok(answer.conn_id),
            _ => Err(Failure::Environment(format!(
                "the gateway refuses the login of `{}`; name another with --player, or its \
                 --login-token",
                login.player_identifier_token
            ))),
        }
    }

    /// Sends a frame; none if there is nothing in it.
    fn send(&mut self, mut messages: FrameBuilder) -> io::Result<()> {
        let Some(frame) = messages.finish() else {
            return Ok(());
        };
        self.stream.write_all(frame)?;
        let mut rest = frame;
        let mut own = FrameDecoder::new(FrameLimits::default());
        if let Ok(Some(frame)) = own.next(&mut rest)
            && let Ok(packet) = frame.packet_bytes(FRAME_BYTES, &mut Vec::new())
        {
            self.traffic.sent.messages += Packet::read(packet).count() as u64;
        }
        self.traffic.sent.packets += 1;
        self.traffic.sent.bytes += frame.len() as u64;
        Ok(())
    }

    /// Takes what comes until then. Returns whether the connection is open.
    fn receive_until(&mut self, then: Instant) -> io::Result<bool> {
        while Instant::now() < then {
            if !self.receive(then)? {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Takes what comes until nothing has for so long.
    fn receive_until_quiet(&mut self, linger: Duration) -> io::Result<()> {
        loop {
            let before = self.traffic.received.bytes;
            let is_open = self.receive_until(Instant::now() + linger)?;
            if !is_open || self.traffic.received.bytes == before {
                return Ok(());
            }
        }
    }

    /// Reads once, waiting no longer than until then. Returns whether the
    /// connection is open.
    fn receive(&mut self, then: Instant) -> io::Result<bool> {
        let wait = then.saturating_duration_since(Instant::now()).min(TURN);
        self.stream.set_read_timeout(Some(wait.max(LEAST_WAIT)))?;
        let bytes = match self.stream.read(&mut self.buffer) {
            Ok(0) => return Ok(false),
            Ok(bytes) => bytes,
            Err(why) => {
                return match why.kind() {
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted => {
                        Ok(true)
                    }
                    ErrorKind::ConnectionReset => Ok(false),
                    _ => Err(why),
                };
            }
        };
        self.traffic.received.bytes += bytes as u64;
        let mut rest = &self.buffer[..bytes];
        let mut scratch = Vec::new();
        while let Some(frame) = self.decoder.next(&mut rest).map_err(strange)? {
            self.traffic.received.packets += 1;
            let packet = frame.packet_bytes(FRAME_BYTES, &mut scratch);
            let packet = packet.map_err(strange)?;
            for message in Packet::read(packet).map_while(Result::ok) {
                self.traffic.received.messages += 1;
                *self.traffic.by_type.entry(message.msg_type).or_default() += 1;
                if message.msg_type == MessageType::Auth as u32
                    && let Ok(answer) = AuthResultMessage::decode(message.body)
                {
                    self.logins.push(answer);
                }
            }
        }
        Ok(true)
    }
}

fn strange<E>(_: E) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, "what comes is no gateway's")
}

/// The most that a frame may unpack to.
const FRAME_BYTES: usize = 1 << 20;

fn line(path: &Path, traffic: &Traffic) -> String {
    let count = |of: Count| {
        format!(
            "{} packets, {} messages, {} bytes",
            of.packets, of.messages, of.bytes
        )
    };
    let mut line = format!(
        "{}: sent {}; received {}; in {:.1} s",
        path.display(),
        count(traffic.sent),
        count(traffic.received),
        traffic.took.as_secs_f64()
    );
    for (at, (&msg_type, messages)) in traffic.by_type.iter().enumerate() {
        let name = i32::try_from(msg_type)
            .ok()
            .and_then(|number| MessageType::try_from(number).ok())
            .map_or_else(
                || msg_type.to_string(),
                |known| known.as_str_name().to_owned(),
            );
        let before = if at == 0 { "; of type" } else { "," };
        let _ = write!(line, "{before} {name} {messages}");
    }
    line.push('\n');
    line
}
