//! Events of a remote end, for its log.

use std::fmt;
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

/// Something that happened.
#[derive(Debug)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A control connection was authenticated.
    Joined {
        /// Numbers the connection.
        session: u64,
        /// The address of the other end.
        peer: SocketAddr,
    },
    /// A connection was refused before it was authenticated.
    TurnedAway {
        /// The address of the other end.
        peer: SocketAddr,
        /// The reason, in words.
        why: &'a str,
    },
    /// A job has begun.
    Opened {
        /// The connection that asked for it.
        session: u64,
        /// The name of the service.
        service: &'a str,
    },
    /// A job was refused.
    Refused {
        /// The connection that asked for it.
        session: u64,
        /// The name of the service.
        service: &'a str,
        /// The reason, in words.
        why: &'a str,
    },
    /// A job has ended.
    Closed {
        /// The connection that asked for it.
        session: u64,
        /// The name of the service.
        service: &'a str,
        /// How long it took.
        after: Duration,
    },
    /// A control connection was closed.
    Left {
        /// The connection's number.
        session: u64,
        /// The address of the other end.
        peer: SocketAddr,
        /// How it ended, in words.
        why: &'a str,
    },
    /// The system has no socket or no thread for one more.
    CannotAccept {
        /// The error of the system.
        why: &'a io::Error,
    },
}

/// One line of `key=value`, the event's name first.
impl fmt::Display for Event<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Joined { session, peer } => {
                write!(formatter, "joined session={session} peer={peer}")
            }
            Self::TurnedAway { peer, why } => {
                write!(formatter, "turned-away peer={peer} why={why:?}")
            }
            Self::Opened { session, service } => {
                write!(formatter, "opened session={session} service={service:?}")
            }
            Self::Refused {
                session,
                service,
                why,
            } => write!(
                formatter,
                "refused session={session} service={service:?} why={why:?}"
            ),
            Self::Closed {
                session,
                service,
                after,
            } => write!(
                formatter,
                "closed session={session} service={service:?} after_s={:.3}",
                after.as_secs_f64()
            ),
            Self::Left { session, peer, why } => {
                write!(formatter, "left session={session} peer={peer} why={why:?}")
            }
            Self::CannotAccept { why } => {
                write!(formatter, "cannot-accept why={:?}", why.to_string())
            }
        }
    }
}
