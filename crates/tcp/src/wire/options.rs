//! TCP options: maximum segment size, window scale, selective
//! acknowledgements (RFC 2018, 2883) and time stamps (RFC 7323).

use crate::Seq;

/// SACK blocks that fit into a header without any other option.
pub const MAX_SACK_BLOCKS: usize = 4;

/// Bytes received out of order: `start..end`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SackBlock {
    /// The first byte of the block.
    pub start: Seq,
    /// The byte after its last.
    pub end: Seq,
}

/// Up to [`MAX_SACK_BLOCKS`] blocks, in the order in which they stand on the
/// wire.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct SackBlocks {
    blocks: [SackBlock; MAX_SACK_BLOCKS],
    length: u8,
}

impl SackBlocks {
    /// Adds a block; one that does not fit is left out.
    pub fn push(&mut self, block: SackBlock) {
        if let Some(place) = self.blocks.get_mut(usize::from(self.length)) {
            *place = block;
            self.length += 1;
        }
    }

    /// The blocks.
    #[must_use]
    pub fn as_slice(&self) -> &[SackBlock] {
        &self.blocks[..usize::from(self.length)]
    }

    /// Whether there is none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.length == 0
    }
}

/// The options of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub struct TcpOptions {
    /// Maximum segment size in bytes; on a SYN only.
    pub mss: Option<u16>,
    /// Window scale, 0 to 14; on a SYN only. A larger one is read as 14, as RFC
    /// 7323, section 2.3, says.
    pub window_scale: Option<u8>,
    /// Whether selective acknowledgements are permitted; on a SYN only.
    pub sack_permitted: bool,
    /// Time stamp value and echo.
    pub timestamps: Option<(u32, u32)>,
    /// Selective acknowledgements.
    pub sack: SackBlocks,
}

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

impl TcpOptions {
    /// Reads the options of a header. What is unknown or has a wrong length is
    /// passed over; an option that reaches past the end stops the reading, as
    /// Linux 6.1 `tcp_parse_options` does. MSS, window scale and SACK-permitted
    /// count on a SYN only.
    #[must_use]
    pub fn parse(mut bytes: &[u8], syn: bool) -> Self {
        let mut options = Self::default();
        while let Some((&kind, rest)) = bytes.split_first() {
            match kind {
                END => break,
                NOP => bytes = rest,
                _ => {
                    let length = rest.first().map_or(0, |length| usize::from(*length));
                    if length < 2 || length > bytes.len() {
                        break;
                    }
                    options.take(kind, &bytes[2..length], syn);
                    bytes = &bytes[length..];
                }
            }
        }
        options
    }

    fn take(&mut self, kind: u8, body: &[u8], syn: bool) {
        match (kind, body) {
            (MSS, [high, low]) if syn => {
                let mss = u16::from_be_bytes([*high, *low]);
                self.mss = (mss != 0).then_some(mss);
            }
            (WINDOW_SCALE, [scale]) if syn => self.window_scale = Some((*scale).min(14)),
            (SACK_PERMITTED, []) if syn => self.sack_permitted = true,
            (TIMESTAMPS, body) if body.len() == 8 => {
                self.timestamps = Some((word(body), word(&body[4..])));
            }
            (SACK, body) if !body.is_empty() && body.len().is_multiple_of(8) => {
                self.sack = SackBlocks::default();
                for block in body.chunks_exact(8) {
                    self.sack.push(SackBlock {
                        start: Seq(word(block)),
                        end: Seq(word(&block[4..])),
                    });
                }
            }
            _ => {}
        }
    }

