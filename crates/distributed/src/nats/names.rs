//! Subjects, streams and consumers, by their names.

use std::time::Duration;

use async_nats::jetstream::Context;
use async_nats::jetstream::consumer::{AckPolicy, PullConsumer, pull};
use async_nats::jetstream::stream::{Config, RetentionPolicy, Stream};

use super::{ACK_WAIT, Error};

/// The longest that a worker takes to be given the next job, or to see that it is to end.
pub(super) const PULL: Duration = Duration::from_secs(1);

/// All names that begin with one prefix.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Names {
    prefix: String,
}

impl Names {
    pub(super) fn new(prefix: &str) -> Result<Self, Error> {
        lagometer_nats::check_prefix(prefix)?;
        Ok(Self {
            prefix: prefix.to_owned(),
        })
    }

    pub(super) fn hello(&self) -> String {
        format!("{}.sweeps.hello", self.prefix)
    }

    /// A subject of one sweep.
    pub(super) fn of_sweep(&self, sweep: &str, what: &str) -> String {
        format!("{}.sweeps.{sweep}.{what}", self.prefix)
    }

    /// A job's subject; `number` may be `*`, and `sweep` too.
    pub(super) fn job(&self, version: &str, sweep: &str, number: &str) -> String {
        let version = version.replace('.', "_");
        format!("{}.sweeps.jobs.{version}.{sweep}.{number}", self.prefix)
    }

    /// The stream of a sweep's own.
    pub(super) fn stream_of(&self, sweep: &str) -> String {
        format!("{}{sweep}", self.streams_of_sweeps())
    }

    /// What the names of such streams begin with.
    pub(super) fn streams_of_sweeps(&self) -> String {
        format!("{}-sweep-", self.prefix.replace('.', "_"))
    }

    /// The work queue of all sweeps, made where there is none.
    pub(super) async fn queue(&self, jetstream: &Context) -> Result<Stream, Error> {
        let name = format!("{}-sweeps", self.prefix.replace('.', "_"));
        let subjects = vec![format!("{}.sweeps.jobs.>", self.prefix)];
        stream(jetstream, name, subjects).await
    }

    /// The subject of a fragment of a sweep's recipe, both by their numbers.
    pub(super) fn recipe(&self, sweep: &str, recipe: usize, fragment: usize) -> String {
        self.of_sweep(sweep, &format!("recipe.{recipe}.{fragment}"))
    }

    /// The stream with a sweep's recipes and findings, made where there is none. What was
    /// found leaves it when it is read.
    pub(super) async fn own_stream(
        &self,
        jetstream: &Context,
        sweep: &str,
    ) -> Result<Stream, Error> {
        let subjects = ["recipe.*.*", "found"].map(|what| self.of_sweep(sweep, what));
        stream(jetstream, self.stream_of(sweep), subjects.into()).await
    }

    /// The readers of a version's jobs, all of them together.
    pub(super) async fn workers(
        &self,
        queue: &Stream,
        version: &str,
    ) -> Result<PullConsumer, Error> {
        let name = format!("workers-{}", version.replace('.', "_"));
        consumer(queue, name, self.job(version, "*", "*")).await
    }

    /// The reader of what was found.
    pub(super) async fn finder(&self, own: &Stream, sweep: &str) -> Result<PullConsumer, Error> {
        consumer(own, "coordinator".to_owned(), self.of_sweep(sweep, "found")).await
    }
}

/// A stream from which each message is read once.
async fn stream(jetstream: &Context, name: String, subjects: Vec<String>) -> Result<Stream, Error> {
    let config = Config {
        name,
        subjects,
        retention: RetentionPolicy::WorkQueue,
        ..Config::default()
    };
    let made = jetstream.get_or_create_stream(config).await;
    made.map_err(|why| Error::jetstream("a stream cannot be made")(why.into()))
}

/// A reader of a subject, which is given again what it does not acknowledge.
async fn consumer(
    stream: &Stream,
    name: String,
    filter_subject: String,
) -> Result<PullConsumer, Error> {
    let config = pull::Config {
        durable_name: Some(name.clone()),
        filter_subject,
        ack_policy: AckPolicy::Explicit,
        ack_wait: ACK_WAIT,
        max_ack_pending: 100_000,
        ..pull::Config::default()
    };
    let made = stream.get_or_create_consumer(&name, config).await;
    made.map_err(|why| Error::jetstream("a stream's reader cannot be made")(why.into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_and_prefixes_have_subjects_of_their_own() {
        let names = Names::new("team.lab").unwrap();
        assert_eq!(
            names.job("0.1.0", "S", "7"),
            "team.lab.sweeps.jobs.0_1_0.S.7"
        );
        assert_eq!(names.stream_of("S"), "team_lab-sweep-S");
    }
}
