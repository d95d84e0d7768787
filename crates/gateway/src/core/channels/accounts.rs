//! What each peer has used of its budgets: the channels it made, with what is
//! set aside for their data, and the work its requests have cost.
//!
//! A client's channels are its own until it leaves; what becomes of those that
//! outlive it is described in [`orphans`](super::orphans). Work that it has not made up for
//! by waiting is left to who comes next from its source prefix.

mod check;

use std::collections::BTreeMap;
use std::time::Duration;

use lagometer_limits::Debts;
use lagometer_protocol::AnyView;
use lagometer_protocol::any::type_name;
use lagometer_units::Time;
use prost_types::Any;
use serde::{Deserialize, Serialize};

use crate::core::budget::Budget;
use crate::core::ids::{ChannelId, ConnId, Peer};
use crate::core::settings::PeerBudgets;

use super::ChannelManager;
use super::dispatch::Request;
use super::orphans::Maker;
use super::tables::Tables;

/// Bytes of text or data that one unit of work is spent on.
pub(super) const BYTES_PER_UNIT: usize = 64;

/// The most units that one message may cost anyone, servers too: some tenths of
/// a second.
const UNITS_PER_MESSAGE: u64 = 10_000_000;

/// The share of a second's work, three quarters, that whoever comes in the place of one
/// who did too much begins without at most. Its first requests are not refused because
/// of another's.
const TAKEN_OVER: (u64, u64) = (3, 4);

/// Work of clients that have gone, by whom it is left to.
pub(super) type WorkDebts = Debts<Maker, Time, Work>;

/// A body no longer than this is decoded whatever is in it.
const SHORT_BODY_BYTES: usize = 1024;

/// One peer's.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Account {
    /// The channels it made, with the bytes set aside for the data of each.
    made: BTreeMap<ChannelId, usize>,
    /// How many of them are entities'.
    entities: usize,
    data_bytes: usize,
    work: Work,
    /// Of a game server's LISTs alone.
    listing: Work,
    /// Of windows without its own updates alone: its requests are not refused for what
    /// others write to.
    own_windows: Work,
}

/// A second's worth of work that fills up again as time passes. It may be
/// overdrawn once: what a request costs is known when it is done.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Work {
    spent: u64,
    at: Time,
}

impl Work {
    fn spent(&mut self, now: Time, per_second: u32) -> u64 {
        let passed_ns = u64::try_from(now.since(self.at).as_nanos()).unwrap_or(u64::MAX);
        let refilled = u128::from(passed_ns) * u128::from(per_second) / 1_000_000_000;
        // Time for less than a unit is not lost but counted with what follows.
        if refilled > 0 {
            let refilled = u64::try_from(refilled).unwrap_or(u64::MAX);
            self.spent = self.spent.saturating_sub(refilled);
            self.at = now;
        }
        self.spent
    }

    /// Spends units now. The time that has passed is settled first, for it
    /// cannot pay for what is spent after it.
    fn charge(&mut self, now: Time, per_second: u32, units: u64) {
        self.spent = self.spent(now, per_second).saturating_add(units);
    }

    /// Whether a second's worth or more is spent, as things stand.
    fn is_spent(mut self, now: Time, per_second: u32) -> bool {
        self.spent(now, per_second) >= u64::from(per_second)
    }

    /// When all is made up for.
    fn paid_at(&mut self, now: Time, per_second: u32) -> Time {
        let nanos =
            u128::from(self.spent(now, per_second)) * 1_000_000_000 / u128::from(per_second.max(1));
        now + Duration::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX / 4))
    }
}

impl Account {
    /// Whether windows without its own updates have used up all the work that may go
    /// into them now.
    pub(super) fn are_own_windows_spent(&self, now: Time, per_second: u32) -> bool {
        self.own_windows.is_spent(now, per_second)
    }
}

impl ChannelManager {
    /// A channel is about to go.
    pub(super) fn settle_account(&mut self, id: ChannelId) {
        let Some(channel) = self.tables.channels.get_mut(id) else {
            return;
        };
        if let Some(age) = channel.orphan.take() {
            self.orphans.remove(age);
        }
        let is_entity = channel.entity.is_some();
        if let Some(connection) = channel
            .maker
            .take()
            .and_then(|maker| self.tables.connections.any_mut(maker))
            && let Some(bytes) = connection.account.made.remove(&id)
        {
            connection.account.entities -= usize::from(is_entity);
            connection.account.data_bytes -= bytes;
        }
    }

