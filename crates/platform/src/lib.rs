//! What operating systems do differently, behind one interface, for everything
//! that runs in real time.
//!
//! Whoever calls these functions knows nothing of the system beneath. What one
//! lacks is said in the function's words: it does nothing there, or returns `None`.
//! Each system has one module with the same functions, chosen at compile time:
//! `linux`, `windows`, and `other` for those that keep to POSIX, macOS among them; what
//! several have alike is in `posix` and `absent`.
//! Sockets are not here: `rustix` and the standard library have them alike
//! everywhere.
//!
//! # Map
//!
//! - [`Waker`]: wakes a thread that waits for sockets
//! - [`let_reads_end`]: a reader whose socket another thread shuts down
//! - [`thread_cpu_time`], [`process_cpu_time`]: processor time used
//! - [`monotonic_ns`]: a clock, asked with as little between as there is
//! - [`be_punctual`], [`timer_slack`], [`timer_resolution`]: how late a sleep or a wait
//!   may end
//! - [`processors`], [`place_thread`], [`become_first`], [`spawn_first`]: where threads run, and which first
//! - [`Reserve`], [`open_files`], [`raise_open_files`]: files and their limit
//! - [`RESERVED_PORTS`]: what may help where a port may not be listened at
//! - [`set_echo`]: what a terminal shows of what is typed
//! - [`release`], [`host_name`]: which version of the system this is, on which machine

#[cfg(not(target_os = "linux"))]
mod absent;
#[cfg(not(target_os = "linux"))]
mod instant;
#[cfg(not(target_os = "linux"))]
mod loopback;
#[cfg(unix)]
mod posix;
#[cfg(target_os = "linux")]
mod scheduling;
#[cfg(all(unix, not(target_os = "linux")))]
#[path = "other.rs"]
mod system;
#[cfg(target_os = "linux")]
#[path = "linux.rs"]
mod system;
#[cfg(windows)]
#[path = "windows.rs"]
mod system;

use std::io;
use std::net::UdpSocket;
use std::sync::mpsc;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use rustix::fd::{AsFd, BorrowedFd};
use rustix::net::SendFlags;

/// Wakes a thread that waits for sockets: whoever polls it finds it readable from
/// [`wake`](Self::wake) until [`clear`](Self::clear).
///
/// An eventfd on Linux; elsewhere a UDP socket of the loopback device that is
/// connected to itself.
#[derive(Debug)]
pub struct Waker(system::Waker);

impl Waker {
    /// One that nobody has woken yet.
    ///
    /// # Errors
    ///
    /// The system's: it has no file left.
    pub fn new() -> io::Result<Self> {
        system::Waker::new().map(Self)
    }

    /// Makes it readable, from any thread. That it is so already is no error.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn wake(&self) -> io::Result<()> {
        self.0.wake()
    }

    /// Makes it unreadable again, however often it was woken.
    pub fn clear(&self) {
        self.0.clear();
    }
}

