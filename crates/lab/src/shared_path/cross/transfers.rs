//! TCP transfers while a schedule is on: without an end, or page after page.

use std::time::Duration;

use lagometer_link::Direction;
use lagometer_link::cross::Cross;
use lagometer_units::Time;

use super::CrossPacket;
use super::pages::Pages;
use super::schedule::{Schedule, Turn};
use super::tcp::Hosts;

/// When a transfer without an end whose connection was lost is tried again, and a page
/// for which there was no port.
const TRIED_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// Transfers between two hosts, which are opened and given up as the schedule
/// says.
#[derive(Debug)]
pub(super) struct Transfers {
    hosts: Hosts,
    flows: u32,
    kind: Kind,
    schedule: Schedule,
    /// When transfers are opened next.
    next_opening: Option<Time>,
}

/// What is transferred.
#[derive(Debug)]
enum Kind {
    /// Each of the flows always has more to send.
    Bulk,
    /// A page over several new connections side by side, a pause, the next page.
    Pages(Pages),
}

impl Transfers {
    pub(super) fn bulk(cross: &Cross, seed: u64, schedule: Schedule) -> Self {
        Self::new(cross, seed, Kind::Bulk, schedule)
    }

    pub(super) fn pages(cross: &Cross, seed: u64, schedule: Schedule) -> Self {
        Self::new(cross, seed, Kind::Pages(Pages::new(cross, seed)), schedule)
    }

    fn new(cross: &Cross, seed: u64, kind: Kind, schedule: Schedule) -> Self {
        Self {
            hosts: Hosts::new(cross, seed),
            flows: cross.flows(),
            kind,
            schedule,
            next_opening: None,
        }
    }

    pub(super) fn next_wake(&self) -> Option<Time> {
        [
            self.hosts.next_deadline(),
            self.schedule.next_turn(),
            self.next_opening,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    pub(super) fn wake(&mut self, now: Time) {
        while let Some(turn) = self.schedule.turn(now) {
            match turn {
                Turn::On => self.next_opening = Some(now),
                Turn::Off => {
                    self.next_opening = None;
                    self.hosts.abort(now);
                }
            }
        }
        self.hosts.handle_deadline(now);
        if self.next_opening.is_some_and(|at| at <= now) {
            self.next_opening = None;
            self.open(now);
        }
        self.plan_next(now);
    }

    pub(super) fn receive(&mut self, now: Time, direction: Direction, packet: &[u8]) {
        self.hosts.receive(now, direction, packet);
        self.plan_next(now);
    }

    pub(super) fn poll(&mut self) -> Option<CrossPacket> {
        self.hosts.poll()
    }

    pub(super) const fn received_bytes(&self) -> u64 {
        self.hosts.received_bytes()
    }

    fn open(&mut self, now: Time) {
        let (connections, bytes) = match &mut self.kind {
            Kind::Bulk => {
                let missing = self.flows.saturating_sub(self.hosts.open_transfers());
                (missing, u64::MAX)
            }
            Kind::Pages(pages) => (self.flows, pages.draw_page(self.flows)),
        };
        self.hosts.open(now, connections, bytes);
        if self.hosts.open_transfers() == 0 {
            self.next_opening = Some(now + TRIED_AGAIN_AFTER);
        }
    }

    /// Plans what is opened next: again what was lost of transfers without an
    /// end; a page, once the one before is there.
    fn plan_next(&mut self, now: Time) {
        if !self.schedule.is_on() || self.next_opening.is_some() {
            return;
        }
        let open = self.hosts.open_transfers();
        let pause = match &mut self.kind {
            Kind::Bulk if open < self.flows => TRIED_AGAIN_AFTER,
            Kind::Pages(pages) if open == 0 => pages.draw_pause(),
            Kind::Bulk | Kind::Pages(_) => return,
        };
        self.next_opening = Some(now + pause);
    }
}
