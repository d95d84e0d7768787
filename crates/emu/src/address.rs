//! Which addresses the two hosts have in each lane.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// How many lanes there are addresses for.
pub const MAX_LANES: usize = 256;

/// The addresses of one lane: a pair of each family, each reached only
/// through the lane's own devices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneAddresses {
    /// The near host's, `10.77.LANE.1`.
    pub near_v4: Ipv4Addr,
    /// The far host's, `10.77.LANE.2`.
    pub far_v4: Ipv4Addr,
    /// The near host's, `fd6c:6167:6f6d:LANE::1`.
    pub near_v6: Ipv6Addr,
    /// The far host's, `fd6c:6167:6f6d:LANE::2`.
    pub far_v6: Ipv6Addr,
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
            near_v4: Ipv4Addr::new(10, 77, lane, 1),
            far_v4: Ipv4Addr::new(10, 77, lane, 2),
            near_v6: v6(lane, 1),
            far_v6: v6(lane, 2),
        }
    }

    /// Whether a packet from `source` to `destination` goes from the near
    /// host of this lane to its far host.
    #[must_use]
    pub fn is_up(&self, source: IpAddr, destination: IpAddr) -> bool {
        (source == self.near_v4 && destination == self.far_v4)
            || (source == self.near_v6 && destination == self.far_v6)
    }
}
