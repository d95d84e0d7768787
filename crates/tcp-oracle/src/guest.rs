//! What the driver does in a guest: plays a batch of conversations and leaves
//! their traces in the shared folder.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;

use crate::conversation::play;
use crate::host::{Namespace, jiffies};
use crate::plan::{Class, conversation};

/// Conversations of one kind.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Batch {
    /// What the path does.
    pub class: Class,
    /// The congestion control of both ends: `cubic`, `reno` or `bbr`.
    pub control: String,
    /// The first seed, and how many there are.
    pub seeds: (u64, u64),
}

impl Batch {
    /// As arguments of a program, which [`parse`](Self::parse) reads.
    #[must_use]
    pub fn arguments(&self) -> [String; 4] {
        let (first, count) = self.seeds;
        [
            self.class.name().to_owned(),
            self.control.clone(),
            first.to_string(),
            count.to_string(),
        ]
    }

    /// What its conversations are called, in the order in which they are recorded.
    pub fn names(&self) -> impl Iterator<Item = String> {
        let (first, count) = self.seeds;
        (first..first + count).map(|seed| self.name(seed))
    }

    fn name(&self, seed: u64) -> String {
        format!("{}-{}-{seed}", self.class.name(), self.control)
    }

    /// What [`arguments`](Self::arguments) wrote.
    #[must_use]
    pub fn parse(arguments: &[String]) -> Option<Self> {
        let [class, control, first, count] = arguments else {
            return None;
        };
        Some(Self {
            class: Class::named(class)?,
            control: control.clone(),
            seeds: (first.parse().ok()?, count.parse().ok()?),
        })
    }
}

/// Plays a batch between two sockets of this guest's kernel and writes the traces
/// to `path`; `played` is handed the name of each.
///
/// # Errors
///
/// What the system refuses, and bytes that came out other than they went in.
pub fn record(batch: &Batch, path: &Path, played: &mut dyn FnMut(&str)) -> io::Result<()> {
    lagometer_emu::Permission::acquire().map_err(io::Error::other)?;
    let namespaces = [Namespace::new()?, Namespace::new()?];
    let jiffies = jiffies()?;
    let mut file = File::create(path)?;
    let (first, count) = batch.seeds;
    for seed in first..first + count {
        let name = batch.name(seed);
        let planned = conversation(batch.class, &batch.control, seed);
        let trace = play(&name, &planned, seed, &namespaces, jiffies)
            .map_err(|why| io::Error::new(why.kind(), format!("{name}: {why}")))?;
        file.write_all(trace.to_text().as_bytes())?;
        played(&name);
    }
    Ok(())
}
