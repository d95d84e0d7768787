//! Window probes: what keeps two ends from waiting for each other for ever
//! after a receiver has said that it has no room.

/// When to ask a peer without room whether it has some now, and what is to be
/// asked for or announced at the next flush.
///
/// As in the reference, the peer's word that it has room again is sent once;
/// if that datagram is lost, nothing moves until the first question goes out,
/// [`first_wait`](Self::new) later.
#[derive(Clone, Debug)]
pub(crate) struct Probe {
    first_wait: i64,
    longest_wait: i64,
    wait: i64,
    due: i64,
    ask: bool,
    announce: bool,
}

impl Probe {
    /// Waits in milliseconds; each is half as long again as the one before.
    pub(crate) fn new(first_wait_ms: u32, longest_wait_ms: u32) -> Self {
        Self {
            first_wait: i64::from(first_wait_ms),
            longest_wait: i64::from(longest_wait_ms),
            wait: 0,
            due: 0,
            ask: false,
            announce: false,
        }
    }

    /// Our window is to be announced to the peer at the next flush.
    pub(crate) fn announce_window(&mut self) {
        self.announce = true;
    }

    /// The peer is to be asked for its window at the next flush, whether or not
    /// it has said that it has none.
    pub(crate) fn ask_window(&mut self) {
        self.ask = true;
    }

    /// A flush at `now` with the peer's window at `remote_window`: returns
    /// whether to ask and whether to announce.
    pub(crate) fn on_flush(&mut self, now: i64, remote_window: u32) -> (bool, bool) {
        if remote_window != 0 {
            self.wait = 0;
        } else if self.wait == 0 {
            self.wait = self.first_wait;
            self.due = now + self.wait;
        } else if now >= self.due {
            self.wait = self.wait.max(self.first_wait);
            self.wait = (self.wait + self.wait / 2).min(self.longest_wait);
            self.due = now + self.wait;
            self.ask = true;
        }
        (
            std::mem::take(&mut self.ask),
            std::mem::take(&mut self.announce),
        )
    }

    /// Whether a flush has nothing to do here, now or later.
    pub(crate) const fn is_idle(&self) -> bool {
        self.wait == 0 && !self.ask && !self.announce
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn questions_come_later_and_later() {
        let mut probe = Probe::new(7_000, 12_000);
        let asked: Vec<i64> = (0..60_000)
            .filter(|&now| probe.on_flush(now, 0).0)
            .collect();
        assert_eq!(asked, [7_000, 17_500, 29_500, 41_500, 53_500]);
        assert_eq!(probe.on_flush(60_000, 5), (false, false));
        assert!(probe.is_idle());
    }
}
