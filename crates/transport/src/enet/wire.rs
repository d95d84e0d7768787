//! ENet's bytes: the socket that hands them over, and as much of their
//! meaning as the endpoint needs.

use std::convert::Infallible;

use rusty_enet::{MTU_MAX, PacketReceived, Socket};

/// The socket given to an ENet host: two buffers and no network.
#[derive(Debug, Default)]
pub(super) struct Wire {
    /// The datagram the host shall receive next.
    pub(super) incoming: Option<Vec<u8>>,
    /// What the host has sent, oldest first.
    pub(super) outgoing: Vec<Vec<u8>>,
}

impl Socket for Wire {
    type Address = ();
    type Error = Infallible;

    fn send(&mut self, _address: (), buffer: &[u8]) -> Result<usize, Infallible> {
        self.outgoing.push(buffer.to_vec());
        Ok(buffer.len())
    }

    fn receive(
        &mut self,
        buffer: &mut [u8; MTU_MAX],
    ) -> Result<Option<((), PacketReceived)>, Infallible> {
        let Some(datagram) = self.incoming.take() else {
            return Ok(None);
        };
        let Some(space) = buffer.get_mut(..datagram.len()) else {
            return Ok(None);
        };
        space.copy_from_slice(&datagram);
        Ok(Some(((), PacketReceived::Complete(datagram.len()))))
    }
}

/// A command within a datagram.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Command {
    /// The peer has the reliable command of this channel and number.
    Acknowledge {
        /// The channel it was sent on.
        channel: u8,
        /// Its reliable sequence number.
        sequence: u16,
    },
    /// The server's answer to the connect request, which stands for the
    /// request's acknowledgement as well.
    VerifyConnect,
    /// The peer says goodbye.
    Disconnect,
    /// Any other command that wants to be acknowledged.
    Reliable {
        /// The channel it is sent on.
        channel: u8,
        /// Its reliable sequence number.
        sequence: u16,
    },
    /// Any other command that does not.
    Unreliable,
}

/// The commands of a datagram, as far as they are well-formed.
///
/// Layout (`protocol.h` of ENet): a big-endian peer number whose top bit says
/// whether a 16-bit time follows; the checksum, if in use; then commands of a
/// fixed size for each kind, those that carry data with its length as their
/// last or only field.
pub(super) fn commands(datagram: &[u8], has_checksum: bool) -> impl Iterator<Item = Command> {
    let has_time = datagram.first().is_some_and(|byte| byte & 0x80 != 0);
    let header_bytes = if has_time { 4 } else { 2 } + if has_checksum { 4 } else { 0 };
    let mut rest = datagram.get(header_bytes..).unwrap_or_default();
    std::iter::from_fn(move || {
        let (command, after) = split_command(rest)?;
        rest = after;
        Some(command)
    })
}

fn split_command(bytes: &[u8]) -> Option<(Command, &[u8])> {
    let &[kind, channel, high, low, ..] = bytes else {
        return None;
    };
    let (size, data_length_at) = match kind & 0x0f {
        1 | 4 => (8, None),
        2 => (48, None),
        3 => (44, None),
        5 => (4, None),
        6 => (6, Some(4)),
        7 | 9 => (8, Some(6)),
        8 | 12 => (24, Some(6)),
        10 => (12, None),
        11 => (16, None),
        _ => return None,
    };
    let fixed = bytes.get(..size)?;
    let data_length = data_length_at.map_or(0, |at| big_endian(fixed, at));
    let after = bytes.get(size + usize::from(data_length)..)?;
    let sequence = u16::from_be_bytes([high, low]);
    let command = match kind & 0x0f {
        1 => Command::Acknowledge {
            channel,
            sequence: big_endian(fixed, 4),
        },
        3 => Command::VerifyConnect,
        4 => Command::Disconnect,
        _ if kind & 0x80 != 0 => Command::Reliable { channel, sequence },
        _ => Command::Unreliable,
    };
    Some((command, after))
}

/// The 16-bit field at `at`, which every caller knows to be there.
fn big_endian(fixed: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([fixed[at], fixed[at + 1]])
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_reliable_message_behind_an_acknowledgement_is_understood() {
        let datagram = [
            0x80, 0x00, 0x12, 0x34, // peer 0, with time
            0x01, 0x00, 0x00, 0x07, 0x00, 0x07, 0xab, 0xcd, // acknowledges 7
            0x86, 0x00, 0x00, 0x09, 0x00, 0x03, b'g', b'g', b'!', // reliable 9
        ];
        let expected = [
            Command::Acknowledge {
                channel: 0,
                sequence: 7,
            },
            Command::Reliable {
                channel: 0,
                sequence: 9,
            },
        ];
        assert!(commands(&datagram, false).eq(expected));
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic_or_loop(
            bytes in prop::collection::vec(any::<u8>(), 0..200),
            has_checksum: bool,
        ) {
            prop_assert!(commands(&bytes, has_checksum).count() <= bytes.len());
        }
    }
}