    /// Writes the options in Linux's order and padding (Linux 6.1
    /// `tcp_options_write`) and returns their length, a multiple of four and at
    /// most 40.
    pub(super) fn write(&self, out: &mut [u8; 40]) -> usize {
        let mut writer = Writer { out, length: 0 };
        if let Some(mss) = self.mss {
            let [high, low] = mss.to_be_bytes();
            writer.put(&[MSS, 4, high, low]);
        }
        if let Some((value, echo)) = self.timestamps {
            if self.sack_permitted {
                writer.put(&[SACK_PERMITTED, 2, TIMESTAMPS, 10]);
            } else {
                writer.put(&[NOP, NOP, TIMESTAMPS, 10]);
            }
            writer.put(&value.to_be_bytes());
            writer.put(&echo.to_be_bytes());
        } else if self.sack_permitted {
            writer.put(&[NOP, NOP, SACK_PERMITTED, 2]);
        }
        if let Some(scale) = self.window_scale {
            writer.put(&[NOP, WINDOW_SCALE, 3, scale]);
        }
        let room = (40 - writer.length).saturating_sub(4) / 8;
        let blocks = self.sack.as_slice();
        let blocks = &blocks[..blocks.len().min(room)];
        if !blocks.is_empty() {
            writer.put(&[NOP, NOP, SACK, 2 + 8 * blocks.len() as u8]);
            for block in blocks {
                writer.put(&block.start.0.to_be_bytes());
                writer.put(&block.end.0.to_be_bytes());
            }
        }
        writer.length
    }

    /// Bytes that [`write`](Self::write) takes.
    pub(crate) fn length(&self) -> usize {
        self.write(&mut [0; 40])
    }
}

/// Appends to the space for options; what does not fit is left out.
struct Writer<'a> {
    out: &'a mut [u8; 40],
    length: usize,
}

impl Writer<'_> {
    fn put(&mut self, bytes: &[u8]) {
        if let Some(place) = self.out.get_mut(self.length..self.length + bytes.len()) {
            place.copy_from_slice(bytes);
            self.length += bytes.len();
        }
    }
}

fn word(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
}

#[cfg(test)]
mod tests {
    use super::{SackBlock, SackBlocks, TcpOptions};
    use crate::Seq;

    #[test]
    fn options_of_a_syn_come_back() {
        let options = TcpOptions {
            mss: Some(1460),
            window_scale: Some(7),
            sack_permitted: true,
            timestamps: Some((7, 9)),
            sack: SackBlocks::default(),
        };
        let mut bytes = [0; 40];
        let length = options.write(&mut bytes);
        assert_eq!(length, 20);
        assert_eq!(TcpOptions::parse(&bytes[..length], true), options);
        let data = TcpOptions::parse(&bytes[..length], false);
        assert_eq!(
            (data.mss, data.window_scale, data.sack_permitted),
            (None, None, false)
        );
    }

    #[test]
    fn three_blocks_fit_beside_time_stamps_and_four_without() {
        let mut sack = SackBlocks::default();
        for i in 0..5 {
            sack.push(SackBlock {
                start: Seq(i * 100),
                end: Seq(i * 100 + 50),
            });
        }
        let mut options = TcpOptions {
            sack,
            ..TcpOptions::default()
        };
        let mut bytes = [0; 40];
        let length = options.write(&mut bytes);
        assert_eq!(
            TcpOptions::parse(&bytes[..length], false)
                .sack
                .as_slice()
                .len(),
            4
        );
        options.timestamps = Some((1, 2));
        let length = options.write(&mut bytes);
        assert_eq!(
            TcpOptions::parse(&bytes[..length], false)
                .sack
                .as_slice()
                .len(),
            3
        );
    }

    #[test]
    fn truncated_and_absurd_options_are_passed_over() {
        assert_eq!(TcpOptions::parse(&[8, 10, 1], true), TcpOptions::default());
        assert_eq!(
            TcpOptions::parse(&[2, 0, 1, 1], true),
            TcpOptions::default()
        );
        assert_eq!(TcpOptions::parse(&[2, 1], true), TcpOptions::default());
        assert_eq!(
            TcpOptions::parse(&[253, 4, 0, 0, 3, 3, 200], true).window_scale,
            Some(14)
        );
        assert_eq!(TcpOptions::parse(&[5, 3, 0], true), TcpOptions::default());
    }
}
