//! A job at the remote end, as the local end holds it.

use std::net::{SocketAddr, TcpStream, UdpSocket};
use std::sync::mpsc::{Receiver, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;

use super::Wire;
use super::listener::Mailbox;
use crate::data::{hello_tcp, hello_udp};
use crate::error::{Doing, Error};
use crate::message::{FromClient, FromServer, JobNumber};
use crate::session::listener_key;
use crate::tag::Key;

/// How long getting into a data listener may take.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Events that are kept until somebody fetches them.
const MOST_EVENTS: usize = 4096;

/// A job under way at the remote end. Dropped, it is abandoned there.
#[derive(Debug)]
pub struct RemoteJob {
    wire: Arc<Wire>,
    job: JobNumber,
    service: String,
    reply: Value,
    answers: Mutex<Receiver<FromServer>>,
    events: Mutex<Receiver<Value>>,
}

impl RemoteJob {
    pub(super) fn open(wire: &Arc<Wire>, service: &str, request: &Value) -> Result<Self, Error> {
        let (answers_to, answers) = sync_channel(4);
        let (events_to, events) = sync_channel(MOST_EVENTS);
        let mut job = Self {
            wire: Arc::clone(wire),
            job: wire.post.enrol(Mailbox {
                answers: answers_to,
                events: events_to,
            }),
            service: service.to_owned(),
            reply: Value::Null,
            answers: Mutex::new(answers),
            events: Mutex::new(events),
        };
        let opened = job.converse(&FromClient::Open {
            job: job.job,
            service: service.to_owned(),
            request: request.clone(),
        })?;
        job.reply = opened;
        Ok(job)
    }

    /// What the remote end said when it began: ports, for one.
    #[must_use]
    pub const fn reply(&self) -> &Value {
        &self.reply
    }

    /// A port out of the [`reply`](Self::reply).
    ///
    /// # Errors
    ///
    /// [`Error::Gone`] if the reply has no port of that name: the remote end is
    /// not what it seems.
    pub fn port(&self, name: &str) -> Result<u16, Error> {
        self.reply[name]
            .as_u64()
            .and_then(|port| u16::try_from(port).ok())
            .ok_or_else(|| Error::Gone {
                why: format!("its answer for `{}` has no port `{name}`", self.service),
            })
    }

    /// Asks the job something while it is under way.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] or [`Error::Gone`].
    pub fn ask(&self, body: &Value) -> Result<Value, Error> {
        self.converse(&FromClient::Ask {
            job: self.job,
            body: body.clone(),
        })
    }

    /// Ends the job and returns what it found.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if what it found is too much to report, or
    /// [`Error::Gone`].
    pub fn finish(self) -> Result<Value, Error> {
        self.converse(&FromClient::Finish { job: self.job })
    }

    /// The next thing the job says of its own accord, if it comes within
    /// `timeout`.
    #[must_use]
    pub fn next_event(&self, timeout: Duration) -> Option<Value> {
        let events = self.events.lock().unwrap_or_else(PoisonError::into_inner);
        events.recv_timeout(timeout).ok()
    }

    /// A UDP socket that the job's data listener at `port` has let in. It is connected
    /// to it.
    ///
    /// # Errors
    ///
    /// [`Error::NotAdmitted`] where no way leads to that port.
    pub fn udp(&self, port: u16) -> Result<UdpSocket, Error> {
        let data_listener = self.data_listener(port);
        let any = match data_listener {
            SocketAddr::V4(_) => SocketAddr::from(([0; 4], 0)),
            SocketAddr::V6(_) => SocketAddr::from(([0; 16], 0)),
        };
        let socket = UdpSocket::bind(any).doing("binding a socket")?;
        self.admit_udp(&socket, port)?;
        Ok(socket)
    }

    /// Connects `socket`, which is bound already, to the job's data listener at `port`
    /// and gets it let in. It must block; its read timeout is none afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::NotAdmitted`] where no way leads to that port.
    pub fn admit_udp(&self, socket: &UdpSocket, port: u16) -> Result<(), Error> {
        let is_admitted = || self.wire.post.is_admitted(self.job, port);
        socket
            .connect(self.data_listener(port))
            .and_then(|()| {
                hello_udp(
                    socket,
                    self.key(port),
                    self.wire.clock,
                    TIMEOUT,
                    is_admitted,
                )
            })
            .map_err(|error| self.not_admitted(port, &error))
    }

    /// A TCP connection that the job's data listener at `port` has let in.
    ///
    /// # Errors
    ///
    /// [`Error::NotAdmitted`] where no way leads to that port.
    pub fn tcp(&self, port: u16) -> Result<TcpStream, Error> {
        let stream = TcpStream::connect_timeout(&self.data_listener(port), TIMEOUT)
            .map_err(|error| self.not_admitted(port, &error))?;
        self.admit_tcp(&stream, port)?;
        Ok(stream)
    }

    /// Gets `stream`, which is connected to the job's data listener at `port`, let in.
    /// It must block; its read timeout is none afterwards.
    ///
    /// # Errors
    ///
    /// [`Error::NotAdmitted`] where it is not.
    pub fn admit_tcp(&self, stream: &TcpStream, port: u16) -> Result<(), Error> {
        hello_tcp(stream, self.key(port), self.wire.clock, TIMEOUT)
            .map_err(|error| self.not_admitted(port, &error))
    }

    /// The address of the job's data listener at `port`.
    #[must_use]
    pub fn data_listener(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.wire.host, port)
    }

    fn key(&self, port: u16) -> Key {
        listener_key(&self.wire.data, self.job, port)
    }

    fn not_admitted(&self, port: u16, error: &std::io::Error) -> Error {
        match self.wire.post.gone() {
            Some(why) => Error::Gone { why },
            None => Error::NotAdmitted {
                port,
                why: error.to_string(),
            },
        }
    }

    /// Says something that is answered, and waits for the answer as long as
    /// the control connection lasts.
    fn converse(&self, message: &FromClient) -> Result<Value, Error> {
        let answers = self.answers.lock().unwrap_or_else(PoisonError::into_inner);
        self.wire.say(message)?;
        match answers.recv() {
            Ok(
                FromServer::Opened { reply: body, .. }
                | FromServer::Answer { body, .. }
                | FromServer::Finished { found: body, .. },
            ) => Ok(body),
            Ok(FromServer::Refused { why, .. }) => Err(Error::Refused {
                service: self.service.clone(),
                why,
            }),
            Ok(_) | Err(_) => Err(Error::Gone {
                why: self
                    .wire
                    .post
                    .gone()
                    .unwrap_or_else(|| "it closed the conversation".to_owned()),
            }),
        }
    }
}

impl Drop for RemoteJob {
    fn drop(&mut self) {
        self.wire.post.strike(self.job);
        // Where the control connection is over, so is the job.
        let _ = self.wire.say(&FromClient::Abandon { job: self.job });
    }
}
