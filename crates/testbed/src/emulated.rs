//! Lanes over real sockets with an emulated link each: between hosts in namespaces
//! with a router between them, or through a relay of UDP datagrams on the loopback
//! device.
//!
//! Links are calm until their impairments begin; from then on packets are counted.
//! On a machine whose clock stands still while anybody computes, as within a guest,
//! the same is as exact as virtual time.

mod audit;

pub use audit::keep_audit;

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use lagometer_emu::{
    Entrance, Error, LaneAddresses, LaneAudit, LaneLink, LaneSetup, LogSummary, Network, Relay,
    SentTotals, Settings, Waiting,
};
use lagometer_results::Audit;
use lagometer_socket::Opening;
use lagometer_units::{Clock, Time};

use crate::Testbed;

/// Lanes with an emulated link each, numbered in the order of their names.
pub struct Emulated<'a> {
    between: Between,
    clock: Clock,
    lanes: usize,
    link: Box<LinkOf<'a>>,
}

/// The link of the lane with a number, whose impairments start at an instant.
type LinkOf<'a> = dyn Fn(usize, Time) -> LaneLink + 'a;

/// What lies between.
enum Between {
    Hosts { network: Box<Network>, ipv6: bool },
    Relay(Relay),
}

/// What was found between the ends, of all since impairments began.
#[derive(Debug)]
pub struct Findings {
    /// What the emulator says of its own work, as documents have it.
    pub audit: Audit,
    /// What each lane's link did, in the order of the lanes.
    pub lanes: Vec<LaneAudit>,
    /// What became of the log of packets, if one was asked for.
    pub log: Option<LogSummary>,
}

/// The ports of lane 0 between hosts; each further lane has the next. Every lane
/// has its addresses to itself, but UDT distinguishes the sockets of one process by
/// their ports alone. No protocol that Wireshark knows claims these for UDP, so that
/// captures are read by what is in them.
const FIRST_LOCAL_PORT: u16 = 21_256;
const FIRST_REMOTE_PORT: u16 = 21_000;

/// The ports of a lane between hosts, the client's first.
#[must_use]
pub const fn lane_ports(lane: u8) -> [u16; 2] {
    [
        FIRST_LOCAL_PORT + lane as u16,
        FIRST_REMOTE_PORT + lane as u16,
    ]
}

