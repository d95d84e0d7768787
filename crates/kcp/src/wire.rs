//! The wire format: 24 bytes of header, little-endian, in front of every
//! segment; a datagram is one or more segments back to back.

use thiserror::Error;

/// Bytes of header in front of every segment.
pub const HEADER_BYTES: usize = 24;

/// What a segment is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Command {
    /// Carries a piece of a message.
    Push,
    /// Acknowledges one received segment by its sequence number and timestamp.
    Acknowledge,
    /// Asks the peer how much room its receive window has.
    AskWindow,
    /// Reports to the peer how much room our receive window has.
    ReportWindow,
}

impl Command {
    /// The command's byte on the wire.
    #[must_use]
    pub const fn byte(self) -> u8 {
        match self {
            Self::Push => 81,
            Self::Acknowledge => 82,
            Self::AskWindow => 83,
            Self::ReportWindow => 84,
        }
    }

    /// The command with this byte, if there is one.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            81 => Some(Self::Push),
            82 => Some(Self::Acknowledge),
            83 => Some(Self::AskWindow),
            84 => Some(Self::ReportWindow),
            _ => None,
        }
    }
}

/// The header of one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// Names the conversation; both ends must agree on it beforehand.
    pub conversation: u32,
    /// What the segment is for.
    pub command: Command,
    /// How many segments of the same message follow; 0 in the last one.
    pub fragment: u8,
    /// Room in the sender's receive window, in segments.
    pub window: u16,
    /// The sender's clock in milliseconds at this transmission; in an
    /// acknowledgement, the timestamp of the segment acknowledged.
    pub timestamp: u32,
    /// Which segment this is, or which one is acknowledged.
    pub sequence: u32,
    /// Everything below this number has arrived in order at the sender.
    pub unacknowledged: u32,
    /// Bytes of payload that follow.
    pub length: u32,
}

impl Header {
    /// Writes the header over the first [`HEADER_BYTES`] of `room`.
    #[inline]
    pub(crate) fn write(&self, room: &mut [u8; HEADER_BYTES]) {
        room[0..4].copy_from_slice(&self.conversation.to_le_bytes());
        room[4] = self.command.byte();
        room[5] = self.fragment;
        room[6..8].copy_from_slice(&self.window.to_le_bytes());
        room[8..12].copy_from_slice(&self.timestamp.to_le_bytes());
        room[12..16].copy_from_slice(&self.sequence.to_le_bytes());
        room[16..20].copy_from_slice(&self.unacknowledged.to_le_bytes());
        room[20..24].copy_from_slice(&self.length.to_le_bytes());
    }

    /// The header's bytes.
    #[must_use]
    #[inline]
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        self.write(&mut bytes);
        bytes
    }
}

/// Why the rest of a datagram was not taken. Segments before the bad one have
/// been.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum BadDatagram {
    /// Shorter than one header.
    #[error("the datagram is shorter than one header")]
    TooShort,
    /// A segment of another conversation.
    #[error("the datagram belongs to another conversation")]
    OtherConversation,
    /// A segment claims more payload than the datagram holds.
    #[error("a segment claims more payload than the datagram holds")]
    Truncated,
    /// A segment has a command that does not exist.
    #[error("a segment has an unknown command")]
    UnknownCommand,
}

/// The first segment of some bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece<'a> {
    /// What it says of itself.
    pub header: Header,
    /// What it carries.
    pub payload: &'a [u8],
    /// What comes after the segment.
    pub following: &'a [u8],
}

/// Splits the first segment from `rest`. `Ok(None)` when fewer bytes are left
/// than a header has.
///
/// The checks come in the reference's order: conversation, length, command.
///
/// # Errors
///
/// [`BadDatagram`] where the segment is of another conversation, cut short, or has a
/// command that does not exist.
#[inline]
pub fn split_segment(conversation: u32, rest: &[u8]) -> Result<Option<Piece<'_>>, BadDatagram> {
    let Some((header, body)) = rest.split_first_chunk::<HEADER_BYTES>() else {
        return Ok(None);
    };
    if le_u32(header, 0) != conversation {
        return Err(BadDatagram::OtherConversation);
    }
    let length = le_u32(header, 20);
    // The reference refuses lengths beyond i32 even where `long` could hold
    // the datagram; no datagram is that long.
    let Some((payload, following)) = body.split_at_checked(length as usize) else {
        return Err(BadDatagram::Truncated);
    };
    let Some(command) = Command::from_byte(header[4]) else {
        return Err(BadDatagram::UnknownCommand);
    };
    let header = Header {
        conversation,
        command,
        fragment: header[5],
        window: u16::from_le_bytes([header[6], header[7]]),
        timestamp: le_u32(header, 8),
        sequence: le_u32(header, 12),
        unacknowledged: le_u32(header, 16),
        length,
    };
    Ok(Some(Piece {
        header,
        payload,
        following,
    }))
}

#[inline]
fn le_u32(bytes: &[u8; HEADER_BYTES], at: usize) -> u32 {
    u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn any_header() -> impl Strategy<Value = Header> {
        let numbers = any::<(u32, u8, u16, u32, u32, u32)>();
        (numbers, 81_u8..=84).prop_map(
            |((conversation, fragment, window, ts, sn, una), command)| Header {
                conversation,
                command: Command::from_byte(command).unwrap(),
                fragment,
                window,
                timestamp: ts,
                sequence: sn,
                unacknowledged: una,
                length: 0,
            },
        )
    }

    proptest! {
        #[test]
        fn what_is_written_is_read_back(mut header in any_header(), payload: Vec<u8>, tail: Vec<u8>) {
            header.length = u32::try_from(payload.len()).unwrap();
            let mut bytes = header.to_bytes().to_vec();
            bytes.extend(&payload);
            bytes.extend(&tail);
            let split = split_segment(header.conversation, &bytes);
            let piece = Piece { header, payload: &payload, following: &tail };
            prop_assert_eq!(split, Ok(Some(piece)));
        }

        #[test]
        fn no_bytes_make_it_panic(bytes: Vec<u8>, conversation: u32) {
            let _ = split_segment(conversation, &bytes);
        }
    }

    #[test]
    fn the_checks_come_in_the_order_of_the_reference() {
        let mut header = [0_u8; HEADER_BYTES];
        header[20] = 1;
        assert_eq!(
            split_segment(7, &header),
            Err(BadDatagram::OtherConversation)
        );
        assert_eq!(split_segment(0, &header), Err(BadDatagram::Truncated));
        header[20] = 0;
        assert_eq!(split_segment(0, &header), Err(BadDatagram::UnknownCommand));
        assert_eq!(split_segment(0, &header[..23]), Ok(None));
    }
}
