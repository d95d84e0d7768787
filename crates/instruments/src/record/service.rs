//! The remote end's part of a recording.

use std::io;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use lagometer_remote::{Accepted, Job, NobodyCame, Refusal, Service, Session, Worker, understand};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use thiserror::Error;

use crate::record::fates::Arrival;
use crate::record::player::{Played, Score};
use crate::record::probe::{LEAST_BYTES, TRAIN_BYTES};
use crate::record::rate::TrainArrival;
use lagometer_units::Time;

/// How long the remote end waits for the local end's socket.
const TIMEOUT: Duration = Duration::from_secs(10);

/// The longest that is recorded, and the most probes: bounds of memory.
pub(crate) const LONGEST: Duration = Duration::from_hours(24);
pub(crate) const MOST_PROBES: usize = 4_000_000;
/// The quickest cadence.
pub(crate) const QUICKEST: Duration = Duration::from_micros(200);

/// The most entries of a list sent in one answer; fewer are its end.
pub(crate) const CHUNK: usize = 50_000;

/// What the local end asks for.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Request {
    pub(crate) every_us: u64,
    pub(crate) bytes: usize,
    pub(crate) lasts_ms: u64,
    pub(crate) trains: bool,
}

/// What the local end asks, meanwhile and afterwards: the lists as far as they
/// have grown, piece by piece. Instants are in nanoseconds.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Question {
    /// Nothing but to end the recording; the answer is `null`.
    End,
    /// When probes left, from the one with this number.
    Sent(usize),
    /// The probes that came, by number and instant, from this one on.
    Received(usize),
    /// The packets of trains that came, from this one on.
    Trains(usize),
}

impl Request {
    /// What is played.
    pub(crate) fn score(&self) -> Result<Score, Refusal> {
        let score = Score {
            every: Duration::from_micros(self.every_us),
            bytes: self.bytes,
            lasts: Duration::from_millis(self.lasts_ms),
            trains: self.trains,
        };
        if score.every < QUICKEST {
            return Err(Refusal::new(format!(
                "probes are at least {} µs apart",
                QUICKEST.as_micros()
            )));
        }
        if !(LEAST_BYTES..=TRAIN_BYTES).contains(&score.bytes) {
            return Err(Refusal::new(format!(
                "a probe has {LEAST_BYTES} to {TRAIN_BYTES} B"
            )));
        }
        if score.lasts.is_zero() || score.lasts > LONGEST || score.probes() > MOST_PROBES {
            return Err(Refusal::new(format!(
                "a recording lasts up to {} h and has up to {MOST_PROBES} probes",
                LONGEST.as_secs() / 3600
            )));
        }
        Ok(score)
    }
}

/// The service `record`.
#[derive(Clone, Copy, Debug, Default)]
pub struct RecordService;

/// Why the remote end's part of a recording is not whole.
#[derive(Debug, Error)]
enum NotPlayed {
    /// The local end's socket did not come.
    #[error(transparent)]
    NobodyCame(#[from] NobodyCame),
    /// The socket failed.
    #[error(transparent)]
    Socket(#[from] io::Error),
    /// Its thread panicked.
    #[error("it broke")]
    Broke,
}

struct RecordJob {
    worker: Option<Worker<Result<(), NotPlayed>>>,
    played: Arc<Mutex<Played>>,
}

impl Service for RecordService {
    fn name(&self) -> &'static str {
        "record"
    }

    fn open(&self, request: &Value, session: &Session) -> Result<Accepted, Refusal> {
        let request: Request = understand("the request", request)?;
        let score = request.score()?;
        let data_listener = session.udp()?;
        let port = data_listener.port();
        let clock = session.clock();
        let played = Arc::new(Mutex::new(Played::default()));
        let noted = Arc::clone(&played);
        let worker = session.spawn("record", move |stop| {
            let socket = data_listener.admit(TIMEOUT)?;
            score.play(&socket, clock, &noted, |_| stop.is_raised())?;
            Ok(())
        })?;
        Ok(Accepted::new(
            json!({ "port": port }),
            RecordJob {
                worker: Some(worker),
                played,
            },
        ))
    }
}

impl Job for RecordJob {
    fn ask(&mut self, body: &Value) -> Result<Value, Refusal> {
        let question: Question = understand("the question", body)?;
        if let Question::End = question {
            if let Some(worker) = self.worker.take() {
                worker
                    .finish()
                    .unwrap_or(Err(NotPlayed::Broke))
                    .map_err(|why| Refusal::new(why.to_string()))?;
            }
            return Ok(Value::Null);
        }
        let played = Played::within(&self.played);
        Ok(match question {
            Question::End => Value::Null,
            Question::Sent(from) => piece(&played.sent, from, |at| json!(at.as_nanos())),
            Question::Received(from) => piece(&played.received, from, |received| {
                json!([received.number, received.at.as_nanos()])
            }),
            Question::Trains(from) => piece(&played.trains, from, |packet| {
                json!([packet.train, packet.place, packet.at.as_nanos()])
            }),
        })
    }
}

/// A piece of a list.
fn piece<T>(list: &[T], from: usize, write: impl Fn(&T) -> Value) -> Value {
    let rest = list.get(from..).unwrap_or_default();
    rest.iter().take(CHUNK).map(write).collect()
}

/// Reads an answer's list of instants.
pub(crate) fn read_sent(answer: Value) -> Option<Vec<Time>> {
    let nanos: Vec<u64> = serde_json::from_value(answer).ok()?;
    Some(nanos.into_iter().map(Time::from_nanos).collect())
}

/// Reads an answer's list of arrivals.
pub(crate) fn read_received(answer: Value) -> Option<Vec<Arrival>> {
    let received: Vec<(u32, u64)> = serde_json::from_value(answer).ok()?;
    let arrival = |(number, at)| Arrival {
        number,
        at: Time::from_nanos(at),
    };
    Some(received.into_iter().map(arrival).collect())
}

/// Reads an answer's list of train packets.
pub(crate) fn read_trains(answer: Value) -> Option<Vec<TrainArrival>> {
    let packets: Vec<(u32, u8, u64)> = serde_json::from_value(answer).ok()?;
    let arrival = |(train, place, at)| TrainArrival {
        train,
        place,
        at: Time::from_nanos(at),
    };
    Some(packets.into_iter().map(arrival).collect())
}
