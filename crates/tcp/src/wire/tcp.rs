//! The TCP header (RFC 9293, section 3.1).

use super::options::TcpOptions;
use crate::Seq;

/// Bytes of a header without options.
pub const TCP_HEADER: usize = 20;

/// The control bits of a segment.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// No more data from the sender.
    pub const FIN: Self = Self(0x01);
    /// Synchronise sequence numbers.
    pub const SYN: Self = Self(0x02);
    /// Reset the connection.
    pub const RST: Self = Self(0x04);
    /// Push.
    pub const PSH: Self = Self(0x08);
    /// The acknowledgement field counts.
    pub const ACK: Self = Self(0x10);
    /// The urgent pointer counts; ignored (RFC 6093).
    pub const URG: Self = Self(0x20);
    /// Echo of congestion experienced (RFC 3168).
    pub const ECE: Self = Self(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Self = Self(0x80);

    /// Whether all of the other's bits are set.
    #[must_use]
    pub const fn contains(self, other: Self) -> bool {
        self.0 & other.0 == other.0
    }

    /// Both sets of bits.
    #[must_use]
    pub const fn with(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    /// These bits without the other's.
    #[must_use]
    pub const fn without(self, other: Self) -> Self {
        Self(self.0 & !other.0)
    }
}

impl std::fmt::Debug for Flags {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let names = ["F", "S", "R", "P", ".", "U", "E", "W"];
        for (bit, name) in names.iter().enumerate() {
            if self.0 >> bit & 1 == 1 {
                f.write_str(name)?;
            }
        }
        Ok(())
    }
}

/// One TCP segment; its payload is borrowed from the packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Segment<'a> {
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Sequence number of the first byte, or of the SYN.
    pub seq: Seq,
    /// The next byte the sender waits for; counts if [`Flags::ACK`] is set.
    pub ack: Seq,
    /// Control bits.
    pub flags: Flags,
    /// The window as it stands in the header, not yet scaled.
    pub window: u16,
    /// Options.
    pub options: TcpOptions,
    /// Payload.
    pub payload: &'a [u8],
}

impl<'a> Segment<'a> {
    /// Reads a segment; `None` when its lengths contradict each other.
    #[must_use]
    pub(super) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let (header, _) = bytes.split_at_checked(TCP_HEADER)?;
        let length = usize::from(header[12] >> 4) * 4;
        if length < TCP_HEADER {
            return None;
        }
        let (whole, payload) = bytes.split_at_checked(length)?;
        let flags = Flags(header[13]);
        Some(Self {
            source_port: u16::from_be_bytes([header[0], header[1]]),
            destination_port: u16::from_be_bytes([header[2], header[3]]),
            seq: Seq(u32::from_be_bytes([
                header[4], header[5], header[6], header[7],
            ])),
            ack: Seq(u32::from_be_bytes([
                header[8], header[9], header[10], header[11],
            ])),
            flags,
            window: u16::from_be_bytes([header[14], header[15]]),
            options: TcpOptions::parse(&whole[TCP_HEADER..], flags.contains(Flags::SYN)),
            payload,
        })
    }

    /// Appends header and options, with a checksum of zero.
    pub(super) fn write_header(&self, out: &mut Vec<u8>) {
        let mut options = [0; 40];
        let options_length = self.options.write(&mut options);
        out.extend_from_slice(&self.source_port.to_be_bytes());
        out.extend_from_slice(&self.destination_port.to_be_bytes());
        out.extend_from_slice(&self.seq.0.to_be_bytes());
        out.extend_from_slice(&self.ack.0.to_be_bytes());
        let words = ((TCP_HEADER + options_length) / 4) as u8;
        out.extend_from_slice(&[words << 4, self.flags.0]);
        out.extend_from_slice(&self.window.to_be_bytes());
        out.extend_from_slice(&[0; 4]);
        out.extend_from_slice(&options[..options_length]);
    }

    /// Whether a control bit is set.
    #[must_use]
    pub const fn has(&self, flags: Flags) -> bool {
        self.flags.contains(flags)
    }

    /// The sequence numbers it takes: payload, SYN and FIN.
    #[must_use]
    pub fn sequence_length(&self) -> u32 {
        self.payload.len() as u32
            + u32::from(self.has(Flags::SYN))
            + u32::from(self.has(Flags::FIN))
    }

    /// Bytes of its options as this crate would write them.
    pub(crate) fn options_length(&self) -> u32 {
        self.options.length() as u32
    }

    /// The sequence number after its last.
    #[must_use]
    pub fn end(&self) -> Seq {
        self.seq + self.sequence_length()
    }
}
