//! What is asked of the store for the lease.

use crate::nodes::bus::NodeId;

/// What is asked for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Asked {
    Read,
    Take(Take),
    /// To renew it, with this successor.
    Renew(Option<NodeId>),
}

/// To be the holder.
#[derive(Clone, Copy, Debug)]
pub(super) struct Take {
    /// In the place of the entry of this revision, or of none.
    pub(super) revision: Option<u64>,
    /// In this epoch.
    pub(super) epoch: u64,
    /// Whose entry that is, and of which epoch.
    pub(super) from: Option<(NodeId, u64)>,
    /// That entry names this node as the successor.
    pub(super) is_named: bool,
}

/// A lease that is given up once it is known how the entry stands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Giving {
    pub(super) epoch: u64,
    pub(super) revision: u64,
    pub(super) successor: Option<NodeId>,
}
