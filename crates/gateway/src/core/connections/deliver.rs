//! From the channel manager's messages to the outboxes.

use bytes::Bytes;
use lagometer_protocol::encode_update_head_in_packet;
use lagometer_units::Time;

use crate::core::bus::{CloseReason, Member, Recipients, ToChannels, ToConnections, Window};
use crate::core::events::Event;
use crate::core::ids::{ChannelId, ConnId, ConnKey, Peer};

use super::ConnectionManager;
use super::backlog::Client;
use super::conflation::Merged;
use super::connection::{Login, fsm};
use super::groups::Placed;
use super::outbox::{Parts, SHARED_FROM_BYTES, whole};
use super::recorder::Recorder;

/// A window, or what is left of it without one's own part, ready for outboxes.
#[derive(Debug, Default)]
struct Prepared {
    /// Which stretches of the window's value belong to it.
    value: Parts,
    /// The message's head, and the value too if it is short.
    copied: Vec<u8>,
    /// What is shared of the value rather than copied.
    shared: Parts,
}

impl Prepared {
    fn prepare(&mut self, window: &Window, value: Parts) {
        let len = value.iter().map(ExactSizeIterator::len).sum();
        self.copied.clear();
        encode_update_head_in_packet(window.channel.0, &window.type_url, len, &mut self.copied);
        if len < SHARED_FROM_BYTES {
            for part in &value {
                self.copied.extend_from_slice(&window.value[part.clone()]);
            }
            self.shared = Parts::default();
        } else {
            self.shared.clone_from(&value);
        }
        self.value = value;
    }
}

impl ConnectionManager {
    /// Takes a message of the channel manager.
    pub fn handle(&mut self, now: Time, message: ToConnections) {
        match message {
            ToConnections::AuthAnswer {
                key,
                id,
                admitted,
                player,
                message,
                ..
            } => self.auth_answer(now, key, id, admitted, player, &message),
            ToConnections::Send { to, message } => self.send(now, to, &message),
            ToConnections::Forward {
                cause,
                source_prefix,
                to,
                message,
            } => {
                let client = Client {
                    id: cause,
                    source_prefix,
                };
                self.forward(now, client, to, &message);
            }
            ToConnections::Pause {
                id,
                receiver,
                pause,
            } => self.pause(now, id, receiver, pause),
            ToConnections::AskCongestion { sender, receiver } => {
                self.answer_congestion(now, sender, receiver);
            }
            ToConnections::Resume { id, receiver } => self.relieve(now, id, receiver),
            ToConnections::SendMany { to, message } => {
                for &to in to.iter() {
                    self.send(now, to, &message);
                }
            }
            ToConnections::State {
                to,
                channel,
                messages,
            } => {
                for &to in to.iter() {
                    self.forget(to, channel);
                    for message in &messages {
                        self.send(now, to, message);
                    }
                }
            }
            ToConnections::Join {
                group,
                channel,
                member,
            } => {
                if let Some(&slot) = self.by_id.get(&member.id) {
                    self.groups.join(group, channel, Placed { member, slot });
                }
            }
            ToConnections::Leave { group, id } => self.groups.leave(group, id),
            ToConnections::Forget { id, channel } => self.forget(id, channel),
            ToConnections::Window(window) => self.window(now, &window),
            ToConnections::Missed { to, channel } => self.missed(&to, channel),
            ToConnections::Close { key, why } => self.begin_to_close(key, why),
            // An edge has taken these out.
            ToConnections::Known { .. }
            | ToConnections::GlobalOwner { .. }
            | ToConnections::Relay { .. }
            | ToConnections::ListPart { .. } => {}
            ToConnections::Ban { address, until } => self.ban(now, address, until),
        }
    }

    fn auth_answer(
        &mut self,
        now: Time,
        key: ConnKey,
        id: ConnId,
        admitted: bool,
        player: String,
        message: &Bytes,
    ) {
        let Some(connection) = self.table.get_mut(key) else {
            return;
        };
        // A server that recovers takes over the number it had.
        if let Some(old) = connection.id
            && old != id
        {
            self.by_id.remove(&old);
        }
        connection.id = Some(id);
        connection.login = Login::Answered;
        self.by_id.insert(id, key.slot);
        if admitted && !connection.admitted {
            connection.admitted = true;
            if connection.is_to_be_recorded {
                let recorder = Recorder::new(now, &player);
                self.recorded_bytes += recorder.len();
                connection.recorder = Some(Box::new(recorder));
            }
            connection.player = player;
            connection.state = fsm(&self.settings, connection.peer).after_login(connection.state);
        }
        self.send(now, id, message);
    }

    fn send(&mut self, now: Time, to: ConnId, message: &Bytes) {
        if let Some(&slot) = self.by_id.get(&to) {
            self.queue(now, slot, &[], message, &whole(message.len()));
        }
    }

    fn forget(&mut self, id: ConnId, channel: ChannelId) {
        if let Some(&slot) = self.by_id.get(&id)
            && let Some(connection) = self.table.at_mut(slot)
            && let Some(conflation) = &mut connection.conflation
        {
            conflation.forget(channel);
            if conflation.is_empty() {
                connection.conflation = None;
            }
        }
    }

    /// Fans a window out to this side's members of its group.
    fn window(&mut self, now: Time, window: &Window) {
        match &window.to {
            Recipients::Group(group) => {
                let members = self.groups.take(*group);
                self.fan_out(now, window, members.iter().copied());
                self.groups.put_back(*group, members);
            }
            Recipients::These(members) => {
                let placed: Vec<Placed> = members
                    .iter()
                    .filter_map(|&member| {
                        let slot = *self.by_id.get(&member.id)?;
                        Some(Placed { member, slot })
                    })
                    .collect();
                self.fan_out(now, window, placed.into_iter());
            }
        }
    }

