//! Byte streams over NATS, for protocols that were made for TCP.
//!
//! A [`Forwarder`] stands beside a server and leads to it whoever comes over NATS to the
//! service's name; an [`Entrance`] is an address of this machine at which such streams
//! begin. So neither end needs a port that the other can reach: both reach NATS.
//!
//! | subject, after the prefix | who sends it |
//! | --- | --- |
//! | `streams.SERVICE.open` | an entrance: the name of a new stream; the forwarder answers |
//! | `streams.SERVICE.STREAM.in` | the entrance: what its client says |
//! | `streams.SERVICE.STREAM.out` | the forwarder: what the server says |
//!
//! NATS delivers at most once, so pieces are numbered, and a stream of which one is missing
//! ends, as a TCP connection does that breaks; so do all when NATS is lost, and one where the
//! other end is gone: NATS says so of what nobody receives, and each end sends something every
//! half second. Whoever may use the subjects may read what is carried and put something in:
//! it is for the protocol to notice, as it is over a network.

mod pieces;

use std::future::pending;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::thread::JoinHandle;
use std::time::Duration;

use async_nats::{Client, Event, Message, StatusCode, Subscriber};
use futures_util::StreamExt as _;
use thiserror::Error;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::{Notify, oneshot};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use crate::{Connection, Outages, Settings, connect, unique_name};
use pieces::{MOST_BYTES, Numbered, Ordered, Piece};

/// Streams of an entrance at once; who comes then is not led on.
const MOST_OF_AN_ENTRANCE: usize = 16;

/// How long it may take until what is sent to a subject is received.
const RECEIVED_WITHIN: Duration = Duration::from_secs(2);

/// How long the other end may take to let a stream begin.
const OPENS_WITHIN: Duration = Duration::from_secs(5);

/// How long an end of a stream says nothing before it asks whether the other is still there.
const PAUSE: Duration = Duration::from_millis(500);

/// How long streams may take to end by themselves when their end is taken away.
const ENDS_WITHIN: Duration = Duration::from_secs(1);

/// How long nobody is accepted where the system has no socket to give.
const RESTS: Duration = Duration::from_millis(100);

/// Letters of the longest name of a stream.
const LONGEST_NAME: usize = 64;

/// Why streams cannot be carried.
#[derive(Debug, Error)]
pub enum Error {
    /// NATS cannot be reached.
    #[error(transparent)]
    Nats(#[from] crate::Error),
    /// Nobody receives what is sent to a subject.
    #[error(
        "nothing that is sent to `{subject}` is received at {urls}: its user may have to be let publish and subscribe to `{subject}` and all beside it, and to `_INBOX.>`"
    )]
    NotReceived {
        /// Where NATS is.
        urls: String,
        /// The subject.
        subject: String,
    },
    /// Somebody else leads to a server by the same name.
    #[error("somebody at {urls} leads to another server by the same name")]
    Taken {
        /// Where NATS is.
        urls: String,
    },
    /// The system gives no thread or socket.
    #[error("streams over NATS need a thread and a socket: {0}")]
    System(#[from] io::Error),
}

/// Leads whoever comes over NATS to a server of this machine, until it is dropped.
#[derive(Debug)]
pub struct Forwarder {
    _streams: StreamThread,
    urls: String,
}

impl Forwarder {
    /// Lets whoever comes to `service` come to the server at `to`, at most `most` at once.
    ///
    /// `service` is a word of letters, digits, `-` and `_`. `note` is given lines on what
    /// becomes of NATS; it is waited for until `stop` becomes true.
    ///
    /// # Errors
    ///
    /// [`enum@Error`] where NATS is not there in time, its user may not use the subjects, or
    /// somebody forwards the service already.
    pub fn start(
        settings: &Settings,
        service: &str,
        to: SocketAddr,
        most: usize,
        note: fn(&str),
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        let subjects = Subjects::new(settings, service);
        let runtime = runtime()?;
        let (connection, mut opened) = runtime.block_on(async {
            let connection = connect(settings, &note, stop).await?;
            let opened = alone_at(&connection, &subjects).await?;
            Ok::<_, Error>((connection, opened))
        })?;
        let urls = connection.urls.clone();
        let streams =
            StreamThread::start(runtime, connection, note, async move |trunk, streams| {
                while let Some(open) = opened.next().await {
                    if has_room(streams, most) {
                        streams.spawn(lead_on(trunk.clone(), subjects.clone(), open, to));
                    }
                }
            })?;
        Ok(Self {
            _streams: streams,
            urls,
        })
    }

    /// Where NATS is, without passwords.
    #[must_use]
    pub fn urls(&self) -> &str {
        &self.urls
    }
}

/// An address of this machine at which streams to a service begin, until it is dropped. A
/// connection to it ends at once where nobody forwards the service.
#[derive(Debug)]
pub struct Entrance {
    _streams: StreamThread,
    address: SocketAddr,
    urls: String,
}

