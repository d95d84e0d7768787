//! Web-like bursts: how large pages are, and the pauses between them.

use std::time::Duration;

use lagometer_link::cross::Cross;
use lagometer_units::{Size, Span};

use crate::draw::Draw;

/// The mean of the distribution before it is cut off; that of the pages drawn is 98.75 %
/// of it, their median 71 %. Chosen after the median page of the desktop, which weighs
/// some 2.5 MB (HTTP Archive, Web Almanac 2024, "Page Weight").
const PAGE_BYTES: f64 = 2.5e6;
/// The mean pause between pages in nanoseconds; chosen.
const PAUSE_NS: f64 = 10e9;
/// No page is larger than so many times the mean, so that a run has its end.
const LARGEST: f64 = 20.0;

/// Pages one after the other.
#[derive(Debug)]
pub(super) struct Pages {
    page_bytes: f64,
    pause_ns: f64,
    draw: Draw,
}

impl Pages {
    pub(super) fn new(cross: &Cross, seed: u64) -> Self {
        let size = cross.size.map(Size::bytes);
        let pause = cross.pause.map(Span::duration);
        Self {
            page_bytes: size.map_or(PAGE_BYTES, |bytes| bytes as f64),
            pause_ns: pause.map_or(PAUSE_NS, |pause| pause.as_nanos() as f64),
            draw: Draw::new(seed),
        }
    }

    /// Draws a page that comes over so many connections: bytes of each, 1 at
    /// least.
    pub(super) fn draw_page(&mut self, connections: u32) -> u64 {
        let page = self.draw.pareto(self.page_bytes);
        let page = page.min(self.page_bytes * LARGEST) / f64::from(connections);
        (page as u64).max(1)
    }

    /// Draws the pause from one page to the next.
    pub(super) fn draw_pause(&mut self) -> Duration {
        Duration::from_nanos(self.draw.exponential(self.pause_ns) as u64)
    }
}
