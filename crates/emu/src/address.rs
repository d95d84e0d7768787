//! Which addresses the two hosts have in each lane.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How many lanes there are addresses for.
pub const MAX_LANES: usize = 256;

/// The addresses of one lane: a pair of each family, each reached only
/// through the lane's own devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneAddresses {
    /// The client host's, `10.77.LANE.1`.
    pub local_v4: Ipv4Addr,
    /// The server host's, `10.77.LANE.2`.
    pub remote_v4: Ipv4Addr,
    /// The client host's, `fd6c:6167:6f6d:LANE::1`.
    pub local_v6: Ipv6Addr,
    /// The server host's, `fd6c:6167:6f6d:LANE::2`.
    pub remote_v6: Ipv6Addr,
}

impl LaneAddresses {
    /// The addresses of lane number `lane`.
    #[must_use]
    pub const fn of(lane: u8) -> Self {
        // A unique local prefix (RFC 4193): fd, and "lagom" for its random
        // part. It never leaves the namespaces.
        const fn v6(lane: u8, host: u16) -> Ipv6Addr {
            Ipv6Addr::new(0xfd6c, 0x6167, 0x6f6d, lane as u16, 0, 0, 0, host)
        }
        Self {
            local_v4: Ipv4Addr::new(10, 77, lane, 1),
            remote_v4: Ipv4Addr::new(10, 77, lane, 2),
            local_v6: v6(lane, 1),
            remote_v6: v6(lane, 2),
        }
    }

    /// Whether a packet from `source` to `destination` goes from the local
    /// host of this lane to its server host.
    #[must_use]
    pub fn is_up(&self, source: IpAddr, destination: IpAddr) -> bool {
        (source == self.local_v4 && destination == self.remote_v4)
            || (source == self.local_v6 && destination == self.remote_v6)
    }
}
