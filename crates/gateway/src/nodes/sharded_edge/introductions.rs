//! Connections of one loop that log in, and which shards know of them.
//!
//! Whoever is let in at home has its answer only once all shards know of it. So nobody, the
//! connection itself among them, can name it to a shard that does not.

use std::collections::BTreeMap;

use crate::core::bus::{AdmittedConnection, AuthAttempt, HomeVersion, ToConnections};
use crate::core::{ConnId, ConnKey, ShardCount, ShardId};

/// One that has attempted to log in.
#[derive(Debug)]
struct Introduction {
    connection: AdmittedConnection,
    /// It was let in: the shards that know of it, a bit each.
    known: Option<u64>,
    /// The answer of home, until all do.
    answer: Option<ToConnections>,
}

/// All of one loop.
#[derive(Debug)]
pub(super) struct Introductions {
    by_key: BTreeMap<ConnKey, Introduction>,
    /// The bits of all shards but home.
    others: u64,
}

/// What follows from home's answer.
#[derive(Debug)]
pub(super) enum Step {
    /// It is the connection's now.
    Deliver(ToConnections),
    /// First all other shards are to know of the connection.
    MakeKnown(AdmittedConnection),
}

impl Introductions {
    pub(super) fn new(count: ShardCount) -> Self {
        let others = count.all().skip(1).map(|shard| 1 << shard.0);
        Self {
            by_key: BTreeMap::new(),
            others: others.sum(),
        }
    }

    /// A connection attempts to log in.
    pub(super) fn attempts(&mut self, attempt: &AuthAttempt) {
        let known = self.by_key.get(&attempt.key);
        if known.is_some_and(|it| it.known.is_some()) {
            return;
        }
        let connection = AdmittedConnection {
            key: attempt.key,
            id: ConnId(0),
            peer: attempt.peer,
            address: attempt.address,
            is_address_forgeable: attempt.is_address_forgeable,
            player: String::new(),
            version: HomeVersion::default(),
            recovers: false,
        };
        let introduction = Introduction {
            connection,
            known: None,
            answer: None,
        };
        self.by_key.insert(attempt.key, introduction);
    }

    /// It was shown to be where it says.
    pub(super) fn address_proven(&mut self, key: ConnKey) {
        if let Some(introduction) = self.by_key.get_mut(&key) {
            introduction.connection.is_address_forgeable = false;
        }
    }

    /// Home has answered, in this epoch. Nothing follows for one that has closed meanwhile.
    pub(super) fn on_answer(&mut self, message: ToConnections, epoch: u64) -> Option<Step> {
        let ToConnections::AuthAnswer {
            key,
            id,
            admitted,
            ref player,
            number,
            recovers,
            ..
        } = message
        else {
            return Some(Step::Deliver(message));
        };
        let introduction = self.by_key.get_mut(&key)?;
        if !admitted || introduction.known.is_some() {
            return Some(Step::Deliver(message));
        }
        introduction.connection.id = id;
        introduction.connection.player.clone_from(player);
        introduction.connection.version = HomeVersion { epoch, number };
        introduction.connection.recovers = recovers;
        introduction.known = Some(0);
        introduction.answer = Some(message);
        Some(Step::MakeKnown(introduction.connection.clone()))
    }

    /// A shard knows of a connection. Returns that and its answer once all do.
    pub(super) fn on_known(
        &mut self,
        shard: ShardId,
        key: ConnKey,
    ) -> Option<(&AdmittedConnection, ToConnections)> {
        let introduction = self.by_key.get_mut(&key)?;
        let known = introduction.known.as_mut()?;
        *known |= 1 << shard.0;
        let answer = (*known == self.others).then(|| introduction.answer.take())??;
        Some((&introduction.connection, answer))
    }

    /// A connection is gone. Returns its number if other shards know of it.
    pub(super) fn forget(&mut self, key: ConnKey) -> Option<ConnId> {
        let introduction = self.by_key.remove(&key)?;
        introduction.known.map(|_| introduction.connection.id)
    }

    /// All are gone: who they were.
    pub(super) fn clear(&mut self) -> impl Iterator<Item = ConnKey> {
        std::mem::take(&mut self.by_key).into_keys()
    }
}
