//! The thread a side is played on: punctual, and counted.

use std::io;
use std::num::NonZeroU64;
use std::time::Duration;

use rustix::time::{ClockId, clock_gettime};

/// Makes the calling thread's sleeps end when they should, as far as the
/// kernel can: it may end them 50 us late by default, to save power. Where it is
/// more punctual than can be asked for, as a kernel in virtual time is, it is
/// left alone.
///
/// # Errors
///
/// What the system says.
pub fn be_punctual() -> io::Result<()> {
    if rustix::thread::current_timer_slack()? > 1 {
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    }
    Ok(())
}

/// CPU time the calling thread has used, in user and system mode together.
#[must_use]
pub fn used_cpu() -> Duration {
    let used = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(
        u64::try_from(used.tv_sec).unwrap_or_default(),
        u32::try_from(used.tv_nsec).unwrap_or_default(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_counted_and_sleep_is_not() {
        be_punctual().unwrap();
        let before = used_cpu();
        let mut number = 1_u64;
        while used_cpu() < before + Duration::from_millis(5) {
            number = number.wrapping_mul(6_364_136_223_846_793_005) + 1;
        }
        assert_ne!(number, 0);
        let worked = used_cpu();
        std::thread::sleep(Duration::from_millis(50));
        assert!(used_cpu().saturating_sub(worked) < Duration::from_millis(25));
    }
}
