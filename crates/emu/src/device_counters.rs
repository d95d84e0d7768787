//! What a host's device counts.

use std::iter::Sum;
use std::ops::Sub;

/// Packets that hosts have put on their links, and their bytes, IP headers included:
/// lost on the link or not, but without what the sending device itself dropped.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SentTotals {
    /// Packets.
    pub packets: u64,
    /// Bytes of these packets.
    pub bytes: u64,
}

impl Sum for SentTotals {
    fn sum<I: Iterator<Item = Self>>(totals: I) -> Self {
        totals.fold(Self::default(), |sum, more| Self {
            packets: sum.packets + more.packets,
            bytes: sum.bytes + more.bytes,
        })
    }
}

/// What was sent since an earlier reading.
impl Sub for SentTotals {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            packets: self.packets.saturating_sub(earlier.packets),
            bytes: self.bytes.saturating_sub(earlier.bytes),
        }
    }
}

/// What a device counted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct DeviceCounters {
    /// Packets the host sent out, headers of its link included.
    pub(crate) sent: SentTotals,
    /// Packets the host lost on their way out of it: its queue was full.
    pub(crate) lost_out: u64,
    /// Packets the host would not take in.
    pub(crate) lost_in: u64,
}

impl DeviceCounters {
    /// What was counted since `earlier`.
    pub(crate) fn since(self, earlier: Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            lost_out: self.lost_out.saturating_sub(earlier.lost_out),
            lost_in: self.lost_in.saturating_sub(earlier.lost_in),
        }
    }
}
