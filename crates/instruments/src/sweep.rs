//! `sweep`: latency and bandwidth by message size, over TCP and UDP.
//!
//! The tests have the meaning that users of other tools know: a latency is
//! half of the mean round trip with one message on its way; a bandwidth is
//! payload handed to the system and payload received, where the receiver has
//! checked every byte of it. Each message takes a system call of its own,
//! unless the test is called *batched*: then many share one, and the figure
//! shows the limit of the path rather than of a program that sends messages as
//! they come.

mod bandwidth;
mod receive;
pub mod receive_tracker;
mod send;
mod service;

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lagometer_remote::Remote;
use lagometer_results::{Cell, PlacementTrial, Quantiles, Sweep};

use crate::echo::local::Ended;
use crate::echo::{self, Transport};
use crate::error::Error;
use crate::placement::{Pin, Spot, usable_cpus};

pub use service::{Request, SERVICE, SinkService};

/// What is measured at each size.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Test {
    /// One-way latency over TCP, each message sent at once.
    TcpLat,
    /// Bandwidth over TCP.
    TcpBw,
    /// One-way latency over UDP.
    UdpLat,
    /// Bandwidth over UDP.
    UdpBw,
    /// Bandwidth over TCP, many messages in a write.
    TcpBwBatched,
    /// Bandwidth over UDP, many datagrams for each system call.
    UdpBwBatched,
}

impl Test {
    /// Every test, in the order in which they are measured.
    pub const ALL: [Self; 6] = [
        Self::TcpLat,
        Self::TcpBw,
        Self::UdpLat,
        Self::UdpBw,
        Self::TcpBwBatched,
        Self::UdpBwBatched,
    ];

    /// As it is asked for and as the document names it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TcpLat => "tcp_lat",
            Self::TcpBw => "tcp_bw",
            Self::UdpLat => "udp_lat",
            Self::UdpBw => "udp_bw",
            Self::TcpBwBatched => "tcp_bw_batched",
            Self::UdpBwBatched => "udp_bw_batched",
        }
    }

    /// How its messages travel.
    #[must_use]
    pub const fn transport(self) -> Transport {
        match self {
            Self::TcpLat | Self::TcpBw | Self::TcpBwBatched => Transport::Tcp,
            Self::UdpLat | Self::UdpBw | Self::UdpBwBatched => Transport::Udp,
        }
    }

    /// Whether it is about latency.
    #[must_use]
    pub const fn is_latency(self) -> bool {
        matches!(self, Self::TcpLat | Self::UdpLat)
    }

    /// Whether many messages share a system call.
    #[must_use]
    pub const fn is_batched(self) -> bool {
        matches!(self, Self::TcpBwBatched | Self::UdpBwBatched)
    }
}

impl fmt::Display for Test {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// No test of a sweep has this name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no test is called `{0}`; there are {names}", names = Test::ALL.map(Test::name).join(", "))]
pub struct UnknownTest(pub String);

impl FromStr for Test {
    type Err = UnknownTest;

    fn from_str(written: &str) -> Result<Self, UnknownTest> {
        let found = Self::ALL.into_iter().find(|test| test.name() == written);
        found.ok_or_else(|| UnknownTest(written.to_owned()))
    }
}

/// What to measure.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The tests.
    pub tests: Vec<Test>,
    /// Sizes of messages in bytes, 1 to [`LARGEST_SIZE`]. What no datagram
    /// holds is measured over UDP at the largest that one does.
    pub sizes: Vec<usize>,
    /// How long each cell is measured, 10 ms to an hour.
    pub span: Duration,
    /// Where both ends run.
    pub pin: Pin,
    /// TCP's congestion control by the system's name; its own choice where
    /// nothing is asked for.
    pub congestion: Option<String>,
}

/// The largest message of a sweep, in bytes.
pub const LARGEST_SIZE: usize = 64 << 10;

/// The size at which placements are tried: neither so small that only calls
/// count nor so large that only copying does.
const TRIAL_SIZE: usize = 1024;

/// How long each placement is tried at most.
const TRIAL: Duration = Duration::from_millis(100);

/// How long a message of a latency test is waited for.
const TIMEOUT: Duration = Duration::from_secs(1);

impl Settings {
    /// Whether all this can be measured.
    ///
    /// # Errors
    ///
    /// [`Error::Settings`], which says what to ask for instead.
    pub fn check(&self) -> Result<(), Error> {
        let refuse = |why: String| Err(Error::Settings(why));
        if self.tests.is_empty() {
            return refuse("--tests: name at least one".to_owned());
        }
        if self.sizes.is_empty() {
            return refuse("--sizes: name at least one".to_owned());
        }
        if let Some(size) = self
            .sizes
            .iter()
            .find(|size| !(1..=LARGEST_SIZE).contains(size))
        {
            return refuse(format!(
                "--sizes: {size} bytes; a sweep covers 1 to {LARGEST_SIZE}"
            ));
        }
        if self.span < Duration::from_millis(10) || self.span > Duration::from_hours(1) {
            return refuse("--for: measure each cell for 10 ms to 1 h, as in `--for 300ms`".into());
        }
        Ok(())
    }
}

/// What is reported while it measures.
#[derive(Clone, Debug)]
pub enum Progress<'a> {
    /// A placement was tried for a test.
    Tried(Test, PlacementTrial),
    /// A cell was measured: so many of so many.
    Measured(&'a Cell, usize, usize),
    /// Measuring goes on.
    Going,
}

