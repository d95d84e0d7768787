//! Players who behave, beside one who does not: what each abuse costs those who
//! behave.
//!
//! For each abuse a gateway is started and a game server and players play on it,
//! first by themselves, then while an attacker plays the abuse, at the rate the
//! machine gives, and then by themselves again until the gateway's memory is back
//! or the time for that is over. While the attack lasts, newcomers log in and
//! somebody asks for the health. [`row`] says what the goal is.

mod attacker;
mod bystanders;
mod catalogue;
mod datagrams;
mod deployment;
mod flood;
mod latency;
mod payloads;
mod players;
mod provider;
pub(crate) mod row;
mod source;
mod storms;
mod web;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use clap::Args;
use lagometer_units::Span;

use crate::BenchError;
use crate::compare::{Record, Run, What};
use crate::process::{Gateway, Usage, raise_file_limit};
use attacker::Running;
use bystanders::Bystanders;
use catalogue::Abuse;
use deployment::{Endpoints, Files};
use players::{Load, Players};
use provider::Provider;
use row::{Memory, Row};

/// Traffic before anything counts.
const WARM_UP: Duration = Duration::from_secs(1);

/// From one look at the memory to the next, after the attack.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// The least that is played after the attack.
const AFTER_AT_LEAST: Duration = Duration::from_secs(1);

/// What is played against whom.
#[derive(Clone, Debug, Args)]
pub(crate) struct Plan {
    /// A gateway's program, with a name for the table: NAME=PROGRAM or PROGRAM,
    /// several for several. Left out: `lagometer` beside this program.
    #[arg(long = "gateway", value_name = "[NAME=]PROGRAM")]
    gateways: Vec<String>,
    /// Only these abuses.
    #[arg(long, value_delimiter = ',', value_name = "NAME")]
    only: Vec<String>,
    /// Say which abuses there are and what each does, and end.
    #[arg(long)]
    list: bool,
    /// Players.
    #[arg(long, default_value_t = 200)]
    players: usize,
    /// Rooms they are spread over.
    #[arg(long, default_value_t = 10)]
    rooms: usize,
    /// Updates of each state, and messages of each player, a second.
    #[arg(long, default_value_t = 30)]
    rate: u32,
    /// Milliseconds between two windows.
    #[arg(long, default_value_t = 20)]
    fan_out_ms: u32,
    /// How long the players play by themselves first.
    #[arg(long, default_value = "5s")]
    quiet: Span,
    /// How long the attack lasts.
    #[arg(long = "for", default_value = "10s")]
    attack: Span,
    /// How long after it the memory may take to be back; it ends as soon as it is.
    #[arg(long, default_value = "60s")]
    after: Span,
    /// The core that gateways are pinned to; left out, all.
    #[arg(long)]
    core: Option<usize>,
    /// How often everything is done, gateways alternating.
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Append each row to this file, a line of JSON each.
    #[arg(long)]
    json: Option<PathBuf>,
    /// Where the gateways' output and settings go.
    #[arg(long, default_value = "target")]
    logs: PathBuf,
}

/// Plays the abuses against each gateway.
///
/// # Errors
///
/// [`BenchError`]; a gateway that an attack ends is none.
pub(crate) fn run(plan: &Plan) -> Result<Vec<Run>, BenchError> {
    if plan.list {
        for abuse in catalogue::all() {
            println!("{:22} {}", abuse.name, abuse.does);
        }
        return Ok(Vec::new());
    }
    let abuses = plan.abuses()?;
    let gateways = plan.gateways()?;
    raise_file_limit()?;
    let mut record = Record::open(&plan.logs, plan.json.as_deref())?;
    for _ in 0..plan.repeat {
        for abuse in &abuses {
            for (name, program) in &gateways {
                let row = play(plan, name, program, abuse)?;
                record.add(Run {
                    gateway: name.clone(),
                    what: What::Abuse(Box::new(row)),
                })?;
            }
        }
    }
    Ok(record.runs)
}

impl Plan {
    fn abuses(&self) -> Result<Vec<&'static Abuse>, BenchError> {
        if self.only.is_empty() {
            return Ok(catalogue::all().collect());
        }
        let named = |name: &String| {
            catalogue::all()
                .find(|abuse| abuse.name == name)
                .ok_or_else(|| BenchError::UnknownAbuse(name.clone()))
        };
        self.only.iter().map(named).collect()
    }

    /// Names and programs.
    fn gateways(&self) -> Result<Vec<(String, String)>, BenchError> {
        if self.gateways.is_empty() {
            let beside = std::env::current_exe()?.with_file_name("lagometer");
            return Ok(vec![("ours".to_owned(), beside.display().to_string())]);
        }
        let split = |text: &String| match text.split_once('=') {
            Some((name, program)) => (name.to_owned(), program.to_owned()),
            None => ("ours".to_owned(), text.clone()),
        };
        Ok(self.gateways.iter().map(split).collect())
    }

    fn load(&self) -> Load {
        let players = self.players.max(1);
        Load {
            players,
            rooms: self.rooms.clamp(1, players),
            rate_hz: self.rate.max(1),
            fan_out_ms: self.fan_out_ms.max(1),
        }
    }
}

