//! The minimum or maximum of a value over a sliding window, from three samples
//! (Linux 6.1 `lib/win_minmax.c`, after Kathleen Nichols).

/// A value and when it was seen, in whatever unit the window has.
#[derive(Clone, Copy, Debug, Default)]
struct Sample {
    time: u64,
    value: u64,
}

/// The best, second best and third best samples, each later than the one
/// before.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Windowed([Sample; 3]);

impl Windowed {
    /// A window that holds one value.
    pub(crate) const fn new(time: u64, value: u64) -> Self {
        Self([Sample { time, value }; 3])
    }

    /// The best value.
    pub(crate) const fn get(&self) -> u64 {
        self.0[0].value
    }

    /// Takes a sample into a window's minimum.
    pub(crate) fn minimum(&mut self, window: u64, time: u64, value: u64) {
        self.update(window, Sample { time, value }, |new, old| new <= old);
    }

    /// Takes a sample into a window's maximum.
    pub(crate) fn maximum(&mut self, window: u64, time: u64, value: u64) {
        self.update(window, Sample { time, value }, |new, old| new >= old);
    }

    fn update(&mut self, window: u64, new: Sample, better: impl Fn(u64, u64) -> bool) {
        let [best, second, third] = &mut self.0;
        if better(new.value, best.value) || new.time - third.time > window {
            *self = Self([new; 3]);
            return;
        }
        if better(new.value, second.value) {
            *second = new;
            *third = new;
        } else if better(new.value, third.value) {
            *third = new;
        }
        let age = new.time - best.time;
        if age > window {
            // The best has left the window; so may have the second.
            self.shift(new);
            if new.time - self.0[0].time > window {
                self.shift(new);
            }
        } else if second.time == best.time && age > window / 4 {
            *second = new;
            *third = new;
        } else if third.time == second.time && age > window / 2 {
            *third = new;
        }
    }

    const fn shift(&mut self, new: Sample) {
        self.0 = [self.0[1], self.0[2], new];
    }
}

#[cfg(test)]
mod tests {
    use super::Windowed;

    #[test]
    fn a_minimum_is_forgotten_when_its_window_has_passed() {
        let mut window = Windowed::new(0, 10);
        for time in 1..=100 {
            window.minimum(100, time, 20);
            assert_eq!(window.get(), 10);
        }
        window.minimum(100, 101, 20);
        assert_eq!(window.get(), 20);
    }

    #[test]
    fn a_maximum_takes_a_better_sample_at_once() {
        let mut window = Windowed::new(0, 10);
        window.maximum(10, 1, 30);
        assert_eq!(window.get(), 30);
        window.maximum(10, 2, 5);
        assert_eq!(window.get(), 30);
    }
}
