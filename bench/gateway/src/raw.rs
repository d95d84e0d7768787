//! The bounds: a loop that only writes the same bytes to the same sockets, and one that
//! also reads what the gateway reads.

mod serve;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use lagometer_client::Settings;
use lagometer_client::swarm::Swarm;

use crate::BenchError;
use crate::cli::Setup;
use crate::counters::Counters;
use crate::crowd::{self, Mode, Plan};
use crate::outcome::Outcome;
use crate::peer::{CONNECTIONS_A_TURN, Peer, Shared};
use crate::process::{Gateway, Usage};
use crate::receiving::receive;

pub(crate) use serve::{RawLoop, serve};

/// Once in so many microseconds a loop reads, which is this gateway's `gather`.
const GATHER_US: u64 = 4_000;

/// Bytes delivered for each second of processor time by the two loops.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    /// By the one that only writes.
    pub(crate) writing: f64,
    /// By the one that also reads what players and server send, and passes on to the
    /// server what players send it.
    pub(crate) reading: f64,
}

/// What the loops deliver when they write what `outcome` says a gateway wrote to the
/// players of `plan`.
///
/// # Errors
///
/// [`BenchError`].
pub(crate) fn bounds(setup: &Setup, plan: &Plan, outcome: &Outcome) -> Result<Bounds, BenchError> {
    Ok(Bounds {
        writing: only_writing(setup, outcome)?,
        reading: reading_too(setup, plan, outcome)?,
    })
}

/// A loop's process for so many connections.
fn start(
    setup: &Setup,
    outcome: &Outcome,
    connections: usize,
    more: &str,
) -> Result<Gateway, BenchError> {
    let program = std::env::current_exe()?;
    let command = format!(
        "taskset -c {} {} raw-loop --listen {} --connections {connections} --window-bytes {} --interval-us {}{more}",
        setup.core,
        program.display(),
        setup.clients,
        outcome.window_bytes as usize,
        (1e6 / outcome.windows_per_s) as u64,
    );
    Gateway::start(&command, &setup.logs.join("raw-loop.log"), setup.clients)
}

fn only_writing(setup: &Setup, outcome: &Outcome) -> Result<f64, BenchError> {
    let running = start(setup, outcome, outcome.players, "")?;
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

fn reading_too(setup: &Setup, plan: &Plan, outcome: &Outcome) -> Result<f64, BenchError> {
    let mut more = format!(" --gather-us {GATHER_US}");
    if plan.mode == Mode::Server {
        more.push_str(" --passes-on");
    }
    let running = start(setup, outcome, plan.players + 1, &more)?;
    Ok(crowd::run_on_loop(plan, running.pid())?.bytes_per_cpu_s)
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
