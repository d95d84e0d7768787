//! The side of whoever decides what is played: plays are put in, what they found comes out.

use std::sync::mpsc;

use lagometer_lab::SeedRun;
use thiserror::Error;
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};

use crate::deal::Task;

/// The sweep ended before everything was found: it was to stop, or it failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("the sweep ended before everything was found")]
pub struct Ended;

/// Has plays played by a sweep's workers.
#[derive(Debug)]
pub struct PlayQueue {
    tasks: UnboundedSender<Vec<Task>>,
    found: mpsc::Receiver<(usize, SeedRun)>,
    /// Jobs so far.
    jobs: usize,
}

/// The coordinator's end of a play queue. Where it is dropped nothing more is found.
#[derive(Debug)]
pub(super) struct CoordinatorEnd {
    /// Ends when nothing more is asked for.
    pub(super) tasks: UnboundedReceiver<Vec<Task>>,
    /// What was found, by the job's number.
    pub(super) found: mpsc::Sender<(usize, SeedRun)>,
}

impl PlayQueue {
    pub(super) fn new() -> (Self, CoordinatorEnd) {
        let (put, tasks) = unbounded_channel();
        let (found, take) = mpsc::channel();
        let queue = Self {
            tasks: put,
            found: take,
            jobs: 0,
        };
        (queue, CoordinatorEnd { tasks, found })
    }

    /// Has all of `tasks` played. `found` is called on this thread with what each found, by
    /// its place among them, in the order in which it comes.
    ///
    /// # Errors
    ///
    /// [`Ended`] where the sweep ended first; what was found by then was handed over.
    pub fn play(
        &mut self,
        tasks: Vec<Task>,
        found: &mut dyn FnMut(usize, SeedRun),
    ) -> Result<(), Ended> {
        let (first, count) = (self.jobs, tasks.len());
        self.jobs += count;
        self.tasks.send(tasks).map_err(|_| Ended)?;
        for _ in 0..count {
            let (number, run) = self.found.recv().map_err(|_| Ended)?;
            found(number - first, run);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    fn tasks(count: u64) -> Vec<Task> {
        let task = |seed| Task {
            recipe: 0,
            seed,
            lanes: Vec::new(),
            instead: Vec::new(),
            each: Duration::from_secs(1),
        };
        (0..count).map(task).collect()
    }

    fn run(seed: u64) -> SeedRun {
        SeedRun {
            seed,
            lanes: Vec::new(),
        }
    }

    #[test]
    fn what_was_found_comes_by_its_place_among_what_was_asked_for_last() {
        let (mut queue, mut end) = PlayQueue::new();
        for (number, seed) in [(1, 11), (0, 10), (2, 12)] {
            end.found.send((number, run(seed))).unwrap();
        }
        let mut found = Vec::new();
        let mut play = |count| {
            let mut take = |place, run: SeedRun| found.push((place, run.seed));
            queue.play(tasks(count), &mut take).unwrap();
        };
        play(2);
        play(1);
        assert_eq!(found, [(1, 11), (0, 10), (0, 12)]);
        assert_eq!(end.tasks.try_recv().unwrap(), tasks(2));
    }

    #[test]
    fn a_sweep_that_ends_is_not_waited_for_and_what_it_found_counts() {
        let (mut queue, end) = PlayQueue::new();
        end.found.send((1, run(7))).unwrap();
        let CoordinatorEnd {
            tasks: asked,
            found: sender,
        } = end;
        drop(sender);
        let mut places = Vec::new();
        let ended = queue.play(tasks(2), &mut |place, _| places.push(place));
        assert_eq!((ended, &places[..]), (Err(Ended), &[1][..]));
        drop(asked);
        assert_eq!(queue.play(tasks(1), &mut |_, _| ()), Err(Ended));
    }
}
