//! What a service gets for one job: the client's address, data sockets, threads,
//! and a way to report.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::ops::RangeInclusive;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use lagometer_units::Clock;
use serde_json::Value;

use crate::data::{TcpDataListener, UdpDataListener};
use crate::message::{FromServer, JobNumber};
use crate::service::Refusal;
use crate::tag::Key;

/// How a job is asked to end.
#[derive(Clone, Debug, Default)]
pub struct Stop {
    shared: Arc<(AtomicBool, Mutex<()>, Condvar)>,
}

impl Stop {
    /// One that has not been raised.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Whether the job is to end: cheap enough to ask for every message.
    #[must_use]
    #[inline]
    pub fn is_raised(&self) -> bool {
        self.shared.0.load(Ordering::Relaxed)
    }

    /// Asks the job to end.
    pub fn raise(&self) {
        let (raised, lock, waiting) = &*self.shared;
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        raised.store(true, Ordering::Relaxed);
        drop(guard);
        waiting.notify_all();
    }

    /// Waits until it is raised, but no longer than `span`; whether it is.
    #[must_use]
    pub fn wait(&self, span: Duration) -> bool {
        let (_, lock, waiting) = &*self.shared;
        let guard = lock.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = waiting.wait_timeout_while(guard, span, |()| !self.is_raised());
        self.is_raised()
    }
}

/// A thread that does a job's work. Dropped, it asks the work to end and waits
/// until it has.
#[derive(Debug)]
pub struct Worker<T> {
    stop: Stop,
    thread: Option<JoinHandle<T>>,
}

impl<T> Worker<T> {
    /// Asks the work to end, and returns what it found; `None` if it
    /// panicked.
    #[must_use]
    pub fn finish(mut self) -> Option<T> {
        self.stop.raise();
        self.thread.take()?.join().ok()
    }

    /// Whether the work has ended.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }
}

impl<T> Drop for Worker<T> {
    fn drop(&mut self) {
        self.stop.raise();
        if let Some(thread) = self.thread.take() {
            // What it found, or how it failed, is not wanted any more.
            let _ = thread.join();
        }
    }
}

/// Says something to the local end of a control connection.
pub(crate) type Voice = Arc<dyn Fn(&FromServer) + Send + Sync>;

/// The place where a job lives: made by the remote end for one job of one
/// control connection. Clones are of the same job.
#[derive(Clone)]
pub struct Session {
    pub(crate) job: JobNumber,
    pub(crate) peer: SocketAddr,
    pub(crate) local: IpAddr,
    pub(crate) ports: Option<RangeInclusive<u16>>,
    pub(crate) clock: Clock,
    pub(crate) data: Key,
    pub(crate) voice: Voice,
    pub(crate) stop: Stop,
    pub(crate) sockets: SocketCount,
}

/// Counts a job's sockets against what all jobs and one control connection may have.
#[derive(Clone, Debug)]
pub(crate) struct SocketCount {
    mine: Arc<AtomicUsize>,
    budgets: [(Arc<AtomicUsize>, usize); 2],
}

impl SocketCount {
    /// Counts for a new job against two budgets and their limits.
    pub(crate) fn new(budgets: [(Arc<AtomicUsize>, usize); 2]) -> Self {
        Self {
            mine: Arc::default(),
            budgets,
        }
    }

    fn one_more(&self) -> Result<(), Refusal> {
        for (index, (count, limit)) in self.budgets.iter().enumerate() {
            if count.fetch_add(1, Ordering::Relaxed) >= *limit {
                for (count, _) in &self.budgets[..=index] {
                    count.fetch_sub(1, Ordering::Relaxed);
                }
                return Err(Refusal::new(format!(
                    "no more than {limit} data sockets are open at once"
                )));
            }
        }
        self.mine.fetch_add(1, Ordering::Relaxed);
        Ok(())
    }

    /// The job has ended: none of its sockets count any more.
    pub(crate) fn release(&self) {
        let mine = self.mine.swap(0, Ordering::Relaxed);
        for (count, _) in &self.budgets {
            count.fetch_sub(mine, Ordering::Relaxed);
        }
    }
}

impl Session {
    /// Who asked.
    #[must_use]
    pub const fn peer(&self) -> SocketAddr {
        self.peer
    }

    /// The remote end's address that the local end reached.
    #[must_use]
    pub const fn local(&self) -> IpAddr {
        self.local
    }

