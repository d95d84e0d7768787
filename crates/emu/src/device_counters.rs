//! What a host's device counts.

/// What a device counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceCounters {
    /// Packets the host lost on their way out of it: its queue was full.
    pub(crate) lost_out: u64,
    /// Packets the host would not take in.
    pub(crate) lost_in: u64,
}

impl DeviceCounters {
    /// What was counted since `earlier`.
    pub(crate) const fn since(self, earlier: Self) -> Self {
        Self {
            lost_out: self.lost_out.saturating_sub(earlier.lost_out),
            lost_in: self.lost_in.saturating_sub(earlier.lost_in),
        }
    }
}
