//! What a working thread shows while it works: read by others at any time,
//! written by it alone.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use lagometer_platform::thread_cpu_time;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use super::receive_tracker::Counts;

/// How often the processor time is looked at: that is a system call.
const CPU_EVERY: Duration = Duration::from_millis(50);

/// Figures of one end of a lane, as far as it has come.
#[derive(Debug, Default)]
pub(super) struct Gauge {
    messages: AtomicU64,
    bytes: AtomicU64,
    duplicates: AtomicU64,
    reordered: AtomicU64,
    damaged: AtomicU64,
    /// When the first and the last bytes moved, in nanoseconds; 0 for never.
    first: AtomicU64,
    last: AtomicU64,
    cpu: AtomicU64,
}

/// What a gauge shows at one moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Reading {
    pub(super) counts: Counts,
    /// From the first bytes to the last.
    pub(super) span: Duration,
    /// Processor time of the thread.
    pub(super) cpu: Duration,
}

impl Gauge {
    /// Shows what has moved by `now`.
    pub(super) fn show(&self, counts: Counts, now: Time) {
        if self.bytes.load(Ordering::Relaxed) != counts.bytes {
            if self.first.load(Ordering::Relaxed) == 0 {
                self.first.store(now.as_nanos().max(1), Ordering::Relaxed);
            }
            self.last.store(now.as_nanos(), Ordering::Relaxed);
        }
        self.messages.store(counts.messages, Ordering::Relaxed);
        self.duplicates.store(counts.duplicates, Ordering::Relaxed);
        self.reordered.store(counts.reordered, Ordering::Relaxed);
        self.damaged.store(counts.damaged, Ordering::Relaxed);
        // Last: whoever sees the bytes sees the rest.
        self.bytes.store(counts.bytes, Ordering::Release);
    }

    /// Shows the processor time spent so far.
    pub(super) fn show_cpu(&self, cpu: Duration) {
        let nanos = u64::try_from(cpu.as_nanos()).unwrap_or(u64::MAX);
        self.cpu.store(nanos, Ordering::Relaxed);
    }

    /// What it shows now.
    pub(super) fn read(&self) -> Reading {
        let bytes = self.bytes.load(Ordering::Acquire);
        let of = |figure: &AtomicU64| figure.load(Ordering::Relaxed);
        let (first, last) = (of(&self.first), of(&self.last));
        Reading {
            counts: Counts {
                messages: of(&self.messages),
                bytes,
                duplicates: of(&self.duplicates),
                reordered: of(&self.reordered),
                damaged: of(&self.damaged),
            },
            span: Duration::from_nanos(last.saturating_sub(first)),
            cpu: Duration::from_nanos(of(&self.cpu)),
        }
    }
}

/// Shows a thread's processor time now and then.
pub(super) struct CpuGauge {
    started_with: Duration,
    next: Time,
}

impl CpuGauge {
    /// Counts from here on.
    pub(super) fn start(now: Time) -> Self {
        Self {
            started_with: thread_cpu_time(),
            next: now,
        }
    }

    /// Shows it unless that was done a moment ago.
    pub(super) fn look(&mut self, now: Time, gauge: &Gauge) {
        if now >= self.next {
            self.next = now + CPU_EVERY;
            self.finish(gauge, Duration::ZERO);
        }
    }

    /// Shows it, and `beside`, which others had for this thread.
    pub(super) fn finish(&self, gauge: &Gauge, beside: Duration) {
        gauge.show_cpu(thread_cpu_time().saturating_sub(self.started_with) + beside);
    }
}
