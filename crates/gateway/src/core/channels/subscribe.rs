//! Subscribing and unsubscribing; connections that go.

use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::channeldpb::{
    ChannelSubscriptionOptions, SubscribedToChannelMessage, SubscribedToChannelResultMessage,
    UnsubscribedFromChannelMessage, UnsubscribedFromChannelResultMessage,
};
use lagometer_units::Time;
use std::time::Duration;

use crate::core::budget::Budget;
use crate::core::bus::ToConnections;
use crate::core::ids::{ChannelId, ConnId, ConnKey, Peer, SideId};
use crate::core::settings::PeerBudgets;

use super::ChannelManager;
use super::dispatch::Request;
use super::fan_out::Start;
use super::outgoing::Envelope;
use super::subscription::{Place, SubOptions, Subscription};
use super::timers::Due;

/// What a request asks for that says nothing.
static NO_OPTIONS: ChannelSubscriptionOptions = ChannelSubscriptionOptions {
    data_access: None,
    data_field_masks: Vec::new(),
    fan_out_interval_ms: None,
    fan_out_delay_ms: None,
    skip_self_update_fan_out: None,
    skip_first_fan_out: None,
};

impl ChannelManager {
    pub(super) fn sub_to_channel(&mut self, request: &Request, asked: &SubscribedToChannelMessage) {
        let Some(sender) = self.connections.get(request.from) else {
            return;
        };
        let subject = match sender.peer {
            Peer::Client => request.from,
            Peer::Server => ConnId(asked.conn_id),
        };
        if self.connections.get(subject).is_none() {
            self.drop_message(request, "there is no such connection to subscribe");
            return;
        }
        let Some(channel) = self.channels.get(&request.channel) else {
            return;
        };
        let level = self.settings.types.of(channel.kind).acl.sub;
        if subject != request.from && !self.has_right(request.from, request.channel, level) {
            self.drop_message(request, "it may not subscribe others");
            return;
        }
        let options = asked.sub_options.as_ref().unwrap_or(&NO_OPTIONS);
        if !self.may_subscribe(request, subject, options) {
            return;
        }
        self.subscribe_and_tell(request, request.channel, subject, options);
    }

    /// Whether the sender's budgets allow another subscription. Only what it
    /// asks for itself counts: a server subscribes as many as it likes.
    fn may_subscribe(
        &mut self,
        request: &Request,
        subject: ConnId,
        asked: &ChannelSubscriptionOptions,
    ) -> bool {
        let most = self.budgets_of(request).subscriptions;
        let Some(channel) = self.channels.get(&request.channel) else {
            return false;
        };
        let is_new = channel.subscriptions.get(&subject).is_none();
        // Each mask is compared with those that hold already.
        let masks = asked.data_field_masks.len();
        if !self.pays(request, self.cost_of(request.channel, 0) + masks) {
            return false;
        }
        let count = self
            .connections
            .get(subject)
            .map_or(0, |it| it.subscribed.len());
        if is_new && subject == request.from && count >= most {
            self.refuse(request, Budget::Subscriptions);
            return false;
        }
        true
    }

    /// Subscribes, and tells all who are to know if it is new or the access
    /// has changed.
    pub(super) fn subscribe_and_tell(
        &mut self,
        request: &Request,
        id: ChannelId,
        subject: ConnId,
        options: &ChannelSubscriptionOptions,
    ) {
        if !self.subscribe_by_request(request, id, subject, options) {
            return;
        }
        self.send_subscribed(request.from, request.envelope, id, subject);
        if subject != request.from {
            self.send_subscribed(subject, request.envelope.copy(), id, subject);
        }
        if let Some(owner) = self.owner(id)
            && owner != request.from
        {
            self.send_subscribed(owner, request.envelope.copy(), id, subject);
        }
    }

    pub(super) fn unsub_from_channel(
        &mut self,
        request: &Request,
        asked: UnsubscribedFromChannelMessage,
    ) {
        let subject = ConnId(asked.conn_id);
        if self.connections.get(subject).is_none() {
            self.drop_message(request, "there is no such connection to unsubscribe");
            return;
        }
        let Some(channel) = self.channels.get(&request.channel) else {
            return;
        };
        let level = self.settings.types.of(channel.kind).acl.unsub;
        if subject != request.from && !self.has_right(request.from, request.channel, level) {
            self.drop_message(request, "it may not unsubscribe others");
            return;
        }
        if !self.pays(request, self.cost_of(request.channel, 0)) {
            return;
        }
        if !self.unsubscribe_and_tell(request, request.channel, subject) {
            self.drop_message(request, "it is not subscribed");
        }
    }

