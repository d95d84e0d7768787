//! Logins: who is asked, and what the answer leads to.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::net::IpAddr;

use bytes::Bytes;
use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::channeldpb::AuthResultMessage;
use lagometer_protocol::messages::channeldpb::auth_result_message::AuthResult;
use lagometer_units::Time;

use crate::core::bus::{AuthAttempt, CloseReason, ToConnections};
use crate::core::by_number::ByNumber;
use crate::core::events::Event;
use crate::core::ids::{ChannelId, ConnId, ConnKey, Peer, SideId};
use crate::core::settings::AuthPolicy;

use super::ChannelSide;
use super::outgoing::{Envelope, encode};
use super::people::Person;

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

/// Logins that are not decided.
#[derive(Debug, Default)]
pub(super) struct Logins {
    requests: VecDeque<AuthRequest>,
    undecided: BTreeMap<Ticket, (SideId, AuthAttempt)>,
    last: u64,
}

impl ChannelSide {
    /// The next login that a provider is to decide about; see
    /// [`AuthPolicy::AskProvider`](crate::core::AuthPolicy::AskProvider).
    pub fn poll_auth_request(&mut self) -> Option<AuthRequest> {
        self.logins.requests.pop_front()
    }

    /// A provider has decided. A ticket that was answered before, or whose
    /// connection is gone, is passed over.
    pub fn answer_auth(&mut self, now: Time, ticket: Ticket, verdict: AuthVerdict) {
        if let Some((side, attempt)) = self.logins.undecided.remove(&ticket) {
            self.decided(now, side, attempt, verdict);
        }
    }

    pub(super) fn auth(&mut self, now: Time, side: SideId, attempt: AuthAttempt) {
        let close = |why| ToConnections::Close {
            key: attempt.key,
            why,
        };
        let id = self.people.find(side, attempt.key).or_else(|| {
            self.people.add(
                self.settings.max_conn_id,
                Person {
                    side,
                    key: attempt.key,
                    peer: attempt.peer,
                    admitted: false,
                    player: String::new(),
                    leaving: false,
                    subscribed: ByNumber::default(),
                    owned: BTreeSet::new(),
                },
            )
        });
        if id.is_none() {
            let close = close(CloseReason::NoNumberLeft);
            self.to_connections.push_back((side, close));
            return;
        }
        if self.admission.bars(&attempt.player, attempt.address) {
            let close = close(CloseReason::Banned);
            self.to_connections.push_back((side, close));
            return;
        }
        let is_trusted = attempt.peer == Peer::Server && self.settings.servers_bypass_auth;
        if is_trusted || self.settings.auth == AuthPolicy::AdmitAll {
            self.decided(now, side, attempt, AuthVerdict::Admit);
            return;
        }
        self.logins.last += 1;
        let ticket = Ticket(self.logins.last);
        self.logins.requests.push_back(AuthRequest {
            ticket,
            peer: attempt.peer,
            address: attempt.address,
            player: attempt.player.clone(),
            login_token: attempt.login_token.clone(),
        });
        self.logins.undecided.insert(ticket, (side, attempt));
    }

    /// Misbehaviour that a connection side noticed.
    pub(super) fn misbehaved(&mut self, address: Option<IpAddr>, player: Option<String>) {
        if let Some(address) = address {
            self.ban_address(address);
        }
        if let Some(player) = player
            && self.admission.ban_player(player.clone())
        {
            self.events.push(Event::PlayerBanned(player));
        }
    }

    /// Undecided logins of a connection that is gone are not answered.
    pub(super) fn forget_logins(&mut self, side: SideId, key: ConnKey) {
        self.logins
            .undecided
            .retain(|_, (of_side, attempt)| *of_side != side || attempt.key != key);
    }

    fn decided(&mut self, now: Time, side: SideId, attempt: AuthAttempt, verdict: AuthVerdict) {
        let Some(mut id) = self.people.find(side, attempt.key) else {
            return;
        };
        let already = self
            .people
            .any_mut(id)
            .is_none_or(|person| person.admitted || person.leaving);
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
        if admitted && let Some(person) = self.people.any_mut(id) {
            person.admitted = true;
            person.player.clone_from(&attempt.player);
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
            self.send(owner, envelope.copy(), &message);
        }
        if admitted {
            self.events.push(Event::Admitted {
                id,
                player: attempt.player,
                recovers,
            });
            self.welcome(now, id, attempt.peer, recovers);
        } else {
            self.refused(id, &attempt, verdict);
        }
    }

    fn refused(&mut self, id: ConnId, attempt: &AuthAttempt, verdict: AuthVerdict) {
        self.counters.logins_refused += 1;
        self.events.push(Event::LoginRefused {
            player: attempt.player.clone(),
        });
        if attempt.peer == Peer::Server {
            return;
        }
        let most = self.settings.max_failed_auth;
        let banned = match (verdict, attempt.address) {
            (AuthVerdict::WrongLogin, _) => {
                let banned = self.admission.wrong_login(&attempt.player, most);
                if banned {
                    self.events
                        .push(Event::PlayerBanned(attempt.player.clone()));
                }
                banned
            }
            (AuthVerdict::WrongPlayer, Some(address)) => {
                let banned = self.admission.wrong_player(address, most);
                if banned {
                    self.tell_of_ban(address);
                }
                banned
            }
            _ => false,
        };
        if banned {
            self.close_connection(id, CloseReason::Banned);
        }
    }

    fn ban_address(&mut self, address: IpAddr) {
        if self.admission.ban_address(address) {
            self.tell_of_ban(address);
        }
    }

    fn tell_of_ban(&mut self, address: IpAddr) {
        self.events.push(Event::AddressBanned(address));
        for &side in &self.sides {
            self.to_connections
                .push_back((side, ToConnections::Ban(address)));
        }
    }
}
