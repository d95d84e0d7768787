//! What servers that broke off have left, until they come back for it.

use std::collections::BTreeMap;

use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::ids::{ChannelId, ConnId};

use super::subscriptions::SubOptions;

/// What they have left, by their numbers.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Recoveries {
    handles: BTreeMap<ConnId, Handle>,
    last_order: u64,
    /// The orders of those that somebody has come back for and been given, as long as that one
    /// is there.
    kept_orders: BTreeMap<ConnId, u64>,
}

#[derive(Debug, Serialize, Deserialize)]
struct Handle {
    player: String,
    /// Less than that of what is left later.
    order: u64,
    /// Somebody has come back for it.
    taken: bool,
    /// … and was given what there was.
    given: bool,
    /// When the time allowed is over, or, once somebody has come back, when
    /// they are notified that this was all. Timers of an earlier handle of the same
    /// number, which broke off again before that, are of other instants.
    due: Option<Time>,
    channels: BTreeMap<ChannelId, Left>,
}

/// What a server left in one channel.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Left {
    pub(super) was_owner: bool,
    /// Since when it was subscribed, and how.
    pub(super) subscription: Option<(Time, SubOptions)>,
}

impl Recoveries {
    /// A server that logged in as `player` broke off. It may come back until `due`,
    /// for ever where there is none.
    pub(super) fn leave(
        &mut self,
        id: ConnId,
        player: String,
        due: Option<Time>,
        channels: BTreeMap<ChannelId, Left>,
    ) {
        self.last_order += 1;
        let mut handle = Handle {
            player,
            order: self.kept_orders.remove(&id).unwrap_or(self.last_order),
            taken: false,
            given: false,
            due,
            channels,
        };
        let before = self.handles.remove(&id);
        if let Some(before) = before.filter(|before| before.player == handle.player) {
            handle.order = before.order;
            // What it came back for and was not given yet.
            for (channel, left) in before.channels {
                handle.channels.entry(channel).or_insert(left);
            }
        }
        self.handles.insert(id, handle);
    }

    /// A server that has come back goes in order before it was given what it left: that is
    /// over now. Returns whether there is such a one.
    pub(super) fn give_up(&mut self, id: ConnId, now: Time) -> bool {
        self.kept_orders.remove(&id);
        let handle = self.handles.get_mut(&id);
        let handle = handle.filter(|handle| handle.taken && !handle.given);
        let Some(handle) = handle else {
            return false;
        };
        (handle.taken, handle.due) = (false, Some(now));
        true
    }

    /// A server logs in as `player`. Returns the number under which it has left
    /// something, which is its own from now on. Of several it is the one that was left first: a
    /// server that comes back before it is missed gets another number, and leaves that too.
    pub(super) fn claim(&mut self, player: &str) -> Option<ConnId> {
        let handles = self.handles.iter_mut();
        let own = handles.filter(|(_, handle)| !handle.taken && handle.player == player);
        let (&id, handle) = own.min_by_key(|(_, handle)| handle.order)?;
        handle.taken = true;
        Some(id)
    }

    /// Another shard has found that it is for this number that a server logs in as `player`.
    /// Returns whether it has left something here.
    pub(super) fn claim_number(&mut self, id: ConnId, player: &str) -> bool {
        let handle = self.handles.get_mut(&id);
        let handle = handle.filter(|handle| !handle.taken && handle.player == player);
        handle.map(|handle| handle.taken = true).is_some()
    }

    /// What a server that has come back left; it is notified at `ends_at` that this was
    /// all.
    pub(super) fn take_up(
        &mut self,
        id: ConnId,
        ends_at: Time,
    ) -> Option<BTreeMap<ChannelId, Left>> {
        let handle = self.handles.get_mut(&id)?;
        (handle.given, handle.due) = (true, Some(ends_at));
        Some(std::mem::take(&mut handle.channels))
    }

    /// Ends a recovery, if one of that number ends then. Returns whether it does.
    pub(super) fn finish(&mut self, id: ConnId, due: Time) -> bool {
        let handle = self.handles.get(&id);
        let handle = handle.filter(|it| it.taken && it.due == Some(due));
        let Some(order) = handle.map(|handle| handle.order) else {
            return false;
        };
        self.handles.remove(&id);
        self.kept_orders.insert(id, order);
        true
    }

    /// A server had until then to come back. Returns what it left, if it did not.
    pub(super) fn expire(&mut self, id: ConnId, due: Time) -> Option<BTreeMap<ChannelId, Left>> {
        let handle = self.handles.get(&id);
        handle.filter(|handle| handle.due == Some(due))?;
        self.abandon(id)
    }

