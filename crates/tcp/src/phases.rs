//! Finding out which phases of BBR a kernel drew.

use crate::congestion::Bbr;

/// In how many phases BBR may begin to probe for bandwidth: 0 to one less.
pub const BBR_PHASES: u8 = Bbr::PHASES;

/// The most phases of one connection that are looked for.
const MOST: usize = 64;

/// A search for the phases in which a kernel's BBR began to probe for bandwidth, which
/// it draws from random numbers of its own.
///
/// Play a connection beside the kernel's with [`asked`](Self::asked) as
/// [`Config::bbr_phases`](crate::Config::bbr_phases). While they part, ask for
/// [`next`](Self::next) phases and play again; if they part later then,
/// [`keep`](Self::keep) them. A phase is tried in all its values, the one drawn last
/// before they parted first.
///
/// ```
/// use lagometer_tcp::PhaseSearch;
///
/// let kernel = [3, 0, 6];
/// let same = |asked: &[u8]| kernel.iter().zip(asked).take_while(|(a, b)| a == b).count();
/// let mut search = PhaseSearch::default();
/// let mut best = same(search.asked());
/// while best < kernel.len() && search.next(best + 1) {
///     if same(search.asked()) > best {
///         best = same(search.asked());
///         search.keep();
///     }
/// }
/// assert_eq!(search.kept()[..3], kernel);
/// ```
#[derive(Clone, Debug)]
pub struct PhaseSearch {
    kept: Vec<u8>,
    asked: Vec<u8>,
    /// What was tried since phases were last kept.
    tried: usize,
}

/// All the first phase.
impl Default for PhaseSearch {
    fn default() -> Self {
        let kept = vec![0; MOST];
        Self {
            asked: kept.clone(),
            kept,
            tried: 0,
        }
    }
}

impl PhaseSearch {
    /// What is to be played now.
    #[must_use]
    pub fn asked(&self) -> &[u8] {
        &self.asked
    }

    /// The best so far. What was drawn beyond is not known to matter.
    #[must_use]
    pub fn kept(&self) -> &[u8] {
        &self.kept
    }

    /// Asks for other phases where so many were drawn, at the most, before the
    /// connections part with [`kept`](Self::kept). False when all were tried.
    pub fn next(&mut self, drawn: usize) -> bool {
        let drawn = drawn.min(MOST);
        let others = usize::from(BBR_PHASES) - 1;
        self.asked.clone_from(&self.kept);
        let (back, nth) = (self.tried / others, self.tried % others);
        let Some(index) = drawn.checked_sub(back + 1) else {
            return false;
        };
        self.tried += 1;
        if let Some(phase) = self.asked.get_mut(index) {
            *phase = (*phase + 1 + nth as u8) % BBR_PHASES;
        }
        true
    }

    /// What is asked is better than what was kept.
    pub fn keep(&mut self) {
        self.kept.clone_from(&self.asked);
        self.tried = 0;
    }

    /// What is kept is played, and everything is to be tried again: something else
    /// has changed.
    pub fn restart(&mut self) {
        self.asked.clone_from(&self.kept);
        self.tried = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::PhaseSearch;

    #[test]
    fn all_values_of_every_phase_are_tried_from_the_last_on() {
        let mut search = PhaseSearch::default();
        let mut tried = Vec::new();
        while search.next(2) {
            tried.push([search.asked()[0], search.asked()[1]]);
        }
        let second = (1..7).map(|phase| [0, phase]);
        let first = (1..7).map(|phase| [phase, 0]);
        assert_eq!(tried, second.chain(first).collect::<Vec<_>>());
        assert!(search.asked() == search.kept());
    }

    #[test]
    fn what_was_kept_stays_while_others_are_tried() {
        let mut search = PhaseSearch::default();
        assert!(search.next(1) && search.next(1));
        search.keep();
        assert_eq!(search.kept()[..3], [2, 0, 0]);
        assert!(search.next(3));
        assert_eq!(search.asked()[..3], [2, 0, 1]);
        assert_eq!(search.kept()[..3], [2, 0, 0]);
        search.restart();
        assert_eq!(search.asked(), search.kept());
    }
}
