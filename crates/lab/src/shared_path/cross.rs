//! Other traffic on a lane's link: what `[[cross]]` asks for, in virtual time.
//!
//! Each entry is a [`CrossTraffic`]: both of its ends, driven by the simulation of the link like a
//! lane's hosts. Bulk transfers and pages are TCP of `lagometer-tcp`; calls and
//! constant traffic are packets without an endpoint. All of it follows from the
//! seed and the entry's place in its list, so each lane's copy is the same.

mod call;
mod paced;
mod pages;
mod schedule;
mod tcp;
mod transfers;

use lagometer_link::Direction;
use lagometer_link::cross::{Cross, CrossKind};
use lagometer_units::Time;

use paced::Paced;
use schedule::Schedule;
use transfers::Transfers;

/// Both ends of one entry.
#[derive(Debug)]
pub(super) struct CrossTraffic {
    /// Where its data go.
    pub(super) direction: Direction,
    source: Source,
}

#[derive(Debug)]
enum Source {
    Transfers(Box<Transfers>),
    Paced(Paced),
}

/// What a packet of other traffic carries.
#[derive(Clone, Debug)]
pub(super) enum Load {
    /// A whole IP packet.
    Ip(Vec<u8>),
    /// A packet of paced traffic, of so many bytes.
    Paced {
        /// Its number.
        sequence: u64,
        /// When it left.
        sent: Time,
        /// With IP and UDP headers.
        bytes: u64,
    },
    /// What a call's receiver reports to its sender.
    Report(call::Report),
}

/// A packet to be put on the link.
#[derive(Clone, Debug)]
pub(super) struct CrossPacket {
    pub(super) direction: Direction,
    /// Which of the entry's flows it is of.
    pub(super) flow: u32,
    pub(super) load: Load,
}

impl Load {
    /// Its size as an IP packet.
    pub(super) fn bytes(&self) -> u64 {
        match self {
            Self::Ip(packet) => packet.len() as u64,
            Self::Paced { bytes, .. } => *bytes,
            Self::Report(_) => call::REPORT_BYTES,
        }
    }
}

impl CrossTraffic {
    /// The traffic of `cross`, the `position`-th of its link, whose schedule
    /// counts from `starts`.
    pub(super) fn new(cross: &Cross, seed: u64, position: u64, starts: Time) -> Self {
        let schedule = Schedule::new(cross.stretches(seed, position), starts);
        let own_seed = lagometer_units::mix(seed ^ lagometer_units::mix(position.wrapping_add(1)));
        let source = match cross.kind {
            CrossKind::Bulk => {
                Source::Transfers(Box::new(Transfers::bulk(cross, own_seed, schedule)))
            }
            CrossKind::Web => {
                Source::Transfers(Box::new(Transfers::pages(cross, own_seed, schedule)))
            }
            CrossKind::Call | CrossKind::Constant => Source::Paced(Paced::new(cross, schedule)),
        };
        Self {
            direction: cross.direction.into(),
            source,
        }
    }

    /// When [`wake`](Self::wake) must be called.
    pub(super) fn next_wake(&self) -> Option<Time> {
        match &self.source {
            Source::Transfers(transfers) => transfers.next_wake(),
            Source::Paced(paced) => paced.next_wake(),
        }
    }

    /// Does what is due at `now`.
    pub(super) fn wake(&mut self, now: Time) {
        match &mut self.source {
            Source::Transfers(transfers) => transfers.wake(now),
            Source::Paced(paced) => paced.wake(now),
        }
    }

    /// Takes in what arrived in `direction`.
    pub(super) fn receive(&mut self, now: Time, direction: Direction, load: &Load) {
        match (&mut self.source, load) {
            (Source::Transfers(transfers), Load::Ip(packet)) => {
                transfers.receive(now, direction, packet);
            }
            (Source::Paced(paced), load) => paced.receive(now, load),
            (Source::Transfers(_), _) => {}
        }
    }

    /// Takes out the next packet for the link.
    pub(super) fn poll(&mut self) -> Option<CrossPacket> {
        match &mut self.source {
            Source::Transfers(transfers) => transfers.poll(),
            Source::Paced(paced) => paced.poll(),
        }
    }

    /// Bytes its receivers have got, each once.
    pub(super) const fn received_bytes(&self) -> u64 {
        match &self.source {
            Source::Transfers(transfers) => transfers.received_bytes(),
            Source::Paced(paced) => paced.received_bytes(),
        }
    }
}
