//! The nodes of one gateway joined over NATS, on a thread of its own.
//!
//! | subject, after the prefix | who sends it |
//! | --- | --- |
//! | `gateway.SHARD-COUNT.all` | the owner of a shard of the channels: that it is it |
//! | `gateway.SHARD-COUNT.nodes.NODE` | others, for one node |
//!
//! Nodes that divide the channels into another number of shards are another gateway, which
//! is said once. A shard's lease is the entry `channels.SHARD-COUNT` of the `JetStream` key-value bucket
//! `PREFIX-gateway`, with its dots written as underscores.
//!
//! This is thin on purpose: what nodes say to each other, and what they do when something
//! is lost, is decided in [`lagometer_gateway::nodes`], which expects no more of a bus
//! than that what it carries comes unharmed.

mod lease;

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::Duration;

use async_nats::{Client, Event, Message, Subscriber};
use bytes::Bytes;
use futures_util::StreamExt as _;
use lagometer_gateway::core::ShardId;
use lagometer_gateway::nodes::{Address, BusEvent, LeaseTask, NodeBus, NodeId};
use lagometer_gateway::server::NodeInbox;
use lagometer_nats::{Connection, Error, RETRY, Settings};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tracing::{error, info, warn};

use lease::Entry;

/// So many frames wait for the thread; more are dropped, and sent again by their routes.
const FRAMES_AT_MOST: usize = 4096;

/// The longest that a node waits for its first connection before it begins without.
const FIRST_AT_MOST: Duration = Duration::from_secs(2);

/// The longest that one frame holds the thread up where the client's own queue is full.
const PUBLISH_AT_MOST: Duration = Duration::from_millis(100);

/// So many different complaints of the server are passed on, each once.
const COMPLAINTS_AT_MOST: usize = 64;

/// The longest that a node which ends waits until the server has what it sent.
const LAST_FLUSH: Duration = Duration::from_secs(1);

/// Why a node cannot begin.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The system gives no thread.
    #[error("cannot start the thread of NATS: {0}")]
    Thread(#[from] io::Error),
    /// The server lets this user in never, or is not the one that is meant.
    #[error(transparent)]
    Nats(#[from] Error),
}

/// What the thread is to do.
#[derive(Debug)]
enum Order {
    Publish(ShardId, Address, Bytes),
    Ask(ShardId, LeaseTask),
}

/// The bus between nodes on NATS. Dropping it sends what waits and ends its thread.
#[derive(Debug)]
pub struct NatsBus {
    orders: Option<mpsc::Sender<Order>>,
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl NatsBus {
    /// Begins to bring what is for a node into the inbox of the shard concerned. Waits for a server as long as it takes, and
    /// says so in the log.
    ///
    /// # Errors
    ///
    /// If a server is there and refuses this user or is not trusted, or the system gives no
    /// thread.
    pub fn start(
        settings: Settings,
        node: NodeId,
        inboxes: Vec<NodeInbox>,
    ) -> Result<Self, StartError> {
        let (orders, taken) = mpsc::channel(FRAMES_AT_MOST);
        let stop = Arc::new(AtomicBool::new(false));
        let shell = Shell {
            settings,
            node,
            inboxes,
            has_said_other_shards: AtomicBool::new(false),
            stop: Arc::clone(&stop),
        };
        let runtime = tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build()?;
        let first = runtime.block_on(shell.first())?;
        let thread = std::thread::Builder::new()
            .name("nats".to_owned())
            .spawn(move || {
                runtime.block_on(shell.run(first, taken));
                runtime.shutdown_background();
            })?;
        Ok(Self {
            orders: Some(orders),
            stop,
            thread: Some(thread),
        })
    }

    fn order(&self, order: Order) {
        if let Some(orders) = &self.orders {
            // What finds no room is lost, as the bus may lose it.
            let _ = orders.try_send(order);
        }
    }
}

impl NodeBus for NatsBus {
    fn publish(&self, shard: ShardId, to: Address, frame: Bytes) {
        self.order(Order::Publish(shard, to, frame));
    }

    fn ask(&self, shard: ShardId, task: LeaseTask) {
        self.order(Order::Ask(shard, task));
    }
}

impl Drop for NatsBus {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::SeqCst);
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // It has said why, if it panicked.
            let _ = thread.join();
        }
    }
}

