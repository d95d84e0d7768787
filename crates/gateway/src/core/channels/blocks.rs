//! The blocks of the grid, each for one game server.

use serde::{Deserialize, Serialize};

use crate::core::ids::ConnId;

/// Which server has which block.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Blocks(Vec<Option<ConnId>>);

impl Blocks {
    /// Gives a server the first of so many blocks that nobody has.
    pub(super) fn take(&mut self, blocks: u32, server: ConnId) -> Option<u32> {
        self.0.resize(blocks as usize, None);
        let slot = self.0.iter().position(Option::is_none)?;
        self.0[slot] = Some(server);
        u32::try_from(slot).ok()
    }

    /// Whether each has its server.
    pub(super) fn are_all_taken(&self) -> bool {
        self.0.iter().all(Option::is_some)
    }

    /// The servers that have a block, by blocks.
    pub(super) fn servers(&self) -> impl Iterator<Item = ConnId> {
        self.0.iter().copied().flatten()
    }

    /// A server's block may go to another.
    pub(super) fn release(&mut self, server: ConnId) {
        for slot in &mut self.0 {
            if *slot == Some(server) {
                *slot = None;
            }
        }
    }

    /// A block has no server any more.
    pub(super) fn empty(&mut self, block: u32) {
        if let Some(server) = self.0.get_mut(block as usize) {
            *server = None;
        }
    }
}
