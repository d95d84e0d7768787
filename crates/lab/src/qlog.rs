//! Logs of connections into a folder: qlog as JSON-SEQ, one file for each end of each
//! lane of one seed, where the lane's transport writes any.
//!
//! Instants are milliseconds of the run's clock: in virtual time the same seed writes the
//! same bytes. Over a real path the server's end is another machine's, and has no file.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use lagometer_transport::{ConnectionLogs, End, LogWriter};
use lagometer_units::create_private_file;
use thiserror::Error;

use crate::resolve::Resolved;

/// The folder of a run's logs.
#[derive(Clone, Debug)]
pub struct QlogFolder {
    folder: PathBuf,
    outcome: Arc<Mutex<Outcome>>,
}

#[derive(Debug, Default)]
struct Outcome {
    /// The names of the files that were begun.
    files: Vec<String>,
    failure: Option<QlogError>,
}

/// A log that could not be written to its end.
#[derive(Debug, Error)]
#[error("{file}: {why}")]
pub struct QlogError {
    /// The file's name within the folder.
    pub file: String,
    /// What the system said.
    #[source]
    pub why: io::Error,
}

/// The logs of one lane.
struct LaneLogs {
    folder: QlogFolder,
    /// The lane's name as a part of a file's.
    name: String,
    /// The only seed that is logged.
    seed: u64,
}

/// A file that says what it could not write.
struct LogFile {
    file: BufWriter<File>,
    name: String,
    folder: QlogFolder,
}

impl QlogFolder {
    /// Has every lane logged under `seed` whose transport writes logs, into the folder at
    /// `path`, which is made where there is none. None where no lane's transport writes
    /// any: then no folder is made.
    ///
    /// # Errors
    ///
    /// The system's, about the folder.
    pub fn watch(path: &Path, resolved: &mut Resolved, seed: u64) -> io::Result<Option<Self>> {
        let folder = Self {
            folder: path.to_owned(),
            outcome: Arc::default(),
        };
        let mut is_watched = false;
        let mut names: Vec<String> = Vec::new();
        for lane in &mut resolved.lanes {
            let name = free_name(&lane.name, &names);
            names.push(name.clone());
            let logs = LaneLogs {
                folder: folder.clone(),
                name,
                seed,
            };
            let endpoint = lane.transport.endpoint();
            if let Some(logged) = endpoint.and_then(|spec| spec.logged(Arc::new(logs))) {
                lane.transport = logged.into();
                is_watched = true;
            }
        }
        if !is_watched {
            return Ok(None);
        }
        std::fs::create_dir_all(path)?;
        Ok(Some(folder))
    }

    /// The names of the files that were begun, in their order, once all connections are
    /// gone.
    ///
    /// # Errors
    ///
    /// The first file that could not be written, and why.
    pub fn finish(self) -> Result<Vec<String>, QlogError> {
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(failure) = outcome.failure.take() {
            return Err(failure);
        }
        let mut files = std::mem::take(&mut outcome.files);
        files.sort();
        Ok(files)
    }

    /// Keeps why the file called `name` could not be written, if it could not.
    fn note<T>(&self, name: &str, done: io::Result<T>) -> Option<T> {
        let why = match done {
            Ok(value) => return Some(value),
            Err(why) => why,
        };
        let mut outcome = self.outcome.lock().unwrap_or_else(PoisonError::into_inner);
        outcome.failure.get_or_insert(QlogError {
            file: name.to_owned(),
            why,
        });
        None
    }
}

impl ConnectionLogs for LaneLogs {
    fn open(&self, seed: u64, end: End) -> Option<LogWriter> {
        if seed != self.seed {
            return None;
        }
        let name = format!("{}-{end}.sqlog", self.name);
        let path = self.folder.folder.join(&name);
        let file = self.folder.note(&name, create_private_file(&path))?;
        let mut outcome = (self.folder.outcome.lock()).unwrap_or_else(PoisonError::into_inner);
        outcome.files.push(name.clone());
        Some(Box::new(LogFile {
            file: BufWriter::new(file),
            name,
            folder: self.folder.clone(),
        }))
    }
}

impl Write for LogFile {
    /// Never fails: what could not be written is reported at the end, and costs the
    /// connection nothing.
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let written = self.file.write_all(bytes);
        self.folder.note(&self.name, written);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        let flushed = self.file.flush();
        self.folder.note(&self.name, flushed);
        Ok(())
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        let _ = self.flush();
    }
}

/// A lane's name as a part of a file's: what could lead elsewhere, or is no letter on
/// some system, is a dash.
fn file_name(lane: &str) -> String {
    let fits = |letter: char| letter.is_ascii_alphanumeric() || "._-".contains(letter);
    let name: String = lane
        .chars()
        .map(|letter| if fits(letter) { letter } else { '-' })
        .collect();
    if name.starts_with('.') {
        return format!("-{name}");
    }
    name
}

/// [`file_name`], numbered where another lane has it: on some systems names that differ in
/// capitals alone are one.
fn free_name(lane: &str, taken: &[String]) -> String {
    let name = file_name(lane);
    let is_taken = |name: &str| taken.iter().any(|it| it.eq_ignore_ascii_case(name));
    if !is_taken(&name) {
        return name;
    }
    let mut numbered = (2..).map(|number: u32| format!("{name}-{number}"));
    numbered.find(|name| !is_taken(name)).unwrap_or(name)
}

#[cfg(test)]
mod tests {
    use super::{file_name, free_name};

    #[test]
    fn no_two_lanes_have_one_file_whatever_the_system_takes_for_one() {
        let mut taken = Vec::new();
        for lane in ["quic", "QUIC", "quic-2", "Quic"] {
            let name = free_name(lane, &taken);
            taken.push(name);
        }
        assert_eq!(taken, ["quic", "QUIC-2", "quic-2-2", "Quic-3"]);
    }

    #[test]
    fn a_lanes_name_leads_nowhere_else() {
        assert_eq!(file_name("quic-game"), "quic-game");
        assert_eq!(file_name("../quic 1"), "-..-quic-1");
        assert_eq!(file_name("a/b\\c"), "a-b-c");
    }
}
