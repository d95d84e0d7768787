//! The emulator audits itself: what the link asked for against what was done.
//!
//! The link says of each packet when it is to arrive, or that it is not to.
//! The router is a thread among others on a machine with interests of its
//! own, so what it does differs. By how much is part of every result, and a
//! run in which it is more than its [`Band`] permits is not valid. Each
//! direction of each lane is judged by itself, by the router's own clock and by
//! one that it has no part in.

mod band;
mod counters;
mod flow;
mod outside;
mod spread;

use std::collections::BTreeMap;
use std::time::Duration;

use serde::Serialize;

pub use band::Band;
pub(crate) use counters::{AuditCounters, Circumstances, DirectionCounters};
#[cfg(target_os = "linux")]
pub(crate) use outside::Tapping;
pub(crate) use outside::{Fingerprint, HEAD_BYTES, RouterEvent, Watch, fingerprint};
pub use spread::Spread;

/// What the emulated network did, against what it was asked to do.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Audit {
    /// Whether everything is within the band.
    pub valid: bool,
    /// What is not, each in a sentence; empty when valid.
    pub faults: Vec<String>,
    /// The band held against it.
    pub band: Band,
    /// How long it covers, in seconds.
    pub seconds: f64,
    /// What carried packets between hosts and router: `tun` or `ethernet`.
    pub device: String,
    /// How the router waited: `sleep`, `hybrid`, `spin`.
    pub waiting: String,
    /// How the router's thread was scheduled: `real-time`, `ordinary`.
    pub precedence: String,
    /// Share of one core the router's thread used, per cent: 0 by a clock that stands
    /// still while anybody computes.
    pub router_cpu_pct: f64,
    /// From when a packet was due to when the host had taken it, in
    /// microseconds.
    pub release_error_us: Spread,
    /// From where the kernel stamped packets as sent to where it stamped them as
    /// arrived, how far from what the links asked for, in microseconds: all ways
    /// together. Nothing where the system does not let hosts be tapped, and on a clock
    /// that stands still while anybody computes.
    pub outside_error_us: Option<Spread>,
    /// How late the router woke from sleep, in microseconds; also about how
    /// late it noticed a packet that came while it slept.
    pub wake_late_us: Spread,
    /// The longest time the router was away while it should have been at
    /// work, in microseconds.
    pub longest_absence_us: f64,
    /// What the links asked for, all lanes and directions together.
    pub asked: Figures,
    /// What the emulator did, as its audit measured it.
    pub realised: Figures,
    /// Each lane by itself.
    pub lanes: Vec<LaneAudit>,
}

/// One lane's part.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LaneAudit {
    /// The lane's name.
    pub lane: String,
    /// From the local host to the remote one.
    pub up: WayAudit,
    /// From the remote host to the local one.
    pub down: WayAudit,
}

/// One direction of a lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct WayAudit {
    /// Packets offered to the link.
    pub packets: u64,
    /// Their bytes, IP headers included.
    pub bytes: u64,
    /// Packets handed over to the other host, copies not counted.
    pub delivered: u64,
    /// Copies the link made, handed over too.
    pub copies: u64,
    /// Packets the link damaged.
    pub damaged: u64,
    /// Packets the link dropped, by reason.
    pub dropped: BTreeMap<String, u64>,
    /// Packets the link refused as too large, and notified the sender.
    pub refused: u64,
    /// How long packets waited in the link's queue, all together.
    pub waited: Duration,
    /// Packets still on their way at the end.
    pub on_their_way: u64,
    /// Packets that do not belong to the lane and were left out, such as a
    /// host's own group messages.
    pub foreign: u64,
    /// Packets longer than the MTU or of another length than they say: an
    /// offload that is on. They were left out.
    pub malformed: u64,
    /// Packets lost in the sending host's device before the router saw them.
    pub lost_before: u64,
    /// Packets the router had no room for.
    pub lost_in_router: u64,
    /// Packets the receiving host would not take, though undamaged.
    pub lost_after: u64,
    /// CPU time that the kernel used for handing packets over to the receiving host:
    /// its protocols' work up to the socket, and what they sent in answer at once. Not known
    /// where the router always sleeps, for a clock that stands still while anybody
    /// computes.
    pub kernel_used: Option<Duration>,
    /// From when a packet was due to when the host had taken it, in microseconds.
    pub release_error_us: Spread,
    /// The error by the kernel's stamps, see [`Audit::outside_error_us`].
    pub outside_error_us: Option<Spread>,
    /// Delivered packets that could not be followed by the kernel's stamps.
    pub unseen: u64,
    /// What the link asked for.
    pub asked: Figures,
    /// What the emulator did, as its audit measured it.
    pub realised: Figures,
}

/// Delay, loss and rate, as asked or as realised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Figures {
    /// From a packet's arrival at the router to its arrival at the host, in
    /// milliseconds.
    pub delay_ms: Spread,
    /// Share of packets that did not arrive, per cent.
    pub loss_pct: f64,
    /// Mean rate of what arrived, in Mbit/s.
    pub rate_mbit_per_s: f64,
    /// Highest rate of what arrived over a tenth of a second, in Mbit/s.
    pub peak_mbit_per_s: f64,
}

impl WayAudit {
    /// Packets that were lost by the emulator rather than by the link.
    #[must_use]
    pub const fn lost_by_accident(&self) -> u64 {
        self.lost_before + self.lost_in_router + self.lost_after
    }
}