impl AsFd for Waker {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

/// Has reads of a socket that wait end when another thread shuts it down, or a moment
/// later. Linux ends them by itself; elsewhere they end now and then though nothing
/// has come, as [`io::ErrorKind::WouldBlock`] or [`io::ErrorKind::TimedOut`].
///
/// # Errors
///
/// The system's.
pub fn let_reads_end(socket: &UdpSocket) -> io::Result<()> {
    system::let_reads_end(socket)
}

/// A file that nothing is done with, kept so that there is one to give up.
#[derive(Debug)]
pub struct Reserve {
    _file: system::Reserve,
}

impl Reserve {
    /// Takes a file from the system.
    ///
    /// # Errors
    ///
    /// The system's: it has none left.
    pub fn take() -> io::Result<Self> {
        Ok(Self {
            _file: system::Reserve::take()?,
        })
    }
}

/// Processor time that the calling thread has used, in user and system mode
/// together. Windows counts it in steps of its clock tick, about 16 ms.
#[must_use]
pub fn thread_cpu_time() -> Duration {
    system::thread_cpu_time()
}

/// Processor time that all threads of the process have used, likewise.
#[must_use]
pub fn process_cpu_time() -> Duration {
    system::process_cpu_time()
}

/// Nanoseconds of a clock that never goes back, since some instant before the call
/// that first asked for them.
#[inline]
#[must_use]
pub fn monotonic_ns() -> u64 {
    system::monotonic_ns()
}

/// How a socket is written to so that a peer which has gone is an error and no signal.
pub const NO_SIGNAL: SendFlags = system::NO_SIGNAL;

/// What may help where a program is not permitted to listen at a port
/// ([`io::ErrorKind::PermissionDenied`]), for the end of a line.
pub const RESERVED_PORTS: &str = system::RESERVED_PORTS;

/// Lets another thread that waits for the processor go first.
#[inline]
pub fn yield_thread() {
    system::yield_thread();
}

/// Makes the calling thread's sleeps end when they should, as far as the system
/// can: Linux may end them 50 us late by default, to save power. Where it is more
/// punctual than can be asked for, as a kernel in virtual time is, it is left alone.
/// On Windows the clock ticks each millisecond from then on, for the whole process
/// (`timeBeginPeriod`): waits for sockets end at ticks, which come each 15.6 ms
/// otherwise; for sleeps the standard library asks for timers of high resolution by
/// itself. On macOS there is nothing to set.
///
/// # Errors
///
/// The system's.
pub fn be_punctual() -> io::Result<()> {
    system::be_punctual()
}

/// How late the system may end the calling thread's sleeps; `None` where it does
/// not say.
#[must_use]
pub fn timer_slack() -> Option<Duration> {
    system::timer_slack()
}

/// How often a system looks whether waits are over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimerResolution {
    /// The longest time from one look to the next.
    pub coarsest: Duration,
    /// The shortest that can be asked for.
    pub finest: Duration,
    /// The time now.
    pub current: Duration,
}

/// How often the system looks whether waits are over, where it does so at the ticks of a
/// clock: on Windows. `None` elsewhere.
#[must_use]
pub fn timer_resolution() -> Option<TimerResolution> {
    system::timer_resolution()
}

/// The numbers of the processors that the calling thread may be placed on, in
/// order; none where threads cannot be placed, as on Windows and macOS here.
#[must_use]
pub fn processors() -> Vec<usize> {
    system::processors()
}

/// Keeps the calling thread on these processors.
///
/// # Errors
///
/// The system's: there is no such processor, or it may not be used;
/// [`io::ErrorKind::Unsupported`] where threads cannot be placed.
pub fn place_thread(processors: &[usize]) -> io::Result<()> {
    system::place_thread(processors)
}

/// Puts the calling thread into the first-in first-out real-time class at its lowest
/// priority: it runs before every ordinary thread of its processor.
///
/// # Errors
///
/// The system's: without privilege or an `RLIMIT_RTPRIO` it is not permitted;
/// [`io::ErrorKind::Unsupported`] on other systems than Linux.
pub fn become_first() -> io::Result<()> {
    system::become_first()
}

/// Starts a thread called `name` that [is first](become_first), or an ordinary one where
/// that is refused. What it is to come before may be started when this returns.
///
/// # Errors
///
/// The system's: it has no thread left.
pub fn spawn_first(name: &str, work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    let (starting, started) = mpsc::channel::<()>();
    let thread = thread::Builder::new()
        .name(name.to_owned())
        .spawn(move || {
            let _ = become_first();
            drop(starting);
            work();
        })?;
    // Nothing is sent: this ends when the thread has let go of its end.
    let _ = started.recv();
    Ok(thread)
}

/// How many files, sockets among them, the process may have open; `None` where
/// nothing but memory limits them.
#[must_use]
pub fn open_files() -> Option<u64> {
    system::open_files()
}

/// Raises that limit to what the system permits at most. Where that fails, it stays
/// as it was.
pub fn raise_open_files() {
    system::raise_open_files();
}

/// The system's version, as in `6.1.0-18-amd64` or `10.0.19045`; empty where it does
/// not say.
#[must_use]
pub fn release() -> String {
    system::release()
}

/// The name of this machine, as its administrator gave it; `None` where it has none.
#[must_use]
pub fn host_name() -> Option<String> {
    system::host_name()
}

