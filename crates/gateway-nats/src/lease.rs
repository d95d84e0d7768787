//! The leases' entries in a key-value bucket.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_nats::Client;
use async_nats::jetstream::kv::{CreateErrorKind, Operation, Store, UpdateErrorKind};
use async_nats::jetstream::stream::{Config, DiscardPolicy};
use async_nats::jetstream::{self, Context};
use lagometer_gateway::nodes::{LeaseAnswer, LeaseRequest};
use tokio::time::timeout;

/// A task takes no longer; then it is not known what came of it.
const ANSWER_WITHIN: Duration = Duration::from_secs(2);

/// A cluster of NATS servers keeps the entry on so many of them: it outlives any one.
const REPLICAS: usize = 3;

/// What entries' keys begin with; the shard's number and how many there are follow.
const KEY: &str = "channels";

/// The entries of all shards, by whose revision nodes know whether it is still the one they have read.
#[derive(Debug)]
pub(crate) struct Entry {
    client: Client,
    jetstream: Context,
    bucket: String,
    /// Once it was looked up.
    store: Mutex<Option<Store>>,
}

/// The answer where no server is there yet.
pub(crate) fn not_there() -> LeaseAnswer {
    LeaseAnswer::Failed("no NATS server is there yet".to_owned())
}

impl Entry {
    pub(crate) fn new(client: &Client, prefix: &str) -> Self {
        Self {
            client: client.clone(),
            jetstream: jetstream::new(client.clone()),
            bucket: format!("{}-gateway", prefix.replace('.', "_")),
            store: Mutex::default(),
        }
    }

    /// Does what is asked for.
    pub(crate) async fn answer(&self, shard: &str, request: LeaseRequest) -> LeaseAnswer {
        let answer = match timeout(ANSWER_WITHIN, self.try_to(shard, request)).await {
            Ok(Ok(answer)) => answer,
            Ok(Err(why)) => LeaseAnswer::Failed(format!(
                "the bucket `{}` of NATS JetStream: {why}; it must be enabled (`nats-server -js`), \
                 permitted to this user, and have room",
                self.bucket
            )),
            Err(_) => LeaseAnswer::Failed(format!(
                "NATS JetStream does not answer for the bucket `{}`; it must be enabled \
                 (`nats-server -js`) and permitted to this user",
                self.bucket
            )),
        };
        if matches!(answer, LeaseAnswer::Failed(_)) {
            // The bucket may be gone: it is looked for anew, and made where there is none.
            self.forget();
        }
        answer
    }

    async fn try_to(
        &self,
        shard: &str,
        request: LeaseRequest,
    ) -> Result<LeaseAnswer, async_nats::Error> {
        let key = format!("{KEY}.{shard}");
        let store = self.store().await?;
        Ok(match request {
            LeaseRequest::Read => {
                let entry = store.entry(&*key).await?;
                let entry = entry.filter(|entry| entry.operation == Operation::Put);
                LeaseAnswer::Entry(entry.map(|entry| (entry.value, entry.revision)))
            }
            LeaseRequest::Create(value) => match store.create(&key, value).await {
                Ok(revision) => LeaseAnswer::Written(revision),
                Err(why) if why.kind() == CreateErrorKind::AlreadyExists => LeaseAnswer::Conflict,
                Err(why) => return Err(why.into()),
            },
            LeaseRequest::Update(value, revision) => {
                match store.update(&key, value, revision).await {
                    Ok(revision) => LeaseAnswer::Written(revision),
                    Err(why) if why.kind() == UpdateErrorKind::WrongLastRevision => {
                        LeaseAnswer::Conflict
                    }
                    Err(why) => return Err(why.into()),
                }
            }
        })
    }

    async fn store(&self) -> Result<Store, async_nats::Error> {
        let known = self.lock().clone();
        if let Some(store) = known {
            return Ok(store);
        }
        let known = self.jetstream.get_key_value(&self.bucket).await;
        let store = if let Ok(store) = known {
            store
        } else {
            self.make().await?;
            self.jetstream.get_key_value(&self.bucket).await?
        };
        *self.lock() = Some(store.clone());
        Ok(store)
    }

    /// Makes the bucket's stream. The client's own way asks for the account first, in a form
    /// whose answer by a NATS server 2.9 it cannot read.
    async fn make(&self) -> Result<(), async_nats::Error> {
        let is_cluster = self.client.server_info().cluster.is_some();
        let config = Config {
            name: format!("KV_{}", self.bucket),
            description: Some("Which node of the gateway owns the channels".to_owned()),
            subjects: vec![format!("$KV.{}.>", self.bucket)],
            max_messages_per_subject: 1,
            discard: DiscardPolicy::New,
            allow_rollup: true,
            deny_delete: true,
            allow_direct: true,
            num_replicas: if is_cluster { REPLICAS } else { 1 },
            ..Config::default()
        };
        self.jetstream.create_stream(config).await?;
        Ok(())
    }

    fn forget(&self) {
        *self.lock() = None;
    }

    fn lock(&self) -> MutexGuard<'_, Option<Store>> {
        // Nothing under the lock can stop half-way.
        self.store.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
