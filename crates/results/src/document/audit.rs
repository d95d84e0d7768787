//! What the emulator says of its own work: asked against delivered.

use serde::{Deserialize, Serialize};

/// What an emulated network did against what it was asked to do, over the
/// whole of the measuring.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Audit {
    /// Whether every error is within the band. A run for which this is false
    /// says nothing about the transports.
    pub valid: bool,
    /// What is not within it, each in a sentence; empty when valid.
    pub faults: Vec<String>,
    /// What carried packets: `tun`, `ethernet`, or `relay` for UDP datagrams
    /// on the loopback device.
    pub device: String,
    /// How the router waited: `sleep`, `hybrid` (sleep, then spin), `spin`.
    pub waiting: String,
    /// How the router's thread was scheduled: `real-time`, `ordinary`.
    pub precedence: String,
    /// Share of one core that the router's thread used, per cent. Absent on a clock that
    /// stands still while anybody computes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub router_cpu_pct: Option<f64>,
    /// From when a packet was due to when the host had taken it,
    /// microseconds.
    pub release_error_us: AuditSpread,
    /// From where the kernel stamped packets as sent, in the sending host, to where it
    /// stamped them as arrived, in the other: how far that was from what the links asked
    /// for, microseconds. Absent where the system does not let hosts be tapped, on a
    /// clock that stands still while anybody computes, and in older documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside_error_us: Option<AuditSpread>,
    /// How late the router woke from sleep, microseconds.
    pub wake_late_us: AuditSpread,
    /// The longest time the router was away while it should have been at
    /// work, microseconds.
    pub longest_absence_us: f64,
    /// What the links asked for, all lanes and directions together.
    pub asked: AuditFigures,
    /// What the emulator did, as its audit measured it.
    pub realised: AuditFigures,
    /// Each lane by itself.
    pub lanes: Vec<LaneAudit>,
}

/// One lane's part.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct LaneAudit {
    /// The lane's name.
    pub lane: String,
    /// From client to server.
    pub up: WayAudit,
    /// From server to client.
    pub down: WayAudit,
}

/// One direction of a lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WayAudit {
    /// Packets offered to the link.
    pub packets: u64,
    /// Packets lost by the emulator or a host's queue rather than by the
    /// link.
    pub lost_by_accident: u64,
    /// From when a packet was due to when the host had taken it, microseconds. Absent in
    /// older documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub release_error_us: Option<AuditSpread>,
    /// The error by the kernel's stamps, where there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub outside_error_us: Option<AuditSpread>,
    /// Delivered packets that could not be followed by the kernel's stamps.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unseen: u64,
    /// What the link asked for.
    pub asked: AuditFigures,
    /// What the emulator did, as its audit measured it.
    pub realised: AuditFigures,
}

/// Delay, loss and rate, as asked or as realised.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditFigures {
    /// From a packet's arrival at the router to its arrival at the host,
    /// milliseconds.
    pub delay_ms: AuditSpread,
    /// Share of packets that did not arrive, per cent.
    pub loss_pct: f64,
    /// Mean rate of what arrived, Mbit/s.
    pub rate_mbit_per_s: f64,
}

/// How something was distributed, in the unit the field's name gives. All
/// zero when nothing was recorded.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct AuditSpread {
    /// The number of values that were recorded.
    pub count: u64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Largest.
    pub max: f64,
}

/// Whether there is none.
#[expect(clippy::trivially_copy_pass_by_ref, reason = "as serde has it")]
const fn is_zero(count: &u64) -> bool {
    *count == 0
}