    fn fan_out(&mut self, now: Time, window: &Window, members: impl Iterator<Item = Placed>) {
        let mut all = Prepared::default();
        all.prepare(window, whole(window.value.len()));
        let mut without_own = Prepared::default();
        // Members, senders and exceptions are in order of their numbers.
        let mut own = window.own.iter().peekable();
        let mut except = window.except.iter().peekable();
        for Placed { member, slot } in members {
            if !member.skip_self {
                self.update(now, member, slot, window, &all);
                continue;
            }
            while except.peek().is_some_and(|&&id| id < member.id) {
                except.next();
            }
            if except.peek() == Some(&&member.id) {
                continue;
            }
            while own.peek().is_some_and(|own| own.id < member.id) {
                own.next();
            }
            let Some(cut) = own.peek().filter(|own| own.id == member.id) else {
                self.update(now, member, slot, window, &all);
                continue;
            };
            let parts = [0..cut.range.start, cut.range.end..window.value.len()];
            if parts.iter().any(|part| !part.is_empty()) {
                without_own.prepare(window, parts);
                self.update(now, member, slot, window, &without_own);
            }
        }
    }

    /// Queues an update for one member, or merges it if the member is behind.
    fn update(
        &mut self,
        now: Time,
        member: Member,
        slot: u32,
        window: &Window,
        prepared: &Prepared,
    ) {
        let Some(connection) = self.table.at_mut(slot) else {
            return;
        };
        if connection.id != Some(member.id) {
            return;
        }
        let limit = self.settings.slow_readers.merge_from_bytes;
        let is_behind = match &connection.conflation {
            None => connection.outbox.waiting() > limit,
            Some(conflation) => {
                connection.outbox.waiting() > limit || conflation.has(window.channel)
            }
        };
        if !is_behind {
            self.queue(now, slot, &prepared.copied, &window.value, &prepared.shared);
            return;
        }
        if connection.closing.is_some() {
            return;
        }
        let counters = &mut self.counters.peers[connection.peer.index()];
        counters.updates_merged += 1;
        if connection.conflation.is_none() {
            counters.slow_readers += 1;
            self.events.push(Event::SlowReader(member.id));
        }
        let conflation = connection.conflation.get_or_insert_with(Box::default);
        self.scratch.clear();
        for part in &prepared.value {
            self.scratch.extend_from_slice(&window.value[part.clone()]);
        }
        conflation.merge(
            window.channel,
            &window.type_url,
            &self.scratch,
            window.merge_options,
            &self.settings.schema,
            self.settings.slow_readers.merged,
            self.settings.slow_readers.merged_bytes(),
        );
    }

    /// Queues the merged updates of a reader that has caught up.
    pub(super) fn catch_up(&mut self, now: Time, key: ConnKey) {
        let limit = self.settings.slow_readers.merge_from_bytes;
        loop {
            let Some(connection) = self.table.get_mut(key) else {
                return;
            };
            let Some(conflation) = &mut connection.conflation else {
                return;
            };
            if connection.outbox.waiting() > limit {
                return;
            }
            let Some((channel, merged)) = conflation.pop() else {
                connection.conflation = None;
                return;
            };
            let Some(id) = connection.id else {
                return;
            };
            let peer = connection.peer;
            let Some((type_url, values)) = merged.and_then(Merged::into_values) else {
                self.counters.of_mut(peer).resyncs += 1;
                self.to_channels
                    .push_back(ToChannels::Resync { id, channel });
                continue;
            };
            for value in values {
                let mut head = Vec::new();
                encode_update_head_in_packet(channel.0, &type_url, value.len(), &mut head);
                let parts = whole(value.len());
                self.queue(now, key.slot, &head, &Bytes::from(value), &parts);
            }
        }
    }

    /// Puts one message into the outbox of a slot's connection.
    pub(super) fn queue(
        &mut self,
        now: Time,
        slot: u32,
        head: &[u8],
        shared: &Bytes,
        parts: &Parts,
    ) {
        self.queue_of(now, slot, None, head, shared, parts);
    }

    /// Likewise, what a client's request has caused.
    pub(super) fn queue_of(
        &mut self,
        now: Time,
        slot: u32,
        cause: Option<Client>,
        head: &[u8],
        shared: &Bytes,
        parts: &Parts,
    ) {
        let Some(connection) = self.table.at_mut(slot) else {
            return;
        };
        if connection.closing.is_some() {
            return;
        }
        let before = connection.outbox.waiting();
        connection.outbox.lend(&mut self.spare);
        let begun = connection
            .outbox
            .push(head, shared, parts, &mut self.compressor);
        let counters = &mut self.counters.peers[connection.peer.index()];
        counters.messages_out += 1;
        counters.packets_out += u64::from(begun);
        connection.stuck_since.get_or_insert(now);
        if !connection.listed {
            connection.listed = true;
            self.writable.push_back(connection.key);
        }
        let close_at_bytes = match connection.peer {
            Peer::Server => self.settings.slow_readers.server_close_at_bytes,
            Peer::Client => self.settings.slow_readers.close_at_bytes,
        };
        let waiting = connection.outbox.waiting();
        if waiting > close_at_bytes {
            let key = connection.key;
            self.begin_to_close(key, CloseReason::TooMuchWaiting);
        }
        self.count_backlog(slot, cause, waiting.saturating_sub(before));
    }
}