/// What the thread knows.
struct Shell {
    settings: Settings,
    node: NodeId,
    /// Of each shard, in order.
    inboxes: Vec<NodeInbox>,
    has_said_other_shards: AtomicBool,
    stop: Arc<AtomicBool>,
}

impl Shell {
    /// The connection, if a server is there at once. What a server refuses is said before
    /// anything begins; later it is waited for, for others may mend it.
    async fn first(&self) -> Result<Option<Connection>, Error> {
        let settings = Settings {
            wait: Duration::ZERO,
            ..self.settings.clone()
        };
        let connecting = lagometer_nats::connect(&settings, &|_| {}, &self.stop);
        match timeout(FIRST_AT_MOST, connecting).await {
            Ok(Ok(connection)) => Ok(Some(connection)),
            Ok(Err(Error::Unreachable { .. })) | Err(_) => Ok(None),
            Ok(Err(why)) => Err(why),
        }
    }

    async fn run(&self, first: Option<Connection>, mut orders: mpsc::Receiver<Order>) {
        let connected = match first {
            Some(connection) => Some(connection),
            None => self.connect(&mut orders).await,
        };
        let Some(mut connection) = connected else {
            return;
        };
        let client = connection.client.clone();
        let prefix = &self.settings.prefix;
        let subscribed = async {
            let all = client.subscribe(subject(prefix, "*", Address::All)).await?;
            let own = subject(prefix, "*", Address::Node(self.node));
            let own = client.subscribe(own).await?;
            client.flush().await.ok();
            Ok::<_, async_nats::SubscribeError>((all, own))
        };
        let (mut all, mut own) = match subscribed.await {
            Ok(both) => both,
            Err(why) => {
                error!(%why, "NATS: cannot listen to other nodes");
                return;
            }
        };
        info!(urls = connection.urls, node = %self.node, "joined NATS");
        self.put_to_all(&BusEvent::Up);
        let entry = Arc::new(Entry::new(&client, &self.settings.prefix));
        let mut is_up = true;
        // What the server has complained of, and was passed on.
        let mut complaints = BTreeSet::new();
        loop {
            tokio::select! {
                order = orders.recv() => match order {
                    Some(Order::Publish(shard, to, frame)) => {
                        if is_up {
                            let subject = subject(prefix, &self.token(shard), to);
                            publish(&client, subject, frame).await;
                        }
                    }
                    Some(Order::Ask(shard, task)) => {
                        let Some(inbox) = self.inboxes.get(shard.index()).cloned() else {
                            continue;
                        };
                        let (entry, token) = (Arc::clone(&entry), self.token(shard));
                        tokio::spawn(async move {
                            let answer = entry.answer(&token, task.request).await;
                            inbox.put(BusEvent::Lease(task.number, answer));
                        });
                    }
                    None => {
                        let _ = timeout(LAST_FLUSH, client.flush()).await;
                        return;
                    }
                },
                event = connection.events.recv() => {
                    if let Some(event) = event {
                        self.on_event(event, &mut is_up, &mut complaints, &connection.urls);
                    }
                }
                message = next(&mut all) => self.take(message),
                message = next(&mut own) => self.take(message),
            }
        }
    }

    /// A frame has come: it is for the shard that its subject names. One that divides the
    /// channels otherwise is not of this gateway, which is said once.
    fn take(&self, message: Message) {
        let shard = shard_of(&self.settings.prefix, &message.subject);
        let shard = shard.filter(|(_, count)| *count == self.inboxes.len());
        match shard.and_then(|(shard, _)| self.inboxes.get(shard.index())) {
            Some(inbox) => inbox.put(BusEvent::Frame(message.payload)),
            None => self.say_other_shards(&message.subject),
        }
    }

    /// A shard as subjects and keys have it: with how many there are.
    fn token(&self, shard: ShardId) -> String {
        format!("{}-{}", shard.0, self.inboxes.len())
    }

