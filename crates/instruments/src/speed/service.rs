//! The remote end's part: a job is one receiving end, which shows what came.

use std::sync::Arc;
use std::time::Duration;

use lagometer_remote::{Accepted, Job, Refusal, Service, Session, Worker};
use lagometer_socket::Opening;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::datagrams::Terms;
use super::ends::{End, Run};
use super::gauge::{Gauge, Reading};
use super::lane::{LanePlan, LaneTransport};
use super::plan::{LARGEST_CHUNK, SMALLEST_CHUNK, Way};
use super::signal::Signal;
use super::{Ended, Failed};
use crate::clock::Clock;

/// The name by which the local end asks for it.
pub(super) const SERVICE: &str = "speed";

/// How long the local end may take to authenticate at the data socket.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What the local end asks for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Request {
    /// The lane, by the name of its preset or `tcp`.
    pub(super) lane: String,
    /// Every setting of it.
    pub(super) settings: Map<String, Value>,
    pub(super) chunk_bytes: usize,
    pub(super) seed: u64,
    pub(super) way: Way,
    /// The processor to run on, if not any.
    pub(super) processor: Option<usize>,
    /// Sleep rather than look: see [`Plan`](super::Plan). Not said to others than
    /// those of a guest.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub(super) sleeps: bool,
}

/// Receives what a local end sends in bulk, and compares every byte.
#[derive(Clone, Copy, Debug, Default)]
pub struct SpeedService;

impl Service for SpeedService {
    fn name(&self) -> &'static str {
        SERVICE
    }

    fn open(&self, request: &Value, session: &Session) -> Result<Accepted, Refusal> {
        let request: Request =
            serde_json::from_value(request.clone()).map_err(|bad| Refusal::new(bad.to_string()))?;
        let lane = LanePlan::resolve(&request.lane, &request.settings)
            .map_err(|bad| Refusal::new(bad.to_string()))?;
        if !(SMALLEST_CHUNK..=LARGEST_CHUNK).contains(&(request.chunk_bytes as u64)) {
            return Err(Refusal::new(format!(
                "messages of {} bytes: {SMALLEST_CHUNK} to {LARGEST_CHUNK} are served",
                request.chunk_bytes
            )));
        }
        let gauge = Arc::new(Gauge::default());
        let shown = Arc::clone(&gauge);
        let terms = Terms {
            chunk_bytes: request.chunk_bytes,
            seed: request.seed,
            every: None,
            duration: Duration::ZERO,
            header_bytes: lane.header_bytes(),
            sleeps: request.sleeps,
        };
        let receive = move |end: Result<End, Failed>, stop: &lagometer_remote::Stop| {
            end?.receive(&Run {
                terms: &terms,
                clock: Clock::start(),
                gauge: &shown,
                signal: &Signal::until(stop),
                processor: request.processor,
            })
        };
        let (port, worker) = match lane.lane_transport {
            LaneTransport::Tcp { .. } => {
                let data_listener = session.tcp()?;
                let port = data_listener.port();
                let worker = session.spawn("speed-remote", move |stop| {
                    let stream = data_listener.admit(TIMEOUT).map_err(|_| Failed::NoAnswer);
                    receive(stream.map(End::Stream), stop)
                })?;
                (port, worker)
            }
            LaneTransport::Preset(spec) => {
                let data_listener = session.udp()?;
                let port = data_listener.port();
                let worker = session.spawn("speed-remote", move |stop| {
                    let end = data_listener
                        .admit(TIMEOUT)
                        .map_err(|_| Failed::NoAnswer)
                        .and_then(|socket| {
                            let opening = Opening::of_server(&socket, request.seed, Time::ZERO)?;
                            End::preset(&spec, socket, opening, request.way.into())
                        });
                    receive(end, stop)
                })?;
                (port, worker)
            }
        };
        Ok(Accepted::new(
            json!({ "port": port }),
            SpeedJob { gauge, worker },
        ))
    }
}

/// A receiving end at work.
struct SpeedJob {
    gauge: Arc<Gauge>,
    worker: Worker<Result<Ended, Failed>>,
}

/// What a job says when it has ended.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub(super) struct Report {
    pub(super) reading: Reading,
    pub(super) ended: Ended,
    pub(super) failure: Option<String>,
}

impl Job for SpeedJob {
    fn ask(&mut self, _: &Value) -> Result<Value, Refusal> {
        to_value(&self.gauge.read())
    }

    fn finish(self: Box<Self>) -> Value {
        let ended = self.worker.finish().unwrap_or(Err(Failed::Panicked));
        let report = Report {
            reading: self.gauge.read(),
            failure: ended.as_ref().err().map(ToString::to_string),
            ended: ended.unwrap_or_default(),
        };
        to_value(&report).unwrap_or_default()
    }
}

fn to_value(figures: &impl Serialize) -> Result<Value, Refusal> {
    serde_json::to_value(figures).map_err(|why| Refusal::new(why.to_string()))
}
