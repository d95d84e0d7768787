//! Profiles: the data that says how a link behaves.
//!
//! [`written`] is the file as people write it; `plan` is one direction of it,
//! checked, resolved and in the model's own numbers. Reading text is kept
//! apart from reading files: [`Profile::parse`] is handed both the text and a
//! way to read the traces it names.

pub mod cross;
pub(crate) mod overload;
pub(crate) mod plan;
pub(crate) mod queue;
pub(crate) mod spells;
pub(crate) mod too_large;
pub mod written;

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use lagometer_units::{BadInput, MOST_DATA, from_toml, read_text_file};
use serde::{Serialize, Serializer};
use thiserror::Error;

use crate::Direction;
use crate::queue::Discipline;
use crate::trace::Trace;
use cross::Cross;
use plan::{Complaint, Plan};
use written::{Way, Written};

/// How a link behaves in both directions: checked, and ready to be played.
#[derive(Clone, Debug)]
pub struct Profile {
    written: Written,
    plans: [Plan; 2],
    /// The texts of the traces by their names, as they were read.
    traces: BTreeMap<String, Arc<str>>,
}

/// Why a profile's file could not be used.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum LoadError {
    /// The file could not be read.
    #[error("{path}: {message}")]
    Unreadable {
        /// The file's path.
        path: String,
        /// What the system said.
        message: String,
    },
    /// What it says is wrong.
    #[error(transparent)]
    Bad(#[from] BadInput),
}

impl Profile {
    /// Reads a profile from its TOML text.
    ///
    /// `origin` is the name complaints give the text. `read_trace` is handed
    /// the name of each trace the profile names, as written, and returns the
    /// trace's text or why there is none.
    ///
    /// # Errors
    ///
    /// [`BadInput`] with the line at which the profile or one of its traces
    /// is wrong, and what was expected.
    pub fn parse(
        origin: &str,
        text: &str,
        read_trace: &mut dyn FnMut(&str) -> Result<String, String>,
    ) -> Result<Self, BadInput> {
        let written: Written = from_toml(origin, text).map_err(cross::name_choices)?;
        let mut traces: BTreeMap<&str, Trace> = BTreeMap::new();
        let mut texts = BTreeMap::new();
        for (section, way) in [
            ("both", &written.both),
            ("up", &written.up),
            ("down", &written.down),
        ] {
            let at = |complaint| locate(origin, text, section, complaint);
            plan::check(way).map_err(at)?;
            if let Some(name) = &way.trace
                && !traces.contains_key(name.as_str())
            {
                let complain = |message| at(Complaint::new("trace", message));
                let trace_text = read_trace(name).map_err(complain)?;
                traces.insert(name, Trace::parse(name, &trace_text)?);
                texts.insert(name.clone(), Arc::from(trace_text));
            }
        }
        cross::check_cross(origin, text, &written.cross)?;
        let plan = |direction, own: &Way, section| {
            Plan::new(direction, &written.both, own, &traces).map_err(|complaint| {
                let section = if complaint.is_said_in(own) {
                    section
                } else {
                    "both"
                };
                locate(origin, text, section, complaint)
            })
        };
        let plans = [
            plan(Direction::Up, &written.up, "up")?,
            plan(Direction::Down, &written.down, "down")?,
        ];
        let profile = Self {
            written,
            plans,
            traces: texts,
        };
        profile
            .check_overload(profile.cross())
            .map_err(|overload| {
                let path = ["cross", &overload.place.to_string(), "rate"];
                BadInput::at_key(origin, text, &path, overload.to_string())
            })?;
        profile
            .check_packets(profile.cross())
            .map_err(|too_large| {
                let path = ["cross", &too_large.place.to_string(), "size"];
                BadInput::at_key(origin, text, &path, too_large.to_string())
            })?;
        Ok(profile)
    }

    /// Reads a profile that names no traces.
    ///
    /// # Errors
    ///
    /// As [`Profile::parse`]; naming a trace is an error too.
    pub fn from_text(origin: &str, text: &str) -> Result<Self, BadInput> {
        Self::parse(origin, text, &mut |_| {
            Err("a trace can only be named by a profile that is read from a file".to_owned())
        })
    }

