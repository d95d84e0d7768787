//! Who is let in: what is asked about a login, and what the answer leads to.

use std::collections::BTreeSet;
use std::net::IpAddr;

use bytes::Bytes;
use lagometer_protocol::FromGateway;
use lagometer_protocol::messages::channeldpb::AuthResultMessage;
use lagometer_protocol::messages::channeldpb::auth_result_message::AuthResult;
use lagometer_units::Time;

use crate::core::bus::{AuthAttempt, CloseReason, HomeVersion, Misbehaviour, ToConnections};
use crate::core::by_number::ByNumber;
use crate::core::events::Event;
use crate::core::ids::{ChannelId, ConnId, ConnKey, Peer, SideId};
use crate::core::settings::AuthPolicy;

use super::ChannelManager;
use super::accounts::Account;
use super::connection_table::{ConnectionInfo, Introduction};
use super::logins::{AuthRequest, AuthVerdict, Bars, Ticket};
use super::outgoing::{Envelope, encode};
use super::tables::Tables;

impl ChannelManager {
    /// The next login that a provider is to decide about; see
    /// [`AuthPolicy::AskProvider`](crate::core::AuthPolicy::AskProvider). Logins
    /// of connections that hung up meanwhile are passed over; whether one that
    /// was given out is still wanted, [`wants`](Self::wants) says.
    pub fn poll_auth_request(&mut self) -> Option<AuthRequest> {
        self.logins.next_request()
    }

    /// Whether a login still waits for its verdict: a provider that works
    /// through a queue need not ask about one whose connection is gone.
    #[must_use]
    pub fn wants(&self, ticket: Ticket) -> bool {
        self.logins.wants(ticket)
    }

    /// Logins that were given out and are not decided are given out again: for whoever goes
    /// on with channels that were [read back](Self::restore), and has no provider at work on
    /// them.
    pub fn ask_again(&mut self) {
        self.logins.ask_again();
    }

    /// A provider has decided. A ticket that was answered before, or whose
    /// connection is gone, is passed over.
    pub fn answer_auth(&mut self, now: Time, ticket: Ticket, verdict: AuthVerdict) {
        self.tables.now = now;
        if let Some((side, attempt)) = self.logins.remove(ticket) {
            self.decided(now, side, attempt, verdict);
        }
    }

