//! Which of the two forms of header a peer writes.

use crate::compression::{Compression, decompress};
use crate::packet::Packet;

use super::{FrameError, FrameLimits, HEADER_LEN, TAG};

/// The letter that stands in the third byte of a `CHNL` header, unless the
/// length needs that byte.
const LEGACY_FILLER: u8 = b'N';

/// The form of header a peer writes, as far as its frames have shown.
///
/// In most frames both forms look alike. A third byte of zero is only written
/// in the current form, and a third byte of `N` is a filler in the old one and
/// a high byte (19,968 to 20,223 bytes) in the current one: such a frame is
/// taken as an old one if its fourth byte alone, taken as the length, cuts off
/// a whole packet. Every peer starts with a login of less than 256 bytes and
/// so shows its form at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum FrameForm {
    /// No frame has shown it yet.
    #[default]
    Undecided,
    /// The length in bytes 2 and 3, always.
    Current,
    /// `CHNL` with the length laid over.
    Legacy,
}

/// What the beginning of a frame says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Examined {
    /// The frame is whole and this long, header included.
    Whole { len: usize },
    /// So many bytes from its beginning are needed to know more; always more
    /// than were given.
    Needs { len: usize },
}

impl FrameForm {
    /// Looks at `head`, the bytes from the beginning of a frame on, and learns
    /// the form from it where it can.
    pub(super) fn examine(
        &mut self,
        head: &[u8],
        limits: &FrameLimits,
    ) -> Result<Examined, FrameError> {
        if head.iter().zip(TAG).any(|(&byte, tag)| byte != tag) {
            let second = head.get(1).copied().unwrap_or_default();
            return Err(FrameError::BadTag(head[0], second));
        }
        let &[_, _, high, low, compression, ref payload @ ..] = head else {
            return Ok(Examined::Needs { len: HEADER_LEN });
        };
        let long = usize::from(u16::from_be_bytes([high, low]));
        let short = usize::from(low);

        if *self == Self::Undecided {
            if high == LEGACY_FILLER && short > 0 {
                let Some(candidate) = payload.get(..short) else {
                    return Ok(Examined::Needs {
                        len: HEADER_LEN + short,
                    });
                };
                *self = if is_packet(candidate, compression, limits) {
                    Self::Legacy
                } else {
                    Self::Current
                };
            } else if high == 0 {
                *self = Self::Current;
            }
        }
        let size_bytes = if *self == Self::Legacy && high == LEGACY_FILLER {
            short
        } else {
            long
        };

        if size_bytes == 0 {
            return Err(FrameError::Empty);
        }
        if size_bytes > limits.max_payload_bytes {
            return Err(FrameError::TooLarge {
                size_bytes,
                limit_bytes: limits.max_payload_bytes,
            });
        }
        let len = HEADER_LEN + size_bytes;
        Ok(if head.len() < len {
            Examined::Needs { len }
        } else {
            Examined::Whole { len }
        })
    }
}

fn is_packet(payload: &[u8], compression: u8, limits: &FrameLimits) -> bool {
    match Compression::from_byte(compression) {
        Compression::None => Packet::new_checked(payload).is_ok(),
        Compression::Snappy => {
            let mut unpacked = Vec::new();
            decompress(payload, limits.max_packet_bytes, &mut unpacked).is_ok()
                && Packet::new_checked(&unpacked).is_ok()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LIMITS: FrameLimits = FrameLimits {
        max_payload_bytes: super::super::MAX_PAYLOAD,
        max_packet_bytes: 1 << 20,
    };

    fn packet_of(len: usize) -> Vec<u8> {
        let mut out = Vec::new();
        // A packet of one message whose body fills it up to `len` bytes; the
        // body's length is found by trying.
        for body in (0..len).rev() {
            out.clear();
            crate::MessagePack {
                msg_type: 100,
                body: &vec![1; body],
                ..Default::default()
            }
            .encode_in_packet(&mut out);
            if out.len() == len {
                return out;
            }
        }
        unreachable!("no packet of {len} bytes");
    }

    fn legacy_frame(payload: &[u8]) -> Vec<u8> {
        let [_, _, middle, low] = u32::try_from(payload.len()).unwrap().to_be_bytes();
        let third = if payload.len() > 0xff { middle } else { b'N' };
        [&[b'C', b'H', third, low, 0], payload].concat()
    }

    #[test]
    fn a_short_first_frame_shows_the_form() {
        let packet = packet_of(18);
        let mut form = FrameForm::default();
        let old = legacy_frame(&packet);
        assert_eq!(form.examine(&old, &LIMITS), Ok(Examined::Whole { len: 23 }));
        assert_eq!(form, FrameForm::Legacy);

        let mut form = FrameForm::default();
        let new = [&frame_header_of(&packet)[..], &packet].concat();
        assert_eq!(form.examine(&new, &LIMITS), Ok(Examined::Whole { len: 23 }));
        assert_eq!(form, FrameForm::Current);
    }

    #[test]
    fn a_long_login_leaves_the_form_open_until_a_short_frame() {
        let mut form = FrameForm::default();
        let long = legacy_frame(&packet_of(400));
        assert_eq!(
            form.examine(&long, &LIMITS),
            Ok(Examined::Whole { len: 405 })
        );
        assert_eq!(form, FrameForm::Undecided);
        let short = legacy_frame(&packet_of(30));
        assert_eq!(
            form.examine(&short, &LIMITS),
            Ok(Examined::Whole { len: 35 })
        );
        assert_eq!(form, FrameForm::Legacy);
    }

    #[test]
    fn a_current_frame_whose_high_byte_is_the_filler_is_not_cut_short() {
        for len in [19_968, 19_970, 20_000, 20_223] {
            let packet = packet_of(len);
            let frame = [&frame_header_of(&packet)[..], &packet].concat();
            let mut form = FrameForm::default();
            assert_eq!(
                form.examine(&frame, &LIMITS),
                Ok(Examined::Whole { len: len + 5 })
            );
        }
    }

    #[test]
    fn an_empty_frame_is_refused_in_both_forms() {
        for form in [FrameForm::Undecided, FrameForm::Current, FrameForm::Legacy] {
            let mut form = form;
            assert_eq!(
                form.examine(&[b'C', b'H', 0, 0, 0, 1], &LIMITS),
                Err(FrameError::Empty)
            );
        }
        let mut form = FrameForm::Legacy;
        assert_eq!(form.examine(b"CHN\0\0", &LIMITS), Err(FrameError::Empty));
    }

    fn frame_header_of(payload: &[u8]) -> [u8; HEADER_LEN] {
        super::super::frame_header(payload.len().try_into().unwrap(), Compression::None)
    }
}
