//! Logins: who is asked, and what the answer leads to.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use bytes::Bytes;
use lagometer_limits::household;
use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::channeldpb::AuthResultMessage;
use lagometer_protocol::messages::channeldpb::auth_result_message::AuthResult;
use lagometer_units::Time;

use crate::core::budget::LogLine;
use crate::core::bus::{AuthAttempt, CloseReason, Misbehaviour, ToConnections};
use crate::core::by_number::ByNumber;
use crate::core::events::Event;
use crate::core::ids::{ChannelId, ConnId, ConnKey, Peer, SideId};
use crate::core::settings::AuthPolicy;

use super::ChannelManager;
use super::accounts::Account;
use super::admission::Suspect;
use super::connection_table::ConnectionInfo;
use super::outgoing::{Envelope, encode};

/// Names one login that a provider is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

/// A login that a provider is to decide about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AuthRequest {
    /// To be given with the verdict.
    pub ticket: Ticket,
    /// Which listener the connection came in on.
    pub peer: Peer,
    /// Where it comes from, if that has an address.
    pub address: Option<IpAddr>,
    /// Whoever sent it may be elsewhere: it came over KCP from a peer that has
    /// not shown that it receives what is sent to its address.
    pub is_address_forgeable: bool,
    /// Who the player says it is ("PIT").
    pub player: String,
    /// What is to prove it ("LT").
    pub login_token: String,
}

/// What a provider says of a login.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AuthVerdict {
    /// It is good.
    Admit,
    /// There is no such player.
    WrongPlayer,
    /// The login token does not prove it.
    WrongLogin,
    /// The provider cannot say: the connection is closed.
    Failed,
}

/// Logins that are not decided: one a connection at most.
#[derive(Debug, Default)]
pub(super) struct Logins {
    /// Those that were not handed to the provider yet, in order. Some may have
    /// been cancelled since.
    requests: VecDeque<Ticket>,
    undecided: BTreeMap<Ticket, (SideId, AuthAttempt)>,
    by_connection: BTreeMap<(SideId, ConnKey), Ticket>,
    last: u64,
    /// The log's lines of logins that were refused.
    refusals: LogLine,
}

impl Logins {
    /// Returns whether the connection had none pending.
    fn add(&mut self, side: SideId, attempt: AuthAttempt) -> bool {
        let place = self.by_connection.entry((side, attempt.key));
        if let Entry::Occupied(_) = place {
            return false;
        }
        self.last += 1;
        let ticket = Ticket(self.last);
        place.or_insert(ticket);
        self.requests.push_back(ticket);
        self.undecided.insert(ticket, (side, attempt));
        true
    }

    fn remove(&mut self, ticket: Ticket) -> Option<(SideId, AuthAttempt)> {
        let (side, attempt) = self.undecided.remove(&ticket)?;
        self.by_connection.remove(&(side, attempt.key));
        Some((side, attempt))
    }

    fn cancel(&mut self, side: SideId, key: ConnKey) {
        if let Some(&ticket) = self.by_connection.get(&(side, key)) {
            self.remove(ticket);
        }
        // Connections that come and go faster than anybody asks leave no more
        // tickets behind than there are logins.
        if self.requests.len() > 64 + 2 * self.undecided.len() {
            let undecided = &self.undecided;
            self.requests
                .retain(|ticket| undecided.contains_key(ticket));
        }
    }
}

impl ChannelManager {
    /// The next login that a provider is to decide about; see
    /// [`AuthPolicy::AskProvider`](crate::core::AuthPolicy::AskProvider). Logins
    /// of connections that hung up meanwhile are passed over; of one that was
    /// given out and is no longer wanted tells [`wants`](Self::wants).
    pub fn poll_auth_request(&mut self) -> Option<AuthRequest> {
        loop {
            let ticket = self.logins.requests.pop_front()?;
            if let Some((_, attempt)) = self.logins.undecided.get(&ticket) {
                return Some(AuthRequest {
                    ticket,
                    peer: attempt.peer,
                    address: attempt.address,
                    is_address_forgeable: attempt.is_address_forgeable,
                    player: attempt.player.clone(),
                    login_token: attempt.login_token.clone(),
                });
            }
        }
    }

    /// Whether a login still waits for its verdict: a provider that works
    /// through a queue need not ask about one whose connection is gone.
    #[must_use]
    pub fn wants(&self, ticket: Ticket) -> bool {
        self.logins.undecided.contains_key(&ticket)
    }

    /// A provider has decided. A ticket that was answered before, or whose
    /// connection is gone, is passed over.
    pub fn answer_auth(&mut self, now: Time, ticket: Ticket, verdict: AuthVerdict) {
        if let Some((side, attempt)) = self.logins.remove(ticket) {
            self.decided(now, side, attempt, verdict);
        }
    }

    pub(super) fn auth(&mut self, now: Time, side: SideId, attempt: AuthAttempt) {
        let close = |why| ToConnections::Close {
            key: attempt.key,
            why,
        };
        let id = self.connections.find(side, attempt.key).or_else(|| {
            self.connections.add(
                self.settings.max_conn_id,
                ConnectionInfo {
                    side,
                    key: attempt.key,
                    peer: attempt.peer,
                    admitted: false,
                    player: String::new(),
                    leaving: false,
                    subscribed: ByNumber::default(),
                    owned: BTreeSet::new(),
                    account: Account::default(),
                    address: attempt.address,
                    is_address_forgeable: attempt.is_address_forgeable,
                    undelivered_bytes: 0,
                },
            )
        });
        if id.is_none() {
            let close = close(CloseReason::NoNumberLeft);
            self.to_connections.push_back((side, close));
            return;
        }
        let is_barred = attempt.peer == Peer::Client
            && self.admission.bars(now, &attempt.player, attempt.address);
        if is_barred {
            let close = close(CloseReason::Banned);
            self.to_connections.push_back((side, close));
            return;
        }
        let is_trusted = attempt.peer == Peer::Server && self.settings.servers_bypass_auth;
        if is_trusted || self.settings.auth == AuthPolicy::AdmitAll {
            self.decided(now, side, attempt, AuthVerdict::Admit);
            return;
        }
        if !self.logins.add(side, attempt) {
            self.counters.dropped += 1;
        }
    }

