//! Why a command did not do what it was asked, with its exit code.

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use thiserror::Error;

use crate::exit::Exit;

/// A command's failure, said in one line: what, where, and how to mend it.
#[derive(Debug, Error)]
pub(crate) enum Failure {
    /// The input was wrong: exit code 2.
    #[error("{0}")]
    Input(String),
    /// A file could not be read: exit code 2.
    #[error("{path}: cannot be read: {why}")]
    Read {
        /// The file's path.
        path: PathBuf,
        /// What the system said.
        #[source]
        why: io::Error,
    },
    /// A file could not be written: exit code 3.
    #[error("{path}: cannot be written: {why}; name another place")]
    Write {
        /// The file's path.
        path: PathBuf,
        /// What the system said.
        #[source]
        why: io::Error,
    },
    /// What was being written beside a run ended early, as on a full disk: exit code 3.
    #[error("{path}: writing ended early: {why}{missing}; make room there, or name another place")]
    Cut {
        /// The file's path.
        path: PathBuf,
        /// What the system said.
        why: String,
        /// What of it is missing, where that is known.
        missing: Missing,
    },
    /// The environment lacks something: exit code 3.
    #[error("{0}")]
    Environment(String),
    /// The user interrupted it before anything could be said: exit code 130.
    #[error("{0}")]
    Interrupted(String),
}

/// How many packets a capture lacks; none where that is not known.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Missing(pub(crate) Option<u64>);

impl fmt::Display for Missing {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => Ok(()),
            Some(1) => formatter.write_str("; one packet is missing"),
            Some(packets) => write!(formatter, "; {packets} packets are missing"),
        }
    }
}

impl Failure {
    /// What came of a command, unless it or something `beside` it failed: the first
    /// failure is to be the command's, all others are said at once.
    pub(crate) fn unless<T>(
        result: Result<T, Self>,
        beside: impl IntoIterator<Item = Self>,
    ) -> Result<T, Self> {
        beside.into_iter().fold(result, |result, failure| {
            if result.is_err() {
                note!("lagometer: {failure}");
                return result;
            }
            Err(failure)
        })
    }

    pub(crate) fn input(error: impl std::fmt::Display) -> Self {
        Self::Input(error.to_string())
    }

    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Self::Input(_) | Self::Read { .. } => Exit::BadInput,
            Self::Write { .. } | Self::Cut { .. } | Self::Environment(_) => Exit::Environment,
            Self::Interrupted(_) => Exit::Interrupted,
        }
        .into()
    }
}

/// Reads a text file that the user named, unless it is longer than any that
/// programs write.
pub(crate) fn read(path: &Path) -> Result<String, Failure> {
    lagometer_units::read_text_file(path, lagometer_units::MOST_DATA).map_err(|why| Failure::Read {
        path: path.to_owned(),
        why,
    })
}
