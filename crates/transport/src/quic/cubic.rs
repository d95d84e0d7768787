//! CUBIC (RFC 8312, with the fast convergence of RFC 9438, section 4.7) as
//! `quinn-proto` 0.11 has it, in arithmetic that is the same on every machine.
//!
//! The library's own takes a cube root and a power from the platform, whose last
//! bits are not fixed: another C library or another optimisation level may grow
//! a window one acknowledgement earlier, and every packet after it differs. Here
//! the root is `libm`'s, in Rust alone, and the power two multiplications; all
//! else is IEEE 754 arithmetic, which is exact to the bit. The order of the
//! operations is the library's.

use std::any::Any;
use std::sync::Arc;
use std::time::{Duration, Instant};

use quinn_proto::RttEstimator;
use quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};

/// By how much the window shrinks, section 4.5.
const BETA: f64 = 0.7;

/// How fast it grows, section 5.
const C: f64 = 0.4;

/// The window of a new connection in bytes (RFC 9002, section 7.2).
const INITIAL_WINDOW: u64 = 12_000;

/// Makes a [`Cubic`] for each connection.
#[derive(Debug)]
pub(super) struct CubicFactory;

impl ControllerFactory for CubicFactory {
    fn build(self: Arc<Self>, _now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Cubic::new(u64::from(mtu)))
    }
}

/// The state of one connection. Windows are in bytes, times in seconds.
#[derive(Clone, Debug)]
struct Cubic {
    mtu: u64,
    window: u64,
    slow_start_until: u64,
    /// When loss was last answered: what was sent before says nothing new.
    recovery_began: Option<Instant>,
    /// The window before it shrank.
    before: f64,
    /// When the curve is back there.
    k: f64,
    /// By how much the window is to grow, kept until it is a datagram.
    growth: u64,
}

impl Cubic {
    const fn new(mtu: u64) -> Self {
        Self {
            mtu,
            window: INITIAL_WINDOW,
            slow_start_until: u64::MAX,
            recovery_began: None,
            before: 0.0,
            k: 0.0,
            growth: 0,
        }
    }

    const fn least_window(&self) -> u64 {
        2 * self.mtu
    }

    fn is_old(&self, sent: Instant) -> bool {
        self.recovery_began.is_some_and(|began| sent <= began)
    }

    /// `K = cbrt(W_max (1 - beta) / C)`, equation 2.
    fn root(&self) -> f64 {
        let before = self.before / self.mtu as f64;
        libm::cbrt(before * (1.0 - BETA) / C)
    }

    /// `W_cubic(t) = C (t - K)^3 + W_max`, equation 1.
    fn curve(&self, t: Duration) -> f64 {
        let before = self.before / self.mtu as f64;
        let from_k = t.as_secs_f64() - self.k;
        // As a power of three is reckoned: the square, then the cube.
        let cube = from_k * (from_k * from_k);
        (C * cube + before) * self.mtu as f64
    }

    /// `W_est(t)`, what Reno would have, equation 4.
    fn as_reno(&self, t: Duration, rtt: Duration) -> f64 {
        let before = self.before / self.mtu as f64;
        let round_trips = 3.0 * (1.0 - BETA) / (1.0 + BETA) * t.as_secs_f64() / rtt.as_secs_f64();
        (before * BETA + round_trips) * self.mtu as f64
    }

    /// Grows for an acknowledgement after slow start.
    fn avoid_congestion(&mut self, now: Instant, rtt: Duration) {
        let began = *self.recovery_began.get_or_insert_with(|| {
            self.before = self.window as f64;
            self.k = 0.0;
            now
        });
        let t = now.duration_since(began);
        let curve = self.curve(t + rtt);
        let as_reno = self.as_reno(t, rtt);
        let mut wanted = self.window;
        if curve < as_reno {
            wanted = wanted.max(as_reno as u64);
        } else if wanted < curve as u64 {
            let more = (curve - wanted as f64) / wanted as f64 * self.mtu as f64;
            wanted = wanted.saturating_add(more as u64);
        }
        self.growth = self.growth.saturating_add(wanted - self.window);
        // By no more than a datagram for each acknowledgement (RFC 9002, 7.3.3).
        if self.growth >= self.mtu {
            self.window += self.mtu;
            self.growth = 0;
        }
    }
}