    /// Unsubscribes and tells all who are to know. Returns whether it was
    /// subscribed.
    pub(super) fn unsubscribe_and_tell(
        &mut self,
        request: &Request,
        id: ChannelId,
        subject: ConnId,
    ) -> bool {
        if !self.unsubscribe(id, subject) {
            return false;
        }
        self.send_unsubscribed(request.from, request.envelope, id, subject);
        if subject != request.from {
            self.send_unsubscribed(subject, request.envelope.copy(), id, subject);
        }
        if let Some(owner) = self.owner(id) {
            if owner == subject {
                self.set_owner(id, None);
            } else if owner != request.from {
                self.send_unsubscribed(owner, request.envelope.copy(), id, subject);
            }
        }
        true
    }

    /// Begins a subscription or changes it, as far as the budgets of whoever
    /// asks for it go. Returns whether it is new or its access has changed.
    pub(super) fn subscribe_by_request(
        &mut self,
        request: &Request,
        id: ChannelId,
        subject: ConnId,
        asked: &ChannelSubscriptionOptions,
    ) -> bool {
        let budgets = self.budgets_of(request);
        let (is_told, over) = self.subscribe_within(request.now, id, subject, asked, &budgets);
        if let Some(budget) = over {
            self.over_budget(request, budget);
        }
        is_told
    }

    /// The same where the gateway itself, or a server, is behind it.
    pub(super) fn subscribe(
        &mut self,
        now: Time,
        id: ChannelId,
        subject: ConnId,
        asked: &ChannelSubscriptionOptions,
    ) -> bool {
        let budgets = self.settings.budgets.servers;
        self.subscribe_within(now, id, subject, asked, &budgets).0
    }

    fn subscribe_within(
        &mut self,
        now: Time,
        id: ChannelId,
        subject: ConnId,
        asked: &ChannelSubscriptionOptions,
        budgets: &PeerBudgets,
    ) -> (bool, Option<Budget>) {
        if self.connections.get(subject).is_none() {
            return (false, None);
        }
        let Some(channel) = self.channels.get_mut(&id) else {
            return (false, None);
        };
        if let Some(subscription) = channel.subscriptions.get_mut(&subject) {
            let before = subscription.options.clone();
            let over = subscription.options.merge(asked, budgets);
            let after = subscription.options.clone();
            if before != after {
                self.resubscribe(now, id, subject, &before, &after);
            }
            return (before.access != after.access, over);
        }
        let settings = self.settings.types.of(channel.kind);
        let mut options = SubOptions::defaults(settings);
        let over = options.merge(asked, budgets);
        let place = if options.has_access() {
            first_place(now, &options, settings.tick)
        } else {
            Place::Outside
        };
        if !options.has_access() && options.skip_first {
            // It wants no state, but all that happens from here on.
            let head = channel.fan_out.head();
            channel.fan_out.pause(subject, head);
        }
        channel.subscriptions.insert(
            subject,
            Subscription {
                options,
                since: now,
                place,
            },
        );
        self.counters.of_mut(channel.kind).subscriptions += 1;
        if let Some(connection) = self.connections.any_mut(subject) {
            connection.subscribed.insert(id, ());
        }
        self.await_first(now, id, subject, place);
        (true, over)
    }

    /// Ends a subscription without a word. Returns whether there was one.
    pub(super) fn unsubscribe(&mut self, id: ChannelId, subject: ConnId) -> bool {
        self.part(id, subject);
        self.resume(id, subject);
        let Some(channel) = self.channels.get_mut(&id) else {
            return false;
        };
        let Some(ended) = channel.subscriptions.remove(&subject) else {
            return false;
        };
        channel.awaiting_data.remove(&subject);
        self.counters.of_mut(channel.kind).subscriptions -= 1;
        self.stop_waiting(id, subject, ended.place);
        if let Some(connection) = self.connections.any_mut(subject) {
            connection.subscribed.remove(&id);
            let forget = ToConnections::Forget {
                id: subject,
                channel: id,
            };
            self.to_connections.push_back((connection.side, forget));
        }
        self.dissolve_groups(id);
        true
    }

    /// A reader lost what was merged for it: it gets the whole state.
    pub(super) fn resync(&mut self, now: Time, subject: ConnId, id: ChannelId) {
        // Whoever has no access now gets the whole state once it has again.
        self.resume(id, subject);
        if self.part(id, subject).is_none() {
            return;
        }
        self.dissolve_groups(id);
        self.wait_for_state(now, id, subject, true);
    }

    /// A connection is gone, or is being closed by its side.
    pub(super) fn closed(&mut self, now: Time, side: SideId, key: ConnKey, broke_off: bool) {
        self.forget_logins(side, key);
        let Some(id) = self.connections.find(side, key) else {
            return;
        };
        self.leave(now, id, broke_off);
        self.connections.remove(id);
    }

