//! What the router waits for on Linux: `epoll`, or its files one by one.

use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::time::Duration;

use rustix::buffer::spare_capacity;
use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};
use rustix::io::Errno;

use super::wait::Waiting;

/// What the router waits for: readiness of any of its files, each known by a
/// number.
pub(super) struct Waiter {
    files: Files,
    ready: Vec<u64>,
}

/// The files, and how the system is asked for them.
enum Files {
    /// By a call that costs as much for many files as for few.
    Watched {
        epoll: OwnedFd,
        events: Vec<epoll::Event>,
    },
    /// One by one, in the call that sleeps: half as many calls for each packet, which
    /// is what costs in virtual time.
    Asked(Vec<(OwnedFd, u64)>),
}

impl Waiter {
    /// Waits for nothing yet; at most `files` will be added.
    pub(super) fn new(waiting: Waiting, files: usize) -> io::Result<Self> {
        Ok(Self {
            files: match waiting {
                Waiting::Sleep => Files::Asked(Vec::with_capacity(files)),
                Waiting::Hybrid { .. } | Waiting::Spin => Files::Watched {
                    epoll: epoll::create(epoll::CreateFlags::CLOEXEC)?,
                    events: Vec::with_capacity(files.max(1)),
                },
            },
            ready: Vec::with_capacity(files),
        })
    }

    /// Waits for `file` too, to be known by `number`.
    pub(super) fn add(&mut self, file: impl AsFd, number: u64) -> io::Result<()> {
        match &mut self.files {
            Files::Watched { epoll, .. } => {
                let data = epoll::EventData::new_u64(number);
                epoll::add(epoll, file, data, epoll::EventFlags::IN)?;
            }
            Files::Asked(files) => files.push((file.as_fd().try_clone_to_owned()?, number)),
        }
        Ok(())
    }

    /// Waits until a file is ready or `longest` has passed. Whether any is.
    pub(super) fn wait(&mut self, longest: Duration) -> io::Result<bool> {
        self.ready.clear();
        match &mut self.files {
            Files::Watched { epoll, events } => {
                // Sleeping is left to `ppoll`, which counts nanoseconds, as `epoll`
                // does not on every system that is in use.
                let mut all = [PollFd::new(epoll, PollFlags::IN)];
                if !longest.is_zero() && !sleep(&mut all, longest)? {
                    return Ok(false);
                }
                events.clear();
                let at_once = Timespec::default();
                match epoll::wait(epoll, spare_capacity(events), Some(&at_once)) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
                self.ready
                    .extend(events.iter().map(|event| event.data.u64()));
            }
            Files::Asked(files) => {
                let mut all: Vec<PollFd<'_>> = files
                    .iter()
                    .map(|(file, _)| PollFd::new(file, PollFlags::IN))
                    .collect();
                if sleep(&mut all, longest)? {
                    let ready = all.iter().zip(&*files).filter(|(file, _)| is_ready(file));
                    self.ready.extend(ready.map(|(_, (_, number))| *number));
                }
            }
        }
        Ok(!self.ready.is_empty())
    }

    /// How many files were ready.
    pub(super) fn ready_count(&self) -> usize {
        self.ready.len()
    }

    /// The number of the `nth` file that was ready.
    pub(super) fn ready(&self, nth: usize) -> Option<u64> {
        self.ready.get(nth).copied()
    }
}

/// Sleeps until one of `files` is ready, at most `longest`. Whether one is.
fn sleep(files: &mut [PollFd<'_>], longest: Duration) -> io::Result<bool> {
    let longest = Timespec {
        tv_sec: longest.as_secs().cast_signed(),
        tv_nsec: longest.subsec_nanos().into(),
    };
    match poll(files, Some(&longest)) {
        Ok(ready) => Ok(ready > 0),
        Err(Errno::INTR) => Ok(false),
        Err(error) => Err(error.into()),
    }
}

fn is_ready(file: &PollFd<'_>) -> bool {
    !file.revents().is_empty()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::event::{EventfdFlags, eventfd};

    #[test]
    fn every_way_of_waiting_reports_which_files_are_ready() {
        for waiting in [Waiting::Sleep, Waiting::default(), Waiting::Spin] {
            let [quiet, loud] = [0, 1].map(|count| eventfd(count, EventfdFlags::NONBLOCK).unwrap());
            let mut waiter = Waiter::new(waiting, 2).unwrap();
            assert!(!waiter.wait(Duration::ZERO).unwrap());
            waiter.add(&quiet, 7).unwrap();
            assert!(!waiter.wait(Duration::from_millis(1)).unwrap());
            waiter.add(&loud, 8).unwrap();
            for longest in [Duration::ZERO, Duration::from_secs(10)] {
                assert!(waiter.wait(longest).unwrap(), "{waiting:?}");
                assert_eq!(waiter.ready_count(), 1, "{waiting:?}");
                assert_eq!((waiter.ready(0), waiter.ready(1)), (Some(8), None));
            }
        }
    }
}
