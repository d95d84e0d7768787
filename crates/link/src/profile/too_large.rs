//! Traffic whose packets no line takes: none of it would arrive.

use thiserror::Error;

use super::Profile;
use super::cross::Cross;
use super::written::Oversize;
use crate::Direction;

/// Other traffic with packets above a direction's MTU. TCP's are not meant, which is
/// told, or finds out.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error(
    "other traffic `{name}` has packets of {packet_bytes} B, above the `mtu` {direction} of \
     {mtu_bytes} B, so that none arrives: say a `size` of {mtu_bytes} B or less, or a larger `mtu`"
)]
pub struct TooLarge {
    /// What it is called.
    pub name: String,
    /// Its place among all other traffic.
    pub place: usize,
    /// Where its data go.
    pub direction: Direction,
    /// What its packets have.
    pub packet_bytes: u64,
    /// What passes there.
    pub mtu_bytes: u64,
}

impl Profile {
    /// Whether the packets of `crosses` fit this network's MTUs.
    ///
    /// # Errors
    ///
    /// [`TooLarge`] for the first whose packets do not.
    pub fn check_packets(&self, crosses: &[Cross]) -> Result<(), TooLarge> {
        for (place, cross) in crosses.iter().enumerate() {
            let direction = Direction::from(cross.direction);
            let packet_bytes = cross.packet_bytes();
            if let Some((mtu_bytes, _)) = self.plan(direction).mtu
                && !cross.is_tcp()
                && packet_bytes > mtu_bytes
            {
                return Err(TooLarge {
                    name: cross.name().to_owned(),
                    place,
                    direction,
                    packet_bytes,
                    mtu_bytes,
                });
            }
        }
        Ok(())
    }

    /// Whether packets above the MTU of a direction vanish where TCP sends 1500 B.
    #[must_use]
    pub fn swallows_full_packets(&self, direction: Direction) -> bool {
        let mtu = self.plan(direction).mtu;
        mtu.is_some_and(|(mtu, oversize)| mtu < 1500 && oversize == Oversize::Vanish)
    }

    /// Whether a direction's queue takes whatever comes.
    #[must_use]
    pub fn has_unbounded_queue(&self, direction: Direction) -> bool {
        let limit = self.plan(direction).queue.limit;
        limit.bytes.is_none() && limit.packets.is_none()
    }
}
