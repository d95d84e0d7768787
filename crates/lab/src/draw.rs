//! Draws for traffic, one after the other from a seed.

use lagometer_units::{SplitMix64, mix};

/// A generator.
#[derive(Clone, Debug)]
pub(crate) struct Draw(SplitMix64);

impl Draw {
    pub(crate) const fn new(seed: u64) -> Self {
        Self(SplitMix64::new(seed))
    }

    /// A generator of its own for what these numbers name.
    pub(crate) fn of(names: &[u64]) -> Self {
        let fold = |seed, &name: &u64| mix(seed ^ SplitMix64::first(name));
        Self::new(names.iter().fold(0, fold))
    }

    /// An even draw strictly between 0 and 1.
    pub(crate) fn unit(&mut self) -> f64 {
        ((self.0.next_u64() >> 12) as f64 + 0.5) * (1.0 / (1_u64 << 52) as f64)
    }

    /// An exponential draw.
    pub(crate) fn exponential(&mut self, mean: f64) -> f64 {
        -libm::log(self.unit()) * mean
    }

    /// A draw from the normal distribution with the mean 0 and the deviation 1 (G. E. P.
    /// Box and M. E. Muller, 1958).
    pub(crate) fn normal(&mut self) -> f64 {
        let radius = libm::sqrt(-2.0 * libm::log(self.unit()));
        radius * libm::cos(std::f64::consts::TAU * self.unit())
    }

    /// A draw from Pareto's distribution with the shape 2: as many small as large
    /// ones weigh.
    pub(crate) fn pareto(&mut self, mean: f64) -> f64 {
        mean / 2.0 / self.unit().sqrt()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn draws_have_the_means_asked_for() {
        let mut draw = Draw::new(1);
        let n = 200_000;
        let mean = |sum: f64| sum / f64::from(n);
        let exponential = mean((0..n).map(|_| draw.exponential(10.0)).sum());
        assert!((exponential - 10.0).abs() < 0.2, "{exponential}");
        let normal: Vec<f64> = (0..n).map(|_| draw.normal()).collect();
        let variance = mean(normal.iter().map(|draw| draw * draw).sum());
        assert!(mean(normal.iter().sum()).abs() < 0.02);
        assert!((variance - 1.0).abs() < 0.02, "{variance}");
        // Its variance is infinite, so the mean converges slowly.
        let pareto = mean((0..n).map(|_| draw.pareto(10.0)).sum());
        assert!((pareto - 10.0).abs() < 0.8, "{pareto}");
    }
}
