//! What is known of the process on other systems than Linux: its processor time, which
//! the metrics have by themselves.

use prometheus::proto::MetricFamily;

/// Nothing more is known of the process.
#[derive(Debug)]
pub(super) struct Process;

impl Process {
    pub(super) const fn new() -> Self {
        Self
    }

    /// Nothing.
    #[expect(clippy::unused_self, reason = "the shape that Linux has")]
    pub(super) const fn families(&self) -> Vec<MetricFamily> {
        Vec::new()
    }
}

/// Not known.
pub(super) const fn most_address_space() -> Option<f64> {
    None
}
