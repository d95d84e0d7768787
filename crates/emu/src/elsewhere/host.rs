//! Hosts, where there are none.

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
}