    /// Nobody comes back for it any more. Returns what was left, if nobody has.
    pub(super) fn abandon(&mut self, id: ConnId) -> Option<BTreeMap<ChannelId, Left>> {
        self.handles.get(&id).filter(|handle| !handle.taken)?;
        self.handles.remove(&id).map(|handle| handle.channels)
    }

    /// Whether something of a handle is due then.
    pub(super) fn is_due(&self, id: ConnId, at: Time) -> bool {
        self.handles
            .get(&id)
            .is_some_and(|handle| handle.due == Some(at))
    }

    /// The numbers that were left.
    pub(super) fn ids(&self) -> impl Iterator<Item = ConnId> {
        self.handles.keys().copied()
    }

    /// Whether a server has come back and has not been notified yet that this was
    /// all.
    pub(super) fn is_returning(&self, id: ConnId) -> bool {
        self.handles.get(&id).is_some_and(|handle| handle.taken)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: ConnId = ConnId(7);

    fn left(id: u32) -> BTreeMap<ChannelId, Left> {
        let left = Left {
            was_owner: true,
            subscription: None,
        };
        [(ChannelId(id), left)].into()
    }

    #[test]
    fn a_server_that_goes_before_it_was_given_what_it_left_has_left_it_still() {
        let mut recoveries = Recoveries::default();
        recoveries.leave(ID, "server".to_owned(), None, left(3));
        assert!(recoveries.claim_number(ID, "server"));
        assert!(!recoveries.claim_number(ID, "server"), "once");
        // It breaks off, with nothing of its own yet.
        recoveries.leave(ID, "server".to_owned(), None, BTreeMap::new());
        assert!(!recoveries.claim_number(ID, "another"));
        assert!(recoveries.claim_number(ID, "server"));
        let all = recoveries
            .take_up(ID, Time::from_secs(1))
            .expect("a handle");
        assert!(all.contains_key(&ChannelId(3)));
        // From now on that is its own.
        recoveries.leave(ID, "server".to_owned(), None, left(4));
        assert!(recoveries.claim_number(ID, "server"));
        // It goes in order before it was given it: over at once.
        assert!(recoveries.give_up(ID, Time::from_secs(2)));
        let all = recoveries
            .expire(ID, Time::from_secs(2))
            .expect("it is due");
        assert_eq!(all.into_keys().collect::<Vec<_>>(), [ChannelId(4)]);
    }

    #[test]
    fn of_several_that_a_server_left_it_comes_back_for_the_first() {
        let mut recoveries = Recoveries::default();
        recoveries.leave(ID, "server".to_owned(), None, left(3));
        // It was let in under another number before it was missed.
        let (early, later) = (ConnId(2), ConnId(9));
        recoveries.leave(early, "server".to_owned(), None, left(0));
        recoveries.leave(later, "server".to_owned(), None, BTreeMap::new());
        assert_eq!(recoveries.claim("server"), Some(ID));
        // It breaks off again, once before it was given that and once after: that is still what
        // it left first.
        recoveries.leave(ID, "server".to_owned(), None, BTreeMap::new());
        assert_eq!(recoveries.claim("server"), Some(ID));
        let ends_at = Time::from_secs(1);
        assert!(recoveries.take_up(ID, ends_at).is_some());
        assert!(recoveries.finish(ID, ends_at));
        recoveries.leave(ID, "server".to_owned(), None, left(3));
        assert_eq!(recoveries.claim("server"), Some(ID));
        assert_eq!(recoveries.claim("server"), Some(early));
    }

    #[test]
    fn who_has_anothers_number_does_not_come_back_for_what_is_anothers() {
        let mut recoveries = Recoveries::default();
        recoveries.leave(ID, "server".to_owned(), None, left(3));
        recoveries.leave(ID, "another".to_owned(), None, left(4));
        assert_eq!(recoveries.claim("server"), None);
        assert_eq!(recoveries.claim("another"), Some(ID));
        let all = recoveries
            .take_up(ID, Time::from_secs(1))
            .expect("a handle");
        assert_eq!(all.into_keys().collect::<Vec<_>>(), [ChannelId(4)]);
    }

    #[test]
    fn one_that_left_nothing_and_goes_before_it_was_given_that_leaves_no_number_behind() {
        let mut recoveries = Recoveries::default();
        recoveries.leave(ID, "server".to_owned(), None, BTreeMap::new());
        assert!(recoveries.claim_number(ID, "server"));
        assert!(recoveries.give_up(ID, Time::from_secs(2)));
        assert!(recoveries.expire(ID, Time::from_secs(2)).is_some());
        assert_eq!(recoveries.ids().count(), 0);
    }
}
