//! UDT's start and clean-up.

use std::sync::Arc;

use crate::udt::error::Error;
use crate::udt::foreign;
use crate::udt::threads;

/// UDT, started. Clones and sockets share it; with the last of them UDT is
/// cleaned up, which waits until its threads have ended: about a second after
/// the last socket was closed.
#[derive(Clone, Debug)]
pub struct Library {
    _started: Arc<Started>,
}

#[derive(Debug)]
struct Started;

impl Library {
    /// Starts UDT. It counts its own starts, so this may be called anywhere
    /// and often.
    ///
    /// # Errors
    ///
    /// [`Error`] when UDT cannot.
    pub fn start() -> Result<Self, Error> {
        // The first start makes a thread that collects closed sockets.
        threads::made_by(foreign::startup)?;
        Ok(Self {
            _started: Arc::new(Started),
        })
    }
}

impl Drop for Started {
    fn drop(&mut self) {
        foreign::cleanup();
    }
}
