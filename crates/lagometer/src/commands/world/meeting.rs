//! Where the workers of a world and its coordinator find each other: at an address of the
//! coordinator's, or over NATS, which leads those who know its secret to it.

use std::sync::atomic::AtomicBool;

use lagometer_cluster::{Coordinator, Error};
use lagometer_nats::streams::{self, Entrance, Forwarder};
use lagometer_remote::Secret;

use super::super::over_nats::{say, settings_of};
use crate::cli::{ClusterArguments, NatsUser};
use crate::failure::Failure;
use crate::remote_end::SECRET_VARIABLE;

/// What they meet for over NATS, as the secret names it.
const PURPOSE: &str = "world";

/// Streams of those who are no workers yet, or no longer.
const OTHER_STREAMS: usize = 64;

/// A coordinator, and what leads workers to it over NATS. It goes first, so that streams
/// end by themselves.
pub(super) struct Meeting {
    pub(super) coordinator: Coordinator,
    forwarder: Option<Forwarder>,
}

impl Meeting {
    /// Where workers find the coordinator.
    pub(super) fn at(
        coordinator: Coordinator,
        cluster: &ClusterArguments,
        workers: u32,
        secret: &Secret,
        stop: &AtomicBool,
    ) -> Result<Self, Failure> {
        let mut meeting = Self {
            coordinator,
            forwarder: None,
        };
        if let Some(urls) = &cluster.nats {
            // Each stream has two sockets here.
            lagometer_platform::raise_open_files();
            let most = workers as usize * 2 + OTHER_STREAMS;
            let (name, to) = (secret.name_for(PURPOSE), meeting.coordinator.address());
            let settings = settings_of(urls, &cluster.reached);
            let started = Forwarder::start(&settings, &name, to, most, say, stop);
            meeting.forwarder = Some(started?);
        }
        Ok(meeting)
    }

    pub(super) fn is_over_nats(&self) -> bool {
        self.forwarder.is_some()
    }

    /// Says where `workers` from other machines are waited for, and with which secret where it
    /// is a new one; whether they are.
    pub(super) fn invite(
        &self,
        cluster: &ClusterArguments,
        workers: u32,
        new: Option<&Secret>,
    ) -> bool {
        let Some((at, to_join)) = self.place(cluster) else {
            return false;
        };
        note!("lagometer: waiting {at} for {workers} workers");
        if let Some(secret) = new.map(Secret::expose) {
            note!(
                "lagometer: the secret is {secret}; on the other machines: \
                 {SECRET_VARIABLE}={secret} lagometer world {to_join}"
            );
        }
        true
    }

    /// Where workers of other machines are waited for, and the words by which they join,
    /// if they are.
    fn place(&self, cluster: &ClusterArguments) -> Option<(String, String)> {
        if let Some(forwarder) = &self.forwarder {
            let urls = forwarder.urls();
            let user = &cluster.reached.user;
            let mut join = vec!["--join --nats".to_owned(), urls.replace(' ', "")];
            if user.prefix != NatsUser::PREFIX {
                join.push(format!("--nats-prefix {}", user.prefix));
            }
            join.extend(user.creds.iter().map(|_| "--nats-creds FILE".to_owned()));
            join.extend(user.authorities.iter().map(|_| "--nats-ca FILE".to_owned()));
            return Some((format!("over NATS at {urls}"), join.join(" ")));
        }
        let at = self.coordinator.address();
        cluster.coordinate.as_ref()?;
        Some((format!("at {at}"), format!("--join HOST:{}", at.port())))
    }
}

/// Where a worker's way to the coordinator begins.
pub(super) struct Way {
    pub(super) address: String,
    /// Leads on from there, where it is over NATS.
    entrance: Option<Entrance>,
}

impl Way {
    pub(super) fn find(
        at: &str,
        cluster: &ClusterArguments,
        secret: &Secret,
        stop: &AtomicBool,
    ) -> Result<Self, Failure> {
        let wrong = |why: &str| Err(Failure::Input(why.to_owned()));
        match (at, &cluster.nats) {
            (ClusterArguments::OVER_NATS, None) => {
                wrong("`--join` lacks the coordinator's HOST:PORT, or `--nats`")
            }
            (ClusterArguments::OVER_NATS, Some(urls)) => {
                let name = secret.name_for(PURPOSE);
                let settings = settings_of(urls, &cluster.reached);
                let entrance = Entrance::open(&settings, &name, say, stop)?;
                Ok(Self {
                    address: entrance.address().to_string(),
                    entrance: Some(entrance),
                })
            }
            (_, Some(_)) => wrong("`--join` with an address needs no NATS: leave out one of both"),
            (at, None) => Ok(Self {
                address: at.to_owned(),
                entrance: None,
            }),
        }
    }

    /// Why it is not joined.
    pub(super) fn failure(&self, error: Error) -> Failure {
        match (&self.entrance, error) {
            (Some(entrance), error @ (Error::Play(_) | Error::Remote(_))) => {
                Failure::Environment(format!(
                    "{error}; so it is said where NATS at {} was away, too",
                    entrance.urls()
                ))
            }
            (Some(entrance), Error::NoCoordinator { .. }) => Failure::Environment(format!(
                "no coordinator with this secret and prefix over NATS at {}: start it with \
                 `lagometer world --workers N --gateway HOST:PORT --nats`, or wait longer with \
                 `--wait`",
                entrance.urls()
            )),
            (_, error) => error.into(),
        }
    }
}

impl From<streams::Error> for Failure {
    fn from(error: streams::Error) -> Self {
        match error {
            streams::Error::Nats(why) if why.is_input() => Self::input(why),
            streams::Error::Taken { urls } => Self::Environment(format!(
                "a coordinator with this secret and prefix is there already, at {urls}: wait for \
                 its end, or have another secret or another `--nats-prefix`"
            )),
            _ => Self::Environment(error.to_string()),
        }
    }
}
