//! The kernel's ticks, where they are not known.

use std::time::Duration;

use crate::permission::Permission;

/// Where the kernel's ticks stand on its clock: not known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ticks(Permission);

impl Ticks {
    /// Finds none.
    #[must_use]
    pub const fn find() -> Option<Self> {
        None
    }

    /// How long it is until the next tick begins whose number is a multiple.
    #[must_use]
    pub fn until_multiple_of(&self, _: u64, _: Duration) -> Duration {
        match self.0 {}
    }
}
