//! The remote end's part of a bandwidth test: a job is one socket that takes what
//! comes and reports in the end what that was.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use lagometer_remote::{Accepted, Job, Refusal, Service, Session, Worker};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::receive;
use super::receive_tracker::Found;
use crate::echo::{Ending, Transport};
use crate::payload::{LARGEST, Payload};
use crate::placement::pin_this_thread;
use crate::wire::Unblock;

/// The name by which the local end asks for it.
pub const SERVICE: &str = "sink";

/// How long the local end may take to authenticate at the data socket.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Where nothing has come for so long, nothing more is on its way.
const QUIET: Duration = Duration::from_millis(60);

/// How long the end of what is on its way is waited for.
const DRAIN: Duration = Duration::from_secs(2);

/// The most messages whose patterns may differ.
const MOST_ROTATION: usize = 1 << 18;

/// What the local end asks for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// How messages travel.
    pub transport: Transport,
    /// Bytes of a message.
    pub size: usize,
    /// The key of the run's payload.
    pub key: u64,
    /// Messages whose patterns differ.
    pub rotation: usize,
    /// Take many datagrams for each system call.
    pub batched: bool,
    /// The processor it runs on; any where there is none.
    pub cpu: Option<u32>,
}

/// Takes what comes.
#[derive(Clone, Copy, Debug, Default)]
pub struct SinkService;

impl Service for SinkService {
    fn name(&self) -> &'static str {
        SERVICE
    }

    fn open(&self, request: &Value, session: &Session) -> Result<Accepted, Refusal> {
        let request: Request =
            serde_json::from_value(request.clone()).map_err(|bad| Refusal::new(bad.to_string()))?;
        if !(1..=LARGEST).contains(&request.size)
            || !(1..=MOST_ROTATION).contains(&request.rotation)
        {
            return Err(Refusal::new(format!(
                "messages of {} bytes, {} in rotation: 1 to {LARGEST} and 1 to {MOST_ROTATION} \
                 are served",
                request.size, request.rotation
            )));
        }
        let unblock = Unblock::default();
        let arrivals = Arc::new(AtomicU64::new(0));
        let (port, worker) = match request.transport {
            Transport::Udp => udp(request, session, unblock.clone(), Arc::clone(&arrivals))?,
            Transport::Tcp => tcp(request, session, unblock.clone())?,
        };
        let job = SinkJob {
            ending: Ending {
                unblock,
                stop: session.stop().clone(),
            },
            worker,
            arrivals,
        };
        Ok(Accepted::new(json!({ "port": port }), job))
    }
}

type Started = (u16, Worker<Option<Found>>);

fn udp(
    request: Request,
    session: &Session,
    unblock: Unblock,
    arrivals: Arc<AtomicU64>,
) -> Result<Started, Refusal> {
    let data_listener = session.udp()?;
    let port = data_listener.port();
    let worker = session.spawn("sink-remote", move |stop| {
        // Where a processor is not to be had it runs anywhere.
        let _ = pin_this_thread(request.cpu);
        let payload = Payload::with_rotation(request.key, request.size, request.rotation);
        let socket = data_listener.admit(TIMEOUT).ok()?;
        unblock.udp(&socket).ok()?;
        if request.batched {
            receive::batches(socket, payload, stop, &arrivals).ok()
        } else {
            receive::datagrams(&socket, payload, stop, &arrivals).ok()
        }
    })?;
    Ok((port, worker))
}

fn tcp(request: Request, session: &Session, unblock: Unblock) -> Result<Started, Refusal> {
    let data_listener = session.tcp()?;
    let port = data_listener.port();
    let worker = session.spawn("sink-remote", move |_| {
        let _ = pin_this_thread(request.cpu);
        let payload = Payload::with_rotation(request.key, request.size, request.rotation);
        let stream = data_listener.admit(TIMEOUT).ok()?;
        unblock.tcp(&stream).ok()?;
        let found = receive::stream(&stream, payload);
        // Notifies the local end, which waits for it, that all has been read.
        unblock.now();
        found.ok()
    })?;
    Ok((port, worker))
}

struct SinkJob {
    ending: Ending,
    worker: Worker<Option<Found>>,
    arrivals: Arc<AtomicU64>,
}

impl Job for SinkJob {
    /// Takes what is still on its way: to a stream's end, or until it is quiet.
    fn finish(self: Box<Self>) -> Value {
        let began = Instant::now();
        let mut seen = (self.arrivals.load(Ordering::Relaxed), began);
        while !self.worker.is_over() && began.elapsed() < DRAIN {
            thread::sleep(Duration::from_millis(5));
            let arrivals = self.arrivals.load(Ordering::Relaxed);
            if arrivals != seen.0 {
                seen = (arrivals, Instant::now());
            } else if arrivals > 0 && seen.1.elapsed() >= QUIET {
                break;
            }
        }
        drop(self.ending);
        let found = self.worker.finish().flatten().unwrap_or_default();
        json!(found)
    }
}