/// Has the terminal at standard input show what is typed, or not; what is typed reaches
/// who reads it, and Ctrl-C the program, as before. Returns whether that changed
/// anything: it does not where there is no such terminal, where the process runs in its
/// background, and on Windows, which shows only what somebody reads.
#[must_use = "it says whether there is anything to undo"]
pub fn set_echo(is_on: bool) -> bool {
    system::set_echo(is_on)
}

/// Asks the kernel for something that costs it nothing: what remains is the cost of
/// asking.
pub fn call_kernel() {
    system::call_kernel();
}

#[cfg(test)]
mod tests {
    use rustix::event::{PollFd, PollFlags, Timespec, poll};

    use super::*;

    fn is_readable(waker: &Waker) -> bool {
        let mut files = [PollFd::new(waker, PollFlags::IN)];
        poll(&mut files, Some(&Timespec::default())).unwrap() > 0
    }

    #[test]
    fn a_waker_is_readable_from_waking_until_clearing() {
        let waker = Waker::new().unwrap();
        assert!(!is_readable(&waker));
        thread::scope(|scope| {
            scope.spawn(|| {
                for _ in 0..3 {
                    waker.wake().unwrap();
                }
            });
            poll(&mut [PollFd::new(&waker, PollFlags::IN)], None).unwrap();
        });
        assert!(is_readable(&waker));
        waker.clear();
        assert!(!is_readable(&waker));
    }

    #[test]
    fn a_waker_can_be_woken_very_often_without_being_cleared() {
        let waker = Waker::new().unwrap();
        for _ in 0..100_000 {
            waker.wake().unwrap();
        }
        waker.clear();
        assert!(!is_readable(&waker));
    }

    #[test]
    fn work_is_counted_and_sleep_is_not() {
        be_punctual().unwrap();
        let before = thread_cpu_time();
        let of_all = process_cpu_time();
        let mut number = 1_u64;
        while thread_cpu_time() < before + Duration::from_millis(50) {
            number = number.wrapping_mul(6_364_136_223_846_793_005) + 1;
        }
        assert_ne!(number, 0);
        assert!(process_cpu_time() > of_all);
        let worked = thread_cpu_time();
        thread::sleep(Duration::from_millis(100));
        assert!(thread_cpu_time().saturating_sub(worked) < Duration::from_millis(50));
    }

    #[test]
    fn a_clock_that_ticks_does_so_each_millisecond_where_that_was_asked_for() {
        be_punctual().unwrap();
        if let Some(ticks) = timer_resolution() {
            assert!(ticks.finest <= ticks.current && ticks.current <= ticks.coarsest);
            assert!(ticks.current <= Duration::from_millis(1), "{ticks:?}");
        }
    }

    #[test]
    fn a_thread_is_placed_where_the_process_may_run_or_is_said_to_be_left_alone() {
        let Some(&first) = processors().first() else {
            let refused = place_thread(&[0]).unwrap_err();
            assert_eq!(refused.kind(), io::ErrorKind::Unsupported);
            return;
        };
        let placed = thread::spawn(move || place_thread(&[first]).map(|()| processors()));
        assert_eq!(placed.join().unwrap().unwrap(), [first]);
        assert!(place_thread(&[usize::MAX]).is_err());
    }

    #[test]
    fn the_system_says_its_version() {
        let release = release();
        assert!(
            release.contains('.') && release.trim() == release,
            "{release}"
        );
    }

    #[test]
    fn the_machine_has_the_name_that_programs_are_shown() {
        let shown = std::process::Command::new("hostname").output();
        // Not every system comes with the program.
        if let Ok(shown) = shown {
            let shown = String::from_utf8_lossy(&shown.stdout).trim().to_owned();
            let name = host_name().unwrap_or_default();
            assert!(shown.eq_ignore_ascii_case(&name), "{shown}, not {name}");
        }
    }

    #[test]
    fn files_are_kept_in_reserve() {
        let kept: io::Result<Vec<Reserve>> = (0..8).map(|_| Reserve::take()).collect();
        assert_eq!(kept.unwrap().len(), 8);
    }
}