    /// The remote end's clock, whose offset the local end estimates.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Raised when the job is to end.
    #[must_use]
    pub const fn stop(&self) -> &Stop {
        &self.stop
    }

    /// Opens a UDP socket for what is measured, at a port of its own.
    ///
    /// # Errors
    ///
    /// [`Refusal`] where there are too many already, or the system gives none.
    pub fn udp(&self) -> Result<UdpDataListener, Refusal> {
        self.sockets.one_more()?;
        let socket = self
            .bound(UdpSocket::bind)
            .map_err(|error| no_socket(&error))?;
        UdpDataListener::new(socket, self).map_err(|error| no_socket(&error))
    }

    /// Opens a TCP listener for what is measured, at a port of its own.
    ///
    /// # Errors
    ///
    /// [`Refusal`] where there are too many already, or the system gives none.
    pub fn tcp(&self) -> Result<TcpDataListener, Refusal> {
        self.sockets.one_more()?;
        let listener = self
            .bound(TcpListener::bind)
            .map_err(|error| no_socket(&error))?;
        TcpDataListener::new(listener, self).map_err(|error| no_socket(&error))
    }

    /// Binds to a port that is free among those that data sockets may have.
    fn bound<S>(&self, bind: impl Fn(SocketAddr) -> io::Result<S>) -> io::Result<S> {
        let Some(ports) = self.ports.clone() else {
            return bind(SocketAddr::new(self.local, 0));
        };
        let mut refused = io::ErrorKind::AddrNotAvailable.into();
        for port in ports {
            match bind(SocketAddr::new(self.local, port)) {
                Err(error) if error.kind() == io::ErrorKind::AddrInUse => refused = error,
                done => return done,
            }
        }
        Err(refused)
    }

    /// Starts a thread called `name` for the job's work, which must end soon
    /// after the job's stop is raised.
    ///
    /// # Errors
    ///
    /// [`Refusal`] where the system gives no thread.
    pub fn spawn<T: Send + 'static>(
        &self,
        name: &str,
        work: impl FnOnce(&Stop) -> T + Send + 'static,
    ) -> Result<Worker<T>, Refusal> {
        let stop = self.stop.clone();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || work(&stop))
            .map_err(|error| Refusal::new(format!("there is no thread to be had: {error}")))?;
        Ok(Worker {
            stop: self.stop.clone(),
            thread: Some(thread),
        })
    }

    /// Sends the local end an event of the job's own accord. It is lost if the
    /// local end does not listen, or is gone.
    pub fn send_event(&self, body: &Value) {
        (self.voice)(&FromServer::Event {
            job: self.job,
            body: body.clone(),
        });
    }

    /// The key of the data listener at `port`.
    pub(crate) fn listener_key(&self, port: u16) -> Key {
        listener_key(&self.data, self.job, port)
    }

    pub(crate) fn admitted(&self, port: u16) {
        (self.voice)(&FromServer::Admitted {
            job: self.job,
            port,
        });
    }
}

/// The key of a job's data listener at `port`, the same at both ends.
pub(crate) fn listener_key(data: &Key, job: JobNumber, port: u16) -> Key {
    data.derive("listener", &[&job.to_be_bytes(), &port.to_be_bytes()])
}

fn no_socket(error: &io::Error) -> Refusal {
    Refusal::new(format!("there is no socket to be had: {error}"))
}

impl fmt::Debug for Session {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Session")
            .field("job", &self.job)
            .field("peer", &self.peer)
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sockets_count_against_both_budgets_until_the_job_ends() {
        let (all, conversation) = (Arc::new(AtomicUsize::new(0)), Arc::default());
        let job = || SocketCount::new([(Arc::clone(&all), 5), (Arc::clone(&conversation), 3)]);
        let (first, second) = (job(), job());
        assert!(first.one_more().is_ok() && first.one_more().is_ok());
        assert!(second.one_more().is_ok());
        assert!(second.one_more().is_err());
        assert_eq!(all.load(Ordering::Relaxed), 3, "a refusal counts nowhere");
        first.release();
        assert!(second.one_more().is_ok());
        second.release();
        second.release();
        assert_eq!(all.load(Ordering::Relaxed), 0);
    }

    #[test]
    fn a_stop_wakes_who_waits_for_it() {
        let stop = Stop::new();
        assert!(!stop.wait(Duration::ZERO));
        let raiser = stop.clone();
        let thread = thread::spawn(move || raiser.raise());
        assert!(stop.wait(Duration::from_mins(1)));
        thread.join().unwrap();
    }
}
