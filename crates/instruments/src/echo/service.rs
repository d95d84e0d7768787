//! The remote end's part: a job is one socket that sends back what comes.

use std::net::TcpStream;
use std::time::Duration;

use lagometer_remote::{Accepted, Job, Refusal, Service, Session, Stop, Worker};
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

use super::Transport;
use super::remote::send_back;
use crate::payload::LARGEST;
use crate::placement::pin_this_thread;
use crate::wire::{Datagrams, Messages, Unblock, Waiting};

/// The name by which the local end asks for it.
pub const SERVICE: &str = "echo";

/// How long the local end may take to authenticate at the data socket.
const TIMEOUT: Duration = Duration::from_secs(10);

/// What the local end asks for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Request {
    /// How messages travel.
    pub transport: Transport,
    /// Bytes of a message.
    pub size: usize,
    /// How the remote end waits for one.
    pub waiting: Waiting,
    /// The processor it runs on; any where there is none.
    pub cpu: Option<u32>,
}

/// Sends back what comes.
#[derive(Clone, Copy, Debug, Default)]
pub struct EchoService;

impl Service for EchoService {
    fn name(&self) -> &'static str {
        SERVICE
    }

    fn open(&self, request: &Value, session: &Session) -> Result<Accepted, Refusal> {
        let request: Request =
            serde_json::from_value(request.clone()).map_err(|bad| Refusal::new(bad.to_string()))?;
        if !(1..=LARGEST).contains(&request.size) {
            return Err(Refusal::new(format!(
                "messages of {} bytes: 1 to {LARGEST} are served",
                request.size
            )));
        }
        let unblock = Unblock::default();
        let ending = unblock.clone();
        let (port, worker) = match request.transport {
            Transport::Udp => {
                let data_listener = session.udp()?;
                let port = data_listener.port();
                let worker = session.spawn("echo-remote", move |stop| {
                    pin(request.cpu);
                    let Ok(socket) = data_listener.admit(TIMEOUT) else {
                        return;
                    };
                    if unblock.udp(&socket).is_ok()
                        && let Ok(mut wire) = Datagrams::new(socket, request.waiting)
                    {
                        serve(&mut wire, stop);
                    }
                })?;
                (port, worker)
            }
            Transport::Tcp => {
                let data_listener = session.tcp()?;
                let port = data_listener.port();
                let worker = session.spawn("echo-remote", move |stop| {
                    pin(request.cpu);
                    let Ok(stream) = data_listener.admit(TIMEOUT) else {
                        return;
                    };
                    if unblock.tcp(&stream).is_ok()
                        && let Ok(mut wire) = messages(stream, &request)
                    {
                        serve(&mut wire, stop);
                    }
                })?;
                (port, worker)
            }
        };
        let job = EchoJob {
            _ending: Ending {
                unblock: ending,
                stop: session.stop().clone(),
            },
            _worker: worker,
        };
        Ok(Accepted::new(json!({ "port": port }), job))
    }
}

fn messages(stream: TcpStream, request: &Request) -> std::io::Result<Messages> {
    Messages::new(stream, request.size, request.waiting)
}

/// Where a processor is not to be had the remote end runs anywhere; the local end
/// sees what that gives.
fn pin(cpu: Option<u32>) {
    let _ = pin_this_thread(cpu);
}

fn serve(wire: &mut impl crate::wire::Wire, stop: &Stop) {
    // A local end that goes away ends the job soon after.
    let _ = send_back(wire, || stop.is_raised());
}

/// Dropped from the first field to the last: the wait ends, then the thread.
struct EchoJob {
    _ending: Ending,
    _worker: Worker<()>,
}

impl Job for EchoJob {}

/// Ends the waiting of a job's thread when the job ends.
pub(crate) struct Ending {
    pub(crate) unblock: Unblock,
    pub(crate) stop: Stop,
}

impl Drop for Ending {
    fn drop(&mut self) {
        self.stop.raise();
        self.unblock.now();
    }
}
