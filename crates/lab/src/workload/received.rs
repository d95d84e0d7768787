//! Which numbered messages have come: what distinguishes a message from its duplicate.

use super::Misdeliveries;

/// Notes the messages that come, each by its number.
#[derive(Clone, Debug, Default)]
pub(super) struct Received {
    /// A bit for each number.
    seen: Vec<u64>,
    newest: Option<u32>,
    misdeliveries: Misdeliveries,
}

impl Received {
    pub(super) const fn new() -> Self {
        Self {
            seen: Vec::new(),
            newest: None,
            misdeliveries: Misdeliveries {
                damaged: 0,
                duplicated: 0,
                out_of_order: 0,
            },
        }
    }

    /// Notes a message with the number that was read of it, none where it is not what was
    /// sent; returns the number of one that is new. Who calls holds numbers below a bound.
    pub(super) fn note(&mut self, number: Option<u32>) -> Option<u32> {
        let Some(number) = number else {
            self.misdeliveries.damaged += 1;
            return None;
        };
        let (word, bit) = (number as usize / 64, 1 << (number % 64));
        if word >= self.seen.len() {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit != 0 {
            self.misdeliveries.duplicated += 1;
            return None;
        }
        self.seen[word] |= bit;
        if self.newest.is_some_and(|newest| number < newest) {
            self.misdeliveries.out_of_order += 1;
        } else {
            self.newest = Some(number);
        }
        Some(number)
    }

    /// Whether a number was noted.
    pub(super) fn has(&self, number: u32) -> bool {
        let word = self.seen.get(number as usize / 64);
        word.is_some_and(|word| word & (1 << (number % 64)) != 0)
    }

    /// The largest number that was noted.
    pub(super) const fn newest(&self) -> Option<u32> {
        self.newest
    }

    pub(super) const fn misdeliveries(&self) -> Misdeliveries {
        self.misdeliveries
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_double_is_not_new_and_what_comes_late_is_out_of_order() {
        let mut received = Received::new();
        let noted = [Some(0), Some(130), Some(5), Some(130), None, Some(131)];
        let new = noted.map(|number| received.note(number));
        assert_eq!(new, [Some(0), Some(130), Some(5), None, None, Some(131)]);
        let expected = Misdeliveries {
            damaged: 1,
            duplicated: 1,
            out_of_order: 1,
        };
        assert_eq!(received.misdeliveries(), expected);
    }
}