impl Entrance {
    /// Opens a port of loopback from which streams lead to `service`.
    ///
    /// # Errors
    ///
    /// As [`Forwarder::start`].
    pub fn open(
        settings: &Settings,
        service: &str,
        note: fn(&str),
        stop: &AtomicBool,
    ) -> Result<Self, Error> {
        let subjects = Subjects::new(settings, service);
        let runtime = runtime()?;
        let (connection, listener) = runtime.block_on(async {
            let connection = connect(settings, &note, stop).await?;
            let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await?;
            Ok::<_, Error>((connection, listener))
        })?;
        let (address, urls) = (listener.local_addr()?, connection.urls.clone());
        let streams =
            StreamThread::start(runtime, connection, note, async move |trunk, streams| {
                loop {
                    match listener.accept().await {
                        Ok((socket, _)) if has_room(streams, MOST_OF_AN_ENTRANCE) => {
                            streams.spawn(come(trunk.clone(), subjects.clone(), socket));
                        }
                        Ok(_) => {}
                        Err(_) => sleep(RESTS).await,
                    }
                }
            })?;
        Ok(Self {
            _streams: streams,
            address,
            urls,
        })
    }

    /// Where streams begin.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// Where NATS is, without passwords.
    #[must_use]
    pub fn urls(&self) -> &str {
        &self.urls
    }
}

/// What a service's streams are called.
#[derive(Clone, Debug)]
struct Subjects(String);

impl Subjects {
    fn new(settings: &Settings, service: &str) -> Self {
        Self(format!("{}.streams.{service}", settings.prefix))
    }

    fn open(&self) -> String {
        format!("{}.open", self.0)
    }

    fn inwards(&self, stream: &str) -> String {
        format!("{}.{stream}.in", self.0)
    }

    fn outwards(&self, stream: &str) -> String {
        format!("{}.{stream}.out", self.0)
    }
}

/// What all streams of one end go through.
#[derive(Clone, Debug)]
struct Trunk {
    client: Client,
    /// NATS was lost, and with it what was on its way.
    lost: Arc<Notify>,
}

/// The thread that carries one end's streams. It ends when this is dropped.
#[derive(Debug)]
struct StreamThread {
    end: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
}

impl StreamThread {
    /// `begin` adds streams for as long as it is let.
    fn start<F>(
        runtime: Runtime,
        connection: Connection,
        note: fn(&str),
        begin: F,
    ) -> io::Result<Self>
    where
        F: AsyncFnOnce(Trunk, &mut JoinSet<()>) + Send + 'static,
    {
        let (end, ended) = oneshot::channel();
        let thread = std::thread::Builder::new()
            .name("nats-streams".to_owned())
            .spawn(move || {
                runtime.block_on(carry_all(connection, note, begin, ended));
                // A name that is being looked up is of no use any more.
                runtime.shutdown_background();
            })?;
        Ok(Self {
            end: Some(end),
            thread: Some(thread),
        })
    }
}

impl Drop for StreamThread {
    fn drop(&mut self) {
        self.end = None;
        if let Some(thread) = self.thread.take() {
            // Whatever ended it, there is nothing left to be carried.
            let _ = thread.join();
        }
    }
}

async fn carry_all<F>(
    connection: Connection,
    note: fn(&str),
    begin: F,
    ended: oneshot::Receiver<()>,
) where
    F: AsyncFnOnce(Trunk, &mut JoinSet<()>),
{
    let Connection {
        client,
        mut events,
        urls,
    } = connection;
    let mut streams = JoinSet::new();
    let lost = Arc::new(Notify::new());
    let watch = async {
        let mut outages = Outages::of(urls);
        while let Some(event) = events.recv().await {
            outages.report(&event, &note);
            if matches!(event, Event::Disconnected) {
                lost.notify_waiters();
            }
        }
        pending::<()>().await;
    };
    let begin = async {
        let trunk = Trunk {
            client: client.clone(),
            lost: Arc::clone(&lost),
        };
        begin(trunk, &mut streams).await;
        pending::<()>().await;
    };
    tokio::select! {
        // It is dropped, not sent.
        _ = ended => {}
        () = watch => {}
        () = begin => {}
    }
    let streams_end = async {
        while streams.join_next().await.is_some() {}
        client.flush().await
    };
    // What does not end by itself is broken off.
    let _ = timeout(ENDS_WITHIN, streams_end).await;
}

/// Whether one more stream may begin, those that have ended left out.
fn has_room(streams: &mut JoinSet<()>, most: usize) -> bool {
    while streams.try_join_next().is_some() {}
    streams.len() < most
}

fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
}

