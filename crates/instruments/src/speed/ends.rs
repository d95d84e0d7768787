//! The two ends of a lane: how they are joined, and what runs them.

use std::io;
use std::net::{SocketAddr, TcpStream, UdpSocket};

use lagometer_platform::place_thread;
use lagometer_remote::RemoteJob;
use lagometer_socket::tcp::set_congestion;
use lagometer_socket::udp::{Offload, Options, Socket};
use lagometer_socket::{Opening, SocketSpec};
use lagometer_transport::Spec;
use lagometer_units::Time;

use super::datagrams::{self, Terms};
use super::gauge::Gauge;
use super::lane::LaneTransport;
use super::pump::Pump;
use super::sided::Sided;
use super::signal::Signal;
use super::stream;
use super::{Ended, Failed};
use crate::clock::Clock;

/// What the kernel may keep for a socket, where it permits as much: a window
/// of the largest datagrams.
const BUFFER_BYTES: usize = 16 << 20;

/// One end, joined to the other and not yet running.
pub(super) enum End {
    /// A connection of the kernel's TCP.
    Stream(TcpStream),
    /// A socket, and the transport over it.
    Datagrams {
        socket: Box<Socket>,
        spec: Spec,
        seed: u64,
    },
    /// A transport that owns its sockets, and where they are to be.
    Sided { spec: SocketSpec, opening: Opening },
}

/// What a thread needs to run an end.
pub(super) struct Run<'a> {
    pub(super) terms: &'a Terms,
    pub(super) clock: Clock,
    pub(super) gauge: &'a Gauge,
    pub(super) signal: &'a Signal,
    /// The processor to run on, if not any.
    pub(super) processor: Option<usize>,
}

/// How sockets are made.
const fn options(offload: Offload) -> Options {
    Options {
        offload,
        receive_buffer: BUFFER_BYTES,
        send_buffer: BUFFER_BYTES / 4,
    }
}

/// The sending end, joined to a job of the remote end.
pub(super) fn join(
    lane_transport: &LaneTransport,
    job: &RemoteJob,
    offload: Offload,
    seed: u64,
) -> Result<End, Failed> {
    let port = job.port("port")?;
    match lane_transport {
        LaneTransport::Tcp { congestion } => {
            let stream = connect(job.data_listener(port), congestion.as_deref())?;
            job.admit_tcp(&stream, port)?;
            Ok(End::Stream(stream))
        }
        LaneTransport::Preset(spec) => {
            let socket = job.udp(port)?;
            let opening = Opening::of_client(&socket, seed, Time::ZERO)?;
            End::preset(spec, socket, opening, offload)
        }
    }
}

/// A connection with the congestion control asked for.
fn connect(to: SocketAddr, congestion: Option<&str>) -> Result<TcpStream, Failed> {
    let stream = TcpStream::connect(to)?;
    if let Some(name) = congestion {
        set_congestion(&stream, name).map_err(|why| match why.kind() {
            io::ErrorKind::NotFound => Failed::NoCongestionControl(name.to_owned()),
            _ => Failed::System(why),
        })?;
    }
    Ok(stream)
}

impl End {
    /// An end of a preset: over `socket`, which is connected, or in its place where
    /// the transport owns its sockets.
    pub(super) fn preset(
        spec: &SocketSpec,
        socket: UdpSocket,
        opening: Opening,
        offload: Offload,
    ) -> Result<Self, Failed> {
        let Some(endpoint) = spec.endpoint() else {
            let spec = spec.clone();
            return Ok(Self::Sided { spec, opening });
        };
        Ok(Self::Datagrams {
            socket: Box::new(Socket::from_std(socket, &options(offload))?),
            spec: endpoint.clone(),
            seed: opening.seed,
        })
    }

    /// Runs the sending end.
    pub(super) fn send(self, run: &Run<'_>) -> Result<Ended, Failed> {
        run.take_place();
        match self {
            Self::Stream(stream) => {
                stream::send(stream, run.terms, run.clock, run.gauge, run.signal)
            }
            Self::Datagrams { socket, spec, seed } => {
                let endpoint = spec.client(seed, run.clock.now());
                let pump = Pump::new(endpoint, *socket, !run.terms.sleeps);
                datagrams::send(pump, run.terms, run.clock, run.gauge, run.signal)
            }
            Self::Sided { spec, opening } => {
                let side = Sided::new(spec.client(&run.at_once(opening))?);
                datagrams::send(side, run.terms, run.clock, run.gauge, run.signal)
            }
        }
    }

    /// Runs the receiving end.
    pub(super) fn receive(self, run: &Run<'_>) -> Result<Ended, Failed> {
        run.take_place();
        match self {
            Self::Stream(stream) => {
                stream::receive(stream, run.terms, run.clock, run.gauge, run.signal)
            }
            Self::Datagrams { socket, spec, seed } => {
                let endpoint = spec.server(seed, run.clock.now());
                let pump = Pump::new(endpoint, *socket, !run.terms.sleeps);
                datagrams::receive(pump, run.terms, run.clock, run.gauge, run.signal)
            }
            Self::Sided { spec, opening } => {
                let side = Sided::new(spec.server(&run.at_once(opening))?);
                datagrams::receive(side, run.terms, run.clock, run.gauge, run.signal)
            }
        }
    }
}

impl Run<'_> {
    /// What is opened now, by the clock of the run.
    fn at_once(&self, opening: Opening) -> Opening {
        let now = self.clock.now();
        Opening { now, ..opening }
    }

    /// Moves the calling thread to its processor. Where that is not permitted
    /// it stays where it is.
    fn take_place(&self) {
        if let Some(processor) = self.processor {
            let _ = place_thread(&[processor]);
        }
    }
}
