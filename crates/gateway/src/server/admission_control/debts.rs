//! What connections that have ended had still to wait for: the next that logs in from
//! their address takes it over, so that nobody gets anything by hanging up and coming
//! again.

use std::net::IpAddr;

use lagometer_limits::Debts;
use lagometer_units::Time;

use crate::server::pace::Pace;

use super::{Permit, lock};

/// What is owed at each address, by when it is paid.
pub(super) type PaceDebts = Debts<IpAddr, Time, Pace>;

impl Permit {
    /// The connection ends, and has sent more than is paid for: whoever comes next
    /// from its address pays.
    pub(in crate::server) fn leave_debt(&self, now: Time, pace: Pace) {
        if let Some(address) = self.address
            && pace.paid_at() > now
        {
            lock(&self.control.debts).leave(now, address, pace.paid_at(), pace);
        }
    }

    /// What the connection has to pay for of one of its address that has ended.
    pub(in crate::server) fn take_over_debt(&self, now: Time) -> Option<Pace> {
        lock(&self.control.debts).take_over(now, &self.address?)
    }
}
