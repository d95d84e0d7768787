//! How many threads connections have.
//!
//! Datagrams of one port go to several threads only where the system lets each have a
//! socket at it. Where it does not, a gateway that listens with KCP has one.

use super::address::ListenAddress;
use super::file::ThreadsSection;
use super::resolve::{ConfigError, wrong};

/// The most threads that are taken unasked.
const MOST_UNASKED: usize = 64;

impl ThreadsSection {
    /// Threads for connections at these addresses, on so many processors. `can_share_ports`
    /// is whether several threads may have a socket at one.
    pub(super) fn for_connections<'a>(
        &self,
        mut at: impl Iterator<Item = &'a ListenAddress>,
        processors: usize,
        can_share_ports: bool,
    ) -> Result<u16, ConfigError> {
        let is_one_at_most = !can_share_ports && at.any(|at| at.wire.is_udp());
        let unasked = processors.saturating_sub(1).min(MOST_UNASKED) as u16;
        match self.connections {
            Some(2..) if is_one_at_most => Err(wrong(
                "threads.connections",
                "several threads cannot share KCP's port on this system: set 1, or listen with TCP",
            )),
            Some(threads) => Ok(threads),
            None if is_one_at_most => Ok(unasked.min(1)),
            None => Ok(unasked),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn threads(asked: Option<u16>, at: &[&str], can_share_ports: bool) -> Result<u16, String> {
        let section = ThreadsSection {
            connections: asked,
            ..ThreadsSection::default()
        };
        let at: Vec<ListenAddress> = at.iter().map(|at| at.parse().unwrap()).collect();
        let threads = section.for_connections(at.iter(), 8, can_share_ports);
        threads.map_err(|why| why.to_string())
    }

    const TCP: &[&str] = &["127.0.0.1:1", "ws://127.0.0.1:2"];
    const KCP: &[&str] = &["127.0.0.1:1", "kcp://127.0.0.1:2"];

    #[test]
    fn connections_have_all_processors_but_one_unless_they_are_given_a_number() {
        for at in [TCP, KCP] {
            assert_eq!(threads(None, at, true), Ok(7));
            assert_eq!(threads(Some(3), at, true), Ok(3));
        }
    }

    #[test]
    fn kcp_has_one_thread_where_ports_are_not_shared() {
        assert_eq!(threads(None, KCP, false), Ok(1));
        assert_eq!(threads(Some(1), KCP, false), Ok(1));
        assert_eq!(threads(Some(0), KCP, false), Ok(0));
        assert_eq!(threads(None, TCP, false), Ok(7));
        let why = threads(Some(2), KCP, false).unwrap_err();
        assert!(why.starts_with("threads.connections: "), "{why}");
    }
}
