//! Logins that wait for a verdict, and whom failed ones bar.
//!
//! What a verdict leads to is the channel manager's to do ([`auth`](super::auth)).

mod admission;

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, VecDeque};
use std::net::IpAddr;
use std::time::Duration;

use lagometer_limits::source_prefix;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::core::budget::LogLine;
use crate::core::bus::AuthAttempt;
use crate::core::ids::{ConnKey, Peer, SideId};

use admission::{Admission, Suspect};

/// Names one login that a provider is asked about.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ticket(u64);

impl Ticket {
    /// Its number, to be carried elsewhere.
    pub(crate) fn number(self) -> u64 {
        self.0
    }

    /// The ticket with a number.
    pub(crate) fn from_number(number: u64) -> Self {
        Self(number)
    }
}

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
    /// The player exists and the login token is valid.
    Admit,
    /// There is no such player.
    WrongPlayer,
    /// The login token does not prove it.
    WrongLogin,
    /// The provider cannot say: the connection is closed.
    Failed,
}

/// Logins that are not decided: one a connection at most.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct Logins {
    /// Those that were not handed to the provider yet, in order. Some may have
    /// been cancelled since.
    requests: VecDeque<Ticket>,
    undecided: BTreeMap<Ticket, (SideId, AuthAttempt)>,
    by_connection: BTreeMap<(SideId, ConnKey), Ticket>,
    last: u64,
    /// Who is not let in, and why.
    admission: Admission,
    /// The log's lines of logins that were refused.
    refusals: LogLine,
}

/// For how many failures, and how long, somebody is barred.
#[derive(Clone, Copy, Debug)]
pub(super) struct Bars {
    /// So many failures bar; none do where this is 0.
    pub(super) most: u32,
    /// How long.
    pub(super) lasting: Duration,
}

/// What a login that was refused leads to.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Refused {
    /// A line is due for the log, which stands for so many others.
    pub(super) logged: Option<u64>,
    /// The player is barred where the login came from.
    pub(super) is_player_barred: bool,
    /// An address is barred, until when.
    pub(super) barred: Option<(IpAddr, Time)>,
}

impl Logins {
    /// Takes in a login. Returns whether the connection had none pending.
    pub(super) fn add(&mut self, side: SideId, attempt: AuthAttempt) -> bool {
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

    /// Takes out a login, which is decided.
    pub(super) fn remove(&mut self, ticket: Ticket) -> Option<(SideId, AuthAttempt)> {
        let (side, attempt) = self.undecided.remove(&ticket)?;
        self.by_connection.remove(&(side, attempt.key));
        Some((side, attempt))
    }

    /// A connection is gone: its login is not answered.
    pub(super) fn cancel(&mut self, side: SideId, key: ConnKey) {
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

    /// The next login that nobody was asked about yet and that is wanted still.
    pub(super) fn next_request(&mut self) -> Option<AuthRequest> {
        loop {
            let ticket = self.requests.pop_front()?;
            if let Some((_, attempt)) = self.undecided.get(&ticket) {
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

    /// Whether a login still waits for its verdict.
    pub(super) fn wants(&self, ticket: Ticket) -> bool {
        self.undecided.contains_key(&ticket)
    }

    /// Whether earlier failures keep a client out. Servers are always served.
    pub(super) fn bars(&self, now: Time, attempt: &AuthAttempt) -> bool {
        attempt.peer == Peer::Client && self.admission.bars(now, &attempt.player, attempt.address)
    }

    /// The source prefixes that are barred, and until when.
    pub(super) fn barred_addresses(&self, now: Time) -> impl Iterator<Item = (IpAddr, Time)> {
        self.admission.barred_addresses(now)
    }

    /// A client was let in.
    pub(super) fn came(&mut self, address: Option<IpAddr>) {
        self.admission.came(address);
    }

    /// A client that was let in has gone.
    pub(super) fn went(&mut self, address: Option<IpAddr>) {
        self.admission.went(address);
    }

    /// Whether these are the clients that are let in, by their source prefixes.
    pub(super) fn are_playing(&self, clients: &BTreeMap<Option<IpAddr>, u32>) -> bool {
        self.admission.are_playing(clients)
    }

    /// Logins that were handed out and are not decided are handed out again, before all
    /// others: whoever was asked answers elsewhere, or nowhere.
    pub(super) fn ask_again(&mut self) {
        self.requests = self.undecided.keys().copied().collect();
    }

    /// A client misbehaved after its login: the player is barred there.
    pub(super) fn bar_player(&mut self, player: &str, address: Option<IpAddr>, until: Time) {
        self.admission.bar(Suspect::player(player, address), until);
    }

    /// A login was refused. Whoever can put another's address on a datagram would bar
    /// the other, so that such a login counts against nobody; nor does a server's.
    pub(super) fn refuse(
        &mut self,
        now: Time,
        attempt: &AuthAttempt,
        verdict: AuthVerdict,
        bars: Bars,
    ) -> Refused {
        let mut refused = Refused {
            logged: self.refusals.due(now),
            ..Refused::default()
        };
        if attempt.peer == Peer::Server || attempt.is_address_forgeable {
            return refused;
        }
        match (verdict, attempt.address) {
            (AuthVerdict::WrongLogin, address) => {
                let suspect = Suspect::player(&attempt.player, address);
                let until = (self.admission).failed(now, suspect, bars.most, bars.lasting);
                refused.is_player_barred = until.is_some();
            }
            (AuthVerdict::WrongPlayer, Some(address)) => {
                refused.barred = self.address_failed(now, address, bars);
            }
            _ => {}
        }
        refused
    }

    /// A login from an address failed, or was never attempted in time. Returns the
    /// source prefix, and until when, if it is barred for that.
    pub(super) fn address_failed(
        &mut self,
        now: Time,
        address: IpAddr,
        bars: Bars,
    ) -> Option<(IpAddr, Time)> {
        let address = source_prefix(address);
        let suspect = Suspect::Address(address);
        let until = (self.admission).failed(now, suspect, bars.most, bars.lasting)?;
        Some((address, until))
    }
}
