//! How far the kernel's ticks have come: `times(2)`.

use std::mem::MaybeUninit;

use nix::libc;

/// The kernel's ticks in hundredths of a second (Linux `jiffies_64_to_clock_t`),
/// counted from where the kernel began to count.
pub(crate) fn hundredths() -> u64 {
    let mut times = MaybeUninit::<libc::tms>::zeroed();
    // SAFETY: the kernel writes one `struct tms`, for which there is room.
    unsafe { libc::times(times.as_mut_ptr()) }.cast_unsigned()
}