impl Controller for Cubic {
    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        if app_limited || self.is_old(sent) {
            return;
        }
        if self.window < self.slow_start_until {
            self.window += bytes;
        } else {
            self.avoid_congestion(now, rtt.get());
        }
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        _lost_bytes: u64,
    ) {
        if self.is_old(sent) {
            return;
        }
        self.recovery_began = Some(now);
        let window = self.window as f64;
        self.before = if window < self.before {
            window * (1.0 + BETA) / 2.0
        } else {
            window
        };
        self.slow_start_until = ((window * BETA) as u64).max(self.least_window());
        self.window = self.slow_start_until;
        self.k = self.root();
        self.growth = (self.growth as f64 * BETA) as u64;
        if is_persistent_congestion {
            self.recovery_began = None;
            self.before = self.window as f64;
            self.slow_start_until = ((self.window as f64 * BETA) as u64).max(self.least_window());
            self.growth = 0;
            self.window = self.least_window();
        }
    }

    fn on_mtu_update(&mut self, mtu: u16) {
        self.mtu = u64::from(mtu);
        self.window = self.window.max(self.least_window());
    }

    fn window(&self) -> u64 {
        self.window
    }

    fn metrics(&self) -> ControllerMetrics {
        let mut metrics = ControllerMetrics::default();
        metrics.congestion_window = self.window;
        metrics.ssthresh = Some(self.slow_start_until);
        metrics
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(self.clone())
    }

    fn initial_window(&self) -> u64 {
        INITIAL_WINDOW
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use lagometer_units::Time;
    use quinn_proto::congestion::CubicConfig;

    use crate::origin::to_instant;

    const MTU: u16 = 1200;

    /// Ours and the library's.
    fn both(now: Instant) -> [Box<dyn Controller>; 2] {
        [
            Arc::new(CubicFactory).build(now, MTU),
            Arc::new(CubicConfig::default()).build(now, MTU),
        ]
    }

    #[test]
    fn losses_shrink_the_window_as_the_library_does() {
        let start = to_instant(Time::ZERO);
        let at = |ms| start + Duration::from_millis(ms);
        let mut both = both(start);
        assert_eq!(both[0].initial_window(), both[1].initial_window());
        for nth in 0..200_u64 {
            for controller in &mut both {
                if nth % 7 == 3 {
                    controller.on_mtu_update(MTU + (nth % 200) as u16);
                }
                let sent = at(nth * 50 - nth.min(nth % 3 * 60));
                controller.on_congestion_event(at(nth * 50), sent, nth % 11 == 5, 1200);
            }
            let [ours, theirs] = both.each_ref().map(|controller| {
                let metrics = controller.metrics();
                (controller.window(), metrics.ssthresh)
            });
            assert_eq!(ours, theirs, "event {nth}");
        }
    }

    #[test]
    fn the_curve_is_back_where_it_was_after_k_and_grows_with_the_cube() {
        let mut cubic = Cubic::new(1200);
        cubic.before = 120_000.0;
        cubic.k = cubic.root();
        // 100 segments: the cube root of 75.
        assert!((cubic.k - 4.217_163_326_508_746).abs() < 1e-12);
        let at = |seconds| cubic.curve(Duration::from_secs_f64(seconds));
        assert!((at(cubic.k) - 120_000.0).abs() < 1e-3);
        assert!((at(0.0) - 0.7 * 120_000.0).abs() < 1e-3);
        assert!((at(cubic.k + 2.0) - (120_000.0 + 0.4 * 8.0 * 1200.0)).abs() < 1e-3);
    }

    #[test]
    fn after_a_loss_it_grows_by_no_more_than_a_datagram_for_each_acknowledgement() {
        let start = to_instant(Time::ZERO);
        let mut cubic = Cubic::new(1200);
        cubic.window = 60_000;
        cubic.on_congestion_event(start, start + Duration::from_millis(1), false, 1200);
        assert_eq!(cubic.window(), 42_000);
        let mut before = cubic.window();
        for ms in (20..20_000).step_by(20) {
            cubic.avoid_congestion(start + Duration::from_millis(ms), Duration::from_millis(40));
            assert!(cubic.window() - before <= 1200);
            before = cubic.window();
        }
        assert!(cubic.window() > 120_000, "{}", cubic.window());
    }
}
