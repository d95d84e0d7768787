//! A thread with a queue of closures, executed one after the other.
//!
//! Network namespaces belong to threads: sockets and devices of a namespace are
//! made by a thread that has entered it.

use std::panic::{self, AssertUnwindSafe};
use std::sync::mpsc::{self, Sender};
use std::thread::{self, JoinHandle};

use crate::error::{Doing, Error};

type Job = Box<dyn FnOnce() + Send>;

/// A thread with a queue of work. It ends when this is dropped, after the
/// work that was asked for.
#[derive(Debug)]
pub(crate) struct Worker {
    name: &'static str,
    jobs: Option<Sender<Job>>,
    thread: Option<JoinHandle<()>>,
}

impl Worker {
    /// Starts a thread called `name`, which first does `prepare` and then
    /// waits for work. What that returns first is returned here; what it
    /// returns second is dropped on the thread when it ends.
    pub(crate) fn start<T: Send + 'static, K>(
        name: &'static str,
        prepare: impl FnOnce() -> Result<(T, K), Error> + Send + 'static,
    ) -> Result<(Self, T), Error> {
        let (jobs, queue) = mpsc::channel::<Job>();
        let (ready, is_ready) = mpsc::channel();
        let thread = thread::Builder::new()
            .name(name.to_owned())
            .spawn(move || {
                let (prepared, _kept) = match prepare() {
                    Ok((prepared, kept)) => (Ok(prepared), Some(kept)),
                    Err(error) => (Err(error), None),
                };
                let go_on = prepared.is_ok();
                // Whoever starts the thread waits for this; if it does not,
                // there is nobody to work for either.
                if ready.send(prepared).is_ok() && go_on {
                    for job in queue {
                        job();
                    }
                }
            })
            .doing(format!("starting the thread of the {name}"))?;
        let prepared = is_ready.recv().map_err(|_| Error::ThreadGone(name))??;
        let worker = Self {
            name,
            jobs: Some(jobs),
            thread: Some(thread),
        };
        Ok((worker, prepared))
    }

    /// Does `work` on the thread and returns what it returns.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadGone`] if the thread has ended.
    ///
    /// # Panics
    ///
    /// If `work` does, with what it panicked with.
    pub(crate) fn run<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        let (answer, answered) = mpsc::channel();
        let job = Box::new(move || {
            let outcome = panic::catch_unwind(AssertUnwindSafe(work));
            // Whoever asked waits below.
            let _ = answer.send(outcome);
        });
        self.jobs
            .as_ref()
            .and_then(|jobs| jobs.send(job).ok())
            .ok_or(Error::ThreadGone(self.name))?;
        match answered.recv() {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(panicked)) => panic::resume_unwind(panicked),
            Err(_) => Err(Error::ThreadGone(self.name)),
        }
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        self.jobs = None;
        if let Some(thread) = self.thread.take() {
            // A panic of its work has been handed to whoever asked for it.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_done_on_the_thread_and_a_panic_comes_back() {
        let (worker, number) = Worker::start("test", || Ok((7, ()))).unwrap();
        assert_eq!(number, 7);
        let name = worker.run(|| thread::current().name().map(str::to_owned));
        assert_eq!(name.unwrap().as_deref(), Some("test"));
        let panicked = panic::catch_unwind(AssertUnwindSafe(|| {
            let _ = worker.run(|| panic::resume_unwind(Box::new("on purpose")));
        }));
        assert!(panicked.is_err());
        assert_eq!(worker.run(|| 1).unwrap(), 1);
    }

    #[test]
    fn a_preparation_that_fails_is_reported() {
        let failed = Worker::start("test", || Err::<((), ()), _>(Error::ThreadGone("x")));
        assert!(matches!(failed, Err(Error::ThreadGone("x"))));
    }
}
