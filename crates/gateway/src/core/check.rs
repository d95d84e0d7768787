//! What must hold between any two steps, whatever peers have sent: for tests
//! and fuzzing, which call it after every step.
//!
//! Each side checks its own tables ([`ChannelManager::check_invariants`],
//! [`ConnectionManager::check_invariants`]); [`sides_agree`] holds one side's
//! tables against the other's. All of it walks every table: it costs time in
//! proportion to what there is, and a server that serves has no use for it.

use std::collections::BTreeMap;

use super::channels::ChannelManager;
use super::connections::ConnectionManager;
use super::ids::{ConnId, ConnKey, GroupId, SideId};

/// Something that must always hold does not: a defect of this crate.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("broken invariant: {0}")]
pub struct BrokenInvariant(pub(super) String);

/// Fails with a message, given as to `format!`, unless a condition holds.
macro_rules! hold {
    ($condition:expr, $($what:tt)+) => {
        if !$condition {
            return Err($crate::core::check::BrokenInvariant(format!($($what)+)));
        }
    };
}
pub(super) use hold;

/// The members of each group that live on one connection manager.
pub(super) type Members = BTreeMap<GroupId, Vec<ConnId>>;

/// Those let in on one connection manager.
pub(super) type Admitted = BTreeMap<ConnId, ConnKey>;

/// Whether the channel manager and all its connection managers know of the same
/// connections and of the same members of groups. To be asked once nothing is
/// left on the bus, for what is on it only one side knows.
///
/// # Errors
///
/// [`BrokenInvariant`]: what the sides disagree about.
pub fn sides_agree(
    channels: &ChannelManager,
    sides: &[(SideId, &ConnectionManager)],
) -> Result<(), BrokenInvariant> {
    let mut numbers = BTreeMap::new();
    for (side, connections) in sides {
        let (known, there) = (channels.admitted_on(*side), connections.admitted());
        hold!(
            known == there,
            "side {}: the channel manager has let in {known:?}, but these are there: {there:?}",
            side.0
        );
        for id in there.keys() {
            let other = numbers.insert(*id, side.0);
            hold!(
                other.is_none(),
                "{id} is on side {} and on {other:?}",
                side.0
            );
        }
        let (known, there) = (channels.members_on(*side), connections.members());
        hold!(
            known == there,
            "side {}: groups by the subscriptions {known:?}, by the connections {there:?}",
            side.0
        );
    }
    Ok(())
}
