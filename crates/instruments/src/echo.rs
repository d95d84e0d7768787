//! `echo`: how many messages a path carries there and back each second, and
//! how long each takes.
//!
//! The local end keeps one message on its way (or several), the remote end sends
//! back what comes. Every echo is checked byte by byte before it counts.
//! [`measure`] finds a placement for both ends first, where none is asked for,
//! because that decides more than anything else.

pub mod flights;
pub mod local;
mod remote;
mod service;
pub mod stats;

use std::io;
use std::time::Duration;

use lagometer_remote::{Remote, RemoteJob};
use lagometer_results::{Echo, PlacementTrial, Quantiles};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::error::Error;
use crate::payload::{LARGEST, Payload, fresh_key};
use crate::placement::{Pin, Spot, usable_cpus};
use crate::wire::{Datagrams, Messages, Unblock, Waiting};
use local::{Ended, Outcome, Plan};

pub use remote::send_back;
pub(crate) use service::Ending;
pub use service::{EchoService, Request, SERVICE};

/// How messages travel.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Transport {
    /// As datagrams.
    #[default]
    Udp,
    /// On a stream, each sent at once.
    Tcp,
}

impl Transport {
    /// As documents name it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Udp => "udp",
            Self::Tcp => "tcp",
        }
    }

    /// The largest message in bytes: what a datagram holds over IPv4, or what
    /// is reasonable.
    #[must_use]
    pub const fn largest(self) -> usize {
        match self {
            Self::Udp => lagometer_socket::udp::LONGEST_DATAGRAM,
            Self::Tcp => LARGEST,
        }
    }
}

/// What to measure.
#[derive(Clone, Copy, Debug)]
pub struct Settings {
    /// How messages travel.
    pub transport: Transport,
    /// Bytes of a message, 1 to [`Transport::largest`].
    pub size: usize,
    /// Messages on their way at once, 1 to [`MOST_OUTSTANDING`].
    pub outstanding: usize,
    /// How long to send, 1 ms to a day.
    pub span: Duration,
    /// Ask for messages again and again instead of sleeping.
    pub spin: bool,
    /// Where both ends run.
    pub pin: Pin,
    /// How long a message is waited for before it counts as lost, 1 ms to a
    /// minute.
    pub timeout: Duration,
}

/// The most messages that may be on their way at once.
pub const MOST_OUTSTANDING: usize = 65_536;

/// Bytes that may be on their way on a stream: more than one message only as
/// far as both ends' buffers hold them, or both might wait for the other to
/// read.
const MOST_STREAM_BYTES: usize = 64 << 10;

/// How long each placement is tried.
const TRIAL: Duration = Duration::from_millis(150);

/// How long nothing may come before the remote end counts as gone, at least.
const SILENCE: Duration = Duration::from_secs(5);

/// What is reported while it measures.
#[derive(Clone, Debug)]
pub enum Progress {
    /// A placement was tried.
    Tried(PlacementTrial),
    /// The measuring has begun at this placement.
    Chosen(&'static str),
    /// The measuring has lasted so long, and so many echoes have come.
    Echoed(Duration, u64),
}

impl Settings {
    /// Whether all this can be measured.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`], which says what to ask for instead.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::Settings(why));
        let largest = self.transport.largest();
        if !(1..=largest).contains(&self.size) {
            return refuse(format!(
                "--size {}: a {} message has 1 to {largest} bytes",
                self.size,
                self.transport.name()
            ));
        }
        if self.span < Duration::from_millis(1) || self.span > Duration::from_hours(24) {
            return refuse("--for: measure for 1 ms to 24 h, as in `--for 10s`".to_owned());
        }
        if self.timeout < Duration::from_millis(1) || self.timeout > Duration::from_mins(1) {
            return refuse("--timeout: wait 1 ms to 60 s, as in `--timeout 1s`".to_owned());
        }
        let most_numbers =
            (Payload::new(0, self.size).numbers() / 2 - 1).min(MOST_OUTSTANDING as u64) as usize;
        let most = match self.transport {
            Transport::Udp => most_numbers,
            Transport::Tcp => most_numbers.min((MOST_STREAM_BYTES / self.size).max(1)),
        };
        if !(1..=most).contains(&self.outstanding) {
            return refuse(format!(
                "--outstanding {}: with {} messages of {} bytes 1 to {most} can be on their way",
                self.outstanding,
                self.transport.name(),
                self.size
            ));
        }
        Ok(())
    }

    const fn waiting(&self, spot: Spot) -> Waiting {
        match (self.spin, spot.local, spot.remote) {
            (false, ..) => Waiting::Asleep,
            (true, Some(local), Some(remote)) if local == remote => Waiting::Yielding,
            (true, ..) => Waiting::Spinning,
        }
    }
}

