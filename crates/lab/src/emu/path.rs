//! What lies between a lane's two sides: hosts in namespaces with a router
//! between them, or a relay of UDP datagrams on the loopback device.

use std::net::{IpAddr, SocketAddr};

use lagometer_emu::{Clock, Error, LaneSetup, Network, Outcome, Relay, Settings};
use lagometer_link::Link;

use super::EmuOptions;

/// What lies between.
pub(super) enum EmulatedPath {
    Hosts { network: Box<Network>, ipv6: bool },
    Relay(Relay),
}

/// The addresses that one side has and sends to.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ends {
    pub(super) local: SocketAddr,
    pub(super) remote: SocketAddr,
}

/// The ports of lane 0 between hosts; each further lane has the next. Every lane
/// has its addresses to itself, but UDT tells the sockets of one process apart by
/// their ports alone.
const FIRST_LOCAL_PORT: u16 = 8000;
const FIRST_REMOTE_PORT: u16 = 7000;

impl EmulatedPath {
    /// Builds it as the options say.
    pub(super) fn build(
        options: &EmuOptions,
        settings: &Settings,
        clock: Clock,
        lanes: Vec<LaneSetup>,
    ) -> Result<Self, Error> {
        if options.relay {
            return Ok(Self::Relay(Relay::start(settings, clock, lanes)?));
        }
        Ok(Self::Hosts {
            network: Box::new(Network::start(settings, clock, lanes)?),
            ipv6: options.ipv6,
        })
    }

    /// The addresses of lane number `lane` as its client sees them.
    pub(super) fn seen_by_client(&self, lane: u8) -> Ends {
        match self {
            Self::Hosts { .. } => self.between_hosts(lane),
            Self::Relay(relay) => {
                let addresses = relay.addresses(lane);
                Ends {
                    local: addresses.local,
                    remote: addresses.for_local,
                }
            }
        }
    }

    /// The addresses of lane number `lane` as its server sees them.
    pub(super) fn seen_by_server(&self, lane: u8) -> Ends {
        match self {
            Self::Hosts { .. } => self.between_hosts(lane),
            Self::Relay(relay) => {
                let addresses = relay.addresses(lane);
                Ends {
                    local: addresses.for_remote,
                    remote: addresses.remote,
                }
            }
        }
    }

    /// Does `work` where clients live.
    pub(super) fn run_local<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        match self {
            Self::Hosts { network, .. } => network.local().run(work),
            Self::Relay(_) => Ok(work()),
        }
    }

    /// Does `work` where servers live.
    pub(super) fn run_remote<T: Send + 'static>(
        &self,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, Error> {
        match self {
            Self::Hosts { network, .. } => network.remote().run(work),
            Self::Relay(_) => Ok(work()),
        }
    }

    /// Begins anew with these links; the audit covers what comes from now on.
    pub(super) fn begin(&mut self, links: Vec<Link>) -> Result<(), Error> {
        match self {
            Self::Hosts { network, .. } => network.begin(links),
            Self::Relay(relay) => relay.begin(links),
        }
    }

    /// Ends it.
    pub(super) fn stop(self) -> Result<Outcome, Error> {
        match self {
            Self::Hosts { network, .. } => network.stop(),
            Self::Relay(relay) => relay.stop(),
        }
    }

    fn between_hosts(&self, lane: u8) -> Ends {
        let addresses = lagometer_emu::LaneAddresses::of(lane);
        let (local, remote): (IpAddr, IpAddr) = match self {
            Self::Hosts { ipv6: true, .. } => {
                (addresses.local_v6.into(), addresses.remote_v6.into())
            }
            _ => (addresses.local_v4.into(), addresses.remote_v4.into()),
        };
        Ends {
            local: SocketAddr::new(local, FIRST_LOCAL_PORT + u16::from(lane)),
            remote: SocketAddr::new(remote, FIRST_REMOTE_PORT + u16::from(lane)),
        }
    }
}
