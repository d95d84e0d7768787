//! What becomes of a packet on a link: when it arrives, or why it does not.

use std::fmt;

use lagometer_units::Time;

/// What becomes of a packet, known the moment it enters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It arrives, perhaps twice.
    Delivered {
        /// When and how it arrives.
        first: Arrival,
        /// When and how its copy arrives, if the link makes one; never before
        /// the first.
        copy: Option<Arrival>,
    },
    /// It never arrives.
    Dropped(Reason),
    /// It is larger than the link takes, and the sender is notified.
    Refused {
        /// The largest packet that would be taken, in bytes.
        mtu_bytes: u64,
    },
}

/// One arrival at the remote end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// When the packet is there.
    pub at: Time,
    /// What happened to its bits, if anything did.
    pub damage: Option<Damage>,
}

/// Why a packet never arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Reason {
    /// Independent loss, a recording's included.
    Loss,
    /// The loss of a Gilbert-Elliott burst or of the time between bursts.
    Burst,
    /// An outage.
    Outage,
    /// The queue was full.
    QueueFull,
    /// It was larger than the MTU of a link on which such packets vanish.
    Oversize,
    /// The queue's management dropped it though there was room.
    QueueManaged,
}

impl Reason {
    /// All of them.
    pub const ALL: [Self; 6] = [
        Self::Loss,
        Self::Burst,
        Self::Outage,
        Self::QueueFull,
        Self::Oversize,
        Self::QueueManaged,
    ];

    /// The reason in one word, as documents have it.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Loss => "loss",
            Self::Burst => "burst",
            Self::Outage => "outage",
            Self::QueueFull => "queue_full",
            Self::Oversize => "oversize",
            Self::QueueManaged => "queue_managed",
        }
    }
}

impl Fate {
    /// The arrivals: none, one or two.
    pub fn arrivals(self) -> impl Iterator<Item = Arrival> {
        let (first, copy) = match self {
            Self::Delivered { first, copy } => (Some(first), copy),
            Self::Dropped(_) | Self::Refused { .. } => (None, None),
        };
        first.into_iter().chain(copy)
    }

    /// The fate in words, of a packet that entered at `entered`: `arrives after
    /// 25.000 ms`, `dropped: loss`.
    #[must_use]
    pub const fn in_words(&self, entered: Time) -> impl fmt::Display {
        InWords {
            fate: *self,
            entered,
        }
    }
}

struct InWords {
    fate: Fate,
    entered: Time,
}

impl fmt::Display for InWords {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let millis = |at: Time| at.since(self.entered).as_secs_f64() * 1e3;
        match self.fate {
            Fate::Delivered { first, copy } => {
                write!(formatter, "arrives after {:.3} ms", millis(first.at))?;
                if first.damage.is_some() {
                    formatter.write_str(", damaged")?;
                }
                if let Some(copy) = copy {
                    write!(formatter, ", again after {:.3} ms", millis(copy.at))?;
                    if copy.damage.is_some() {
                        formatter.write_str(", damaged")?;
                    }
                }
                Ok(())
            }
            Fate::Dropped(reason) => write!(formatter, "dropped: {}", reason.name()),
            Fate::Refused { mtu_bytes } => write!(formatter, "refused: the MTU is {mtu_bytes} B"),
        }
    }
}

/// A burst of flipped bits: within 15 that follow each other, some or all.
///
/// The Internet checksum catches every such burst (all bursts of up to 15
/// bits; of 16 bits all but an exchange of all zeros and all ones: Stone and
/// Partridge, "When the CRC and TCP Checksum Disagree", SIGCOMM 2000). A host,
/// real or simulated, therefore drops a damaged UDP or TCP packet, unless its
/// sender left the UDP checksum out; what reads the bytes below the checksum
/// sees them damaged.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Damage {
    draw: u64,
}

impl Damage {
    /// Damage that the 64 even bits of `draw` decide.
    pub(crate) const fn new(draw: u64) -> Self {
        Self { draw }
    }

    /// Flips the bits. Fewer than two bytes are taken as they are: one bit of
    /// a single byte is flipped; of none, nothing.
    pub fn apply(self, bytes: &mut [u8]) {
        // The window's place from the upper half, the pattern from the lower.
        let place = self.draw >> 32;
        if let [only] = bytes {
            *only ^= 1 << (place % 8);
            return;
        }
        let Some(windows) = (bytes.len() as u64 * 8).checked_sub(14) else {
            return;
        };
        // Even enough: a packet has far fewer windows than 2^32.
        let first_bit = place % windows;
        // 15 bits of the window, at least one of them set.
        let pattern = (self.draw & 0x7FFF).max(1) as u32;
        let byte = (first_bit / 8) as usize;
        let shifted = pattern << (9 - first_bit % 8);
        for (offset, flips) in shifted.to_be_bytes()[1..].iter().enumerate() {
            if let Some(byte) = bytes.get_mut(byte + offset) {
                *byte ^= flips;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// RFC 1071.
    fn internet_checksum(bytes: &[u8]) -> u16 {
        let mut sum = 0_u32;
        for pair in bytes.chunks(2) {
            let word = [pair[0], pair.get(1).copied().unwrap_or(0)];
            sum += u32::from(u16::from_be_bytes(word));
        }
        while sum > 0xFFFF {
            sum = (sum & 0xFFFF) + (sum >> 16);
        }
        !(sum as u16)
    }

    proptest! {
        #[test]
        fn the_internet_checksum_catches_every_burst(
            bytes in proptest::collection::vec(any::<u8>(), 1..80),
            draw: u64,
        ) {
            let mut damaged = bytes.clone();
            Damage::new(draw).apply(&mut damaged);
            prop_assert_ne!(internet_checksum(&damaged), internet_checksum(&bytes));
        }

        #[test]
        fn the_flips_lie_within_fifteen_bits(
            length in 1_usize..40,
            draw: u64,
        ) {
            let mut bytes = vec![0; length];
            Damage::new(draw).apply(&mut bytes);
            let set: Vec<usize> = (0..length * 8)
                .filter(|bit| bytes[bit / 8] & (0x80 >> (bit % 8)) != 0)
                .collect();
            prop_assert!((1..=15).contains(&set.len()), "{set:?}");
            prop_assert!(set[set.len() - 1] - set[0] < 15);
        }
    }

    #[test]
    fn fates_are_reported_with_how_long_the_packet_takes() {
        let arrival = |ms, damage| Arrival {
            at: Time::from_millis(ms),
            damage,
        };
        let fates = [
            Fate::Delivered {
                first: arrival(125, None),
                copy: Some(arrival(130, Some(Damage::new(1)))),
            },
            Fate::Dropped(Reason::Loss),
            Fate::Refused { mtu_bytes: 1200 },
        ];
        let written = fates.map(|fate| fate.in_words(Time::from_millis(100)).to_string());
        let expected = [
            "arrives after 25.000 ms, again after 30.000 ms, damaged",
            "dropped: loss",
            "refused: the MTU is 1200 B",
        ];
        assert_eq!(written, expected);
    }

    #[test]
    fn every_bit_can_be_hit_and_nothing_is_harmless() {
        Damage::new(u64::MAX).apply(&mut []);
        let mut hit = [0_u8; 4];
        for place in 0..200_u64 {
            let mut bytes = [0; 4];
            Damage::new(place << 32 | 0x7FFF).apply(&mut bytes);
            hit.iter_mut().zip(bytes).for_each(|(all, one)| *all |= one);
        }
        assert_eq!(hit, [0xFF; 4]);
    }
}
