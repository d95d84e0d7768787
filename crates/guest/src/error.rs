//! What can go wrong, each in one line that says how to mend it.

use std::io;
use std::path::PathBuf;

use thiserror::Error as ThisError;

/// Why a kernel could not be built, found or started.
#[derive(Debug, ThisError)]
pub enum Error {
    /// The kernel runs as a program on Linux on x86-64 alone.
    #[error(
        "a kernel in virtual time needs Linux on x86-64, and this is {os} on {arch}: use such a \
         machine, or `--testbed sim`, which is in virtual time everywhere"
    )]
    Unsupported {
        /// The operating system's family.
        os: &'static str,
        /// The processor's architecture.
        arch: &'static str,
    },
    /// It is not known where the user's cache folder is.
    #[error("there is no cache folder: set HOME or XDG_CACHE_HOME to an absolute path")]
    NoCacheFolder,
    /// Building needs programs that are not there and cannot be installed.
    #[error("building a kernel needs {what}: apt-get install {packages}")]
    Missing {
        /// The programs and files, separated by commas.
        what: String,
        /// The packages of Debian and Ubuntu that have them.
        packages: String,
    },
    /// What was named as the kernel's source is none, or not one that serves.
    #[error("{path}: {why}", path = .path.display())]
    Source {
        /// What was named.
        path: PathBuf,
        /// What is wrong with it, and what would serve.
        why: String,
    },
    /// A program of the build failed.
    #[error("{doing} failed: {last}; the log is {log}", log = .log.display())]
    Step {
        /// What was being done.
        doing: &'static str,
        /// The last thing that it said.
        last: String,
        /// The whole log.
        log: PathBuf,
    },
    /// The configuration came out without something that is needed.
    #[error(
        "this kernel cannot be configured as needed: it lacks {missing}; try a version from 6.1 on"
    )]
    Configuration {
        /// The symbols, separated by commas.
        missing: String,
    },
    /// The build was interrupted.
    #[error("interrupted; nothing was kept")]
    Stopped,
    /// There is no kernel.
    #[error("there is no kernel yet; build one with `lagometer kernel build`")]
    NoKernel,
    /// There is none of that name.
    #[error(
        "there is no kernel called `{name}`; `lagometer kernel status` has the names of all, and \
         `lagometer kernel build` builds one"
    )]
    UnknownKernel {
        /// The name, or the version.
        name: String,
    },
    /// The job could not be started in the guest.
    #[error(
        "`{program}` cannot be started in a guest from the folder {directory}: {why}; what lies in \
         /dev, /proc, /sys or /dev/shm of the machine is not there", program = .program.display(),
        directory = .directory.display()
    )]
    NotStarted {
        /// The program.
        program: PathBuf,
        /// The folder it was to be started in.
        directory: PathBuf,
        /// What the guest's kernel said.
        why: String,
    },
    /// A guest ended without saying how.
    #[error("the guest broke off; the last that its kernel said is: {last}")]
    Guest {
        /// The kernel's line.
        last: String,
    },
    /// The machine had no room for what the guest had in memory.
    #[error(
        "the guest broke off: its memory, which is a file, did not fit into {place}; make room \
         there, or name a folder that has room by TMPDIR"
    )]
    NoRoom {
        /// Where the file is.
        place: String,
    },
    /// The system refused something.
    #[error("{doing}: {source}")]
    System {
        /// What was being done.
        doing: String,
        /// What the system said.
        #[source]
        source: io::Error,
    },
}

impl Error {
    /// Whether what the user named was wrong, rather than the environment.
    #[must_use]
    pub const fn is_input(&self) -> bool {
        matches!(
            self,
            Self::Source { .. } | Self::UnknownKernel { .. } | Self::NotStarted { .. }
        )
    }
}

/// Names what was being done when a system call failed.
pub(crate) trait Doing<T> {
    fn doing(self, what: impl Into<String>) -> Result<T, Error>;
}

impl<T> Doing<T> for io::Result<T> {
    fn doing(self, what: impl Into<String>) -> Result<T, Error> {
        self.map_err(|source| Error::System {
            doing: what.into(),
            source,
        })
    }
}
