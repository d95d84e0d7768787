//! The last values of a figure, one for each look.

use std::collections::VecDeque;

/// Values that are kept: wider than any terminal.
const KEPT: usize = 512;

/// What a figure was, the newest last; none where there was nothing to know.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct History {
    values: VecDeque<Option<f64>>,
}

impl History {
    /// Appends the newest value.
    pub fn push(&mut self, value: Option<f64>) {
        if self.values.len() == KEPT {
            self.values.pop_front();
        }
        self.values
            .push_back(value.filter(|value| value.is_finite()));
    }

    /// The newest value.
    #[must_use]
    pub fn newest(&self) -> Option<f64> {
        self.values.back().copied().flatten()
    }

    /// The newest `count` values, oldest first.
    pub fn last(&self, count: usize) -> impl Iterator<Item = Option<f64>> {
        let skipped = self.values.len().saturating_sub(count);
        self.values.iter().skip(skipped).copied()
    }

    /// The largest of the newest `count`; 0 where there is none.
    #[must_use]
    pub fn largest(&self, count: usize) -> f64 {
        self.last(count).flatten().fold(0.0, f64::max)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_newest_values_are_kept() {
        let mut history = History::default();
        for value in 0..1000 {
            history.push(Some(f64::from(value)));
        }
        history.push(None);
        history.push(Some(f64::NAN));
        assert_eq!(history.newest(), None);
        let last: Vec<_> = history.last(3).collect();
        assert_eq!(last, [Some(999.0), None, None]);
        assert_eq!(history.last(9999).count(), KEPT);
        assert!((history.largest(4) - 999.0).abs() < f64::EPSILON);
    }
}