/// One abuse against a gateway of its own.
fn play(plan: &Plan, name: &str, program: &str, abuse: &'static Abuse) -> Result<Row, BenchError> {
    let endpoints = Endpoints::free()?;
    let provider = if abuse.deployment.asks_provider {
        Some(Provider::start()?)
    } else {
        None
    };
    let service = provider.as_ref().map(|provider| provider.address);
    let folder = plan
        .logs
        .join(format!("abuse-{}-{}", std::process::id(), abuse.name));
    let folder = std::path::absolute(folder)?;
    let files = Files::write(folder, abuse.deployment, &endpoints, service)?;
    let pinned = plan
        .core
        .map_or(String::new(), |core| format!("taskset -c {core} "));
    let command = format!(
        "{pinned}{program} gateway --config '{}'",
        files.config.display()
    );
    let log = plan.logs.join(format!("abuse-{name}-{}.log", abuse.name));
    let mut gateway = Gateway::start(&command, &log, endpoints.servers)?;
    let mut players = Players::gather(plan.load(), &endpoints)?;
    players.play(WARM_UP)?;

    let mut row = attack(plan, abuse, endpoints, &mut gateway, &mut players, &log)?;
    recover(plan, &gateway, &mut players, &mut row)?;
    row.lost = players.finish()?;
    if let Some(status) = gateway.ended()? {
        row.ended = Some(status.to_string());
    }
    if let Some(provider) = &provider {
        row.notes
            .push(format!("the service was asked {} times", provider.asked()));
    }
    row.judge(abuse.reflects());
    Ok(row)
}

/// The players by themselves, then under attack.
fn attack(
    plan: &Plan,
    abuse: &'static Abuse,
    endpoints: Endpoints,
    gateway: &mut Gateway,
    players: &mut Players,
    log: &Path,
) -> Result<Row, BenchError> {
    let pid = gateway.pid();
    let start = Usage::of(pid);
    players.begin();
    players.play(plan.quiet.duration())?;
    let quiet = players.end();
    let before = Usage::of(pid);
    let log_before = length(log);

    let target = players.target(endpoints);
    let bystanders = Bystanders::start(endpoints, pid)?;
    let running = Running::start(abuse, target)?;
    let began = Instant::now();
    players.begin();
    players.play(plan.attack.duration())?;
    let attacked = players.end();
    let seconds = began.elapsed().as_secs_f64();
    let after = Usage::of(pid);
    let (effort, failure) = running.stop();
    let (newcomers, health, peak_mb) = bystanders.stop();

    let share = |from: Usage, to: Usage, seconds: f64| {
        100.0 * (to.cpu_s - from.cpu_s).max(0.0) / seconds.max(0.001)
    };
    let is_attack = !matches!(abuse.attack, catalogue::Attack::Nobody);
    let did_nothing = is_attack && effort.sent_bytes == 0 && effort.connections == 0;
    let void = failure
        .map(|failure| format!("the attack broke off: {failure}"))
        .or_else(|| did_nothing.then(|| "the attack did nothing".to_owned()));
    Ok(Row {
        abuse: abuse.name.to_owned(),
        faults: Vec::new(),
        missed: BTreeSet::new(),
        notes: Vec::new(),
        void,
        seconds,
        players: plan.load().players,
        quiet,
        attacked,
        lost: row::Lost::default(),
        newcomers,
        health,
        memory: Memory {
            before_mb: before.rss_mb,
            peak_mb: peak_mb.max(after.rss_mb),
            ..Memory::default()
        },
        cpu_pct: [
            share(start, before, plan.quiet.duration().as_secs_f64()),
            share(before, after, seconds),
        ],
        log_mb: length(log).saturating_sub(log_before) as f64 / 1e6,
        effort,
        ended: None,
    })
}

/// The players by themselves again until the memory is back.
fn recover(
    plan: &Plan,
    gateway: &Gateway,
    players: &mut Players,
    row: &mut Row,
) -> Result<(), BenchError> {
    let began = Instant::now();
    let memory = &mut row.memory;
    loop {
        players.play(LOOK_EVERY)?;
        memory.after_mb = Usage::of(gateway.pid()).rss_mb;
        let passed = began.elapsed();
        memory.after_s = passed.as_secs_f64();
        let is_back = memory.after_mb <= memory.before_mb + row::MEMORY_MB;
        if is_back && passed >= AFTER_AT_LEAST || passed >= plan.after.duration() {
            return Ok(());
        }
    }
}

fn length(file: &Path) -> u64 {
    fs::metadata(file).map_or(0, |file| file.len())
}