    pub(super) fn auth(&mut self, now: Time, side: SideId, attempt: AuthAttempt) {
        let close = |why| ToConnections::Close {
            key: attempt.key,
            why,
        };
        let id = self.tables.connections.find(side, attempt.key).or_else(|| {
            self.tables.connections.add(
                self.tables.settings.max_conn_id,
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
                    introduction: None,
                    version: HomeVersion::default(),
                },
            )
        });
        if id.is_none() {
            let close = close(CloseReason::NoNumberLeft);
            self.tables.out.push(side, close);
            return;
        }
        if self.logins.bars(now, &attempt) {
            let close = close(CloseReason::Banned);
            self.tables.out.push(side, close);
            return;
        }
        let is_trusted = attempt.peer == Peer::Server && self.tables.settings.servers_bypass_auth;
        if is_trusted || self.tables.settings.auth == AuthPolicy::AdmitAll {
            self.decided(now, side, attempt, AuthVerdict::Admit);
            return;
        }
        if !self.logins.add(side, attempt) {
            self.tables.telemetry.counters.dropped += 1;
        }
    }

    /// A connection was shown to be where it says: what it does is held against its
    /// address from now on, and work that its source prefix has not made up for is its own.
    pub(super) fn address_proven(&mut self, now: Time, side: SideId, key: ConnKey) {
        if let Some(id) = self.tables.connections.find(side, key)
            && let Some(connection) = self.tables.connections.any_mut(id)
        {
            connection.is_address_forgeable = false;
            if connection.admitted && connection.peer == Peer::Client {
                self.take_over_work(now, id);
            }
        }
    }

    /// Misbehaviour of a client that a connection manager noticed.
    pub(super) fn misbehaved(&mut self, now: Time, what: Misbehaviour) {
        match what {
            Misbehaviour::NoLogin { address } => {
                let barred = self.logins.address_failed(now, address, self.bars());
                self.report_barred(barred);
            }
            Misbehaviour::Refused { player, address } => {
                let until = now + self.bars().lasting;
                self.logins.bar_player(&player, address, until);
                self.tables.telemetry.event(Event::PlayerBanned(player));
            }
        }
    }

    /// Undecided logins of a connection that is gone are not answered.
    pub(super) fn forget_logins(&mut self, side: SideId, key: ConnKey) {
        self.logins.cancel(side, key);
    }

    fn decided(&mut self, now: Time, side: SideId, attempt: AuthAttempt, verdict: AuthVerdict) {
        let Some(mut id) = self.tables.connections.find(side, attempt.key) else {
            return;
        };
        let already = self
            .tables
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
                self.tables
                    .close_connection(id, CloseReason::ProviderFailed);
                return;
            }
        };
        let admitted = verdict == AuthVerdict::Admit;
        let recovers = admitted && self.take_over_number(&attempt, &mut id);
        if admitted && let Some(connection) = self.tables.connections.any_mut(id) {
            connection.admitted = true;
            connection.player.clone_from(&attempt.player);
        }
        let message = self.tables.auth_result(result, id, recovers);
        let envelope = Envelope {
            channel: ChannelId::GLOBAL,
            stub_id: attempt.stub_id,
            broadcast: attempt.broadcast,
        };
        self.tables.home_version.number += 1;
        let answer = ToConnections::AuthAnswer {
            key: attempt.key,
            id,
            admitted,
            player: attempt.player.clone(),
            message: Bytes::from(encode(envelope, &message)),
            number: self.tables.home_version.number,
            recovers,
        };
        self.tables.out.push(side, answer);
        let introduction = Introduction {
            broadcast: attempt.broadcast,
            recovers,
        };
        let waits_for_shards = admitted && !self.tables.settings.shard.is_whole();
        if !waits_for_shards {
            self.notify_of_login(now, id, introduction, &message);
        }
        if admitted {
            if attempt.peer == Peer::Client {
                self.logins.came(attempt.address);
                self.take_over_work(now, id);
            }
            self.tables.telemetry.event(Event::Admitted {
                id,
                player: attempt.player,
                recovers,
            });
            if !waits_for_shards {
                self.welcome(now, id, attempt.peer, recovers);
            } else if let Some(connection) = self.tables.connections.any_mut(id) {
                connection.introduction = Some(introduction);
            }
        } else {
            self.refused(now, id, &attempt, verdict);
        }
    }

    /// Other shards know of a connection that this one let in: what follows from that.
    pub(super) fn all_shards_know(&mut self, now: Time, id: ConnId) {
        let Some(connection) = self.tables.connections.any_mut(id) else {
            return;
        };
        let (peer, introduction) = (connection.peer, connection.introduction.take());
        if connection.leaving {
            return;
        }
        if let Some(introduction) = introduction {
            let recovers = introduction.recovers;
            let message = self
                .tables
                .auth_result(AuthResult::Successful, id, recovers);
            self.notify_of_login(now, id, introduction, &message);
            self.welcome(now, id, peer, recovers);
        }
    }

    /// GLOBAL's owner is notified of each login.
    fn notify_of_login(
        &mut self,
        now: Time,
        id: ConnId,
        introduction: Introduction,
        message: &FromGateway,
    ) {
        if let Some(owner) = self.tables.owner(ChannelId::GLOBAL) {
            let envelope = Envelope {
                broadcast: introduction.broadcast,
                ..Envelope::from(ChannelId::GLOBAL)
            };
            self.because_of(now, id, |side| side.tables.send(owner, envelope, message));
        }
    }

    fn refused(&mut self, now: Time, id: ConnId, attempt: &AuthAttempt, verdict: AuthVerdict) {
        self.tables.telemetry.counters.logins_refused += 1;
        let refused = self.logins.refuse(now, attempt, verdict, self.bars());
        let player = || attempt.player.clone();
        if let Some(suppressed) = refused.logged {
            self.tables.telemetry.event(Event::LoginRefused {
                player: player(),
                suppressed,
            });
        }
        if refused.is_player_barred {
            self.tables.telemetry.event(Event::PlayerBanned(player()));
        }
        let is_address_barred = self.report_barred(refused.barred);
        if refused.is_player_barred || is_address_barred {
            self.tables.close_connection(id, CloseReason::Banned);
        }
    }

    /// Whom failures bar, by the settings.
    fn bars(&self) -> Bars {
        Bars {
            most: self.tables.settings.max_failed_auth,
            lasting: self.tables.settings.barred_for,
        }
    }

    /// Sends a connection manager that takes part from now on what the others know: which
    /// addresses are barred.
    pub(super) fn report_bans_to(&mut self, now: Time, side: SideId) {
        for (address, until) in self.logins.barred_addresses(now) {
            let ban = ToConnections::Ban { address, until };
            self.tables.out.push(side, ban);
        }
    }

    /// Reports an address that is barred, if one is. Returns whether one is.
    fn report_barred(&mut self, barred: Option<(IpAddr, Time)>) -> bool {
        if let Some((address, until)) = barred {
            self.tables.telemetry.event(Event::AddressBanned(address));
            self.tables.out.ban(address, until);
        }
        barred.is_some()
    }
}

impl Tables {
    fn auth_result(&self, result: AuthResult, id: ConnId, recovers: bool) -> FromGateway {
        FromGateway::Auth(AuthResultMessage {
            result: result as i32,
            conn_id: id.0,
            compression_type: self.settings.announced_compression as i32,
            should_recover: recovers,
        })
    }
}
