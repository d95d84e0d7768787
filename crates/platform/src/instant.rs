//! The standard library's clock, as a number.

use std::sync::LazyLock;
use std::time::Instant;

/// Nanoseconds since this was first asked.
#[inline]
pub(crate) fn monotonic_ns() -> u64 {
    static ORIGIN: LazyLock<Instant> = LazyLock::new(Instant::now);
    ORIGIN.elapsed().as_nanos() as u64
}
