//! Gateways in turn, again and again, so that what changes on the machine
//! meets all of them alike.

use std::fs::{self, File, OpenOptions};
use std::io::Write as _;
use std::path::{Path, PathBuf};

use lagometer_units::{MOST_DATA, read_text_file};
use serde::{Deserialize, Serialize};

use crate::BenchError;
use crate::abuse::row::Row;
use crate::cli::{NamedCommand, Play, Range, Setup};
use crate::crowd::{self, Plan};
use crate::outcome::Outcome;
use crate::process::Gateway;
use crate::{churn, entities, raw, table};

/// One run, or one limit found.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Run {
    /// The gateway.
    pub(crate) gateway: String,
    /// What was done.
    #[serde(flatten)]
    pub(crate) what: What,
}

/// What a run found.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(tag = "what", rename_all = "lowercase")]
pub(crate) enum What {
    /// A crowd's figures.
    Crowd(Box<Outcome>),
    /// Bytes for each second of processor time.
    Bytes {
        /// Who updates.
        mode: crowd::Mode,
        /// How many players.
        players: usize,
        /// What the gateway delivered.
        gateway_bytes_per_cpu_s: f64,
        /// What a loop that only writes delivered.
        raw_bytes_per_cpu_s: f64,
        /// What one delivered that also reads what the gateway reads; of runs written
        /// before there was this, nothing.
        #[serde(default)]
        reading_bytes_per_cpu_s: Option<f64>,
    },
    /// Many entities' figures.
    Entities(Box<entities::Seen>),
    /// Figures of people who come and go.
    Churn(Box<churn::Seen>),
    /// What an abuse cost those who behave.
    Abuse(Box<Row>),
    /// The most players that were carried.
    Limit {
        /// Who updates.
        mode: crowd::Mode,
        /// How many players.
        players: usize,
    },
}

/// Every gateway with every number of players, again and again.
///
/// # Errors
///
/// [`BenchError`].
pub(crate) fn crowds(
    setup: &Setup,
    play: &Play,
    players: &[usize],
) -> Result<Vec<Run>, BenchError> {
    let mut record = Record::open(&setup.logs, setup.json.as_deref())?;
    for _ in 0..setup.repeat {
        for &players in players {
            for gateway in &setup.gateways {
                play_once(setup, gateway, &play.plan(setup, players), &mut record)?;
            }
        }
    }
    Ok(record.runs)
}

/// The limit of every gateway that has a range, again and again.
///
/// # Errors
///
/// [`BenchError`].
pub(crate) fn limits(
    setup: &Setup,
    play: &Play,
    ranges: &[Range],
    step: usize,
) -> Result<Vec<Run>, BenchError> {
    let mut record = Record::open(&setup.logs, setup.json.as_deref())?;
    for _ in 0..setup.repeat {
        for gateway in &setup.gateways {
            let Some(range) = ranges.iter().find(|range| range.name == gateway.name) else {
                continue;
            };
            let (mut held, mut failed) = (range.low, range.high);
            while failed - held > step {
                let middle = usize::midpoint(held, failed);
                let trial = play.plan(setup, middle);
                if play_once(setup, gateway, &trial, &mut record)?.held {
                    held = middle;
                } else {
                    failed = middle;
                }
            }
            let mode = play.plan(setup, held).mode;
            record.add(Run {
                gateway: gateway.name.clone(),
                what: What::Limit {
                    mode,
                    players: held,
                },
            })?;
        }
    }
    Ok(record.runs)
}

/// Every gateway, then a loop that only writes what it wrote and one that also reads what
/// it read, again and again.
///
/// # Errors
///
/// [`BenchError`].
pub(crate) fn bytes(setup: &Setup, play: &Play, players: &[usize]) -> Result<Vec<Run>, BenchError> {
    let mut record = Record::open(&setup.logs, setup.json.as_deref())?;
    for _ in 0..setup.repeat {
        for &players in players {
            for gateway in &setup.gateways {
                let crowd = play.plan(setup, players);
                let outcome = play_once(setup, gateway, &crowd, &mut record)?;
                let bounds = raw::bounds(setup, &crowd, &outcome)?;
                record.add(Run {
                    gateway: gateway.name.clone(),
                    what: What::Bytes {
                        mode: outcome.mode,
                        players,
                        gateway_bytes_per_cpu_s: outcome.bytes_per_cpu_s,
                        raw_bytes_per_cpu_s: bounds.writing,
                        reading_bytes_per_cpu_s: Some(bounds.reading),
                    },
                })?;
            }
        }
    }
    Ok(record.runs)
}

