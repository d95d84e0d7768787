//! Snappy, with a limit on what comes out.

use thiserror::Error;

/// How a frame's payload is packed: the fifth byte of its header.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[repr(u8)]
pub enum Compression {
    /// The packet as it is.
    #[default]
    None = 0,
    /// Snappy's block format, without stream framing.
    Snappy = 1,
}

impl Compression {
    /// Reads the header's byte. Values that name nothing mean an uncompressed
    /// payload, as they always have.
    #[must_use]
    pub fn from_byte(byte: u8) -> Self {
        if byte == Self::Snappy as u8 {
            Self::Snappy
        } else {
            Self::None
        }
    }
}

/// Why a payload could not be unpacked.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum DecompressError {
    /// More would come out than is allowed; nothing was allocated.
    #[error("{size_bytes} bytes would come out, more than the {limit_bytes} allowed")]
    TooLarge {
        /// The size the payload claims.
        size_bytes: usize,
        /// The most allowed.
        limit_bytes: usize,
    },
    /// The bytes are not snappy's.
    #[error("not a snappy block: {0}")]
    Corrupt(#[from] snap::Error),
}

/// The most a snappy block can grow: a copy of 64 bytes takes at least three.
const MAX_RATIO: usize = 22;

/// Unpacks `payload` into `scratch`, replacing what it held.
///
/// # Errors
///
/// [`DecompressError`] when more than `limit_bytes` would come out or the
/// bytes are corrupt; `scratch` then holds nothing of use.
pub fn decompress(
    payload: &[u8],
    limit_bytes: usize,
    scratch: &mut Vec<u8>,
) -> Result<(), DecompressError> {
    let size_bytes = snap::raw::decompress_len(payload)?;
    // A claim that the payload cannot keep is caught before memory is taken.
    let possible = payload.len().saturating_mul(MAX_RATIO);
    let limit_bytes = limit_bytes.min(possible);
    if size_bytes > limit_bytes {
        return Err(DecompressError::TooLarge {
            size_bytes,
            limit_bytes,
        });
    }
    scratch.clear();
    scratch.resize(size_bytes, 0);
    snap::raw::Decoder::new().decompress(payload, scratch)?;
    Ok(())
}

/// Packs payloads, keeping its tables from one to the next.
#[derive(Debug)]
pub struct Compressor {
    encoder: snap::raw::Encoder,
    packed: Vec<u8>,
}

impl Default for Compressor {
    fn default() -> Self {
        Self {
            encoder: snap::raw::Encoder::new(),
            packed: Vec::new(),
        }
    }
}

impl Compressor {
    /// A compressor with empty tables.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Packs `payload`. `None` when that would not make it smaller.
    pub fn compress(&mut self, payload: &[u8]) -> Option<&[u8]> {
        self.packed
            .resize(snap::raw::max_compress_len(payload.len()), 0);
        let size = self.encoder.compress(payload, &mut self.packed).ok()?;
        (size < payload.len()).then(|| &self.packed[..size])
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn what_was_packed_is_unpacked(seed in proptest::collection::vec(any::<u8>(), 1..64), times in 1usize..200) {
            let payload = seed.repeat(times);
            let mut compressor = Compressor::new();
            if let Some(packed) = compressor.compress(&payload) {
                let mut unpacked = vec![1, 2, 3];
                decompress(packed, payload.len(), &mut unpacked).unwrap();
                prop_assert_eq!(unpacked, payload);
            }
        }

        #[test]
        fn noise_does_no_harm(payload in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut scratch = Vec::new();
            let _ = decompress(&payload, 1000, &mut scratch);
            prop_assert!(scratch.capacity() <= 1000.max(payload.len() * MAX_RATIO));
        }
    }

    #[test]
    fn a_bomb_is_refused_before_memory_is_taken() {
        let zeros = vec![0; 900_000];
        let mut compressor = Compressor::new();
        let bomb = compressor.compress(&zeros).unwrap().to_vec();
        assert!(bomb.len() < 65_536, "it fits a frame");
        let mut scratch = Vec::new();
        assert_eq!(
            decompress(&bomb, 100_000, &mut scratch),
            Err(DecompressError::TooLarge {
                size_bytes: 900_000,
                limit_bytes: 100_000
            })
        );
        assert_eq!(scratch.capacity(), 0);
        decompress(&bomb, 900_000, &mut scratch).unwrap();
        assert_eq!(scratch, zeros, "the densest block is within the ratio");
    }

    #[test]
    fn a_claim_that_cannot_be_kept_is_refused() {
        let lie = [0xff, 0xff, 0x3f, 0, 0];
        let mut scratch = Vec::new();
        assert!(matches!(
            decompress(&lie, usize::MAX, &mut scratch),
            Err(DecompressError::TooLarge { .. })
        ));
        assert_eq!(scratch.capacity(), 0);
    }

    #[test]
    fn bytes_that_name_no_compression_mean_none() {
        assert_eq!(Compression::from_byte(0), Compression::None);
        assert_eq!(Compression::from_byte(1), Compression::Snappy);
        assert_eq!(Compression::from_byte(2), Compression::None);
    }
}
