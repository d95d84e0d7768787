//! What is known of a socket without asking it: that nothing has come.

use lagometer_units::Time;

/// Whether a socket was found empty, and when: who knows that need not make a
/// system call to learn it again. On a clock that stands still while a turn is
/// played, which is where system calls cost most, this spares half of all reads; by
/// other clocks it holds until the next reading.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Drained {
    /// The instant at which everything that had come had been taken.
    at: Option<Time>,
    /// A wait has just ended in vain.
    by_wait: bool,
}

impl Drained {
    /// All that had come by `now` has been taken.
    pub(crate) fn note_at(&mut self, now: Time) {
        self.at = Some(now);
    }

    /// The system has been asked to wait until something comes: whether the time went
    /// by in vain. If not, there is something to read, even at the same instant.
    pub(crate) fn note_wait(&mut self, in_vain: bool) {
        self.by_wait = in_vain;
        if !in_vain {
            self.at = None;
        }
    }

    /// Whether reading at `now` would find nothing. A wait in vain shows that of the
    /// first instant at which this is asked after it.
    pub(crate) fn is_known_at(&mut self, now: Time) -> bool {
        if std::mem::take(&mut self.by_wait) {
            self.at = Some(now);
        }
        self.at == Some(now)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_drained_socket_is_read_again_at_any_other_instant() {
        let [now, later] = [1, 2].map(Time::from_nanos);
        let mut drained = Drained::default();
        assert!(!drained.is_known_at(now));
        drained.note_at(now);
        assert!(drained.is_known_at(now) && drained.is_known_at(now));
        assert!(!drained.is_known_at(later));
    }

    #[test]
    fn a_wait_in_vain_spares_the_reads_of_one_instant() {
        let [now, later] = [1, 2].map(Time::from_nanos);
        let mut drained = Drained::default();
        drained.note_wait(true);
        assert!(drained.is_known_at(now) && drained.is_known_at(now));
        assert!(!drained.is_known_at(later) && !drained.is_known_at(later));
    }

    #[test]
    fn what_comes_at_the_instant_at_which_a_socket_was_drained_is_read() {
        let now = Time::from_nanos(1);
        let mut drained = Drained::default();
        drained.note_at(now);
        drained.note_wait(false);
        assert!(!drained.is_known_at(now));
    }
}
