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
    pub(super) random: Random,
    /// The offset of its time stamps; random if there is none.
    pub(super) ts_offset: Option<u32>,
    pub(super) earlier: Option<Earlier>,
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
            ts_offset: None,
            earlier: None,
        }
    }

    /// One of several connections of a host to the same address, whose time stamps go
    /// on from one to the next (Linux 6.1 `secure_tcp_ts_off`).
    pub(crate) const fn of_host(seed: u64, ts_offset: u32, earlier: Option<Earlier>) -> Self {
        Self {
            random: Random::new(seed),
            ts_offset: Some(ts_offset),
            earlier,
        }
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
