//! Bulk speed: how much a transport carries, in one direction, and what that
//! costs.
//!
//! A sending thread offers messages as fast as the transport takes them, or by
//! a clock; a receiving thread, here or at a remote end, compares every byte with
//! what it must be. The transport's own limits hold the sender back: nothing
//! queues without bound, and what a transport refuses is offered again. One
//! lane runs at a time, so that none is measured against another's load.
//!
//! ```
//! use std::time::Duration;
//! use lagometer_remote::{Remote, Registry};
//! use lagometer_instruments::speed::{LanePlan, Plan, SpeedService, measure};
//!
//! let remote = Remote::own(Registry::new().with(SpeedService))?;
//! let plan = Plan {
//!     duration: Duration::from_millis(200),
//!     ..Plan::default()
//! };
//! let lane = LanePlan::resolve("kcp", &serde_json::Map::new()).unwrap();
//! let found = measure(&remote, &plan, &lane, &mut |_| {}, &Default::default());
//! assert_eq!(found.failure, None);
//! let bulk = found.bulk.unwrap();
//! assert!(bulk.received_bytes > 0);
//! assert_eq!((bulk.damaged, bulk.loss_pct), (0, 0.0));
//! # Ok::<(), lagometer_remote::Error>(())
//! ```

mod datagrams;
mod ends;
mod gauge;
mod lane;
mod measure;
mod mover;
mod pace;
mod payload;
mod plan;
mod pump;
mod receive_tracker;
mod service;
mod sided;
mod signal;
mod stream;

use std::io;

use lagometer_transport::{Closed, Refused};
use serde::{Deserialize, Serialize};
use thiserror::Error;

pub use lane::{BadLane, LanePlan};
pub use measure::{Progress, measure};
pub use plan::{BadPlan, Pin, Plan};
pub use service::SpeedService;

/// How one end of a lane ended.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
struct Ended {
    /// How the bytes went through the kernel.
    path: String,
    /// System calls.
    calls: u64,
    /// UDP datagrams sent.
    datagrams: u64,
    /// Messages that were to be sent.
    intended: u64,
    /// Messages that were refused at least once.
    refused: u64,
}

/// Why one end of a lane ended before its time.
#[derive(Debug, Error)]
enum Failed {
    #[error("the system refuses: {0}")]
    System(#[from] io::Error),
    #[error("{0}")]
    Closed(Closed),
    #[error("{0}")]
    Remote(#[from] lagometer_remote::Error),
    #[error("the remote end did not answer within 10 s")]
    NoAnswer,
    #[error("{0}; choose a smaller --chunk")]
    Refused(Refused),
    #[error(
        "the kernel has no congestion control called `{0}`; see /proc/sys/net/ipv4/tcp_available_congestion_control"
    )]
    NoCongestionControl(String),
    #[error("the remote end's report cannot be read; is it of another version?")]
    Report,
    #[error("a thread of the lane panicked")]
    Panicked,
}
