//! `lagometer agree --testbed kernel`: the same experiment in `sim` and on a real
//! kernel in virtual time, message by message and by its figures, over one network
//! or several.

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lagometer_guest::Kernel;
use lagometer_lab::{LaneRun, Resolved, RunOptions, SeedRun, play};
use lagometer_results::{
    ExactFigures, ExactTolerance, MessageAgreement, MessageRecord, message_agreement,
};
use lagometer_testbed::Testbed;
use serde_json::json;

use super::agree::{ask, seeds, set};
use super::agree_packets;
use super::agree_phases;
use super::agree_table::{First, Row, headings, notes, row};
use super::in_guest;
use super::in_guests::{self, Errand, Packets, What};
use super::named::resolved;
use super::run::processors;
use crate::cli::AgreeArguments;
use crate::failure::Failure;
use crate::output::print;

/// By how much the round trips of a message may differ.
pub(super) const TOLERANCE: Duration = Duration::from_millis(1);

/// Seeds to play where no number is asked for: both are exact.
pub(super) const SEEDS: u32 = 1;

/// The share of messages that must agree.
const NEEDED: f64 = 0.999;

/// The share of TCP's messages that must agree where packets are lost: its engine
/// is another one, and what follows a packet that differs differs, too.
const NEEDED_OF_TCP: f64 = 0.95;

/// Plays both over each network and prints a table; whether all lanes agree.
pub(super) fn agree(
    arguments: &AgreeArguments,
    networks: &[Option<&str>],
    stop: &AtomicBool,
) -> Result<bool, Failure> {
    let kernel = in_guest::kernel(&arguments.guest)?;
    let mut holds = true;
    print(&headings(
        &kernel.record().version,
        arguments.seeds.unwrap_or(SEEDS),
        &arguments.duration.to_string(),
        TOLERANCE,
    ))?;
    let mut differences = String::new();
    for &network in networks {
        for found in played(arguments, network, &kernel, SEEDS, stop)?.rows()? {
            holds &= found.beyond.is_empty();
            print(&row(&found))?;
            differences += &notes(&found);
        }
    }
    if !differences.is_empty() {
        print(&format!("\nWhat differs first:\n{differences}"))?;
    }
    Ok(holds)
}

/// Plays both over one network, `usual` seeds where no number is asked for.
pub(super) fn played(
    arguments: &AgreeArguments,
    network: Option<&str>,
    kernel: &Kernel,
    usual: u32,
    stop: &AtomicBool,
) -> Result<Both, Failure> {
    let in_kernel = ask(arguments, network, Testbed::Kernel);
    let sim = with_a_standing_clock(resolved(&ask(arguments, network, Testbed::Sim))?);
    let sockets = resolved(&in_kernel)?;
    let options = RunOptions {
        seeds: seeds(arguments, &sim, usual),
        threads: arguments.threads.map_or_else(processors, usize::from),
    };
    let mut runs = play(&sim, &options, &|_| {}, stop);
    let errand = Errand {
        what: What::Asked(&in_kernel),
        ipv6: false,
        is_logged: true,
        has_qlog: false,
        real_limit: arguments.guest.real_limit.duration(),
    };
    let (seeds, at_once) = (&options.seeds, options.threads);
    let found = in_guests::play(&errand, kernel, seeds, at_once, &|_| {}, stop)?;
    found.check_whole()?;
    found.packets.check()?;
    let fitted = fit_phases(&sim, &mut runs, (&sockets, &found.seeds))?;
    Ok(Both {
        seeds: options.seeds,
        sim: Played { what: sim, runs },
        kernel: Played {
            what: sockets,
            runs: found.seeds,
        },
        fitted,
        packets: found.packets,
    })
}

/// The lanes of TCP as they are on a kernel whose clock stands still between two packets
/// that come at the same instant, as a guest's does and no machine's.
fn with_a_standing_clock(mut sim: Resolved) -> Resolved {
    for lane in &mut sim.lanes {
        let endpoint = lane.transport.endpoint();
        if endpoint.is_some_and(|it| it.transport() == "tcp") {
            set(lane, "standing_clock", json!(true));
        }
    }
    sim
}

/// Plays lanes that draw phases with those that the kernel drew; for each lane, what was
/// played of it with the first seed, if it is such a lane.
fn fit_phases(
    sim: &Resolved,
    runs: &mut [SeedRun],
    (sockets, kernels): (&Resolved, &[SeedRun]),
) -> Result<Vec<Option<Resolved>>, Failure> {
    let mut fitted = Vec::new();
    for (index, lane) in sim.lanes.iter().enumerate() {
        let mut of_first = None;
        let place = place_of(sockets, &lane.name);
        let place = place.filter(|_| agree_phases::has_phases(sim, index));
        for (run, kernel) in runs.iter_mut().zip(kernels) {
            let Some(place) = place else { break };
            let records = &outcome(kernel, place, &lane.name)?.records;
            if let Some(found) = agree_phases::fitted(sim, index, run.seed, records) {
                run.lanes[index] = found.run;
                of_first.get_or_insert(found.resolved);
            }
        }
        fitted.push(of_first);
    }
    Ok(fitted)
}

