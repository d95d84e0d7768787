//! How an emulated network is made, and what it leaves.

use std::path::{Path, PathBuf};

use lagometer_capture::{Log, LogSummary};
use lagometer_units::{Clock, Time};

use crate::audit::{Audit, Band, Circumstances, Watch};
use crate::device_counters::DeviceCounters;
use crate::error::{Doing, Error};
use crate::lane_link::LaneLink;
use crate::router::{Manner, Router, Waiting};

/// How an emulated network is made.
#[derive(Clone, Debug)]
pub struct Settings {
    /// The MTU of the hosts' devices, in bytes: 1280 to 65,535. Default: 1500.
    /// A link with a smaller MTU of its own is a narrower place on the way.
    pub mtu: usize,
    /// How the router waits. Default: [`Waiting::default`].
    pub waiting: Waiting,
    /// The core the router's thread is bound to. Default: none.
    pub router_core: Option<usize>,
    /// How many packets can be on their way at a time, all lanes together.
    /// Default: 65,536, for which memory is used only when they are.
    pub capacity: u32,
    /// What carries packets between hosts and router. Default: TUN devices
    /// where the system has them.
    pub device: Device,
    /// Where to write the log of packets, if anywhere.
    pub log: Option<PathBuf>,
    /// What the emulator's own errors may be.
    pub band: Band,
    /// Whether each lane has a client host of its own, so that programs in them
    /// may use the same ports. Default: one for all.
    pub local_host_each: bool,
}

/// What carries packets between hosts and router.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Device {
    /// TUN devices where `/dev/net/tun` exists, else virtual Ethernet.
    #[default]
    Any,
    /// TUN devices.
    Tun,
    /// Pairs of virtual Ethernet devices and packet sockets.
    Ethernet,
}

/// A lane of the network.
#[derive(Clone, Debug)]
pub struct LaneSetup {
    /// Its name, for audit and log.
    pub name: String,
    /// Its own link, or its place on a path.
    pub link: LaneLink,
}

/// What a network leaves.
#[derive(Debug)]
pub struct Outcome {
    /// What it did against what it was asked, since [`Network::begin`](crate::Network::begin) or
    /// else since its start.
    pub audit: Audit,
    /// What became of the log, if there was one.
    pub log: Option<LogSummary>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            mtu: 1500,
            waiting: Waiting::default(),
            router_core: None,
            capacity: 65_536,
            device: Device::default(),
            log: None,
            band: Band::default(),
            local_host_each: false,
        }
    }
}

impl Settings {
    /// How the router works.
    pub(crate) const fn manner(&self) -> Manner {
        Manner {
            waiting: self.waiting,
            core: self.router_core,
            capacity: self.capacity,
            mtu: self.mtu,
        }
    }

    /// Starts the log of packets, where one is asked for.
    pub(crate) fn start_log(&self, clock: Clock, lanes: &[String]) -> Result<Option<Log>, Error> {
        let start = |path: &Path| {
            let doing = || format!("writing the log of packets {}", path.display());
            Log::start(path, clock, lanes.iter().map(String::as_str)).doing(doing())
        };
        self.log.as_deref().map(start).transpose()
    }
}

/// Stops `router` and has the audit made of its counters, and of what `watch` saw.
pub(crate) fn finish(
    router: Router,
    watch: Option<Watch>,
    (waiting, band): (Waiting, Band),
    device: &'static str,
    ended: Time,
    lanes: Vec<(String, [DeviceCounters; 2])>,
) -> Result<Outcome, Error> {
    let circumstances = Circumstances {
        ended,
        device,
        waiting: waiting.name(),
        precedence: router.precedence(),
        lanes,
    };
    let finished = router.stop()?;
    // It is over when the router is.
    let outside = watch.map(Watch::finish);
    let audit_counters = finished.outcome.map_err(|source| Error::System {
        doing: "routing packets".to_owned(),
        source,
    })?;
    Ok(Outcome {
        audit: audit_counters.audit(&circumstances, outside.as_deref(), band),
        log: finished.log,
    })
}