/// Measures the echo rate to `remote`. `progress` returns whether to go on.
///
/// # Errors
///
/// [`Error`]: the settings cannot be, the remote end is gone or never answered,
/// or the system lacks something. Where the remote end goes away while messages
/// are echoed, the result says so in its second part and is no error.
pub fn measure(
    remote: &Remote,
    settings: &Settings,
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<(Echo, Ended), Error> {
    settings.check()?;
    let spots = settings.pin.spots(&usable_cpus(), remote.is_own())?;
    let (spot, tried) = choose(remote, settings, &spots, progress)?;
    progress(Progress::Chosen(spot.name(remote.is_own())));
    let outcome = carry_out(
        remote,
        settings,
        spot,
        settings.span,
        &mut |span, echoed| progress(Progress::Echoed(span, echoed)),
    )?;
    if outcome.stats.counts.echoed == 0 && outcome.ended != Ended::Stopped {
        return Err(Error::Silent {
            sent: outcome.stats.counts.sent,
            why: match outcome.ended {
                Ended::Gone(why) => why,
                _ => "no message came back in time".to_owned(),
            },
        });
    }
    let ended = outcome.ended.clone();
    let asked = settings.pin != Pin::Best;
    let mut echo = document_of(settings, outcome);
    echo.remote = if remote.is_own() {
        "own".to_owned()
    } else {
        remote.host().to_string()
    };
    echo.placement = spot.into_document(remote.is_own(), asked, tried);
    Ok((echo, ended))
}

/// Tries each placement and returns the best, with what each gave.
fn choose(
    remote: &Remote,
    settings: &Settings,
    spots: &[Spot],
    progress: &mut dyn FnMut(Progress) -> bool,
) -> Result<(Spot, Vec<PlacementTrial>), Error> {
    crate::choice::best(spots, remote.is_own(), |spot| {
        let span = TRIAL.min(settings.span);
        let outcome = carry_out(remote, settings, spot, span, &mut |_, _| true)?;
        let seconds = outcome.measured.as_secs_f64().max(1e-9);
        let rate = outcome.stats.counts.echoed as f64 / seconds;
        let go_on = progress(Progress::Tried(spot.trial(remote.is_own(), rate)));
        Ok(go_on.then_some(rate))
    })
}

/// One run at one placement.
pub(crate) fn carry_out(
    remote: &Remote,
    settings: &Settings,
    spot: Spot,
    span: Duration,
    progress: &mut dyn FnMut(Duration, u64) -> bool,
) -> Result<Outcome, Error> {
    let waiting = settings.waiting(spot);
    let request = Request {
        transport: settings.transport,
        size: settings.size,
        waiting,
        cpu: spot.remote,
    };
    let job = remote.open(SERVICE, &json!(request))?;
    let plan = Plan {
        outstanding: settings.outstanding,
        span,
        timeout: settings.timeout,
        silence: SILENCE.max(settings.timeout * 3),
        cpu: spot.local,
    };
    let payload = Payload::new(fresh_key(), settings.size);
    let outcome = over_sockets(&job, settings, waiting, &payload, &plan, progress)?;
    // Where the remote end is gone already, its job is over too.
    let _ = job.finish();
    Ok(outcome)
}

fn over_sockets(
    job: &RemoteJob,
    settings: &Settings,
    waiting: Waiting,
    payload: &Payload,
    plan: &Plan,
    progress: &mut dyn FnMut(Duration, u64) -> bool,
) -> Result<Outcome, Error> {
    let unblock = Unblock::default();
    let port = job.port("port")?;
    let system = |why: io::Error| Error::System("the echo's socket or thread", why);
    match settings.transport {
        Transport::Udp => {
            let socket = job.udp(port)?;
            drain(&socket).map_err(system)?;
            unblock.udp(&socket).map_err(system)?;
            let nudging = socket.try_clone().map_err(system)?;
            let wire = Datagrams::new(socket, waiting).map_err(system)?;
            // A nudge that does not leave is as good as lost.
            let nudge = |message: &[u8]| drop(nudging.send(message));
            local::run(wire, payload, plan, &unblock, &nudge, progress).map_err(system)
        }
        Transport::Tcp => {
            let stream = job.tcp(port)?;
            unblock.tcp(&stream).map_err(system)?;
            let wire = Messages::new(stream, settings.size, waiting).map_err(system)?;
            // A stream needs no nudge: it repeats what is lost by itself.
            local::run(wire, payload, plan, &unblock, &|_| {}, progress).map_err(system)
        }
    }
}

/// Discards what the remote end sent before it accepted this end.
fn drain(socket: &std::net::UdpSocket) -> io::Result<()> {
    socket.set_nonblocking(true)?;
    let mut byte = [0; 1];
    while socket.recv(&mut byte).is_ok() {}
    socket.set_nonblocking(false)
}

/// The outcome as the document has it.
fn document_of(settings: &Settings, outcome: Outcome) -> Echo {
    let measured_s = outcome.measured.as_secs_f64().max(1e-9);
    let stats = outcome.stats;
    let counts = stats.counts.clone();
    let iops = counts.echoed as f64 / measured_s;
    let (rtt_ms, histogram) = (
        Quantiles::of(&stats.round_trips),
        stats.round_trips.to_base64(),
    );
    let (series, step) = stats.series(lagometer_units::Time::ZERO + outcome.measured);
    Echo {
        transport: settings.transport.name().to_owned(),
        size_bytes: settings.size as u32,
        outstanding: settings.outstanding as u32,
        spin: settings.spin,
        measured_s,
        iops,
        delay_ms: (iops > 0.0).then(|| 1000.0 / iops / 2.0),
        rtt_ms,
        histogram,
        messages: counts,
        step_s: step.as_secs_f64(),
        series,
        per_seed: Vec::new(),
        ..Echo::default()
    }
}
