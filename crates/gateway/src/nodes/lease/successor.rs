//! Whom the entry names while it is held: a node that has all that the holder has.

use lagometer_units::Time;

use crate::nodes::bus::NodeId;

use super::{Lease, State};

/// Whom a holder names, and whether it was named itself.
#[derive(Debug, Default)]
pub(super) struct Naming {
    /// The entry that this node replaced named it as the successor.
    pub(super) is_named: bool,
    /// Whom the entry is to name as the successor.
    pub(super) successor: Option<NodeId>,
    /// Whom it may name, for all that is known.
    pub(super) may_name: Option<NodeId>,
    /// Whom it was written to name last.
    pub(super) names: Option<NodeId>,
}

/// What a node that stands by knows of its being named.
#[derive(Debug, Default)]
pub(super) struct Claim {
    /// The entry that was read last names this node as the successor of its holder.
    pub(super) names_me: bool,
    /// This node has all that the holder has.
    pub(super) can_succeed: bool,
    /// A reading failed since that entry was read.
    pub(super) has_missed: bool,
}

impl Claim {
    /// Whether this node need not wait anew where a reading failed.
    pub(super) fn is_good(&self) -> bool {
        self.names_me && self.can_succeed
    }
}

impl Lease {
    /// Whether the entry that this node replaced when it became the holder named it as the
    /// successor: then nothing was done of which the successor did not know.
    #[must_use]
    pub fn is_named(&self) -> bool {
        self.naming.is_named
    }

    /// Whether this node has all that the holder has: then it does not lose its place by
    /// readings that fail, if the entry names it.
    pub(in crate::nodes) fn set_can_succeed(&mut self, can_succeed: bool) {
        self.claim.can_succeed = can_succeed;
    }

    /// The holder names who is to succeed it should it die, or nobody. Until it is known
    /// that the entry has it, it [may name](Self::may_name) whom it named before.
    pub fn set_successor(&mut self, now: Time, successor: Option<NodeId>) {
        if self.naming.successor != successor {
            self.naming.successor = successor;
            self.ask_at = now;
        }
    }

    /// Whom the entry may name as the holder's successor, for all that this node knows.
    #[must_use]
    pub fn may_name(&self) -> Option<NodeId> {
        self.naming.may_name
    }

    /// Whom the entry is known to have named when it was written last.
    #[must_use]
    pub fn names(&self) -> Option<NodeId> {
        self.naming.names
    }

    /// The revision of the entry that this node wrote last, if it is the holder.
    #[must_use]
    pub fn revision(&self) -> Option<u64> {
        match self.state {
            State::Holds { revision, .. } => Some(revision),
            State::StandsBy { .. } => None,
        }
    }

    /// The holder says that it has written this revision: that was before now, so that its
    /// lease counts from now at most.
    pub fn note_renewal(&mut self, now: Time, revision: u64) {
        if let State::StandsBy { seen } = &mut self.state
            && seen.is_none_or(|(of, _)| of < revision)
        {
            *seen = Some((revision, now));
        }
    }
}
