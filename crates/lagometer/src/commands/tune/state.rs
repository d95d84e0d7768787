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
    /// It could not be written the last time.
    is_behind: bool,
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
            is_behind: false,
        })
    }

    /// What was played before.
    pub(super) fn memory(&mut self) -> Memory {
        self.memory
            .take()
            .unwrap_or_else(|| Memory::new(&Value::Null))
    }

    /// Writes what was played, if it is time. Where that fails the search goes on, as does
    /// the file that was written before: there may be room again later.
    pub(super) fn keep(&mut self, memory: &Memory) {
        if self.written.elapsed() < EVERY {
            return;
        }
        self.written = Instant::now();
        let Err(failure) = self.write(memory) else {
            self.is_behind = false;
            return;
        };
        if !std::mem::replace(&mut self.is_behind, true) {
            note!(
                "lagometer: {failure}; the search goes on, and this is tried again every {} s",
                EVERY.as_secs()
            );
        }
    }

    /// Writes all of it.
    pub(super) fn finish(self, memory: &Memory) -> Result<(), Failure> {
        self.write(memory)
    }

    fn write(&self, memory: &Memory) -> Result<(), Failure> {
        match &self.path {
            Some(path) => output::write(path, &memory.to_text()),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    #[test]
    fn a_file_that_could_not_be_written_for_a_while_is_written_again() {
        let folder = tempfile::tempdir().unwrap();
        let (there, gone) = (folder.path().join("there"), folder.path().join("gone"));
        fs::create_dir(&there).unwrap();
        let path = there.join("state.json");
        let described = Value::from("a search");
        let mut keeper = Keeper::open(Some(&path), &described).unwrap();
        let memory = keeper.memory();
        let long_ago = |keeper: &mut Keeper| keeper.written -= EVERY;
        fs::rename(&there, &gone).unwrap();
        long_ago(&mut keeper);
        keeper.keep(&memory);
        assert!(keeper.is_behind);
        fs::create_dir(&there).unwrap();
        long_ago(&mut keeper);
        keeper.keep(&memory);
        assert!(!keeper.is_behind);
        assert!(path.exists());
        fs::remove_dir_all(&there).unwrap();
        assert!(matches!(keeper.finish(&memory), Err(Failure::Write { .. })));
    }
}
