//! The thread of the channels, where they have one of their own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use rustix::io::Errno;

use crate::core::bus::ToConnections;

use super::channel_worker::ChannelWorker;
use super::command::{Command, Commands};
use super::link::Posted;
use super::poller::{Events, Poller, Waker};
use super::queue::Queue;
use super::report::{Numbers, Report};
use super::shared::Shared;

/// The loop over messages and beats.
pub(super) struct ChannelLoop {
    pub(super) poller: Poller,
    pub(super) waker: Waker,
    pub(super) worker: ChannelWorker,
    pub(super) shared: Arc<Shared>,
    pub(super) commands: Arc<Commands>,
    pub(super) report: Arc<Report>,
    pub(super) inbox: Arc<Queue<Posted>>,
    /// To each connection loop, and what found no room there yet.
    pub(super) outboxes: Vec<(Arc<Queue<ToConnections>>, VecDeque<ToConnections>)>,
}

impl ChannelLoop {
    /// Runs until told to end.
    pub(super) fn run(mut self) -> Result<(), Errno> {
        let mut ready = Events::new();
        let mut arrived = VecDeque::new();
        let (mut answered, mut turns, mut busy_ns) = (0, 0, 0);
        loop {
            // While a connection loop cannot keep up, nothing is taken in and
            // no beat is made: what waits is bounded.
            let blocked = self.outboxes.iter().any(|(_, unsent)| !unsent.is_empty());
            let before = self.shared.clock.now();
            let timeout = (!blocked)
                .then(|| self.worker.next_deadline())
                .flatten()
                .map(|due| due.since(before));
            self.poller.wait(timeout, &mut ready)?;
            // The bell is all that it waits for.
            if ready.iter().next().is_some() {
                self.waker.silence();
            }
            let now = self.shared.clock.now();
            while let Some(command) = self.commands.take() {
                match command {
                    Command::End => return Ok(()),
                    Command::Reload(config) => self.worker.reload(&config, &self.waker),
                    Command::Adopt(_) | Command::Drain => {}
                }
            }
            if !blocked {
                self.inbox.take(&mut arrived);
                for (from, message) in arrived.drain(..) {
                    self.worker.handle(now, from, message);
                }
                self.worker.settle(now);
                self.worker.handle_deadline(now);
                self.worker.settle(now);
                while let Some((side, message)) = self.worker.poll_bus() {
                    if let Some((_, unsent)) = self.outboxes.get_mut(usize::from(side.0)) {
                        unsent.push_back(message);
                    }
                }
            }
            for (queue, unsent) in &mut self.outboxes {
                queue.offer(unsent, &self.waker);
            }
            if self.worker.has_owner() && !self.shared.owned.swap(true, Ordering::SeqCst) {
                self.shared.wake_all();
            }
            turns += 1;
            busy_ns += self.shared.clock.now().since(now).as_nanos() as u64;
            self.report.answer(&mut answered, || Numbers {
                channels: Some(self.worker.report()),
                turns,
                busy_ns,
                queued: self.inbox.depth() as u64,
                ..Numbers::default()
            });
        }
    }
}
