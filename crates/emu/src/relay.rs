//! The path without hosts: a relay of UDP datagrams on the loopback device,
//! for systems that permit no namespaces.
//!
//! Each lane has four sockets: its two sides', and one of the relay's facing
//! each. What the relay takes it dresses as the IP packet it would be between
//! hosts, so that the same router, links, audit and log deal with it. Nothing
//! but UDP can pass.

#[cfg_attr(not(target_os = "linux"), path = "elsewhere/loopback.rs")]
mod loopback;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};

use lagometer_capture::UdpHeaders;
use lagometer_units::Clock;

use crate::address::{LaneAddresses, MAX_LANES};
use crate::audit::{AuditCounters, Band};
use crate::device_counters::DeviceCounters;
use crate::error::{Doing, Error};
use crate::lane_link::LaneLink;
use crate::port::Port;
use crate::router::{Router, Waiting};
use crate::settings::{LaneSetup, Outcome, Settings, finish};

/// A relay between the two sides of each lane. Lane number n of
/// [`Relay::start`] is reached at [`Relay::addresses`] n.
#[derive(Debug)]
pub struct Relay {
    router: Router,
    clock: Clock,
    band: Band,
    waiting: Waiting,
    lanes: Vec<String>,
}

/// The addresses of one lane of a relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RelayAddresses {
    /// Where the local side must be.
    pub local: SocketAddr,
    /// Where the local side finds the remote one.
    pub for_local: SocketAddr,
    /// Where the remote side finds the local one.
    pub for_remote: SocketAddr,
    /// Where the remote side must be.
    pub remote: SocketAddr,
}

/// The port of both sides in the packets that the router and the log see: one that no
/// protocol which Wireshark knows claims.
const INSIDE_PORT: u16 = 21_000;

/// What the audit calls a relay in place of a device.
const DEVICE: &str = "relay";

impl RelayAddresses {
    /// The addresses of lane number `lane` in this process.
    fn of(lane: u8) -> Self {
        let (host, first_port) = loopback::of(std::process::id(), lane);
        let at = |nth| SocketAddr::from((host, first_port + nth));
        Self {
            local: at(1),
            for_local: at(0),
            for_remote: at(3),
            remote: at(2),
        }
    }
}

impl Relay {
    /// Makes the relay's sockets and starts the router between them. Of the
    /// settings, those of hosts and devices have no meaning here.
    ///
    /// # Errors
    ///
    /// [`Error::TooManyLanes`]; what the system says.
    pub fn start(settings: &Settings, clock: Clock, lanes: Vec<LaneSetup>) -> Result<Self, Error> {
        if lanes.len() > MAX_LANES {
            return Err(Error::TooManyLanes {
                lanes: lanes.len(),
                most: MAX_LANES,
            });
        }
        let ports = (0..=u8::MAX)
            .zip(&lanes)
            .map(|(lane, _)| ports(lane))
            .collect::<io::Result<Vec<_>>>()
            .doing("making the relay's sockets")?;
        let (names, links): (Vec<_>, Vec<_>) =
            lanes.into_iter().map(|lane| (lane.name, lane.link)).unzip();
        let log = settings.start_log(clock, &names)?;
        Ok(Self {
            router: Router::start(settings.manner(), clock, ports, links, log, None)?,
            clock,
            band: settings.band,
            waiting: settings.waiting,
            lanes: names,
        })
    }

    /// The addresses of lane number `lane`.
    #[must_use]
    pub fn addresses(&self, lane: u8) -> RelayAddresses {
        RelayAddresses::of(lane)
    }

    /// Begins anew with `links`, as [`Network::begin`](crate::Network::begin).
    ///
    /// # Errors
    ///
    /// [`Error::ThreadGone`] if the router has ended.
    ///
    /// # Panics
    ///
    /// If there are not as many links as lanes.
    pub fn begin(&mut self, links: Vec<LaneLink>) -> Result<(), Error> {
        assert_eq!(links.len(), self.lanes.len(), "a link for each lane");
        let audit_counters = AuditCounters::new(self.lanes.len(), self.clock.now());
        self.router.begin(links, audit_counters)?;
        Ok(())
    }

    /// Ends the relay; what was on its way is lost.
    ///
    /// # Errors
    ///
    /// What stopped the router early, if something did.
    pub fn stop(self) -> Result<Outcome, Error> {
        let ended = self.clock.now();
        // There are no devices that could have lost anything.
        let lanes = self
            .lanes
            .into_iter()
            .map(|name| (name, [DeviceCounters::default(); 2]))
            .collect();
        finish(
            self.router,
            None,
            (self.waiting, self.band),
            DEVICE,
            ended,
            lanes,
        )
    }
}

/// The relay's sockets of a lane: facing the local side, facing the remote one.
fn ports(lane: u8) -> io::Result<[Port; 2]> {
    let at = RelayAddresses::of(lane);
    let inside = LaneAddresses::of(lane);
    let facing = |own: SocketAddr, side: SocketAddr, from: Ipv4Addr, to: Ipv4Addr| {
        let socket = UdpSocket::bind(own)?;
        socket.connect(side)?;
        socket.set_nonblocking(true)?;
        let headers = UdpHeaders::new((from, INSIDE_PORT).into(), (to, INSIDE_PORT).into());
        Ok::<_, io::Error>(Port::relay(socket, headers))
    };
    Ok([
        facing(at.for_local, at.local, inside.local_v4, inside.remote_v4)?,
        facing(at.for_remote, at.remote, inside.remote_v4, inside.local_v4)?,
    ])
}
