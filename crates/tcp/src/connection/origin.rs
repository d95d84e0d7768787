//! What a connection begins with: its random numbers, and what an earlier one between
//! the same ports left to it (RFC 6191).

use super::{Connection, State};
use crate::random::Random;
use crate::state::CloseReason;
use crate::{Instant, Seq};

/// How far beyond the last number of a connection in TIME-WAIT the next one begins
/// (Linux 6.1 `tcp_twsk_unique`, `tcp_timewait_state_process`).
const BEYOND: u32 = 65_535 + 2;

/// Where the numbers of a new connection come from.
#[derive(Debug)]
pub(crate) struct Origin {
    random: Random,
    /// What its host gives it; random if there is none.
    given: Option<Given>,
    pub(super) earlier: Option<Earlier>,
}

/// What a host gives a connection that a forger would have to guess.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Given {
    /// The initial sequence number.
    pub(crate) iss: Seq,
    /// The offset of its time stamps, which go on from one connection to the next with
    /// the same address (Linux 6.1 `secure_tcp_ts_off`).
    pub(crate) ts_offset: u32,
    /// The identification of its first packet.
    pub(crate) identification: u16,
}

/// What a connection in TIME-WAIT leaves to the next between the same ports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Earlier {
    /// Where the next one's numbers begin.
    pub(super) iss: Seq,
    /// The peer's last time stamp, and when it came.
    pub(super) timestamp: Option<(u32, Instant)>,
}

impl Origin {
    /// All of it follows from `seed`.
    pub(super) const fn from_seed(seed: u64) -> Self {
        Self {
            random: Random::new(seed),
            given: None,
            earlier: None,
        }
    }

    /// One of a host's connections; what nobody sees follows from `seed`.
    pub(crate) const fn of_host(seed: u64, given: Given, earlier: Option<Earlier>) -> Self {
        Self {
            random: Random::new(seed),
            given: Some(given),
            earlier,
        }
    }

    /// The numbers to begin with, and the seed of what nobody sees.
    pub(super) fn numbers(mut self) -> (Given, u64) {
        let (iss, ts_offset) = (Seq(self.random.next_u32()), self.random.next_u32());
        let phase_seed = self.random.next_u64();
        let mut given = self.given.unwrap_or(Given {
            iss,
            ts_offset,
            identification: self.random.next_u32() as u16,
        });
        if let Some(earlier) = self.earlier {
            given.iss = earlier.iss;
        }
        (given, phase_seed)
    }
}

impl Connection {
    /// Whether a new connection may take the ports of this one, which is in TIME-WAIT:
    /// a second after the peer's last time stamp, which tells both apart (Linux 6.1
    /// `tcp_twsk_unique` with `tcp_tw_reuse`).
    pub(crate) fn may_be_replaced(&self, now: Instant) -> bool {
        let second = |at: Instant| at.as_nanos() / 1_000_000_000;
        self.state == State::TimeWait
            && self.rcv.timestamps
            && self
                .rcv
                .ts_recent_at
                .is_some_and(|at| second(now) > second(at))
    }

    /// Ends TIME-WAIT for a new connection between the same ports, and says what that
    /// one begins with; none in another state.
    pub(crate) fn give_way(&mut self) -> Option<Earlier> {
        if self.state != State::TimeWait {
            return None;
        }
        let at = self.rcv.ts_recent_at.filter(|_| self.rcv.timestamps);
        let earlier = Earlier {
            iss: self.flow.next + BEYOND,
            timestamp: at.map(|at| (self.rcv.ts_recent, at)),
        };
        self.done(CloseReason::Finished);
        Some(earlier)
    }
}