/// Measures every test at every size to `remote`. `progress` returns whether to
/// go on; what was measured until then is returned.
///
/// # Errors
///
/// [`Error`]: the settings cannot be, or the remote end is gone. A cell that
/// cannot be measured says so itself.
pub fn measure(
    remote: &Remote,
    settings: &Settings,
    progress: &mut dyn FnMut(Progress<'_>) -> bool,
) -> Result<(Sweep, Ended), Error> {
    settings.check()?;
    let spots = settings.pin.spots(&usable_cpus(), remote.is_own())?;
    let mut sweep = Sweep {
        remote: if remote.is_own() {
            "own".to_owned()
        } else {
            remote.host().to_string()
        },
        cell_s: settings.span.as_secs_f64(),
        ..Sweep::default()
    };
    let all = settings.tests.len() * settings.sizes.len();
    for &test in &settings.tests {
        let (spot, tried) = choose(remote, settings, test, &spots, progress)?;
        for &size in &settings.sizes {
            let size = size.min(test.transport().largest());
            let mut stopped = false;
            let mut cell = cell(
                remote,
                settings,
                test,
                size,
                spot,
                settings.span,
                &mut || {
                    let go_on = progress(Progress::Going);
                    stopped |= !go_on;
                    go_on
                },
            );
            if let Some(why) = remote.gone() {
                return ended_early(sweep, Ended::Gone(why));
            }
            if stopped {
                return ended_early(sweep, Ended::Stopped);
            }
            let asked = settings.pin != Pin::Best;
            cell.cell.placement = spot.into_document(remote.is_own(), asked, tried.clone());
            if sweep.congestion_control.is_none() {
                sweep.congestion_control = cell.congestion;
            }
            sweep.cells.push(cell.cell);
            let last = &sweep.cells[sweep.cells.len() - 1];
            if !progress(Progress::Measured(last, sweep.cells.len(), all)) {
                return ended_early(sweep, Ended::Stopped);
            }
        }
    }
    Ok((sweep, Ended::OnTime))
}

/// What was measured until the end, if anything was.
fn ended_early(sweep: Sweep, ended: Ended) -> Result<(Sweep, Ended), Error> {
    match ended {
        Ended::Gone(why) if sweep.cells.is_empty() => {
            Err(lagometer_remote::Error::Gone { why }.into())
        }
        ended => Ok((sweep, ended)),
    }
}

/// Tries each placement for one test and returns the best.
fn choose(
    remote: &Remote,
    settings: &Settings,
    test: Test,
    spots: &[Spot],
    progress: &mut dyn FnMut(Progress<'_>) -> bool,
) -> Result<(Spot, Vec<PlacementTrial>), Error> {
    crate::choice::best(spots, remote.is_own(), |spot| {
        let span = TRIAL.min(settings.span);
        let tried = cell(remote, settings, test, TRIAL_SIZE, spot, span, &mut || true).cell;
        let rate = if test.is_latency() {
            tried.latency_us.map(|latency| 1e6 / latency / 2.0)
        } else {
            tried.recv_mbit_per_s
        };
        let rate = rate.filter(|rate| rate.is_finite()).unwrap_or(0.0);
        let go_on = progress(Progress::Tried(test, spot.trial(remote.is_own(), rate)));
        Ok(go_on.then_some(rate))
    })
}

/// A cell, and the congestion control it ran under.
struct Measured {
    cell: Cell,
    congestion: Option<String>,
}

/// Measures one test at one size. What goes wrong is said in the cell.
fn cell(
    remote: &Remote,
    settings: &Settings,
    test: Test,
    size: usize,
    spot: Spot,
    span: Duration,
    go_on: &mut dyn FnMut() -> bool,
) -> Measured {
    let measured = if test.is_latency() {
        latency(remote, test, size, spot, span, go_on).map(|cell| (cell, None))
    } else {
        let settings = bandwidth::Settings {
            test,
            size,
            spot,
            span,
            congestion: settings.congestion.as_deref(),
        };
        bandwidth::measure(remote, &settings, go_on)
    };
    let (mut cell, congestion) = measured.unwrap_or_else(|error| {
        let failed = Cell {
            failure: Some(error.to_string()),
            ..Cell::default()
        };
        (failed, None)
    });
    test.name().clone_into(&mut cell.test);
    cell.size_bytes = size as u32;
    Measured { cell, congestion }
}

/// The echo's loops, and half of the mean round trip.
fn latency(
    remote: &Remote,
    test: Test,
    size: usize,
    spot: Spot,
    span: Duration,
    go_on: &mut dyn FnMut() -> bool,
) -> Result<Cell, Error> {
    let settings = echo::Settings {
        transport: test.transport(),
        size,
        outstanding: 1,
        span,
        spin: false,
        pin: Pin::Free,
        timeout: TIMEOUT,
    };
    let outcome = echo::carry_out(remote, &settings, spot, span, &mut |_, _| go_on())?;
    let counts = &outcome.stats.counts;
    if counts.echoed == 0 {
        return Err(Error::Silent {
            sent: counts.sent,
            why: match outcome.ended {
                Ended::Gone(why) => why,
                _ => "no message came back in time".to_owned(),
            },
        });
    }
    let rtt_ms = Quantiles::of(&outcome.stats.round_trips);
    Ok(Cell {
        method: "one message on its way".to_owned(),
        latency_us: Some(rtt_ms.mean * 1e3 / 2.0),
        rtt_ms: Some(rtt_ms),
        histogram: Some(outcome.stats.round_trips.to_base64()),
        sent: counts.sent,
        received: counts.echoed,
        lost: counts.lost,
        disordered: counts.late,
        corrupt: counts.corrupt,
        ..Cell::default()
    })
}
