//! People who come, log in and go again as fast as they can, beside one who
//! stays and must not suffer for it.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use clap::Args;
use lagometer_protocol::messages::channeldpb::{AuthMessage, MessageType};
use lagometer_protocol::{FrameBuilder, MessagePack};
use prost::Message;
use rustix::net::sockopt::set_socket_linger;
use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::cli::Setup;
use crate::counters::{Spread, microseconds};
use crate::process::{Gateway, Usage};

/// How long an answer may take.
const SOON: Duration = Duration::from_secs(10);

/// How many come and go.
#[derive(Clone, Debug, Args)]
pub(crate) struct Crush {
    /// How many in all.
    #[arg(long, default_value_t = 50_000)]
    peers: u64,
    /// How many are there at once.
    #[arg(long, default_value_t = 64)]
    at_once: u64,
}

/// What one run came to.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Seen {
    /// How many came, were let in, and went.
    pub(crate) peers: u64,
    /// How many of them in a second.
    pub(crate) per_s: f64,
    /// Milliseconds until who stayed had an answer.
    pub(crate) answer_ms: Spread,
    /// The gateway's share of a core, percent.
    pub(crate) gateway_cpu_pct: f64,
    /// Its resident memory after a tenth of them, megabytes.
    pub(crate) early_rss_mb: f64,
    /// Its resident memory at the end, megabytes.
    pub(crate) gateway_rss_mb: f64,
}

/// Starts the gateway and lets people come and go.
///
/// # Errors
///
/// [`BenchError`]; also when one of them is not let in.
pub(crate) fn run(setup: &Setup, gateway: &str, crush: &Crush) -> Result<Seen, BenchError> {
    let command = format!("taskset -c {} {gateway}", setup.core);
    let running = Gateway::start(&command, &setup.logs.join("gateway.log"), setup.servers)?;
    let login = frame(MessageType::Auth, &AuthMessage::default().encode_to_vec())?;
    let question = frame(MessageType::ListChannel, &[])?;
    let mut who_stays = come(setup.clients, &login)?;
    receive(&mut who_stays)?;

    let mut answers_us = microseconds();
    let before = Usage::of(running.pid());
    let mut early_rss_mb = 0.0;
    let begun = Instant::now();
    let mut gone = 0;
    while gone < crush.peers {
        let peers: Vec<TcpStream> = (0..crush.at_once.min(crush.peers - gone))
            .map(|_| come(setup.clients, &login))
            .collect::<Result<_, _>>()?;
        let asked = Instant::now();
        who_stays.write_all(&question)?;
        gone += peers.len() as u64;
        for mut one in peers {
            receive(&mut one)?;
            // Without a farewell, so that the system forgets it at once.
            set_socket_linger(&one, Some(Duration::ZERO)).map_err(std::io::Error::from)?;
        }
        receive(&mut who_stays)?;
        answers_us.saturating_record(asked.elapsed().as_micros() as u64);
        if gone >= crush.peers / 10 && early_rss_mb == 0.0 {
            early_rss_mb = Usage::of(running.pid()).rss_mb;
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    let after = Usage::of(running.pid());
    Ok(Seen {
        peers: gone,
        per_s: gone as f64 / seconds,
        answer_ms: Spread::from(&answers_us),
        gateway_cpu_pct: 100.0 * (after.cpu_s - before.cpu_s) / seconds,
        early_rss_mb,
        gateway_rss_mb: after.rss_mb,
    })
}

/// Connects and asks to be let in.
fn come(gateway: SocketAddr, login: &[u8]) -> Result<TcpStream, BenchError> {
    let mut stream = TcpStream::connect(gateway)?;
    stream.set_nodelay(true)?;
    stream.set_read_timeout(Some(SOON))?;
    stream.write_all(login)?;
    Ok(stream)
}

/// Waits for an answer, which is short enough to come whole.
fn receive(stream: &mut TcpStream) -> Result<(), BenchError> {
    match stream.read(&mut [0; 1024])? {
        0 => Err(BenchError::TooSlow("an answer: the gateway has hung up")),
        _ => Ok(()),
    }
}

fn frame(msg_type: MessageType, body: &[u8]) -> Result<Vec<u8>, BenchError> {
    let mut builder = FrameBuilder::new();
    let pushed = builder.push(&MessagePack {
        stub_id: 1,
        msg_type: msg_type as u32,
        body,
        ..MessagePack::default()
    });
    pushed.map_err(std::io::Error::other)?;
    let frame = builder.finish().map(<[u8]>::to_vec);
    Ok(frame.unwrap_or_default())
}