/// What was played, and what was found, seed by seed.
pub(super) struct Played {
    pub(super) what: Resolved,
    pub(super) runs: Vec<SeedRun>,
}

impl Played {
    /// A lane's messages under each seed; nothing if the lane was not to be played.
    pub(super) fn records(&self, name: &str) -> Result<Option<Vec<&[MessageRecord]>>, Failure> {
        let Some(place) = place_of(&self.what, name) else {
            return Ok(None);
        };
        let of_seed = |run| outcome(run, place, name).map(|outcome| &*outcome.records);
        self.runs
            .iter()
            .map(of_seed)
            .collect::<Result<_, _>>()
            .map(Some)
    }
}

/// Both testbeds over one network.
pub(super) struct Both {
    pub(super) seeds: Vec<u64>,
    pub(super) sim: Played,
    pub(super) kernel: Played,
    /// For each lane with phases of its own what was played of it with the first seed.
    fitted: Vec<Option<Resolved>>,
    /// The first seed's packets on the kernel.
    packets: Packets,
}

impl Both {
    /// What is found of each lane that both can play.
    pub(super) fn rows(&self) -> Result<Vec<Row>, Failure> {
        let mut rows = Vec::new();
        for (index, lane) in self.sim.what.lanes.iter().enumerate() {
            let Some(mut row) = self.row(&lane.name, index)? else {
                continue;
            };
            let kernels = place_of(&self.kernel.what, &lane.name);
            if let Some(first) = row.first.as_mut().filter(|it| it.seed == self.seeds[0])
                && let Some(other) =
                    kernels.and_then(|it| agree_packets::of_kernel(&self.packets, it))
            {
                let one = match &self.fitted[index] {
                    Some(fitted) => agree_packets::of_sim(fitted, 0, first.seed),
                    None => agree_packets::of_sim(&self.sim.what, index, first.seed),
                };
                first.parting = agree_packets::parting(&one, &other);
            }
            rows.push(row);
        }
        Ok(rows)
    }

    /// What is found of the lane called `name`, number `index` in `sim`; nothing if
    /// only one testbed has it.
    fn row(&self, name: &str, index: usize) -> Result<Option<Row>, Failure> {
        let (sim, runs) = (&self.sim.what, &self.sim.runs);
        let Some(kernels) = place_of(&self.kernel.what, name) else {
            return Ok(None);
        };
        let mut messages = MessageAgreement::default();
        let mut first = None;
        let mut pooled: [Vec<MessageRecord>; 2] = Default::default();
        let mut loses = false;
        if runs.len() != self.kernel.runs.len() {
            return Err(stopped());
        }
        for (one, other) in runs.iter().zip(&self.kernel.runs) {
            let outcomes =
                [(one, index), (other, kernels)].map(|(run, lane)| outcome(run, lane, name));
            let [one_outcome, other_outcome] = outcomes;
            let (one_outcome, other_outcome) = (one_outcome?, other_outcome?);
            let of_seed =
                message_agreement(&one_outcome.records, &other_outcome.records, TOLERANCE);
            first = first.or(of_seed.first.map(|what| First {
                seed: one.seed,
                what,
                parting: None,
            }));
            messages.add(&of_seed);
            loses |= !one_outcome.wire.dropped.is_empty();
            pooled[0].extend_from_slice(&one_outcome.records);
            pooled[1].extend_from_slice(&other_outcome.records);
        }
        let is_tcp = sim.lanes[index].transport.transport() == "tcp";
        let needed = if is_tcp && loses {
            NEEDED_OF_TCP
        } else {
            NEEDED
        };
        let figures = pooled.each_ref().map(ExactFigures::of);
        Ok(Some(Row {
            network: sim.network.clone(),
            lane: name.to_owned(),
            figures,
            messages,
            beyond: ExactTolerance::with_messages(needed).beyond(&figures, &messages),
            first,
        }))
    }
}

/// The number of the lane called `name`.
fn place_of(resolved: &Resolved, name: &str) -> Option<usize> {
    resolved.lanes.iter().position(|lane| lane.name == name)
}

/// What lane number `lane` did, called `name` in complaints.
fn outcome<'a>(
    run: &'a SeedRun,
    lane: usize,
    name: &str,
) -> Result<&'a lagometer_lab::LaneOutcome, Failure> {
    match run.lanes.get(lane) {
        Some(LaneRun::Played(outcome)) => Ok(outcome),
        Some(LaneRun::Cut(..)) | None => Err(stopped()),
        Some(LaneRun::Panicked(why) | LaneRun::Unopened(why)) => {
            Err(Failure::Environment(format!("{name}: {why}")))
        }
    }
}

pub(super) fn stopped() -> Failure {
    Failure::Interrupted("stopped before both were played: nothing can be said".to_owned())
}
