//! The congestion window: slow start, then roughly one segment for each
//! round trip, and a collapse to one segment on any timeout.
//!
//! It is kept even where congestion control is off and nobody looks, so that
//! turning it on changes nothing but who looks.

use crate::rules::WindowGrowth;

/// The least slow-start threshold, in segments, and the first one.
const LEAST_THRESHOLD: u32 = 2;

/// Congestion window and slow-start threshold in segments, and the window
/// again in bytes, as finely as it grows.
#[derive(Clone, Debug)]
pub(crate) struct Congestion {
    window: u32,
    threshold: u32,
    bytes: u32,
    growth: WindowGrowth,
}

impl Congestion {
    /// `first_window` is 0 in the reference, which thereby spends the first
    /// flush on opening the window to 1.
    pub(crate) fn new(first_window: u32, segment_bytes: u32, growth: WindowGrowth) -> Self {
        Self {
            window: first_window,
            threshold: LEAST_THRESHOLD,
            bytes: first_window.wrapping_mul(segment_bytes),
            growth,
        }
    }

    /// The window in segments.
    pub(crate) const fn window(&self) -> u32 {
        self.window
    }

    /// A datagram has moved the left edge of what is in flight: grows the
    /// window once, however many segments the datagram confirmed.
    pub(crate) fn on_progress(&mut self, remote_window: u32, segment_bytes: u32) {
        if self.window >= remote_window {
            return;
        }
        if self.window < self.threshold {
            self.window = self.window.wrapping_add(1);
            self.bytes = self.bytes.wrapping_add(segment_bytes);
        } else {
            self.bytes = self.bytes.max(segment_bytes);
            let step = segment_bytes.wrapping_mul(segment_bytes) / self.bytes + segment_bytes / 16;
            self.bytes = self.bytes.wrapping_add(step);
            let next = self.window.wrapping_add(1).wrapping_mul(segment_bytes);
            match self.growth {
                WindowGrowth::ByBytes => {
                    if next <= self.bytes {
                        let rounded_up = self.bytes.wrapping_add(segment_bytes).wrapping_sub(1);
                        self.window = rounded_up / segment_bytes;
                    }
                }
                WindowGrowth::BySegment => {
                    if next <= self.bytes {
                        self.window = self.window.wrapping_add(1);
                    }
                }
                WindowGrowth::Inverted2015 => {
                    if next >= self.bytes {
                        self.window = self.window.wrapping_add(1);
                    }
                }
            }
        }
        if self.window > remote_window {
            self.window = remote_window;
            self.bytes = remote_window.wrapping_mul(segment_bytes);
        }
    }

    /// A flush has fast-resent segments, `in_flight` being out. Where no
    /// number of skips is set (`resend` 0) kcp-go, which alone resends then,
    /// adds its "never", 2^32 - 1: the window is one below the threshold.
    pub(crate) fn on_fast_resend(&mut self, in_flight: u32, resend: u32, segment_bytes: u32) {
        let resend = if resend == 0 { u32::MAX } else { resend };
        self.threshold = (in_flight / 2).max(LEAST_THRESHOLD);
        self.window = self.threshold.wrapping_add(resend);
        self.bytes = self.window.wrapping_mul(segment_bytes);
    }

    /// A flush has resent segments on timeout under an effective window of
    /// `effective` segments.
    pub(crate) fn on_timeout(&mut self, effective: u32, segment_bytes: u32) {
        self.threshold = (effective / 2).max(LEAST_THRESHOLD);
        self.window = 1;
        self.bytes = segment_bytes;
    }

    /// Every flush ends so: the window is never left shut.
    pub(crate) fn open(&mut self, segment_bytes: u32) {
        if self.window < 1 {
            self.window = 1;
            self.bytes = segment_bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_opens_doubles_crawls_and_collapses() {
        let mut congestion = Congestion::new(0, 1376, WindowGrowth::ByBytes);
        congestion.open(1376);
        assert_eq!(congestion.window(), 1);
        congestion.on_progress(128, 1376);
        assert_eq!(congestion.window(), 2, "slow start up to the threshold");
        congestion.on_progress(128, 1376);
        assert_eq!(congestion.window(), 2, "then by parts of a segment");
        for _ in 0..200 {
            congestion.on_progress(20, 1376);
        }
        assert_eq!(congestion.window(), 20, "never beyond the peer's window");
        congestion.on_fast_resend(16, 2, 1376);
        assert_eq!(congestion.window(), 10);
        congestion.on_timeout(10, 1376);
        assert_eq!(congestion.window(), 1);
    }
}
