//! One control connection: proofs first, then jobs until it ends.

use std::collections::BTreeMap;
use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use lagometer_units::Time;
use serde_json::Value;
use thiserror::Error;

use super::House;
use super::event::Event;
use crate::data::is_nothing_yet;
use crate::frame::{BadFrame, Opener, Sealer};
use crate::handshake::{Keys, ServerHandshake, ServerStep};
use crate::message::{FromClient, FromServer, JobNumber};
use crate::randomness::unforeseeable;
use crate::service::{Accepted, Job, Refusal};
use crate::session::{Session, SocketCount, Stop, Voice};

/// How long the local end may take to read what it is sent.
const READS_WITHIN: Duration = Duration::from_secs(5);

/// Why whoever came was not let in.
#[derive(Debug, Error)]
enum NotProved {
    /// It sent nothing before it left, as health checks do.
    #[error("it left without a word")]
    WithoutAWord,
    /// It left in the middle of the handshake.
    #[error("it left before it proved itself")]
    Left,
    /// It took too long.
    #[error("it did not prove itself in time")]
    TimedOut,
    /// As many are served as may be.
    #[error("there is no room for one more")]
    Busy,
    /// What it sent is no handshake of this protocol.
    #[error("it speaks another protocol")]
    UnknownProtocol,
    /// It is of another version of Lagometer's.
    #[error("it speaks version {0}")]
    OtherVersion(u16),
    /// Its proof was made with another secret.
    #[error("it has another secret")]
    OtherSecret,
    /// The connection failed.
    #[error(transparent)]
    Io(#[from] io::Error),
}

/// A connection and what the remote end holds for it.
pub(super) struct ControlConnection {
    house: Arc<House>,
    stream: Arc<TcpStream>,
    peer: SocketAddr,
    number: u64,
    is_pending: bool,
}

/// What a control connection holds once both ends have proved themselves.
struct Talk {
    keys: Box<Keys>,
    opener: Opener,
    voice: Voice,
    local: IpAddr,
    sockets: Arc<AtomicUsize>,
    jobs: BTreeMap<JobNumber, Running>,
}

/// A job under way. Dropped, it ends, and its sockets count no more.
struct Running {
    job: Option<Box<dyn Job>>,
    session: Session,
    service: String,
    began: Instant,
}

impl ControlConnection {
    pub(super) fn new(
        house: Arc<House>,
        stream: Arc<TcpStream>,
        peer: SocketAddr,
        number: u64,
    ) -> Self {
        Self {
            house,
            stream,
            peer,
            number,
            is_pending: true,
        }
    }

    /// Holds it to its end.
    pub(super) fn hold(mut self) {
        let (keys, rest) = match self.prove() {
            Ok(proved) => proved,
            Err(why) => {
                // A health check is not worth a line.
                if !matches!(why, NotProved::WithoutAWord) {
                    self.house.report(&Event::TurnedAway {
                        peer: self.peer,
                        why: &why.to_string(),
                    });
                }
                return;
            }
        };
        self.is_pending = false;
        self.house.is_pending_no_more(self.number);
        self.house.report(&Event::Joined {
            session: self.number,
            peer: self.peer,
        });
        let why = self.talk(keys, rest);
        self.house.leave_session();
        self.house.report(&Event::Left {
            session: self.number,
            peer: self.peer,
            why: &why,
        });
    }

