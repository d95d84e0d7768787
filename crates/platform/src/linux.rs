//! What [`crate`] has of Linux: a wake-up by `eventfd`, processors of a thread, clocks, the kernel's release.

use std::io;
use std::net::UdpSocket;
use std::num::NonZeroU64;
use std::time::Duration;

use rustix::event::{EventfdFlags, eventfd};
use rustix::fd::{AsFd, BorrowedFd, OwnedFd};
use rustix::io::Errno;
use rustix::net::SendFlags;
use rustix::thread::{CpuSet, sched_getaffinity, sched_setaffinity};
use rustix::time::{ClockId, clock_gettime};

use crate::TimerResolution;
pub(crate) use crate::posix::{
    RESERVED_PORTS, call_kernel, host_name, open_files, process_cpu_time, raise_open_files,
    set_echo, thread_cpu_time,
};
pub(crate) use crate::scheduling::become_first;

pub(crate) const NO_SIGNAL: SendFlags = SendFlags::NOSIGNAL;

#[derive(Debug)]
pub(crate) struct Waker(OwnedFd);

impl Waker {
    pub(crate) fn new() -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        Ok(Self(eventfd(0, flags)?))
    }

    pub(crate) fn wake(&self) -> io::Result<()> {
        match rustix::io::write(&self.0, &1_u64.to_ne_bytes()) {
            // So often that its counter is full: it is readable.
            Ok(_) | Err(Errno::AGAIN) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }

    pub(crate) fn clear(&self) {
        // Nothing to read means that it is clear.
        let _ = rustix::io::read(&self.0, &mut [0; 8]);
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

#[derive(Debug)]
pub(crate) struct Reserve {
    _file: OwnedFd,
}

impl Reserve {
    pub(crate) fn take() -> io::Result<Self> {
        Ok(Self {
            _file: eventfd(0, EventfdFlags::CLOEXEC)?,
        })
    }
}

#[expect(clippy::unnecessary_wraps, reason = "the shape that others have")]
pub(crate) const fn let_reads_end(_: &UdpSocket) -> io::Result<()> {
    Ok(())
}

#[inline]
pub(crate) fn monotonic_ns() -> u64 {
    // Without the C library between: where a clock is read for every echo that shows.
    let time = clock_gettime(ClockId::Monotonic);
    // Both are what the clock has shown since the system started.
    time.tv_sec.cast_unsigned() * 1_000_000_000 + time.tv_nsec.cast_unsigned()
}

#[inline]
pub(crate) fn yield_thread() {
    rustix::thread::sched_yield();
}

pub(crate) fn be_punctual() -> io::Result<()> {
    if rustix::thread::current_timer_slack()? > 1 {
        rustix::thread::set_current_timer_slack(NonZeroU64::new(1))?;
    }
    Ok(())
}

pub(crate) fn timer_slack() -> Option<Duration> {
    let nanos = rustix::thread::current_timer_slack().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// Linux's timers do not wait for a tick.
pub(crate) const fn timer_resolution() -> Option<TimerResolution> {
    None
}

pub(crate) fn processors() -> Vec<usize> {
    let Ok(set) = sched_getaffinity(None) else {
        return Vec::new();
    };
    (0..CpuSet::MAX_CPU)
        .filter(|cpu| set.is_set(*cpu))
        .collect()
}

pub(crate) fn place_thread(processors: &[usize]) -> io::Result<()> {
    let mut set = CpuSet::new();
    for &processor in processors {
        if processor >= CpuSet::MAX_CPU {
            return Err(io::ErrorKind::InvalidInput.into());
        }
        set.set(processor);
    }
    Ok(sched_setaffinity(None, &set)?)
}

pub(crate) fn release() -> String {
    std::fs::read_to_string("/proc/sys/kernel/osrelease")
        .map(|release| release.trim().to_owned())
        .unwrap_or_default()
}
