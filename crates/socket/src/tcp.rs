//! The kernel's own TCP: messages with their length in front, on a stream.
//!
//! - `gather`: streams that are used as they are
//! - `settings`: what can be chosen, and what the kernel offers
//! - `connection`: the connection behind [`SocketConnection`](crate::SocketConnection)

mod connection;
mod gather;
mod settings;

pub use gather::{congestion, gather, set_congestion};
pub use settings::{Settings, machine_asks_for_ecn};

use lagometer_transport::Spec;

use crate::catalogue::checked;
use crate::spec::SocketSpec;

/// The kernel's TCP with the settings of TCP's endpoint, where `endpoint` is
/// that.
pub(crate) fn in_kernel(endpoint: &Spec) -> Option<SocketSpec> {
    endpoint.settings::<Settings>().cloned().map(checked)
}
