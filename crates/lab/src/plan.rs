//! The part of an experiment that every lane of one seed shares.

use std::time::Duration;

use lagometer_transport::Offer;
use lagometer_units::Time;

use crate::workload::Workload;

/// What is played, for how long, and under which seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// What the endpoints do.
    pub workload: Workload,
    /// What the lane's transport has for streams with promises of their own.
    pub offer: Offer,
    /// How long messages are sent.
    pub duration: Duration,
    /// How long the last echoes are waited for.
    pub grace: Duration,
    /// The seed of the impairments and of all that is drawn.
    pub seed: u64,
    /// How long after the impairments have begun the first message is due, in
    /// virtual time. Zero but where the luck of single packets is varied under
    /// one and the same impairments: packets that leave in other milliseconds meet
    /// other coins.
    pub offset: Duration,
}

impl Plan {
    /// The same under another `seed`.
    #[must_use]
    pub fn under(&self, seed: u64) -> Self {
        Self {
            seed,
            ..self.clone()
        }
    }

    /// Time before measuring in which every lane makes its connection, over a
    /// link that has its delay and rate but no impairments yet.
    ///
    /// It is the same for every lane and longer than any handshake takes on a
    /// calm link, so how long a handshake takes, and which other lanes run,
    /// change nothing of what is measured.
    pub const LEAD_IN: Duration = Duration::from_secs(10);

    /// When measuring starts: the instant at which the impairments begin, and the
    /// first message's intended time where there is no offset.
    #[must_use]
    pub fn measuring_starts(&self) -> Time {
        Time::ZERO + Self::LEAD_IN
    }

    /// How many messages are meant to be sent.
    #[must_use]
    pub fn messages(&self) -> u32 {
        self.workload.messages_within(self.duration)
    }

    /// When no more messages are meant to be sent.
    #[must_use]
    pub fn ends(&self) -> Time {
        self.measuring_starts() + self.offset + self.duration
    }

    /// When the grace period is over.
    #[must_use]
    pub fn gives_up(&self) -> Time {
        self.ends() + self.grace
    }
}