    /// A connection was shown to be where it says: what it does is held against its
    /// address from now on, and work that its household has not made up for is its own.
    pub(super) fn address_proven(&mut self, now: Time, side: SideId, key: ConnKey) {
        if let Some(id) = self.connections.find(side, key)
            && let Some(connection) = self.connections.any_mut(id)
        {
            connection.is_address_forgeable = false;
            if connection.admitted && connection.peer == Peer::Client {
                self.take_over_work(now, id);
            }
        }
    }

    /// Misbehaviour of a client that a connection manager noticed.
    pub(super) fn misbehaved(&mut self, now: Time, what: Misbehaviour) {
        let barred_for = self.settings.barred_for;
        match what {
            Misbehaviour::NoLogin { address } => {
                self.address_failed(now, address);
            }
            Misbehaviour::Refused { player, address } => {
                let suspect = Suspect::player(&player, address);
                self.admission.bar(suspect, now + barred_for);
                self.events.push(Event::PlayerBanned(player));
            }
        }
    }

    /// Undecided logins of a connection that is gone are not answered.
    pub(super) fn forget_logins(&mut self, side: SideId, key: ConnKey) {
        self.logins.cancel(side, key);
    }

    fn decided(&mut self, now: Time, side: SideId, attempt: AuthAttempt, verdict: AuthVerdict) {
        let Some(mut id) = self.connections.find(side, attempt.key) else {
            return;
        };
        let already = self
            .connections
            .any_mut(id)
            .is_none_or(|connection| connection.admitted || connection.leaving);
        if already {
            return;
        }
        let result = match verdict {
            AuthVerdict::Admit => AuthResult::Successful,
            AuthVerdict::WrongPlayer => AuthResult::InvalidPit,
            AuthVerdict::WrongLogin => AuthResult::InvalidLt,
            AuthVerdict::Failed => {
                self.close_connection(id, CloseReason::ProviderFailed);
                return;
            }
        };
        let admitted = verdict == AuthVerdict::Admit;
        let recovers = admitted && self.take_over_number(&attempt, &mut id);
        if admitted && let Some(connection) = self.connections.any_mut(id) {
            connection.admitted = true;
            connection.player.clone_from(&attempt.player);
        }
        let message = FromGateway::Auth(AuthResultMessage {
            result: result as i32,
            conn_id: id.0,
            compression_type: self.settings.announced_compression as i32,
            should_recover: recovers,
        });
        let envelope = Envelope {
            channel: ChannelId::GLOBAL,
            stub_id: attempt.stub_id,
            broadcast: attempt.broadcast,
        };
        let answer = ToConnections::AuthAnswer {
            key: attempt.key,
            id,
            admitted,
            player: attempt.player.clone(),
            message: Bytes::from(encode(envelope, &message)),
        };
        self.to_connections.push_back((side, answer));
        if let Some(owner) = self.owner(ChannelId::GLOBAL) {
            self.because_of(now, id, |side| side.send(owner, envelope.copy(), &message));
        }
        if admitted {
            if attempt.peer == Peer::Client {
                self.admission.came(attempt.address);
                self.take_over_work(now, id);
            }
            self.events.push(Event::Admitted {
                id,
                player: attempt.player,
                recovers,
            });
            self.welcome(now, id, attempt.peer, recovers);
        } else {
            self.refused(now, id, &attempt, verdict);
        }
    }

    fn refused(&mut self, now: Time, id: ConnId, attempt: &AuthAttempt, verdict: AuthVerdict) {
        self.counters.logins_refused += 1;
        if let Some(suppressed) = self.logins.refusals.due(now) {
            self.events.push(Event::LoginRefused {
                player: attempt.player.clone(),
                suppressed,
            });
        }
        // Whoever can put another's address on a datagram would bar the other.
        if attempt.peer == Peer::Server || attempt.is_address_forgeable {
            return;
        }
        let most = self.settings.max_failed_auth;
        let is_barred = match (verdict, attempt.address) {
            (AuthVerdict::WrongLogin, address) => {
                let suspect = Suspect::player(&attempt.player, address);
                let barred_for = self.settings.barred_for;
                let until = self.admission.failed(now, suspect, most, barred_for);
                if until.is_some() {
                    let player = attempt.player.clone();
                    self.events.push(Event::PlayerBanned(player));
                }
                until.is_some()
            }
            (AuthVerdict::WrongPlayer, Some(address)) => self.address_failed(now, address),
            _ => false,
        };
        if is_barred {
            self.close_connection(id, CloseReason::Banned);
        }
    }

    /// A login from an address failed, or was never attempted in time. Returns
    /// whether the address is barred for it.
    fn address_failed(&mut self, now: Time, address: IpAddr) -> bool {
        let address = household(address);
        let (most, barred_for) = (self.settings.max_failed_auth, self.settings.barred_for);
        let suspect = Suspect::Address(address);
        let Some(until) = self.admission.failed(now, suspect, most, barred_for) else {
            return false;
        };
        self.events.push(Event::AddressBanned(address));
        for &side in &self.sides {
            self.to_connections
                .push_back((side, ToConnections::Ban { address, until }));
        }
        true
    }
}