    /// Reads a profile from its file, and the traces it names from theirs,
    /// which are looked for relative to the profile's folder. A recording
    /// ([`trace::recorded`](crate::trace::recorded)) is a profile of its own:
    /// what it says, in both directions, and nothing else.
    ///
    /// # Errors
    ///
    /// [`LoadError`] if a file cannot be read, is longer than
    /// [`MOST_DATA`] or is wrong.
    pub fn load(path: &Path) -> Result<Self, LoadError> {
        let origin = path.display().to_string();
        let text = read_text_file(path, MOST_DATA).map_err(|error| LoadError::Unreadable {
            path: origin.clone(),
            message: error.to_string(),
        })?;
        let text = if text.trim_start().starts_with("lagometer-trace") {
            alone(path)
        } else {
            text
        };
        let folder = path.parent().unwrap_or(Path::new(""));
        let mut read_trace = |name: &str| {
            let path = folder.join(name);
            read_text_file(&path, MOST_DATA).map_err(|error| format!("{}: {error}", path.display()))
        };
        Ok(Self::parse(&origin, &text, &mut read_trace)?)
    }

    /// What the network is, in one sentence.
    #[must_use]
    pub fn summary(&self) -> &str {
        &self.written.summary
    }

    /// The traffic that comes with the network.
    #[must_use]
    pub fn cross(&self) -> &[Cross] {
        &self.written.cross
    }

    /// Whether a queue of the network has a discipline that a
    /// [`Link`](crate::Link) cannot play: anything but first in, first out. It
    /// needs a [`SharedLink`](crate::SharedLink).
    #[must_use]
    pub fn has_managed_queue(&self) -> bool {
        let mut disciplines = self.plans.iter().map(|plan| plan.queue.discipline);
        disciplines.any(|discipline| discipline != Discipline::DropTail)
    }

    /// The highest rate of a direction in bits a second; `None` where it has no
    /// limit, or has none for a time.
    #[must_use]
    pub fn rate_bits_per_second(&self, direction: Direction) -> Option<u64> {
        self.plan(direction).calm_rate()
    }

    /// The traces that the profile names: each one's name, as written, and its
    /// text. With [`written`](Self::written()) they are all there is of it.
    pub fn traces(&self) -> impl Iterator<Item = (&str, &str)> {
        self.traces
            .iter()
            .map(|(name, text)| (&name[..], &text[..]))
    }

    /// The profile as it was written.
    #[must_use]
    pub const fn written(&self) -> &Written {
        &self.written
    }

    /// The round-trip time of a small packet on the calm link: the base delays
    /// of both directions.
    #[must_use]
    pub fn base_rtt(&self) -> Duration {
        let [up, down] = &self.plans;
        Duration::from_nanos(up.calm_delay_ns().saturating_add(down.calm_delay_ns()))
    }

    /// The least time from a packet's leaving the queue to its arrival, in either
    /// direction.
    #[must_use]
    pub fn least_delay(&self) -> Duration {
        let [up, down] = &self.plans;
        Duration::from_nanos(up.calm_delay_ns().min(down.calm_delay_ns()))
    }

    pub(crate) const fn plan(&self, direction: Direction) -> &Plan {
        &self.plans[direction.index()]
    }
}

impl Serialize for Profile {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.written.serialize(serializer)
    }
}

/// The profile of nothing but the recording at `path`.
fn alone(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    // A name in a TOML string: what could end it is escaped.
    let name = name.replace('\\', "\\\\").replace('"', "\\\"");
    format!("summary = \"a recording: {name}\"\n[both]\ntrace = \"{name}\"\n")
}

/// Puts a complaint about a key of a section at the line that says the key.
fn locate(origin: &str, text: &str, section: &str, complaint: Complaint) -> BadInput {
    let path = [section, complaint.key()];
    BadInput::at_key(origin, text, &path, complaint.into_message())
}
