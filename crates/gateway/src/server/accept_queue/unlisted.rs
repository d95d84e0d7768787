//! What systems that list no sockets say of those that listen: nothing.

use rustix::fd::AsFd;

use crate::core::Peer;

/// Nothing is listed.
#[derive(Debug)]
pub(super) struct Listed;

impl Listed {
    pub(super) const fn new() -> Self {
        Self
    }

    /// A socket listens for that kind of peer from now on.
    #[expect(clippy::unused_self, reason = "the shape that Linux has")]
    pub(super) const fn listens(&self, _: &impl AsFd, _: Peer) {}

    /// Nobody is seen to wait.
    #[expect(clippy::unused_self, reason = "the shape that Linux has")]
    pub(super) const fn waiting(&self) -> [u64; 2] {
        [0; 2]
    }
}