/// Subscribes to those who come, where nobody else does and they are received.
async fn alone_at(connection: &Connection, subjects: &Subjects) -> Result<Subscriber, Error> {
    let client = &connection.client;
    let urls = || connection.urls.clone();
    let not_received = || Error::NotReceived {
        urls: urls(),
        subject: subjects.open(),
    };
    let asked = client.request(subjects.open(), unique_name(client).into());
    if let Ok(Ok(_)) = timeout(RECEIVED_WITHIN, asked).await {
        return Err(Error::Taken { urls: urls() });
    }
    let subscriber = client.subscribe(subjects.open()).await;
    let mut subscriber = subscriber.map_err(|_| not_received())?;
    // Refusals come late and to nobody: what this end sends is received, or nothing is.
    let said = client.publish(subjects.open(), "".into()).await;
    said.map_err(|_| not_received())?;
    match timeout(RECEIVED_WITHIN, subscriber.next()).await {
        Ok(Some(_)) => Ok(subscriber),
        _ => Err(not_received()),
    }
}

/// Leads one that comes to the server at `to`.
async fn lead_on(trunk: Trunk, subjects: Subjects, open: Message, to: SocketAddr) {
    let (Some(reply), Some(stream)) = (open.reply, name(&open.payload)) else {
        return;
    };
    let client = &trunk.client;
    let Ok(from) = client.subscribe(subjects.inwards(stream)).await else {
        return;
    };
    let Ok(socket) = TcpStream::connect(to).await else {
        return;
    };
    // It speaks once it is answered, and by then this is listened to: a server takes what
    // one connection says in its order.
    if client.publish(reply, "".into()).await.is_ok() {
        carry(&trunk, socket, subjects.outwards(stream), from).await;
    }
}

/// A stream's name, as far as it is one.
fn name(bytes: &[u8]) -> Option<&str> {
    let name = std::str::from_utf8(bytes).ok()?;
    let is_word = !name.is_empty() && name.chars().all(|letter| letter.is_ascii_alphanumeric());
    (is_word && name.len() <= LONGEST_NAME).then_some(name)
}

/// Leads one that came to an entrance over NATS.
async fn come(trunk: Trunk, subjects: Subjects, socket: TcpStream) {
    let client = &trunk.client;
    let stream = unique_name(client);
    let Ok(from) = client.subscribe(subjects.outwards(&stream)).await else {
        return;
    };
    let asked = client.request(subjects.open(), stream.clone().into());
    if matches!(timeout(OPENS_WITHIN, asked).await, Ok(Ok(_))) {
        carry(&trunk, socket, subjects.inwards(&stream), from).await;
    }
}

/// Carries what a socket says to the subject `to`, and what comes from there to it, until
/// either ends.
async fn carry(trunk: &Trunk, socket: TcpStream, to: String, mut from: Subscriber) {
    let client = &trunk.client;
    let lost = trunk.lost.notified();
    // Small messages are what is carried, each as soon as it can be.
    let _ = socket.set_nodelay(true);
    let (mut reader, mut writer) = socket.into_split();
    let unreceived = client.new_inbox();
    let Ok(mut complaints) = client.subscribe(unreceived.clone()).await else {
        return;
    };
    let send = async {
        let mut numbered = Numbered::default();
        let mut buffer = vec![0; MOST_BYTES];
        loop {
            let piece = match timeout(PAUSE, reader.read(&mut buffer)).await {
                Ok(Ok(length @ 1..)) => numbered.piece(&buffer[..length]),
                Ok(_) => return,
                Err(_) => numbered.pause(),
            };
            let sent = client.publish_with_reply(to.clone(), unreceived.clone(), piece.into());
            if sent.await.is_err() {
                return;
            }
        }
    };
    // The server answers in place of an end that is gone.
    let complain = async {
        let is_of_nobody = |message: &Message| message.status == Some(StatusCode::NO_RESPONDERS);
        while complaints.next().await.is_some_and(|it| !is_of_nobody(&it)) {}
    };
    let receive = async {
        let mut ordered = Ordered::default();
        while let Some(message) = from.next().await {
            let Piece::Next(bytes) = ordered.read(&message.payload) else {
                return;
            };
            if writer.write_all(bytes).await.is_err() {
                return;
            }
        }
    };
    tokio::select! {
        () = send => {}
        () = receive => {}
        () = complain => {}
        () = lost => {}
    }
    // Who is gone learns nothing of it.
    let _ = client.publish(to, Numbered::END.into()).await;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_streams_name_is_a_word_that_no_subject_is_cut_by() {
        assert_eq!(name(b"aB3"), Some("aB3"));
        for wrong in ["", "a.b", "*", ">", "a b", "\u{e4}"] {
            assert_eq!(name(wrong.as_bytes()), None, "{wrong}");
        }
        assert_eq!(name(&[b'a'; 65]), None);
        assert_eq!(name(&[0xff]), None);
    }
}