    /// A client goes, which has cost so many units. Work that is not made up for
    /// yet is left to who comes next from its source prefix.
    pub(super) fn leave_work(&mut self, now: Time, id: ConnId, units: u64) {
        self.tables.charge(now, id, units);
        let Some(connection) = self.tables.connections.any_mut(id) else {
            return;
        };
        let per_second = self
            .tables
            .settings
            .budgets
            .of(connection.peer)
            .work_per_second;
        let is_limited = connection.peer == Peer::Client && per_second != u32::MAX;
        // It cannot owe under an address that may be another's.
        if !is_limited || connection.is_address_forgeable {
            return;
        }
        let mut work = connection.account.work;
        let paid_at = work.paid_at(now, per_second);
        let maker = Maker::new(connection.address, &connection.player);
        self.work_debts.leave(now, maker, paid_at, work);
    }

    /// A client was let in, and is where it says: it makes up for the work of one of
    /// its source prefix that has gone, though for no more than leaves it some for its
    /// first requests.
    pub(super) fn take_over_work(&mut self, now: Time, id: ConnId) {
        let Some(connection) = self.tables.connections.any(id) else {
            return;
        };
        if connection.is_address_forgeable {
            return;
        }
        let maker = Maker::new(connection.address, &connection.player);
        if let Some(mut work) = self.work_debts.take_over(now, &maker) {
            let per_second = self.tables.settings.budgets.clients.work_per_second;
            let most = u64::from(per_second) * TAKEN_OVER.0 / TAKEN_OVER.1;
            let units = work.spent(now, per_second).min(most);
            self.tables.charge(now, id, units);
        }
    }

    /// A peer goes; what it made and did not take with it is nobody's.
    pub(super) fn orphan_channels(&mut self, maker: ConnId) {
        let Some(connection) = self.tables.connections.any_mut(maker) else {
            return;
        };
        let is_client = connection.peer == Peer::Client;
        let of = Maker::new(connection.address, &connection.player);
        for id in std::mem::take(&mut connection.account).made.into_keys() {
            let Some(channel) = self.tables.channels.get_mut(id) else {
                continue;
            };
            channel.maker = None;
            if is_client {
                let mut bytes = 0;
                if let Some(content) = channel.content_mut() {
                    // Nobody may ask for it for long.
                    content.changed();
                    bytes = content.state.len_bound();
                }
                channel.orphan = Some(self.orphans.add(of.clone(), id, bytes));
            }
        }
        self.remove_orphans_beyond_limits();
    }

    /// The data of a channel has changed: where that is an orphan, it weighs what it has
    /// now, for others may write to it.
    pub(super) fn weigh_orphan(&mut self, id: ChannelId) {
        let Some(channel) = self.tables.channels.get(id) else {
            return;
        };
        let (Some(age), Some(content)) = (channel.orphan, channel.content()) else {
            return;
        };
        self.orphans.weigh(age, content.state.len_bound());
        self.remove_orphans_beyond_limits();
    }

    fn remove_orphans_beyond_limits(&mut self) {
        let (most, most_bytes) = (
            self.tables.settings.budgets.orphaned_channels,
            self.tables.settings.budgets.orphaned_data_bytes,
        );
        loop {
            let orphan = if self.orphans.len() > most {
                self.orphans.pop()
            } else if self.orphans.data_bytes() > most_bytes {
                self.orphans.pop_largest()
            } else {
                None
            };
            let Some(id) = orphan else {
                return;
            };
            self.remove_ownerless(id);
        }
    }
}

impl Tables {
    /// What whoever asks may ask for.
    pub(super) fn budgets_of(&self, request: &Request) -> PeerBudgets {
        let peer = self
            .connections
            .get(request.from)
            .map(|connection| connection.peer);
        *self.settings.budgets.of(peer.unwrap_or(Peer::Client))
    }

    /// Counts, and logs once in a while, that a request goes over a budget.
    pub(super) fn over_budget(&mut self, request: &Request, budget: Budget) {
        let Some(connection) = self.connections.get(request.from) else {
            return;
        };
        let peer = connection.peer;
        (self.telemetry).over_budget(request.now, peer, request.from, budget);
    }

