//! The blocks of the grid, each for one game server.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::core::ids::ConnId;

/// A block that a server has.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct Taken {
    server: ConnId,
    /// Its cells are there.
    is_made: bool,
}

/// Which server has which block. Home knows of all; each shard knows for whom it has made
/// cells.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Blocks {
    taken: Vec<Option<Taken>>,
    /// The server for which the cells of a block were made here, as long as one is left.
    made_for: BTreeMap<u32, ConnId>,
}

impl Blocks {
    /// Gives a server the first of so many blocks that nobody has.
    pub(super) fn take(&mut self, blocks: u32, server: ConnId) -> Option<u32> {
        self.taken.resize(blocks as usize, None);
        let block = self.taken.iter().position(Option::is_none)?;
        self.taken[block] = Some(Taken {
            server,
            is_made: false,
        });
        u32::try_from(block).ok()
    }

    /// The cells of a server's block are there. Returns whether those of all blocks are.
    pub(super) fn are_made(&mut self, block: u32, server: ConnId) -> bool {
        if let Some(Some(taken)) = self.taken.get_mut(block as usize)
            && taken.server == server
        {
            taken.is_made = true;
            let mut all = self.taken.iter();
            return all.all(|taken| taken.is_some_and(|taken| taken.is_made));
        }
        false
    }

    /// The servers that have a block, by blocks.
    pub(super) fn servers(&self) -> impl Iterator<Item = ConnId> {
        self.taken.iter().flatten().map(|taken| taken.server)
    }

    /// A server's block may go to another.
    pub(super) fn release(&mut self, server: ConnId) {
        for taken in &mut self.taken {
            if taken.is_some_and(|taken| taken.server == server) {
                *taken = None;
            }
        }
    }

    /// A server has a block no more, if it has it yet.
    pub(super) fn empty(&mut self, block: u32, server: ConnId) {
        if let Some(taken) = self.taken.get_mut(block as usize)
            && taken.is_some_and(|taken| taken.server == server)
        {
            *taken = None;
        }
    }

    /// Nobody has these blocks any more: their cells are lost.
    pub(super) fn forget(&mut self, is_lost: impl Fn(u32) -> bool) {
        for (block, taken) in (0..).zip(&mut self.taken) {
            if is_lost(block) {
                *taken = None;
            }
        }
    }

    /// This shard has made a block's cells for a server.
    pub(super) fn made_for(&mut self, block: u32, server: ConnId) {
        self.made_for.insert(block, server);
    }

    /// None of the cells of a block is left here. Returns for whom they were made.
    pub(super) fn none_is_left(&mut self, block: u32) -> Option<ConnId> {
        self.made_for.remove(&block)
    }
}
