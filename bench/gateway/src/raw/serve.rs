//! The loops themselves, in a process of their own, as gateways are.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::os::fd::OwnedFd;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use lagometer_protocol::messages::channeldpb::AuthResultMessage;
use lagometer_protocol::{FrameBuilder, MessagePack, update_body};
use prost::Message as _;
use rustix::buffer::spare_capacity;
use rustix::event::Timespec;
use rustix::event::epoll::{self, CreateFlags, EventData, EventFlags};
use rustix::io::Errno;
use rustix::net::{RecvFlags, recv};

use crate::BenchError;
use crate::states::{TYPE_URL, put_state};

/// How often a loop looks who has come until all have.
const LOOK: Duration = Duration::from_millis(5);

/// As much as is read at once, as the gateway does.
const READ_BYTES: usize = 128 << 10;

/// What a loop writes, and to whom.
#[derive(Clone, Debug, Args)]
pub(crate) struct RawLoop {
    /// Where players connect.
    #[arg(long)]
    listen: SocketAddr,
    /// How many connections come. Nothing is written before: who still waits for
    /// others to connect does not read.
    #[arg(long)]
    connections: usize,
    /// Bytes of channel data in every write.
    #[arg(long)]
    window_bytes: usize,
    /// Microseconds between two writes to one player.
    #[arg(long)]
    interval_us: u64,
    /// Also let all in and read what has come, once in so many microseconds. Who comes
    /// first is a game server, which gets no windows.
    #[arg(long)]
    gather_us: Option<u64>,
    /// The game server gets what the others send.
    #[arg(long, requires = "gather_us")]
    passes_on: bool,
}

/// Writes to all who connect, once they have come, for ever.
///
/// # Errors
///
/// When it cannot listen, or a connection that is read fails.
pub(crate) fn serve(raw: &RawLoop) -> Result<(), BenchError> {
    let mut players = all_who_come(raw)?;
    let mut reading = None;
    if let Some(gather_us) = raw.gather_us {
        // An answer, as to a login.
        let welcome = frame(&MessagePack {
            msg_type: 1,
            stub_id: 1,
            body: &AuthResultMessage::default().encode_to_vec(),
            ..MessagePack::default()
        });
        for player in &mut players {
            player.write_all(&welcome)?;
        }
        reading = Some(Reading::new(&players, gather_us, raw.passes_on)?);
        players.remove(0);
    }
    let window = window(raw.window_bytes);
    let interval = Duration::from_micros(raw.interval_us.max(1));
    let mut due = Instant::now();
    loop {
        let now = Instant::now();
        if now >= due {
            players.retain_mut(|player| player.write_all(&window).is_ok());
            due += interval;
        }
        let mut next = due;
        if let Some(reading) = &mut reading {
            reading.turn()?;
            next = next.min(now + reading.gather);
        }
        thread::sleep(next.saturating_duration_since(Instant::now()));
    }
}

/// Accepts until all are there. Who only looks whether somebody listens is gone by then.
fn all_who_come(raw: &RawLoop) -> Result<Vec<TcpStream>, BenchError> {
    let listener = TcpListener::bind(raw.listen)?;
    listener.set_nonblocking(true)?;
    let mut players = Vec::new();
    while players.len() < raw.connections {
        thread::sleep(LOOK);
        while let Ok((player, _)) = listener.accept() {
            player.set_nonblocking(false)?;
            player.set_nodelay(true)?;
            players.push(player);
        }
        let flags = RecvFlags::PEEK | RecvFlags::DONTWAIT;
        players.retain(|player| !matches!(recv(player, &mut [0], flags), Ok((_, 0))));
    }
    Ok(players)
}

/// What reads, edge-triggered and all at once, as the gateway does.
struct Reading {
    epoll: OwnedFd,
    sockets: Vec<TcpStream>,
    ready: Vec<epoll::Event>,
    buffer: Vec<u8>,
    /// What the first of them gets, if it gets what the others send.
    passed_on: Option<Vec<u8>>,
    gather: Duration,
}

impl Reading {
    fn new(all: &[TcpStream], gather_us: u64, passes_on: bool) -> io::Result<Self> {
        let sockets: Vec<TcpStream> = all
            .iter()
            .map(TcpStream::try_clone)
            .collect::<Result<_, _>>()?;
        let epoll = epoll::create(CreateFlags::CLOEXEC)?;
        for (number, socket) in sockets.iter().enumerate() {
            let name = EventData::new_u64(number as u64);
            epoll::add(&epoll, socket, name, EventFlags::IN | EventFlags::ET)?;
        }
        Ok(Self {
            epoll,
            ready: Vec::with_capacity(sockets.len()),
            sockets,
            buffer: vec![0; READ_BYTES],
            passed_on: passes_on.then(Vec::new),
            gather: Duration::from_micros(gather_us),
        })
    }

    /// Reads what has come, and passes it on in one write.
    fn turn(&mut self) -> io::Result<()> {
        self.ready.clear();
        epoll::wait(
            &self.epoll,
            spare_capacity(&mut self.ready),
            Some(&Timespec::default()),
        )?;
        for event in &self.ready {
            let number = event.data.u64() as usize;
            match recv(
                &self.sockets[number],
                &mut self.buffer[..],
                RecvFlags::DONTWAIT,
            ) {
                Ok((_, bytes)) => {
                    if let Some(passed_on) = &mut self.passed_on
                        && number > 0
                    {
                        passed_on.extend_from_slice(&self.buffer[..bytes]);
                    }
                }
                Err(Errno::AGAIN) => {}
                Err(error) => return Err(error.into()),
            }
        }
        if let Some(passed_on) = &mut self.passed_on
            && !passed_on.is_empty()
        {
            self.sockets[0].write_all(passed_on)?;
            passed_on.clear();
        }
        Ok(())
    }
}

/// An update of about that many bytes, ready for the wire.
fn window(window_bytes: usize) -> Vec<u8> {
    let mut data = Vec::new();
    let mut id = 1;
    while data.len() < window_bytes.clamp(1, 65_000) {
        put_state(&mut data, id, 1, 1);
        id += 1;
    }
    frame(&MessagePack {
        msg_type: 8,
        body: &update_body(TYPE_URL, &data),
        ..MessagePack::default()
    })
}

/// One message, ready for the wire.
fn frame(message: &MessagePack<'_>) -> Vec<u8> {
    let mut builder = FrameBuilder::new();
    let pushed = builder.push(message);
    debug_assert!(pushed.is_ok(), "smaller than a frame");
    builder.finish().map(<[u8]>::to_vec).unwrap_or_default()
}