    /// As [`over_budget`](Self::over_budget), of a request that is dropped.
    pub(super) fn refuse(&mut self, request: &Request, budget: Budget) {
        self.telemetry.counters.dropped += 1;
        self.over_budget(request, budget);
    }

    /// How many units of work the request may cost; `None`, and the request is
    /// refused, while its sender's last ones have used up all there is.
    pub(super) fn may_work(&mut self, request: &Request) -> Option<u64> {
        if self.cause.is_some_and(|cause| cause.is_spent()) {
            self.refuse(request, Budget::Work);
            return None;
        }
        let per_second = self.budgets_of(request).work_per_second;
        if per_second == u32::MAX {
            return Some(UNITS_PER_MESSAGE);
        }
        let account = &mut self.connections.any_mut(request.from)?.account;
        let spent = account.work.spent(request.now, per_second);
        if spent >= u64::from(per_second) {
            self.refuse(request, Budget::Work);
            return None;
        }
        Some(UNITS_PER_MESSAGE.min(u64::from(per_second)))
    }

    /// Whether a request may be decoded. A body of a MiB may be decoded to half a
    /// million texts, lists or entries, each of which costs memory and time though
    /// nothing be in it: they are counted before, by `values`, which is given how many
    /// to count at most, and cost a unit of work each. Whose work has no limit a second
    /// may have any decoded.
    pub(super) fn may_decode(
        &mut self,
        request: &Request,
        body_bytes: usize,
        values: impl FnOnce(usize) -> usize,
    ) -> bool {
        let per_second = self.budgets_of(request).work_per_second;
        if body_bytes <= SHORT_BODY_BYTES || per_second == u32::MAX {
            return true;
        }
        let Some(units) = self.may_work(request) else {
            return false;
        };
        let most = usize::try_from(units).unwrap_or(usize::MAX);
        let values = values(most);
        self.worked(request, values as u64);
        if values >= most {
            self.refuse(request, Budget::Work);
        }
        values < most
    }

    /// The same of channel data that a request brings.
    pub(super) fn may_read_data(&mut self, request: &Request, data: &AnyView<'_>) -> bool {
        if data.value.len() <= SHORT_BODY_BYTES {
            return true;
        }
        let data_type = self.settings.schema.find(type_name(data.type_url));
        self.may_decode(request, data.value.len(), |most| {
            data_type.map_or(0, |data_type| data_type.count_values(data.value, most))
        })
    }

    /// As [`may_work`](Self::may_work), of a LIST. Game servers, whose work has no
    /// limit a second otherwise, are held to one here: no game lists channels so
    /// often, and each LIST may look at all there are.
    pub(super) fn may_list(&mut self, request: &Request) -> Option<u64> {
        let units = self.may_work(request)?;
        let per_second = self.budgets_of(request).list_work_per_second;
        let account = &mut self.connections.any_mut(request.from)?.account;
        let spent = account.listing.spent(request.now, per_second);
        if spent >= u64::from(per_second) {
            self.refuse(request, Budget::Work);
            return None;
        }
        Some(units)
    }

    /// A LIST has cost so much.
    pub(super) fn listed(&mut self, request: &Request, units: u64) {
        self.worked(request, units);
        let per_second = self.budgets_of(request).list_work_per_second;
        if let Some(connection) = self.connections.any_mut(request.from) {
            let listing = &mut connection.account.listing;
            listing.charge(request.now, per_second, units);
        }
    }

    /// A window without its own updates was made for a peer.
    pub(super) fn charge_own_window(&mut self, now: Time, id: ConnId, units: u64) {
        let per_second = self.settings.budgets.clients.work_per_second;
        if let Some(connection) = self.connections.any_mut(id) {
            let work = &mut connection.account.own_windows;
            work.charge(now, per_second, units);
        }
    }

    /// So many units of work were done for a peer: by request of its own, or
    /// later, to send it a whole state.
    pub(super) fn charge(&mut self, now: Time, id: ConnId, units: u64) {
        if let Some(connection) = self.connections.any_mut(id) {
            let per_second = self.settings.budgets.of(connection.peer).work_per_second;
            if per_second == u32::MAX {
                return;
            }
            connection.account.work.charge(now, per_second, units);
        }
    }

    /// The request has cost so much.
    pub(super) fn worked(&mut self, request: &Request, units: u64) {
        self.charge(request.now, request.from, units);
    }

