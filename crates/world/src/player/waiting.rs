//! How long a player waits for windows.

use lagometer_units::Time;

use super::Player;
use crate::measure::windows::Windows;

impl Player {
    /// When its windows came: over all connections that it had.
    #[must_use]
    pub fn windows(&self) -> &Windows {
        &self.windows
    }

    /// It comes late: others have been measured, and it has had nothing, since `began`.
    pub(crate) fn waits_since(&mut self, began: Time) {
        self.windows = Windows::since(began);
    }
}
