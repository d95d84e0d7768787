//! Steal time: what the host of a virtual machine takes, as far as the kernel
//! knows.

/// The ticks of `/proc/stat` (proc(5)): all of them and those that were
/// stolen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Ticks {
    all: u64,
    stolen: u64,
}

impl Ticks {
    /// Those since the machine started.
    pub(super) fn now() -> Option<Self> {
        Self::parse(&std::fs::read_to_string("/proc/stat").ok()?)
    }

    fn parse(text: &str) -> Option<Self> {
        let line = text.lines().find(|line| line.starts_with("cpu "))?;
        // user, nice, system, idle, iowait, irq, softirq, steal; what follows
        // is counted under user and nice already.
        let fields: Vec<u64> = line
            .split_whitespace()
            .skip(1)
            .take(8)
            .map_while(|field| field.parse().ok())
            .collect();
        Some(Self {
            all: fields.iter().sum(),
            stolen: *fields.get(7)?,
        })
    }

    /// Share that was stolen since `earlier`, per cent.
    pub(super) fn stolen_pct_since(self, earlier: Self) -> Option<f64> {
        let all = self.all.checked_sub(earlier.all).filter(|all| *all > 0)?;
        let stolen = self.stolen.saturating_sub(earlier.stolen);
        Some((stolen as f64 / all as f64 * 1e4).round() / 1e2)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_share_is_of_the_ticks_that_passed() {
        let before = Ticks::parse("cpu  100 0 50 800 0 0 0 50 9 9\ncpu0 1").unwrap();
        let after = Ticks::parse("cpu  130 0 60 850 0 0 0 60 9 9\n").unwrap();
        assert_eq!(after.stolen_pct_since(before), Some(10.0));
        assert_eq!(after.stolen_pct_since(after), None);
        assert_eq!(Ticks::parse("cpu 1 2 3"), None);
        assert_eq!(Ticks::parse(""), None);
    }
}