/// Every gateway with many entities, again and again.
///
/// # Errors
///
/// [`BenchError`].
pub(crate) fn entities(setup: &Setup, world: &entities::World) -> Result<Vec<Run>, BenchError> {
    let mut record = Record::open(&setup.logs, setup.json.as_deref())?;
    for _ in 0..setup.repeat {
        for gateway in &setup.gateways {
            let seen = entities::run(setup, &gateway.command, world)?;
            record.add(Run {
                gateway: gateway.name.clone(),
                what: What::Entities(Box::new(seen)),
            })?;
        }
    }
    Ok(record.runs)
}

/// Every gateway with people who come and go, again and again.
///
/// # Errors
///
/// [`BenchError`].
pub(crate) fn churn(setup: &Setup, crush: &churn::Crush) -> Result<Vec<Run>, BenchError> {
    let mut record = Record::open(&setup.logs, setup.json.as_deref())?;
    for _ in 0..setup.repeat {
        for gateway in &setup.gateways {
            let seen = churn::run(setup, &gateway.command, crush)?;
            record.add(Run {
                gateway: gateway.name.clone(),
                what: What::Churn(Box::new(seen)),
            })?;
        }
    }
    Ok(record.runs)
}

/// Reads runs that were written before.
///
/// # Errors
///
/// When a file cannot be read or holds something else.
pub(crate) fn read(files: &[PathBuf]) -> Result<Vec<Run>, BenchError> {
    let mut runs = Vec::new();
    for file in files {
        for (index, line) in read_text_file(file, MOST_DATA)?.lines().enumerate() {
            let run = serde_json::from_str(line).map_err(|error| {
                std::io::Error::other(format!("{}:{}: {error}", file.display(), index + 1))
            })?;
            runs.push(run);
        }
    }
    Ok(runs)
}

/// One crowd on a gateway of its own.
fn play_once(
    setup: &Setup,
    gateway: &NamedCommand,
    plan: &Plan,
    record: &mut Record,
) -> Result<Outcome, BenchError> {
    let command = format!("taskset -c {} {}", setup.core, gateway.command);
    let log = setup.logs.join(format!("gateway-{}.log", gateway.name));
    let running = Gateway::start(&command, &log, setup.servers)?;
    let outcome = crowd::run(plan, running.pid())?;
    drop(running);
    record.add(Run {
        gateway: gateway.name.clone(),
        what: What::Crowd(Box::new(outcome.clone())),
    })?;
    Ok(outcome)
}

/// All runs so far, each shown and written as it ends.
pub(crate) struct Record {
    pub(crate) runs: Vec<Run>,
    file: Option<(PathBuf, File)>,
}

impl Record {
    /// Begins a record in memory and, where it is asked for, in a file. `logs` is
    /// made if it is not there.
    ///
    /// # Errors
    ///
    /// When the file cannot be written to.
    pub(crate) fn open(logs: &Path, json: Option<&Path>) -> Result<Self, BenchError> {
        let open = |path: &Path| {
            OpenOptions::new()
                .create(true)
                .append(true)
                .open(path)
                .map(|file| (path.to_owned(), file))
                .map_err(|source| BenchError::Unwritable {
                    path: path.to_owned(),
                    source,
                })
        };
        fs::create_dir_all(logs)?;
        Ok(Self {
            runs: Vec::new(),
            file: json.map(open).transpose()?,
        })
    }

    /// Shows a run and keeps it.
    ///
    /// # Errors
    ///
    /// When the file cannot be written to.
    pub(crate) fn add(&mut self, run: Run) -> Result<(), BenchError> {
        eprintln!("{}", table::line(&run));
        if let Some((path, file)) = &mut self.file {
            let line = serde_json::to_string(&run).map_err(std::io::Error::from)?;
            writeln!(file, "{line}").map_err(|source| BenchError::Unwritable {
                path: path.clone(),
                source,
            })?;
        }
        self.runs.push(run);
        Ok(())
    }
}