    /// Exchanges the first words; the keys, and what was said after them.
    fn prove(&self) -> Result<(Box<Keys>, Vec<u8>), NotProved> {
        let deadline = Instant::now() + self.house.settings.limits.proof_within;
        self.stream
            .set_nonblocking(false)
            .and_then(|()| self.stream.set_nodelay(true))
            .and_then(|()| self.stream.set_write_timeout(Some(READS_WITHIN)))?;
        let limits = &self.house.settings.limits;
        let has_room = self.house.sessions.load(Ordering::Relaxed) < limits.sessions;
        let mut handshake =
            ServerHandshake::new(self.house.settings.secret.key(), unforeseeable(), has_room);
        let mut buffer = [0; 256];
        let mut has_spoken = false;
        loop {
            let left = deadline.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(NotProved::TimedOut);
            }
            let read = self
                .stream
                .set_read_timeout(Some(left))
                .and_then(|()| (&*self.stream).read(&mut buffer));
            let step = match read {
                Ok(0) if has_spoken => return Err(NotProved::Left),
                Ok(0) => return Err(NotProved::WithoutAWord),
                Ok(length) => {
                    has_spoken = true;
                    handshake.handle(&buffer[..length])
                }
                Err(error) if is_nothing_yet(&error) => continue,
                Err(error) => return Err(error.into()),
            };
            // Counted before it is reported, so that whoever comes after it is refused in
            // turn; many may have come at once, each for the last place.
            let joins = matches!(step, ServerStep::Done(_));
            if joins && !self.house.take_session() {
                return Err(NotProved::Busy);
            }
            let output = handshake.output();
            if let Err(error) = (&*self.stream).write_all(&output) {
                if joins {
                    self.house.leave_session();
                }
                return Err(error.into());
            }
            match step {
                ServerStep::Wait => {}
                ServerStep::Done(keys) => return Ok((keys, handshake.into_rest())),
                ServerStep::UnknownProtocol => return Err(NotProved::UnknownProtocol),
                ServerStep::OtherVersion(version) => {
                    return Err(NotProved::OtherVersion(version));
                }
                ServerStep::OtherSecret => return Err(NotProved::OtherSecret),
                ServerStep::Busy => return Err(NotProved::Busy),
            }
        }
    }

