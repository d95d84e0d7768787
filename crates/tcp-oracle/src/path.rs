//! The way from one end to the other: delay, rate and queue, loss, bursts,
//! outages, reordering and duplication, all by a seed.

use crate::random::Random;

/// What a direction of the path does.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct PathSettings {
    /// Nanoseconds one way.
    pub(crate) delay_ns: u64,
    /// Bytes a second, and bytes that may wait for it; none for no limit.
    pub(crate) rate: Option<(u64, u64)>,
    /// The share of packets with which a loss begins.
    pub(crate) loss: f64,
    /// How many packets in a row are lost at most.
    pub(crate) burst: u64,
    /// The share of packets that are late, and by how much at most, in
    /// nanoseconds.
    pub(crate) reorder: (f64, u64),
    /// The share of packets that come twice.
    pub(crate) duplicate: f64,
    /// When nothing comes through, in nanoseconds since the beginning.
    pub(crate) outages: Vec<(u64, u64)>,
    /// The share of packets that are marked as having met congestion, of those whose
    /// sender understands it.
    pub(crate) mark: f64,
    /// Larger packets, in bytes, do not come through; and whether their sender is notified.
    pub(crate) mtu: Option<(u16, bool)>,
}

/// A direction of the path.
#[derive(Debug)]
pub(crate) struct Path {
    settings: PathSettings,
    random: Random,
    free_at: u64,
    burst_left: u64,
}

impl Path {
    pub(crate) const fn new(settings: PathSettings, random: Random) -> Self {
        Self {
            settings,
            random,
            free_at: 0,
            burst_left: 0,
        }
    }

    /// The size in bytes that is not too large for the path where a packet of so many is.
    pub(crate) fn refuse(&self, bytes: usize) -> Option<u16> {
        let (mtu, _) = self.settings.mtu?;
        (bytes > usize::from(mtu)).then_some(mtu)
    }

    /// When the sender of a packet that left `now` and was refused is notified, if it is.
    pub(crate) fn report_at(&self, now: u64) -> Option<u64> {
        let (_, is_reported) = self.settings.mtu?;
        is_reported.then_some(now + self.settings.delay_ns)
    }

    /// Whether a packet whose sender understands it is marked.
    pub(crate) fn marks(&mut self) -> bool {
        self.settings.mark > 0.0 && self.random.chance(self.settings.mark)
    }

    /// When a packet of so many bytes arrives that leaves `now`, in nanoseconds
    /// since the beginning: never, once or twice.
    pub(crate) fn offer(&mut self, now: u64, bytes: usize) -> Vec<u64> {
        let settings = &self.settings;
        let is_out = |outage: &(u64, u64)| (outage.0..outage.1).contains(&now);
        if settings.outages.iter().any(is_out) {
            return Vec::new();
        }
        if self.burst_left > 0 {
            self.burst_left -= 1;
            return Vec::new();
        }
        if self.random.chance(settings.loss) {
            self.burst_left = self.random.between(1, settings.burst.max(1)) - 1;
            return Vec::new();
        }
        let mut leaves = now;
        if let Some((rate, queue)) = settings.rate {
            let begin = self.free_at.max(now);
            if (begin - now) * rate / 1_000_000_000 > queue {
                return Vec::new();
            }
            leaves = begin + bytes as u64 * 1_000_000_000 / rate;
            self.free_at = leaves;
        }
        let mut arrives = leaves + settings.delay_ns;
        if self.random.chance(settings.reorder.0) {
            arrives += self.random.between(0, settings.reorder.1);
        }
        let mut arrivals = vec![arrives];
        if self.random.chance(settings.duplicate) {
            arrivals.push(arrives + self.random.between(0, settings.delay_ns / 8));
        }
        arrivals
    }
}