    /// Whether a request may be worked on that costs so much; it is then paid.
    pub(super) fn pays(&mut self, request: &Request, units: usize) -> bool {
        if self.may_work(request).is_none() {
            return false;
        }
        self.worked(request, units as u64);
        true
    }

    /// Whether a channel may be made, with data or without; it is then paid.
    pub(super) fn pays_for_making(&mut self, request: &Request, data: Option<&Any>) -> bool {
        let bytes = data.map_or(0, |data| data.value.len());
        self.pays(request, self.cost_of(request.channel, bytes))
            && data.is_none_or(|data| {
                let view = AnyView {
                    type_url: &data.type_url,
                    value: &data.value,
                };
                self.may_read_data(request, &view)
            })
    }

    /// What a request costs that every group of a channel's subscribers is
    /// looked at for, and so many bytes.
    pub(super) fn cost_of(&self, id: ChannelId, bytes: usize) -> usize {
        let channel = self.channels.get(id);
        let groups = channel.map_or(0, |channel| channel.subscribers.group_count());
        1 + groups + bytes / BYTES_PER_UNIT
    }

    /// Whether the sender may make another channel, an entity's or another
    /// one, with so many bytes of data. Returns how far its data may grow;
    /// `None` if the request was refused.
    pub(super) fn may_make(
        &mut self,
        request: &Request,
        is_entity: bool,
        data_len: usize,
    ) -> Option<usize> {
        let budgets = self.budgets_of(request);
        let most = self.settings.data.max_encoded_bytes;
        let account = &self.connections.get(request.from)?.account;
        let (made, allowed, budget) = if is_entity {
            // Their numbers are the game's to choose, and with them the shards: each allows
            // its part.
            let shards = usize::from(self.settings.shard.count.get());
            let allowed = budgets.entity_channels.div_ceil(shards);
            (account.entities, allowed, Budget::EntityChannels)
        } else {
            let made = account.made.len() - account.entities;
            (made, budgets.channels, Budget::Channels)
        };
        if made >= allowed {
            self.refuse(request, budget);
            return None;
        }
        if budgets.data_bytes == usize::MAX {
            return Some(most);
        }
        let share = if is_entity {
            budgets.channel_data_bytes / 2
        } else {
            budgets.channel_data_bytes
        };
        let bytes = share.max(data_len.saturating_mul(2)).min(most);
        if account.data_bytes.saturating_add(bytes) > budgets.data_bytes {
            self.refuse(request, Budget::Data);
            return None;
        }
        Some(bytes)
    }

    /// A channel was made by request, with a limit to its data.
    pub(super) fn note_made(&mut self, request: &Request, id: ChannelId, data_bytes: usize) {
        let budgets = self.budgets_of(request);
        let Some(channel) = self.channels.get_mut(id) else {
            return;
        };
        channel.max_data_bytes = data_bytes;
        let is_entity = channel.entity.is_some();
        let is_limited = [
            budgets.channels,
            budgets.entity_channels,
            budgets.data_bytes,
        ]
        .iter()
        .any(|&most| most != usize::MAX);
        if !is_limited {
            return;
        }
        channel.maker = Some(request.from);
        if let Some(connection) = self.connections.any_mut(request.from) {
            connection.account.made.insert(id, data_bytes);
            connection.account.entities += usize::from(is_entity);
            connection.account.data_bytes += data_bytes;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn work_is_given_back_at_its_rate_and_no_more_than_was_spent() {
        let mut work = Work {
            spent: 1000,
            at: Time::ZERO,
        };
        assert_eq!(work.spent(Time::ZERO, 100), 1000);
        assert_eq!(work.spent(Time::from_millis(5), 100), 1000, "half a unit");
        assert_eq!(work.spent(Time::from_millis(10), 100), 999, "not lost");
        assert_eq!(work.spent(Time::from_millis(5010), 100), 499);
        assert_eq!(work.spent(Time::from_millis(500_000), 100), 0);
        assert_eq!(
            work.spent(Time::from_millis(400_000), 100),
            0,
            "time is one-way"
        );
    }

    #[test]
    fn idle_time_does_not_pay_for_work_done_after_it() {
        let mut work = Work::default();
        let now = Time::from_secs(100);
        work.charge(now, 100, 5000);
        assert_eq!(work.spent(now, 100), 5000);
        let later = now + std::time::Duration::from_secs(10);
        work.charge(later, 100, 1);
        assert_eq!(work.spent(later, 100), 4001);
    }
}
