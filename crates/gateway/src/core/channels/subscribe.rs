//! Subscribing and unsubscribing; connections that go.

use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::channeldpb::{
    ChannelSubscriptionOptions, SubscribedToChannelMessage, SubscribedToChannelResultMessage,
    UnsubscribedFromChannelMessage, UnsubscribedFromChannelResultMessage,
};
use lagometer_units::Time;

use crate::core::budget::Budget;
use crate::core::ids::{ChannelId, ConnId, ConnKey, Peer, SideId};

use super::ChannelManager;
use super::dispatch::Request;
use super::outgoing::Envelope;
use super::tables::Tables;

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
        let Some(sender) = self.tables.connections.get(request.from) else {
            return;
        };
        let subject = match sender.peer {
            Peer::Client => request.from,
            Peer::Server => ConnId(asked.conn_id),
        };
        if self.tables.connections.get(subject).is_none() {
            self.tables
                .drop_message(request, "there is no such connection to subscribe");
            return;
        }
        let Some(channel) = self.tables.channels.get(request.channel) else {
            return;
        };
        let level = self.tables.settings.types.of(channel.kind).acl.sub;
        if subject != request.from && !self.tables.has_right(request.from, request.channel, level) {
            self.tables
                .drop_message(request, "it may not subscribe others");
            return;
        }
        let options = asked.sub_options.as_ref().unwrap_or(&NO_OPTIONS);
        if !self.may_subscribe(request, subject, options) {
            return;
        }
        self.subscribe_and_notify(request, request.channel, subject, options);
    }

    /// Whether the sender's budgets allow another subscription. Only what it
    /// asks for itself counts: a server subscribes as many as it likes.
    fn may_subscribe(
        &mut self,
        request: &Request,
        subject: ConnId,
        asked: &ChannelSubscriptionOptions,
    ) -> bool {
        let most = self.tables.budgets_of(request).subscriptions;
        let Some(channel) = self.tables.channels.get(request.channel) else {
            return false;
        };
        let is_new = !channel.subscribers.contains(subject);
        // Each mask is compared with those that hold already.
        let masks = asked.data_field_masks.len();
        if !self
            .tables
            .pays(request, self.tables.cost_of(request.channel, 0) + masks)
        {
            return false;
        }
        let count = self
            .tables
            .connections
            .get(subject)
            .map_or(0, |it| it.subscribed.len());
        if is_new && subject == request.from && count >= most {
            self.tables.refuse(request, Budget::Subscriptions);
            return false;
        }
        true
    }

    /// Subscribes, and notifies all who are to know if it is new or the access
    /// has changed.
    pub(super) fn subscribe_and_notify(
        &mut self,
        request: &Request,
        id: ChannelId,
        subject: ConnId,
        options: &ChannelSubscriptionOptions,
    ) {
        if !self
            .subscriptions
            .subscribe_by_request(&mut self.tables, request, id, subject, options)
        {
            return;
        }
        self.tables
            .send_subscribed(request.from, request.envelope, id, subject);
        if subject != request.from {
            self.tables
                .send_subscribed(subject, request.envelope.copy(), id, subject);
        }
        if let Some(owner) = self.tables.owner(id)
            && owner != request.from
        {
            self.tables
                .send_subscribed(owner, request.envelope.copy(), id, subject);
        }
    }

    pub(super) fn unsub_from_channel(
        &mut self,
        request: &Request,
        asked: UnsubscribedFromChannelMessage,
    ) {
        let subject = ConnId(asked.conn_id);
        if self.tables.connections.get(subject).is_none() {
            self.tables
                .drop_message(request, "there is no such connection to unsubscribe");
            return;
        }
        let Some(channel) = self.tables.channels.get(request.channel) else {
            return;
        };
        let level = self.tables.settings.types.of(channel.kind).acl.unsub;
        if subject != request.from && !self.tables.has_right(request.from, request.channel, level) {
            self.tables
                .drop_message(request, "it may not unsubscribe others");
            return;
        }
        if !self
            .tables
            .pays(request, self.tables.cost_of(request.channel, 0))
        {
            return;
        }
        if !self.unsubscribe_and_notify(request, request.channel, subject) {
            self.tables.drop_message(request, "it is not subscribed");
        }
    }

    /// Unsubscribes and notifies all who are to know. Returns whether it was
    /// subscribed.
    pub(super) fn unsubscribe_and_notify(
        &mut self,
        request: &Request,
        id: ChannelId,
        subject: ConnId,
    ) -> bool {
        if !self
            .subscriptions
            .unsubscribe(&mut self.tables, id, subject)
        {
            return false;
        }
        self.tables
            .send_unsubscribed(request.from, request.envelope, id, subject);
        if subject != request.from {
            self.tables
                .send_unsubscribed(subject, request.envelope.copy(), id, subject);
        }
        if let Some(owner) = self.tables.owner(id) {
            if owner == subject {
                self.tables.set_owner(id, None);
            } else if owner != request.from {
                self.tables
                    .send_unsubscribed(owner, request.envelope.copy(), id, subject);
            }
        }
        true
    }

    /// A connection is gone, or is being closed by its side.
    pub(super) fn closed(&mut self, now: Time, side: SideId, key: ConnKey, broke_off: bool) {
        self.forget_logins(side, key);
        let Some(id) = self.tables.connections.find(side, key) else {
            return;
        };
        self.leave(now, id, broke_off);
        self.tables.connections.remove(id);
    }
}

impl Tables {
    pub(super) fn send_subscribed(
        &mut self,
        to: ConnId,
        envelope: Envelope,
        id: ChannelId,
        subject: ConnId,
    ) {
        let Some(channel) = self.channels.get(id) else {
            return;
        };
        if let Some(subscription) = channel.subscribers.subscription(subject)
            && let Some(connection) = self.connections.get(subject)
        {
            let result = FromGateway::SubToChannel(SubscribedToChannelResultMessage {
                conn_id: subject.0,
                sub_options: Some(subscription.options().to_wire()),
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
        if let Some(channel) = self.channels.get(id)
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
}
