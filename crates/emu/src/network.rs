//! The whole network: two hosts, the lanes between them, and the router.

use std::fs;
use std::sync::mpsc::Sender;
use std::time::Duration;

use lagometer_units::Clock;

use crate::address::{LaneAddresses, MAX_LANES};
use crate::audit::{AuditCounters, Band, RouterEvent, Watch};
use crate::device_counters::{DeviceCounters, SentTotals};
use crate::error::Error;
use crate::host::{Host, Side};
use crate::lane_link::LaneLink;
use crate::permission::Permission;
use crate::port::{FRAME_HEADER_BYTES, Port};
use crate::router::{Router, Waiting};
use crate::settings::{Device, LaneSetup, Outcome, Settings, finish};

/// An emulated network. Lane number n of [`Network::start`] is reached at
/// [`LaneAddresses::of`] n.
///
/// When it is dropped, and when the process ends in whatever way, nothing of
/// it remains on the machine.
#[derive(Debug)]
pub struct Network {
    // Dropped in this order: the router before the hosts whose devices it
    // holds.
    router: Router,
    /// The clock outside the router, where the system has one.
    watch: Option<Watch>,
    /// One, or one for each lane.
    local: Vec<Host>,
    remote: Host,
    /// Where the other ends of virtual Ethernet pairs are.
    _middle: Option<Host>,
    clock: Clock,
    band: Band,
    device: &'static str,
    /// What its devices count of each packet beside IP.
    link_header_bytes: u64,
    waiting: Waiting,
    lanes: Vec<String>,
    counted_before: Vec<[DeviceCounters; 2]>,
}

/// The least MTU that IPv6 permits.
const LEAST_MTU: usize = 1280;
/// Packets that all taps together have room for until they are read.
const TAPPED_PACKETS: usize = 32_768;
/// The fewest that one has.
const LEAST_TAPPED_PACKETS: usize = 1024;
/// The most that an IP packet's length can say.
const MOST_MTU: usize = 65_535;

/// Whether a network may be asked for so.
fn check(settings: &Settings, lanes: usize) -> Result<(), Error> {
    if lanes > MAX_LANES {
        return Err(Error::TooManyLanes {
            lanes,
            most: MAX_LANES,
        });
    }
    if !(LEAST_MTU..=MOST_MTU).contains(&settings.mtu) {
        return Err(Error::Mtu {
            mtu: settings.mtu,
            least: LEAST_MTU,
            most: MOST_MTU,
        });
    }
    Ok(())
}

/// The hosts of a network.
struct Hosts {
    /// Those of the clients: one for all lanes, or one for each.
    local: Vec<Host>,
    remote: Host,
    /// What holds the router's ends of devices that are no taps.
    middle: Option<Host>,
}

impl Hosts {
    fn make(settings: &Settings, lanes: usize) -> Result<Self, Error> {
        let local_hosts = if settings.local_host_each {
            lanes.max(1)
        } else {
            1
        };
        let local = (0..local_hosts)
            .map(|_| Host::new("client host"))
            .collect::<Result<Vec<_>, _>>()?;
        let remote = Host::new("server host")?;
        let has_tun = match settings.device {
            Device::Any => fs::exists("/dev/net/tun").unwrap_or(false),
            Device::Tun => true,
            Device::Ethernet => false,
        };
        let middle = if has_tun {
            None
        } else {
            Some(Host::new("middle")?)
        };
        Ok(Self {
            local,
            remote,
            middle,
        })
    }

    /// Gives each lane a device at either end; returns the router's ends once there are
    /// routes over all of them.
    fn connect(&self, lanes: usize, mtu: usize) -> Result<Vec<[Port; 2]>, Error> {
        let numbers = || (0..=u8::MAX).take(lanes);
        let ports = numbers()
            .map(|lane| {
                Ok([
                    self.port(host_of(&self.local, lane), Side::Local, lane, mtu)?,
                    self.port(&self.remote, Side::Remote, lane, mtu)?,
                ])
            })
            .collect::<Result<Vec<_>, Error>>()?;
        for lane in numbers() {
            host_of(&self.local, lane).await_routes(Side::Local, lane)?;
            self.remote.await_routes(Side::Remote, lane)?;
        }
        Ok(ports)
    }

    fn port(&self, host: &Host, side: Side, lane: u8, mtu: usize) -> Result<Port, Error> {
        Ok(match &self.middle {
            None => Port::Tun(host.add_tun(side, lane, mtu)?),
            Some(middle) => {
                let (socket, frames) = host.add_ethernet(middle, side, lane, mtu)?;
                Port::Ethernet(socket, frames)
            }
        })
    }
}

