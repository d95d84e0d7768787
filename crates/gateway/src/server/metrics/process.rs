//! What Linux knows of the process.

use prometheus::core::Collector;
use prometheus::process_collector::ProcessCollector;
use prometheus::proto::MetricFamily;
use rustix::process::{Resource, getrlimit};

/// Memory, threads and files of the process, under the names that are usual.
#[derive(Debug)]
pub(super) struct Process(ProcessCollector);

impl Process {
    pub(super) fn new() -> Self {
        Self(ProcessCollector::for_self())
    }

    /// What it knows now.
    pub(super) fn families(&self) -> Vec<MetricFamily> {
        self.0.collect()
    }
}

/// The most address space the process may have, in bytes.
#[expect(clippy::unnecessary_wraps, reason = "other systems do not say")]
pub(super) fn most_address_space() -> Option<f64> {
    let bytes = getrlimit(Resource::As).current;
    Some(bytes.map_or(u64::MAX as f64, |bytes| bytes as f64))
}