    /// Does what it is asked until the control connection ends, and says how it
    /// ended.
    fn talk(&self, keys: Box<Keys>, rest: Vec<u8>) -> String {
        let mut talk = Talk {
            opener: Opener::new(keys.up.clone(), rest),
            voice: voice(&self.stream, Sealer::new(keys.down.clone())),
            keys,
            local: self
                .stream
                .local_addr()
                .map_or(IpAddr::V4(Ipv4Addr::UNSPECIFIED), |address| {
                    address.ip().to_canonical()
                }),
            sockets: Arc::default(),
            jobs: BTreeMap::new(),
        };
        let silence = self.house.settings.limits.silence;
        if let Err(error) = self.stream.set_read_timeout(Some(silence)) {
            return error.to_string();
        }
        let mut buffer = [0; 16 << 10];
        let mut received = self.house.clock.now();
        let why = loop {
            if let Err(bad) = self.handle_all(&mut talk, received) {
                break bad.to_string();
            }
            match (&*self.stream).read(&mut buffer) {
                Ok(0) if self.house.stopping.load(Ordering::SeqCst) => {
                    break "the remote end stops".to_owned();
                }
                Ok(0) => break "it left".to_owned(),
                Ok(length) => {
                    received = self.house.clock.now();
                    talk.opener.handle(&buffer[..length]);
                }
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) if is_nothing_yet(&error) => {
                    break format!("it was silent for {} s", silence.as_secs());
                }
                Err(error) => break error.to_string(),
            }
        };
        (talk.voice)(&FromServer::Leaving { why: why.clone() });
        let _ = self.stream.shutdown(Shutdown::Both);
        // All are asked to end before any is waited for.
        for running in talk.jobs.values() {
            running.session.stop.raise();
        }
        for (_, running) in std::mem::take(&mut talk.jobs) {
            self.closed(&running);
        }
        why
    }

    /// Handles every message that is here, all of which came at `received`.
    fn handle_all(&self, talk: &mut Talk, received: Time) -> Result<(), BadFrame> {
        while let Some(message) = talk.opener.next()? {
            self.handle(talk, message, received);
        }
        Ok(())
    }

    fn handle(&self, talk: &mut Talk, message: FromClient, received: Time) {
        match message {
            FromClient::Ping { sent } => (talk.voice)(&FromServer::Pong {
                sent,
                received: received.as_nanos(),
                answered: self.house.clock.now().as_nanos(),
            }),
            FromClient::Open {
                job,
                service,
                request,
            } => {
                let answer = match self.open(talk, job, &service, &request) {
                    Ok(reply) => FromServer::Opened { job, reply },
                    Err(refusal) => self.refused(job, &service, &refusal),
                };
                (talk.voice)(&answer);
            }
            FromClient::Ask { job, body } => {
                let answer = match talk.jobs.get_mut(&job) {
                    Some(Running {
                        job: Some(running), ..
                    }) => running.ask(&body),
                    _ => Err(no_such_job()),
                };
                (talk.voice)(&match answer {
                    Ok(body) => FromServer::Answer { job, body },
                    Err(refusal) => FromServer::Refused {
                        job,
                        why: refusal.to_string(),
                    },
                });
            }
            FromClient::Finish { job } => {
                let answer = match talk.jobs.remove(&job) {
                    Some(mut running) => {
                        let found = running.job.take().map_or(Value::Null, Job::finish);
                        self.closed(&running);
                        FromServer::Finished { job, found }
                    }
                    None => FromServer::Refused {
                        job,
                        why: no_such_job().to_string(),
                    },
                };
                (talk.voice)(&answer);
            }
            FromClient::Abandon { job } => {
                if let Some(running) = talk.jobs.remove(&job) {
                    running.session.stop.raise();
                    self.closed(&running);
                }
            }
        }
    }

    fn open(
        &self,
        talk: &mut Talk,
        job: JobNumber,
        service: &str,
        request: &Value,
    ) -> Result<Value, Refusal> {
        let limits = &self.house.settings.limits;
        if talk.jobs.contains_key(&job) {
            return Err(Refusal::new("there is a job of that number"));
        }
        if talk.jobs.len() >= limits.jobs_per_session {
            return Err(Refusal::new(format!(
                "no more than {} jobs are done at once for one local end",
                limits.jobs_per_session
            )));
        }
        let found = self.house.settings.registry.find(service)?;
        let mut running = Running {
            job: None,
            session: Session {
                job,
                peer: self.peer,
                local: talk.local,
                ports: self.house.settings.data_ports.clone(),
                clock: self.house.clock,
                data: talk.keys.data.clone(),
                voice: Arc::clone(&talk.voice),
                stop: Stop::new(),
                sockets: SocketCount::new([
                    (Arc::clone(&self.house.sockets), limits.sockets),
                    (Arc::clone(&talk.sockets), limits.sockets_per_session),
                ]),
            },
            service: service.to_owned(),
            began: Instant::now(),
        };
        let Accepted { reply, job: begun } = found.open(request, &running.session)?;
        running.job = Some(begun);
        talk.jobs.insert(job, running);
        self.house.report(&Event::Opened {
            session: self.number,
            service,
        });
        Ok(reply)
    }

    fn refused(&self, job: JobNumber, service: &str, refusal: &Refusal) -> FromServer {
        let why = refusal.to_string();
        self.house.report(&Event::Refused {
            session: self.number,
            service,
            why: &why,
        });
        FromServer::Refused { job, why }
    }

    fn closed(&self, running: &Running) {
        self.house.report(&Event::Closed {
            session: self.number,
            service: &running.service,
            after: running.began.elapsed(),
        });
    }
}

impl Drop for ControlConnection {
    fn drop(&mut self) {
        if self.is_pending {
            self.house.is_pending_no_more(self.number);
        }
        self.house.connections().remove(&self.number);
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.session.stop.raise();
        self.job = None;
        self.session.sockets.release();
    }
}

/// Says things over the connection, whole and in order, from any thread. A
/// local end that does not read what it is sent is cut off.
fn voice(stream: &Arc<TcpStream>, sealer: Sealer) -> Voice {
    let stream = Arc::clone(stream);
    let sealer = Mutex::new(sealer);
    Arc::new(move |message| {
        let mut sealer = sealer.lock().unwrap_or_else(PoisonError::into_inner);
        let frame = sealer.seal(message).or_else(|bad| {
            // What a job found may be too large to say.
            let job = match message {
                FromServer::Opened { job, .. }
                | FromServer::Answer { job, .. }
                | FromServer::Finished { job, .. } => *job,
                _ => return Err(bad),
            };
            let why = bad.to_string();
            sealer.seal(&FromServer::Refused { job, why })
        });
        let Ok(frame) = frame else { return };
        if (&*stream).write_all(&frame).is_err() {
            let _ = stream.shutdown(Shutdown::Both);
        }
    })
}

fn no_such_job() -> Refusal {
    Refusal::new("there is no such job any more")
}