    pub(super) fn send_subscribed(
        &mut self,
        to: ConnId,
        envelope: Envelope,
        id: ChannelId,
        subject: ConnId,
    ) {
        let Some(channel) = self.channels.get(&id) else {
            return;
        };
        if let Some(subscription) = channel.subscriptions.get(&subject)
            && let Some(connection) = self.connections.get(subject)
        {
            let result = FromGateway::SubToChannel(SubscribedToChannelResultMessage {
                conn_id: subject.0,
                sub_options: Some(subscription.options.to_wire()),
                conn_type: connection.peer.wire(),
                channel_type: channel.kind,
            });
            self.send(to, envelope.of_channel(id), &result);
        }
    }

    pub(super) fn send_unsubscribed(
        &mut self,
        to: ConnId,
        envelope: Envelope,
        id: ChannelId,
        subject: ConnId,
    ) {
        let peer = self
            .connections
            .any_mut(subject)
            .map(|connection| connection.peer);
        if let Some(channel) = self.channels.get(&id)
            && let Some(peer) = peer
        {
            let result = FromGateway::UnsubFromChannel(UnsubscribedFromChannelResultMessage {
                conn_id: subject.0,
                conn_type: peer.wire(),
                channel_type: channel.kind,
            });
            self.send(to, envelope.of_channel(id), &result);
        }
    }

    fn resubscribe(
        &mut self,
        now: Time,
        id: ChannelId,
        subject: ConnId,
        before: &SubOptions,
        after: &SubOptions,
    ) {
        if !after.has_access() {
            let cursor = self.part(id, subject);
            let mut ended = Place::Outside;
            if let Some(channel) = self.channels.get_mut(&id)
                && let Some(subscription) = channel.subscriptions.get_mut(&subject)
            {
                std::mem::swap(&mut subscription.place, &mut ended);
                // What comes from here on waits for it.
                if let Some(cursor) = cursor {
                    channel.fan_out.pause(subject, cursor);
                }
            }
            self.stop_waiting(id, subject, ended);
        } else if !before.has_access() {
            match self.resume(id, subject) {
                Some(cursor) => self.join(now, id, subject, cursor, Start::Onward),
                None => self.wait_for_state(now, id, subject, !after.skip_first),
            }
        } else if let Some(cursor) = self.part(id, subject) {
            // Nothing is lost between the old group and the new one.
            self.join(now, id, subject, cursor, Start::Onward);
        }
        self.dissolve_groups(id);
    }

    /// A subscription that was in that place has ended, or has no access now: if
    /// it waited for its first state, it does no longer.
    fn stop_waiting(&mut self, id: ChannelId, subject: ConnId, place: Place) {
        if let Place::Waiting { due, .. } = place {
            self.timers.note_stale();
            self.first_states.remove(id, subject, due);
        }
    }

    /// A subscriber without access is that no more. Returns the number of the
    /// first update it has not been sent, if that and all after it are kept.
    fn resume(&mut self, id: ChannelId, subject: ConnId) -> Option<u64> {
        self.channels.get_mut(&id)?.fan_out.resume(subject)
    }

    fn wait_for_state(&mut self, now: Time, id: ChannelId, subject: ConnId, whole: bool) {
        let Some(channel) = self.channels.get_mut(&id) else {
            return;
        };
        let tick = self.settings.types.of(channel.kind).tick;
        let due = if whole { now.round_up_to(tick) } else { now };
        let place = Place::Waiting { due, whole };
        if let Some(subscription) = channel.subscriptions.get_mut(&subject) {
            subscription.place = place;
            self.await_first(now, id, subject, place);
        }
    }

    fn await_first(&mut self, now: Time, id: ChannelId, subject: ConnId, place: Place) {
        let Place::Waiting { due, whole } = place else {
            return;
        };
        if due <= now && !whole {
            // Nothing that comes from here on is to be missed.
            self.first_state(now, due, id, subject);
        } else {
            let first = Due::FirstState {
                channel: id,
                id: subject,
            };
            self.timers.add(due, first);
        }
    }
}

/// Where a new subscription begins: the whole state is due after the delay and
/// one interval, at a tick; without it windows begin after the delay.
fn first_place(now: Time, options: &SubOptions, tick: Duration) -> Place {
    let interval_ms = if options.skip_first {
        0
    } else {
        i64::from(options.interval_ms)
    };
    let wait_ms = (i64::from(options.delay_ms) + interval_ms).max(0);
    let due = now + Duration::from_millis(wait_ms.unsigned_abs());
    let whole = !options.skip_first;
    Place::Waiting {
        due: if whole { due.round_up_to(tick) } else { due },
        whole,
    }
}
