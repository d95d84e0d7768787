//! The emulated network, where there is none.

use lagometer_units::Clock;

use crate::device_counters::SentTotals;
use crate::error::Error;
use crate::host::Host;
use crate::lane_link::LaneLink;
use crate::permission::Permission;
use crate::settings::{LaneSetup, Outcome, Settings};

/// An emulated network: there is none.
#[derive(Debug)]
pub struct Network(Permission);

impl Network {
    /// Refuses.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`], with what to use instead.
    pub fn start(_: &Settings, _: Clock, _: Vec<LaneSetup>) -> Result<Self, Error> {
        Ok(Self(Permission::acquire()?))
    }

    /// Has a lane's connections ask for ECN.
    ///
    /// # Errors
    ///
    /// None: there is no network to ask.
    pub fn ask_for_ecn(&self, _: u8) -> Result<(), Error> {
        match self.0 {}
    }

    /// Begins anew with `links`.
    ///
    /// # Errors
    ///
    /// None: there is no network to begin.
    pub fn begin(&mut self, _: Vec<LaneLink>) -> Result<(), Error> {
        match self.0 {}
    }

    /// Ends the network.
    ///
    /// # Errors
    ///
    /// None: there is no network to end.
    pub fn stop(self) -> Result<Outcome, Error> {
        match self.0 {}
    }

    /// What both sides have put on the links.
    ///
    /// # Errors
    ///
    /// None: there is no network to ask.
    pub fn sent(&self) -> Result<[SentTotals; 2], Error> {
        match self.0 {}
    }

    /// The host on this side.
    #[must_use]
    pub fn local(&self) -> &Host {
        match self.0 {}
    }

    /// The host on the other side.
    #[must_use]
    pub fn remote(&self) -> &Host {
        match self.0 {}
    }

    /// The client host of a lane.
    #[must_use]
    pub fn local_of(&self, _: u8) -> &Host {
        match self.0 {}
    }
}
