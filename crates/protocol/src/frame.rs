//! Frames: how packets are delimited in a stream of bytes.
//!
//! ```text
//! byte 0   'C'
//! byte 1   'H'
//! byte 2   length of the payload, high byte
//! byte 3   length of the payload, low byte
//! byte 4   compression: 1 is snappy, anything else none
//! byte 5…  the payload: one encoded packet, compressed if byte 4 says so
//! ```
//!
//! Older clients write the same five bytes as `CHNL` with the length laid over
//! the letters, from the right and only as far as it needs to: a frame of 18
//! bytes begins with `43 48 4e 12`. The decoder reads both and finds out from
//! the first frames which of the two a peer writes; the builder always writes
//! the current form, which both kinds of reader understand.

mod builder;
mod decoder;
mod form;

pub use builder::{FrameBuilder, PushError};
pub use decoder::{Frame, FrameDecoder};
pub use form::FrameForm;

use thiserror::Error;

use crate::compression::Compression;

/// The first two bytes of every frame.
pub const TAG: [u8; 2] = *b"CH";

/// Bytes before the payload.
pub const HEADER_LEN: usize = 5;

/// The longest payload the header can express.
pub const MAX_PAYLOAD: usize = u16::MAX as usize;

/// What a decoder puts up with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FrameLimits {
    /// The longest payload as it lies on the wire, at most [`MAX_PAYLOAD`].
    pub max_payload_bytes: usize,
    /// The most a compressed payload may unpack to.
    pub max_packet_bytes: usize,
}

impl Default for FrameLimits {
    /// Any payload the header can express, unpacking to at most 1 MiB.
    fn default() -> Self {
        Self {
            max_payload_bytes: MAX_PAYLOAD,
            max_packet_bytes: 1 << 20,
        }
    }
}

/// Why a stream of bytes is not frames. There is no way to find the next frame
/// after one of these: the connection is to be closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum FrameError {
    /// The bytes do not begin as a frame does.
    #[error("a frame begins with 'C', 'H', not with {0:#04x}, {1:#04x}")]
    BadTag(u8, u8),
    /// A frame without a payload.
    #[error("a frame without a payload")]
    Empty,
    /// A payload longer than is allowed.
    #[error("a payload of {size_bytes} bytes is longer than the {limit_bytes} allowed")]
    TooLarge {
        /// The length the header gives.
        size_bytes: usize,
        /// The longest allowed.
        limit_bytes: usize,
    },
}

/// The header of a frame in the current form.
#[must_use]
pub fn frame_header(payload_len: u16, compression: Compression) -> [u8; HEADER_LEN] {
    let [high, low] = payload_len.to_be_bytes();
    [TAG[0], TAG[1], high, low, compression as u8]
}
