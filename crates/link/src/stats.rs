//! What a direction did with the packets it was offered, counted.

use std::ops::AddAssign;

use crate::fate::{Fate, Reason};

/// Packets and their bytes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Amount {
    /// How many packets.
    pub packets: u64,
    /// How many bytes they had together.
    pub bytes: u64,
}

/// What one direction did with the packets it was offered.
///
/// Every packet is offered and then either delivered, dropped for one reason,
/// or refused: [`LinkStats::is_conserved`]. A delivered packet may still be on its
/// way: `Link::in_flight`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct LinkStats {
    /// All that entered.
    pub offered: Amount,
    /// What arrived or will arrive, each packet counted once.
    pub delivered: Amount,
    /// What never arrives, by reason, in the order of [`Reason::ALL`].
    pub dropped: [Amount; Reason::ALL.len()],
    /// What the sender was notified is too large.
    pub refused: Amount,
    /// The second arrivals of packets already counted as delivered.
    pub copies: Amount,
    /// The arrivals, copies included, whose bits are damaged.
    pub damaged: Amount,
}

impl LinkStats {
    /// What was dropped for `reason`.
    #[must_use]
    pub const fn dropped_for(&self, reason: Reason) -> Amount {
        self.dropped[reason as usize]
    }

    /// What was dropped for whatever reason.
    #[must_use]
    pub fn dropped(&self) -> Amount {
        let mut sum = Amount::default();
        for amount in self.dropped {
            sum += amount;
        }
        sum
    }

    /// Counts a packet of `bytes` and what became of it.
    pub(crate) fn count(&mut self, bytes: u64, fate: &Fate) {
        let packet = Amount::packet(bytes);
        self.offered += packet;
        match fate {
            Fate::Delivered { .. } => self.delivered += packet,
            Fate::Dropped(reason) => self.dropped[*reason as usize] += packet,
            Fate::Refused { .. } => self.refused += packet,
        }
        for (nth, arrival) in fate.arrivals().enumerate() {
            if nth > 0 {
                self.copies += packet;
            }
            if arrival.damage.is_some() {
                self.damaged += packet;
            }
        }
    }

    /// Whether all that was offered is accounted for.
    #[must_use]
    pub fn is_conserved(&self) -> bool {
        let mut accounted = self.delivered;
        accounted += self.dropped();
        accounted += self.refused;
        accounted == self.offered
    }
}

impl Amount {
    /// One packet of `bytes`.
    pub(crate) const fn packet(bytes: u64) -> Self {
        Self { packets: 1, bytes }
    }
}

impl AddAssign for Amount {
    fn add_assign(&mut self, other: Self) {
        self.packets = self.packets.saturating_add(other.packets);
        self.bytes = self.bytes.saturating_add(other.bytes);
    }
}
