//! A guest from outside, where there are none.

use std::convert::Infallible;
use std::fs::File;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use crate::error::Error;
use crate::outcome::Outcome;
use crate::protocol::Said;
use crate::start::Guest;

/// What came of a guest: nothing ever does.
#[derive(Debug)]
pub struct Ended {
    /// How its program ended.
    pub outcome: Outcome,
    /// When, by the guest's clock.
    pub at: Duration,
    /// The name of the thread that had the processor when the guest was cut.
    pub busy: Option<String>,
    never: Infallible,
}

impl Guest<'_> {
    /// Refuses.
    ///
    /// # Errors
    ///
    /// [`Error::Unsupported`].
    pub fn run(&self, _: &mut dyn FnMut(&Said<'_>), _: &AtomicBool) -> Result<Ended, Error> {
        Err(Error::Unsupported {
            os: std::env::consts::OS,
            arch: std::env::consts::ARCH,
        })
    }
}

impl Ended {
    /// The folder that the guest shared.
    #[must_use]
    pub fn share(&self) -> PathBuf {
        match self.never {}
    }

    /// Opens a file at the top of the shared folder.
    ///
    /// # Errors
    ///
    /// None: there was no guest.
    pub fn open_shared(&self, _: &str) -> io::Result<File> {
        match self.never {}
    }

    /// Whether the files that the job wrote are there.
    #[must_use]
    pub fn has_kept(&self) -> bool {
        match self.never {}
    }

    /// Copies the files that the job wrote.
    ///
    /// # Errors
    ///
    /// None: there was no guest.
    pub fn copy_kept(&self, _: &Path) -> io::Result<Option<String>> {
        match self.never {}
    }
}