impl<'a> Emulated<'a> {
    /// Builds what `testbed` has between the ends of the lanes called `names`:
    /// [`Testbed::Relay`] a relay, without hosts and without IPv6, any other two
    /// hosts. `link` is asked for the link of a lane, all lanes in their order, and the
    /// instant at which its impairments start, which is [`Time::MAX`] at first. Packets and their fates are logged into the file `log`.
    ///
    /// But for a relay, call [`Permission::acquire`](lagometer_emu::Permission::acquire)
    /// before the process has a second thread.
    ///
    /// # Errors
    ///
    /// What the system refuses; [`Error::TooManyLanes`] for more lanes than there
    /// are addresses.
    pub fn build<L: Into<LaneLink> + 'a>(
        testbed: Testbed,
        ipv6: bool,
        log: Option<PathBuf>,
        names: impl Iterator<Item = String>,
        link: impl Fn(usize, Time) -> L + 'a,
    ) -> Result<Self, Error> {
        let setups: Vec<LaneSetup> = names
            .enumerate()
            .map(|(lane, name)| LaneSetup {
                name,
                link: link(lane, Time::MAX).into(),
            })
            .collect();
        let lanes = setups.len();
        let clock = Clock::start();
        let settings = Settings {
            log,
            waiting: if testbed == Testbed::Kernel {
                Waiting::Sleep
            } else {
                Waiting::default()
            },
            ..Settings::default()
        };
        let between = if testbed == Testbed::Relay {
            Between::Relay(Relay::start(&settings, clock, setups)?)
        } else {
            Between::Hosts {
                network: Box::new(Network::start(&settings, clock, setups)?),
                ipv6,
            }
        };
        Ok(Self {
            between,
            clock,
            lanes,
            link: Box::new(move |lane, starts| link(lane, starts).into()),
        })
    }

    /// The clock that links go by.
    #[must_use]
    pub const fn clock(&self) -> Clock {
        self.clock
    }

    /// Where the client of lane number `lane` is, and where it finds its server.
    #[must_use]
    pub fn client(&self, lane: u8, seed: u64, now: Time) -> Opening {
        opening(self.addresses(lane).0, seed, now)
    }

    /// Where the server of lane number `lane` is, and where it finds its client.
    #[must_use]
    pub fn server(&self, lane: u8, seed: u64, now: Time) -> Opening {
        opening(self.addresses(lane).1, seed, now)
    }

    /// Where the client and the server are, as the client knows it and as the server
    /// does: they differ where a relay is in between.
    fn addresses(&self, lane: u8) -> (Places, Places) {
        match &self.between {
            Between::Hosts { ipv6, .. } => {
                let both = between_hosts(lane, *ipv6);
                (both, both)
            }
            Between::Relay(relay) => {
                let addresses = relay.addresses(lane);
                (
                    (addresses.local, addresses.for_local),
                    (addresses.for_remote, addresses.remote),
                )
            }
        }
    }

    /// Has the TCP connections that clients open in lane number `lane` from now on ask for
    /// ECN. A relay has none.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn ask_for_ecn(&self, lane: u8) -> Result<(), Error> {
        match &self.between {
            Between::Hosts { network, .. } => network.ask_for_ecn(lane),
            Between::Relay(_) => Ok(()),
        }
    }

    /// Does `work` where clients live: sockets made there are theirs.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadGone`] if the host has ended.
    pub fn run_local<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        match &self.between {
            Between::Hosts { network, .. } => network.local().run(work),
            Between::Relay(_) => Ok(work()),
        }
    }

    /// Does `work` where servers live.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadGone`] if the host has ended.
    pub fn run_remote<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        match &self.between {
            Between::Hosts { network, .. } => network.remote().run(work),
            Between::Relay(_) => Ok(work()),
        }
    }

    /// Lets another thread enter where servers live; `None` where that is no other place
    /// than this.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn entrance_remote(&self) -> Result<Option<Entrance>, Error> {
        match &self.between {
            Between::Hosts { network, .. } => network.remote().entrance().map(Some),
            Between::Relay(_) => Ok(None),
        }
    }

    /// What clients and servers have put on all links since these were made; `None`
    /// through a relay, which sees no headers.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn sent(&self) -> Result<Option<[SentTotals; 2]>, Error> {
        match &self.between {
            Between::Hosts { network, .. } => network.sent().map(Some),
            Between::Relay(_) => Ok(None),
        }
    }

    /// Lets the impairments of each lane's link start at the instant that `starts`
    /// gives for it, and counts from now on. What is on its way arrives as the calm
    /// link said.
    ///
    /// # Errors
    ///
    /// [`Error::ThreadGone`] if the router has ended; what the system says.
    pub fn begin_impairments(&mut self, starts: impl Fn(usize) -> Time) -> Result<(), Error> {
        let links = (0..self.lanes).map(|lane| (self.link)(lane, starts(lane)));
        let links = links.collect();
        match &mut self.between {
            Between::Hosts { network, .. } => network.begin(links),
            Between::Relay(relay) => relay.begin(links),
        }
    }

    /// Ends it and says what was found; what was on its way is lost.
    ///
    /// # Errors
    ///
    /// What stopped the router early, if something did.
    pub fn collect(self) -> Result<Findings, Error> {
        let outcome = match self.between {
            Between::Hosts { network, .. } => network.stop(),
            Between::Relay(relay) => relay.stop(),
        }?;
        Ok(Findings {
            audit: audit::of(&outcome.audit),
            lanes: outcome.audit.lanes,
            log: outcome.log,
        })
    }
}

impl fmt::Debug for Emulated<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = formatter.debug_struct("Emulated");
        match &self.between {
            Between::Hosts { network, .. } => shown.field("network", network),
            Between::Relay(relay) => shown.field("relay", relay),
        }
        .finish_non_exhaustive()
    }
}

/// Where a lane's client and its server are.
type Places = (SocketAddr, SocketAddr);

fn opening((local, remote): Places, seed: u64, now: Time) -> Opening {
    Opening {
        local,
        remote,
        seed,
        now,
    }
}

/// The addresses of a lane's client and server, each known to the other.
fn between_hosts(lane: u8, ipv6: bool) -> Places {
    let addresses = LaneAddresses::of(lane);
    let (local, remote): (IpAddr, IpAddr) = if ipv6 {
        (addresses.local_v6.into(), addresses.remote_v6.into())
    } else {
        (addresses.local_v4.into(), addresses.remote_v4.into())
    };
    let [of_local, of_remote] = lane_ports(lane);
    (
        SocketAddr::new(local, of_local),
        SocketAddr::new(remote, of_remote),
    )
}
