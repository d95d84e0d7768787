//! Web-like bursts: a page over several new connections side by side, a pause,
//! the next page.

use lagometer_link::Direction;
use lagometer_link::cross::Cross;
use lagometer_units::{Size, Span, Time};

use super::CrossPacket;
use super::draw::Draw;
use super::schedule::{Schedule, Turn};
use super::tcp::Hosts;

/// The median page of the desktop weighs some 2.5 MB (HTTP Archive, Web Almanac
/// 2024, "Page Weight").
const PAGE_BYTES: f64 = 2.5e6;
/// The mean pause between pages in nanoseconds; chosen.
const PAUSE_NS: f64 = 10e9;
/// No page is larger than so many times the mean, so that a run has its end.
const LARGEST: f64 = 20.0;

/// Pages one after the other, while their schedule is on.
#[derive(Debug)]
pub(super) struct Pages {
    hosts: Hosts,
    flows: u32,
    page_bytes: f64,
    pause_ns: f64,
    schedule: Schedule,
    draw: Draw,
    next_page: Option<Time>,
}

impl Pages {
    pub(super) fn new(cross: &Cross, seed: u64, schedule: Schedule) -> Self {
        let size = cross.size.map(Size::bytes);
        let pause = cross.pause.map(Span::duration);
        Self {
            hosts: Hosts::new(cross, seed),
            flows: cross.flows(),
            page_bytes: size.map_or(PAGE_BYTES, |bytes| bytes as f64),
            pause_ns: pause.map_or(PAUSE_NS, |pause| pause.as_nanos() as f64),
            schedule,
            draw: Draw::new(seed),
            next_page: None,
        }
    }

    pub(super) fn next_wake(&self) -> Option<Time> {
        [
            self.hosts.next_deadline(),
            self.schedule.next_turn(),
            self.next_page,
        ]
        .into_iter()
        .flatten()
        .min()
    }

    pub(super) fn wake(&mut self, now: Time) {
        while let Some(turn) = self.schedule.turn(now) {
            match turn {
                Turn::On => self.next_page = Some(now),
                Turn::Off => {
                    self.next_page = None;
                    self.hosts.abort(now);
                }
            }
        }
        self.hosts.handle_deadline(now);
        if self.next_page.is_some_and(|at| at <= now) {
            self.next_page = None;
            let page = self.draw.pareto(self.page_bytes);
            let page = page.min(self.page_bytes * LARGEST) / f64::from(self.flows);
            self.hosts.open(now, self.flows, (page as u64).max(1));
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

    /// When a page is there, the next one comes after a pause.
    fn plan_next(&mut self, now: Time) {
        if self.schedule.is_on() && self.next_page.is_none() && self.hosts.open_transfers() == 0 {
            let pause = self.draw.exponential(self.pause_ns) as u64;
            self.next_page = Some(now + std::time::Duration::from_nanos(pause));
        }
    }
}
