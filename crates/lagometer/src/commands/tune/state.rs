//! The file from which a search goes on.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use lagometer_tune::Memory;
use serde_json::Value;

use crate::failure::{Failure, read};
use crate::output;

/// How often what was played is written while it plays.
const EVERY: Duration = Duration::from_secs(2);

/// Keeps what was played.
pub(super) struct Keeper {
    path: Option<PathBuf>,
    memory: Option<Memory>,
    written: Instant,
    failure: Option<Failure>,
}

impl Keeper {
    /// Reads what there is of the search that `described` describes, and makes sure
    /// that it can be written.
    pub(super) fn open(path: Option<&Path>, described: &Value) -> Result<Self, Failure> {
        let memory = match path {
            Some(path) if path.exists() => {
                let memory = Memory::read(&read(path)?, described);
                memory.map_err(|why| Failure::Input(format!("{}: {why}", path.display())))?
            }
            _ => Memory::new(described),
        };
        if let Some(path) = path {
            output::write(path, &memory.to_text())?;
            if !memory.is_empty() {
                note!(
                    "lagometer: going on from {}: {} plays are known",
                    path.display(),
                    memory.len()
                );
            }
        }
        Ok(Self {
            path: path.map(Path::to_owned),
            memory: Some(memory),
            written: Instant::now(),
            failure: None,
        })
    }

    /// What was played before.
    pub(super) fn memory(&mut self) -> Memory {
        self.memory
            .take()
            .unwrap_or_else(|| Memory::new(&Value::Null))
    }

    /// Writes what was played, if it is time.
    pub(super) fn keep(&mut self, memory: &Memory) {
        let is_time = self.written.elapsed() >= EVERY && self.failure.is_none();
        if let (Some(path), true) = (&self.path, is_time) {
            self.failure = output::write(path, &memory.to_text()).err();
            self.written = Instant::now();
        }
    }

    /// Writes all of it.
    pub(super) fn finish(self, memory: &Memory) -> Result<(), Failure> {
        if let Some(failure) = self.failure {
            return Err(failure);
        }
        match &self.path {
            Some(path) => output::write(path, &memory.to_text()),
            None => Ok(()),
        }
    }
}
