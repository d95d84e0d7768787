//! Congestion control: the trait, what it sees of a connection, and the three
//! controls of Linux that games meet.

mod bbr;
mod cubic;
mod flow;
mod reno;

use std::fmt;

pub use bbr::Bbr;
pub use cubic::Cubic;
pub(crate) use flow::INFINITE_SSTHRESH;
pub use flow::{CongestionState, Flow, RateSample};
pub use reno::Reno;

/// Which congestion control a connection uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Algorithm {
    /// CUBIC (RFC 9438) with `HyStart`, Linux's default.
    #[default]
    Cubic,
    /// Reno (RFC 5681).
    Reno,
    /// BBR, version 1.
    Bbr,
}

impl Algorithm {
    /// A fresh control of this kind.
    #[must_use]
    pub fn control(self) -> Box<dyn CongestionControl> {
        match self {
            Self::Cubic => Box::new(Cubic::default()),
            Self::Reno => Box::new(Reno),
            Self::Bbr => Box::new(Bbr::default()),
        }
    }
}

/// What happened to a connection that a control may want to know (Linux 6.1
/// `enum tcp_ca_event`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CongestionEvent {
    /// First transmission when no packet was in flight.
    TransmitStart,
    /// The congestion window is about to be restarted after an idle time.
    WindowRestart,
    /// A reduction of the congestion window has ended.
    ReductionComplete,
    /// The loss state was entered.
    Loss,
}

/// What one acknowledgement acknowledged.
#[derive(Clone, Copy, Debug)]
pub struct AckSample {
    /// Packets newly acknowledged, cumulatively.
    pub packets: u32,
    /// Round-trip time of the last packet acknowledged, in microseconds; none
    /// when the acknowledgement gave no sample.
    pub rtt_us: Option<u32>,
}

/// A congestion control (Linux 6.1 `struct tcp_congestion_ops`).
///
/// A control steers by [`Flow::cwnd`], [`Flow::ssthresh`] and
/// [`Flow::pacing_rate`]. Its methods are called by the connection in the order
/// in which the kernel calls them.
pub trait CongestionControl: fmt::Debug + Send {
    /// The name by which Linux knows it.
    fn name(&self) -> &'static str;

    /// The connection is established.
    fn init(&mut self, flow: &mut Flow) {
        let _ = flow;
    }

    /// The slow-start threshold after a loss, in packets.
    fn threshold_after_loss(&mut self, flow: &mut Flow) -> u32;

    /// Grows the window by `acked` packets delivered, outside of reductions.
    fn grow(&mut self, flow: &mut Flow, acked: u32) {
        let _ = (flow, acked);
    }

    /// The window to return to when a reduction turns out to have been
    /// mistaken, in packets.
    fn window_after_undo(&mut self, flow: &mut Flow) -> u32 {
        flow.cwnd.max(flow.prior_cwnd)
    }

    /// The connection's state of recovery is about to change; [`Flow::state`]
    /// still has the old one.
    fn on_state(&mut self, flow: &mut Flow, state: CongestionState) {
        let _ = (flow, state);
    }

    /// Something happened.
    fn on_event(&mut self, flow: &mut Flow, event: CongestionEvent) {
        let _ = (flow, event);
    }

    /// Packets were acknowledged; called before the window changes.
    fn on_packets_acked(&mut self, flow: &mut Flow, sample: &AckSample) {
        let _ = (flow, sample);
    }

    /// Whether the control sets window and pacing rate by itself, in
    /// [`control`](Self::control), instead of growing and being reduced.
    fn controls_all(&self) -> bool {
        false
    }

    /// Sets window and pacing rate after an acknowledgement; called only if
    /// [`controls_all`](Self::controls_all).
    fn control(&mut self, flow: &mut Flow, sample: &RateSample) {
        let _ = (flow, sample);
    }

    /// The fewest segments of a burst (TSO), when pacing is slow.
    fn min_burst_segments(&self, flow: &Flow) -> u32 {
        let _ = flow;
        2
    }

    /// How many congestion windows the send buffer should hold.
    fn send_buffer_windows(&self) -> u32 {
        2
    }
}
