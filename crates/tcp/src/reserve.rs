//! Memory set aside for a connection and not in use.

/// The unit in which memory is set aside.
const PAGE: i64 = 4_096;

/// Bytes that are set aside in whole pages and not in use (Linux 6.1
/// `sk_forward_alloc`). Whether a packet of data is predicted depends on it, and
/// so does what it sends.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Reserve(i64);

impl Reserve {
    /// Whether so many bytes are there.
    pub(crate) const fn holds(self, bytes: u32) -> bool {
        bytes as i64 <= self.0
    }

    /// Sets pages aside until so many bytes are there (Linux 6.1
    /// `sk_rmem_schedule`, `sk_wmem_schedule`, `sk_forced_mem_schedule`).
    pub(crate) const fn schedule(&mut self, bytes: u32) {
        let missing = bytes as i64 - self.0;
        if missing > 0 {
            self.0 += (missing + PAGE - 1) / PAGE * PAGE;
        }
    }

    /// Bytes are used (Linux 6.1 `sk_mem_charge`).
    pub(crate) const fn charge(&mut self, bytes: u32) {
        self.0 -= bytes as i64;
    }

    /// Bytes are used no more; whole pages go back at once (Linux 6.1
    /// `sk_mem_uncharge`, `sk_mem_reclaim`).
    pub(crate) const fn release(&mut self, bytes: u32) {
        self.0 += bytes as i64;
        if self.0 >= PAGE {
            self.0 %= PAGE;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Reserve;

    #[test]
    fn whole_pages_are_set_aside_and_go_back() {
        let mut reserve = Reserve::default();
        assert!(!reserve.holds(1));
        reserve.schedule(2_304);
        reserve.charge(2_304);
        assert!(reserve.holds(1_792) && !reserve.holds(1_793));
        // What is there is used first.
        reserve.schedule(2_304);
        reserve.charge(2_304);
        assert!(reserve.holds(3_584) && !reserve.holds(3_585));
        reserve.release(2_304);
        assert!(reserve.holds(1_792) && !reserve.holds(1_793));
    }
}
