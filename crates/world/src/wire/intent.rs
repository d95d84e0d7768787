//! What a player sends its server: where it turned, how often it jumped and
//! teleported.
//!
//! The servers of the published tests get their players' moves as a remote
//! function with a packed payload of some 70 bytes. Ours has the same size on
//! the wire and holds counts since the start, not events: a move that is late,
//! merged or dropped at a handover is made good by the next.

use thiserror::Error;

/// The bytes of a packed intent: those of the engine's packed move, so that
/// frames are as long as published.
const LEN: usize = 41;

/// What a player wants, so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Intent {
    /// How many intents came before this one.
    pub sequence: u32,
    /// Milliseconds of the run at which it was formed.
    pub at_ms: u32,
    /// Quarters turned since the start, anticlockwise where positive.
    pub quarters: i32,
    /// Jumps since the start.
    pub jumps: u32,
    /// Teleports since the start.
    pub teleports: u32,
}

/// Bytes that are no intent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
#[error("a packed move of {0} bytes; {LEN} were expected")]
pub struct BadIntent(usize);

impl Intent {
    /// As it goes over the wire.
    #[must_use]
    pub fn pack(&self) -> [u8; LEN] {
        let mut packed = [0; LEN];
        let fields = [
            self.sequence,
            self.at_ms,
            self.quarters.cast_unsigned(),
            self.jumps,
            self.teleports,
        ];
        for (bytes, field) in packed.chunks_exact_mut(4).zip(fields) {
            bytes.copy_from_slice(&field.to_le_bytes());
        }
        packed
    }

    /// Reads what [`Intent::pack`] wrote.
    ///
    /// # Errors
    ///
    /// [`BadIntent`] for another length.
    pub fn unpack(packed: &[u8]) -> Result<Self, BadIntent> {
        if packed.len() != LEN {
            return Err(BadIntent(packed.len()));
        }
        let field = |nth: usize| {
            let bytes = &packed[4 * nth..4 * nth + 4];
            u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
        };
        Ok(Self {
            sequence: field(0),
            at_ms: field(1),
            quarters: field(2).cast_signed(),
            jumps: field(3),
            teleports: field(4),
        })
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_is_packed_is_unpacked(
            sequence: u32,
            at_ms: u32,
            quarters: i32,
            jumps: u32,
            teleports: u32,
        ) {
            let intent = Intent { sequence, at_ms, quarters, jumps, teleports };
            prop_assert_eq!(Intent::unpack(&intent.pack()), Ok(intent));
        }

        #[test]
        fn no_bytes_are_too_strange(bytes: Vec<u8>) {
            prop_assert_eq!(Intent::unpack(&bytes).is_ok(), bytes.len() == LEN);
        }
    }
}