    fn say_other_shards(&self, subject: &str) {
        if !self.has_said_other_shards.swap(true, Ordering::Relaxed) {
            warn!(
                subject,
                shards = self.inboxes.len(),
                "another node divides the channels otherwise: start all with the same --shards"
            );
        }
    }

    fn put_to_all(&self, event: &BusEvent) {
        for inbox in &self.inboxes {
            inbox.put(event.clone());
        }
    }

    fn on_event(
        &self,
        event: Event,
        is_up: &mut bool,
        complaints: &mut BTreeSet<String>,
        urls: &str,
    ) {
        match event {
            Event::Disconnected => {
                *is_up = false;
                warn!("lost NATS at {urls}; waiting for it");
                self.put_to_all(&BusEvent::Down);
            }
            Event::Connected if !*is_up => {
                *is_up = true;
                info!("NATS at {urls} is back");
                self.put_to_all(&BusEvent::Up);
            }
            Event::SlowConsumer(_) => {
                warn!(
                    "this node takes too slowly what comes over NATS; what is dropped is sent again"
                );
            }
            Event::ServerError(why) => {
                let why = why.to_string();
                if complaints.len() < COMPLAINTS_AT_MOST && !complaints.contains(&why) {
                    warn!("NATS at {urls} complains: {why}");
                    complaints.insert(why);
                }
            }
            _ => {}
        }
    }

    /// Connects, however long it takes; `None` if it is to end. What is asked for
    /// meanwhile fails.
    async fn connect(&self, orders: &mut mpsc::Receiver<Order>) -> Option<Connection> {
        let mut said = String::new();
        let note = |line: &str| warn!("{line}");
        loop {
            let connecting = lagometer_nats::connect(&self.settings, &note, &self.stop);
            tokio::pin!(connecting);
            let connected = loop {
                tokio::select! {
                    connected = &mut connecting => break connected,
                    order = orders.recv() => match order {
                        Some(Order::Ask(shard, task)) => {
                            if let Some(inbox) = self.inboxes.get(shard.index()) {
                                inbox.put(BusEvent::Lease(task.number, lease::not_there()));
                            }
                        }
                        Some(Order::Publish(..)) => {}
                        None => return None,
                    },
                }
            };
            match connected {
                Ok(connection) => return Some(connection),
                Err(Error::Unreachable { .. }) => {}
                Err(why) => {
                    let why = why.to_string();
                    if why != said {
                        error!("{why}");
                        said = why;
                    }
                    sleep(RETRY).await;
                }
            }
            if self.stop.load(Ordering::SeqCst) {
                return None;
            }
        }
    }
}

/// The next message. A subscription that has ended never has one: the client renews those
/// of a connection that comes back.
async fn next(subscriber: &mut Subscriber) -> Message {
    match subscriber.next().await {
        Some(message) => message,
        None => std::future::pending().await,
    }
}

async fn publish(client: &Client, subject: String, frame: Bytes) {
    // A frame that is not sent is lost, as the bus may lose it.
    let _ = timeout(PUBLISH_AT_MOST, client.publish(subject, frame)).await;
}

/// Of a shard, or of all that `*` stands for.
fn subject(prefix: &str, shard: &str, to: Address) -> String {
    match to {
        Address::All => format!("{prefix}.gateway.{shard}.all"),
        Address::Node(node) => format!("{prefix}.gateway.{shard}.nodes.{node}"),
    }
}

/// The shard that a subject names, and of how many.
fn shard_of(prefix: &str, subject: &str) -> Option<(ShardId, usize)> {
    let rest = subject.strip_prefix(prefix)?.strip_prefix(".gateway.")?;
    let (shard, count) = rest.split_once('.')?.0.split_once('-')?;
    Some((ShardId(shard.parse().ok()?), count.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_subject_names_its_shard() {
        let to = [Address::All, Address::Node(NodeId(7))];
        for to in to {
            let subject = subject("team.a", "12-16", to);
            assert_eq!(shard_of("team.a", &subject), Some((ShardId(12), 16)));
            assert_eq!(shard_of("team.b", &subject), None);
        }
        assert_eq!(shard_of("team.a", "team.a.gateway.all"), None);
        assert_eq!(shard_of("team.a", "team.a.gateway.x-4.all"), None);
    }
}
