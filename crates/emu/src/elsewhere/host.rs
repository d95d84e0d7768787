//! Hosts, where there are none.

use std::io;

use crate::error::Error;
use crate::permission::Permission;

/// A host of an emulated network: there is none.
#[derive(Debug)]
pub struct Host(Permission);

impl Host {
    /// Does `work` in the host.
    ///
    /// # Errors
    ///
    /// None: there is no host to ask.
    pub fn run<T: Send + 'static>(
        &self,
        _: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        match self.0 {}
    }

    /// What lets another thread enter the host.
    ///
    /// # Errors
    ///
    /// None: there is no host to enter.
    pub fn entrance(&self) -> Result<Entrance, Error> {
        match self.0 {}
    }
}

/// The way into a host: there is none.
#[derive(Debug)]
pub struct Entrance(Permission);

impl Entrance {
    /// Moves the calling thread into the host.
    ///
    /// # Errors
    ///
    /// None: there is no host to enter.
    pub fn enter(self) -> io::Result<()> {
        match self.0 {}
    }
}
