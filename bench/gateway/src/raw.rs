//! The bound: a loop that only writes the same bytes to the same sockets.

use std::cell::RefCell;
use std::io::Write;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::rc::Rc;
use std::thread;
use std::time::{Duration, Instant};

use clap::Args;
use lagometer_client::Settings;
use lagometer_client::swarm::Swarm;
use lagometer_protocol::{FrameBuilder, MessagePack, update_body};

use crate::BenchError;
use crate::cli::Setup;
use crate::counters::Counters;
use crate::outcome::Outcome;
use crate::peer::{CONNECTIONS_A_TURN, Peer, Shared};
use crate::process::{Gateway, Usage};
use crate::receiving::receive;
use crate::states::{TYPE_URL, put_state};

/// What the loop writes, and to whom.
#[derive(Clone, Debug, Args)]
pub(crate) struct RawLoop {
    /// Where players connect.
    #[arg(long)]
    listen: SocketAddr,
    /// How many players come. Nothing is written before: who still waits for
    /// others to connect does not read.
    #[arg(long)]
    players: usize,
    /// Bytes of channel data in every write.
    #[arg(long)]
    window_bytes: usize,
    /// Microseconds between two writes to one player.
    #[arg(long)]
    interval_us: u64,
}

/// Writes to all who connect, once they have come, for ever.
///
/// # Errors
///
/// When it cannot listen.
pub(crate) fn serve(raw: &RawLoop) -> Result<(), BenchError> {
    let listener = TcpListener::bind(raw.listen)?;
    listener.set_nonblocking(true)?;
    let frame = frame(raw.window_bytes);
    let interval = Duration::from_micros(raw.interval_us.max(1));
    let mut players: Vec<TcpStream> = Vec::new();
    let mut all_came = false;
    let mut due = Instant::now();
    loop {
        while let Ok((player, _)) = listener.accept() {
            player.set_nonblocking(false)?;
            player.set_nodelay(true)?;
            players.push(player);
        }
        all_came |= players.len() >= raw.players;
        if all_came {
            players.retain_mut(|player| player.write_all(&frame).is_ok());
        }
        due += interval;
        thread::sleep(due.saturating_duration_since(Instant::now()));
    }
}

/// An update of about that many bytes, ready for the wire.
fn frame(window_bytes: usize) -> Vec<u8> {
    let mut data = Vec::new();
    let mut id = 1;
    while data.len() < window_bytes.clamp(1, 65_000) {
        put_state(&mut data, id, 1, 1);
        id += 1;
    }
    let body = update_body(TYPE_URL, &data);
    let mut builder = FrameBuilder::new();
    let pushed = builder.push(&MessagePack {
        msg_type: 8,
        body: &body,
        ..MessagePack::default()
    });
    debug_assert!(pushed.is_ok(), "smaller than a frame");
    builder.finish().map(<[u8]>::to_vec).unwrap_or_default()
}

/// Bytes that the loop delivers for each second of its processor time when it
/// writes what `outcome` says a gateway wrote.
///
/// # Errors
///
/// [`BenchError`].
pub(crate) fn bytes_per_cpu_s(setup: &Setup, outcome: &Outcome) -> Result<f64, BenchError> {
    let program = std::env::current_exe()?;
    let command = format!(
        "taskset -c {} {} raw-loop --listen {} --players {} --window-bytes {} --interval-us {}",
        setup.core,
        program.display(),
        setup.clients,
        outcome.players,
        outcome.window_bytes as usize,
        (1e6 / outcome.windows_per_s) as u64,
    );
    let running = Gateway::start(&command, &setup.logs.join("raw-loop.log"), setup.clients)?;
    let shared = Rc::new(Shared {
        counters: RefCell::new(Counters::default()),
        origin: Instant::now(),
    });
    let mut swarm = Swarm::new()?.with_turns_of(CONNECTIONS_A_TURN);
    for _ in 0..outcome.players {
        let player = Peer::player(Rc::clone(&shared), 0, false);
        swarm.connect(setup.clients, Settings::default(), player)?;
    }
    listen(&mut swarm, Duration::from_secs(1))?;
    let before = (Usage::of(running.pid()), swarm.traffic().received_bytes);
    listen(&mut swarm, Duration::from_secs(5))?;
    let cpu_s = Usage::of(running.pid()).cpu_s - before.0.cpu_s;
    let bytes = swarm.traffic().received_bytes - before.1;
    Ok(bytes as f64 / cpu_s)
}

/// Reads what comes, in the way in which a crowd does.
fn listen(swarm: &mut Swarm<Peer>, span: Duration) -> Result<(), BenchError> {
    let end = Instant::now() + span;
    loop {
        let now = Instant::now();
        if now >= end {
            return Ok(());
        }
        receive(swarm, CONNECTIONS_A_TURN, now, end)?;
    }
}
