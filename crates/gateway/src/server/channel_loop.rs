//! The thread of the channels, where they have one of their own.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use lagometer_units::Time;
use rustix::io::Errno;

use super::bus_adapter::{Delivered, Posted};
use super::channel_worker::ChannelWorker;
use super::command::{Command, Commands};
use super::mailbox::Exchange;
use super::poller::{EventBell, Events, Poller, Waker};
use super::report::{Numbers, Report};
use super::shared::Shared;

/// The loop over messages and fan-out ticks.
pub(super) struct ChannelLoop {
    pub(super) poller: Poller,
    pub(super) waker: Waker,
    pub(super) worker: ChannelWorker,
    pub(super) shared: Arc<Shared>,
    pub(super) commands: Arc<Commands>,
    pub(super) report: Arc<Report>,
    pub(super) exchange: Exchange<Posted, Delivered, EventBell>,
}

impl ChannelLoop {
    /// Runs until told to end. Each turn has the order that the
    /// [mailbox](super::mailbox) asks for: sleep, silence, look at everything.
    pub(super) fn run(mut self) -> Result<(), Errno> {
        let mut ready = Events::new();
        let mut arrived = VecDeque::new();
        let (mut answered, mut turns, mut busy_ns) = (0, 0, 0);
        loop {
            let before = self.shared.clock.now();
            let due = self.worker.next_deadline().map(|due| due.since(before));
            self.poller.wait(self.exchange.rest(due), &mut ready)?;
            // The bell is all that it waits for.
            if ready.iter().next().is_some() {
                self.waker.silence();
            }
            let now = self.shared.clock.now();
            while let Some(command) = self.commands.take() {
                match command {
                    Command::End => return Ok(()),
                    Command::Reload(config) => self.worker.reload(&config, &self.waker),
                    Command::Adopt(_) | Command::Evict(..) | Command::Drain => {}
                }
            }
            // While a connection loop cannot keep up, nothing is taken in and
            // no fan-out tick is made: what waits is bounded.
            if self.exchange.take(&mut arrived) {
                self.work(now, &mut arrived);
                self.exchange.deliver();
            }
            if self.worker.has_owner() && !self.shared.owned.swap(true, Ordering::SeqCst) {
                self.shared.wake_all();
            }
            turns += 1;
            busy_ns += self.shared.clock.now().since(now).as_nanos() as u64;
            let asked = self.report.asked();
            self.report.answer(asked, &mut answered, || Numbers {
                channels: Some(self.worker.report()),
                turns,
                busy_ns,
                queued: self.exchange.depth() as u64,
                ..Numbers::default()
            });
        }
    }

    /// Handles what has come and what is due.
    fn work(&mut self, now: Time, arrived: &mut VecDeque<Posted>) {
        for item in arrived.drain(..) {
            match item {
                Posted::Message(from, message) => self.worker.handle(now, from, message),
                Posted::Probe(side, number) => {
                    let back = Delivered::Probe(number);
                    self.exchange.post(usize::from(side.0), back);
                }
            }
        }
        self.worker.settle(now);
        self.worker.handle_deadline(now);
        self.worker.settle(now);
        while let Some((side, message)) = self.worker.poll_bus() {
            let message = Delivered::Message(message);
            self.exchange.post(usize::from(side.0), message);
        }
    }
}