impl Network {
    /// Makes the hosts, a pair of devices for each lane, and starts the
    /// router.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] if the process may not have namespaces (see
    /// [`Permission::acquire`], which this calls); an impossible MTU, too many
    /// lanes; what the system says.
    pub fn start(settings: &Settings, clock: Clock, lanes: Vec<LaneSetup>) -> Result<Self, Error> {
        check(settings, lanes.len())?;
        Permission::acquire()?;
        let hosts = Hosts::make(settings, lanes.len())?;
        let ports = hosts.connect(lanes.len(), settings.mtu)?;
        let (names, links): (Vec<_>, Vec<_>) =
            lanes.into_iter().map(|lane| (lane.name, lane.link)).unzip();
        let log = settings.start_log(clock, &names)?;
        let counted_before = vec![Default::default(); names.len()];
        let Hosts {
            local,
            remote,
            middle,
        } = hosts;
        // A clock that stands still while anybody computes has nothing to show.
        let is_watched = settings.waiting != Waiting::Sleep;
        let (watch, observer) = is_watched
            .then(|| watch(&local, &remote, names.len()))
            .flatten()
            .unzip();
        let has_tun = middle.is_none();
        Ok(Self {
            router: Router::start(settings.manner(), clock, ports, links, log, observer)?,
            watch,
            local,
            remote,
            _middle: middle,
            clock,
            band: settings.band,
            device: if has_tun { "tun" } else { "ethernet" },
            link_header_bytes: if has_tun {
                0
            } else {
                FRAME_HEADER_BYTES as u64
            },
            waiting: settings.waiting,
            lanes: names,
            counted_before,
        })
    }

    /// Has the TCP connections that clients open in lane number `lane` from now on ask for
    /// ECN, which Linux grants. Without, they do not.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn ask_for_ecn(&self, lane: u8) -> Result<(), Error> {
        host_of(&self.local, lane).ask_for_ecn(Side::Local, lane)
    }

    /// Begins anew with `links`, one for each lane in their order: the audit
    /// covers what comes from now on. What is on its way arrives as the old
    /// links said, or say when it leaves their queues.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadGone`] if the router has ended; what the system says.
    ///
    /// # Panics
    ///
    /// If there are not as many links as lanes.
    pub fn begin(&mut self, links: Vec<LaneLink>) -> Result<(), Error> {
        assert_eq!(links.len(), self.lanes.len(), "a link for each lane");
        self.counted_before = self.counters()?;
        let audit_counters = AuditCounters::new(self.lanes.len(), self.clock.now());
        self.router.begin(links, audit_counters)?;
        Ok(())
    }

    /// Ends the network; what was on its way is lost.
    ///
    /// # Errors
    ///
    /// What stopped the router early, if something did.
    pub fn stop(self) -> Result<Outcome, Error> {
        let ended = self.clock.now();
        let counted = self.counters()?;
        let lanes = self
            .lanes
            .into_iter()
            .zip(counted.into_iter().zip(self.counted_before))
            .map(|(name, ([local, remote], [local_before, remote_before]))| {
                (
                    name,
                    [local.since(local_before), remote.since(remote_before)],
                )
            })
            .collect();
        finish(
            self.router,
            self.watch,
            (self.waiting, self.band),
            self.device,
            ended,
            lanes,
        )
    }

    /// Holds the router up for `how_long`, as a machine does that gives the processor
    /// to somebody else: for tests of what the audit notices.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadGone`] if the router has ended.
    pub fn hold_up(&self, how_long: Duration) -> Result<(), Error> {
        self.router.hold_up(how_long)
    }

    /// The host on this side: the players'; the first lane's where each lane has
    /// one of its own.
    #[must_use]
    pub fn local(&self) -> &Host {
        host_of(&self.local, 0)
    }

    /// The client host of lane number `lane`.
    #[must_use]
    pub fn local_of(&self, lane: u8) -> &Host {
        host_of(&self.local, lane)
    }

    /// The host on the other side: the server's.
    #[must_use]
    pub const fn remote(&self) -> &Host {
        &self.remote
    }

    /// What both sides have put on the links of all lanes since the network was
    /// started, the players' side first, as the hosts' devices count it. It asks a
    /// device for each lane and side, some 50 µs each.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadGone`] if a host has ended; what the system says.
    pub fn sent(&self) -> Result<[SentTotals; 2], Error> {
        let counters = self.counters()?;
        Ok([0, 1].map(|side| {
            let mut sent: SentTotals = counters.iter().map(|both| both[side].sent).sum();
            sent.bytes -= sent.packets * self.link_header_bytes;
            sent
        }))
    }

    /// The clock the router goes by.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// The addresses of lane number `lane`.
    #[must_use]
    pub fn addresses(&self, lane: u8) -> LaneAddresses {
        LaneAddresses::of(lane)
    }

    fn counters(&self) -> Result<Vec<[DeviceCounters; 2]>, Error> {
        (0..=u8::MAX)
            .zip(&self.lanes)
            .map(|(lane, _)| {
                Ok([
                    self.local_of(lane).counters(lane)?,
                    self.remote.counters(lane)?,
                ])
            })
            .collect()
    }
}

/// The client host of lane number `lane`: its own, or the only one.
fn host_of(local: &[Host], lane: u8) -> &Host {
    local.get(usize::from(lane)).unwrap_or(&local[0])
}

/// Taps the hosts of `lanes` lanes; nothing where the system does not let it.
fn watch(local: &[Host], remote: &Host, lanes: usize) -> Option<(Watch, Sender<RouterEvent>)> {
    let frames = (TAPPED_PACKETS / (local.len() + 1)).max(LEAST_TAPPED_PACKETS);
    let every = 0..u8::try_from(lanes).unwrap_or(u8::MAX);
    let own = |number: u8| {
        if local.len() == 1 {
            every.clone()
        } else {
            number..number + 1
        }
    };
    let mut taps = Vec::new();
    for (number, host) in (0..).zip(local) {
        taps.push(host.tap(Side::Local, own(number), frames).ok()?);
    }
    taps.push(remote.tap(Side::Remote, every.clone(), frames).ok()?);
    Watch::start(taps, lanes).ok()
}
