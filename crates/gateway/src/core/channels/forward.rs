//! The game's own messages: passed on, never looked into but where a spawn or
//! a destruction says of an entity.

use bytes::Bytes;
use lagometer_protocol::{Audience, Broadcast, Excluded, ServerForward};

use crate::core::ids::{ConnId, Peer};

use super::ChannelManager;
use super::dispatch::Request;
use super::tables::Tables;

impl ChannelManager {
    pub(super) fn user_space(&mut self, request: &Request, body: &[u8]) {
        match self
            .tables
            .connections
            .get(request.from)
            .map(|connection| connection.peer)
        {
            Some(Peer::Client) => self.pass_up(request, body),
            Some(Peer::Server) => self.pass_down(request, body),
            None => {}
        }
    }

    /// A client's message goes to the channel's owner, whatever its flags.
    fn pass_up(&mut self, request: &Request, body: &[u8]) {
        let Some(owner) = self.tables.owner(request.channel) else {
            let recovers = self
                .tables
                .channels
                .get(request.channel)
                .is_some_and(|channel| channel.owner_may_return);
            if !recovers {
                self.tables
                    .drop_message(request, "the channel has no owner to get it");
            }
            return;
        };
        // A server that takes up its channels again first receives how they stand.
        if self.recoveries.is_returning(owner) {
            return;
        }
        let forward = ServerForward {
            client_conn_id: request.from.0,
            payload: body,
        };
        let message = (self.tables.out).encode_with(request.envelope, request.msg_type, |body| {
            forward.encode(body);
        });
        self.tables.forward_to(request, owner, message);
    }

    fn pass_down(&mut self, request: &Request, body: &[u8]) {
        let Ok(forward) = ServerForward::parse(body) else {
            self.tables
                .drop_message(request, "it is no forwarded message");
            return;
        };
        if !self.tables.settings.unreal {
            self.pass_on(request, forward, body);
        } else if !self.pass_unreal(request, forward) {
            self.tables
                .drop_message(request, "it is no sound spawn or destruction");
        }
    }

    pub(super) fn pass_on(&mut self, request: &Request, forward: ServerForward<'_>, body: &[u8]) {
        let message = (self.tables.out).encode_body(request.envelope, request.msg_type, body);
        let addressee = ConnId(forward.client_conn_id);
        let owner = self.tables.owner(request.channel);
        match Broadcast(request.envelope.broadcast).audience() {
            Audience::SingleConnection if addressee != ConnId(0) => {
                self.tables.forward_to(request, addressee, message);
            }
            Audience::Owner | Audience::SingleConnection => match owner {
                Some(owner) => self.tables.forward_to(request, owner, message),
                None => self
                    .tables
                    .drop_message(request, "the channel has no owner to get it"),
            },
            Audience::Subscribers(excluded) => {
                let to = self.tables.audience(request, excluded, owner);
                self.tables.forward(request, to, &message);
            }
            Audience::Adjacent(_) => self.forward_around(request, addressee, message),
            Audience::Nobody => self
                .tables
                .drop_message(request, "its broadcast flags mean nothing"),
        }
    }
}

impl Tables {
    fn forward_to(&mut self, request: &Request, to: ConnId, message: Bytes) {
        let is_sent = self.pass(to, request.channel, message);
        self.telemetry.counters.forwarded += u64::from(is_sent);
    }

    pub(super) fn forward(&mut self, request: &Request, to: Vec<ConnId>, message: &Bytes) {
        let count = self.pass_to_all(to, request.channel, message);
        self.telemetry.counters.forwarded += count as u64;
    }

    /// A channel's subscribers but those left out, in order.
    fn audience(
        &self,
        request: &Request,
        excluded: Excluded,
        owner: Option<ConnId>,
    ) -> Vec<ConnId> {
        let Some(channel) = self.channels.get(request.channel) else {
            return Vec::new();
        };
        channel
            .subscribers
            .ids()
            .filter(|&id| {
                !(excluded.sender && id == request.from
                    || excluded.owner && Some(id) == owner
                    || self.is_excluded(id, excluded))
            })
            .collect()
    }

    pub(super) fn is_excluded(&self, id: ConnId, excluded: Excluded) -> bool {
        match self.connections.get(id).map(|connection| connection.peer) {
            Some(Peer::Client) => excluded.clients,
            Some(Peer::Server) => excluded.servers,
            None => true,
        }
    }
}
