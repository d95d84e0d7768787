//! Reading a log of packets again, as this crate writes it.

use crate::pcapng::{COMMENT, END, PACKET};

/// A packet of a log.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LoggedPacket<'a> {
    /// Which lane and direction it took: two interfaces for each lane, up and
    /// down.
    pub interface: u32,
    /// When it was offered to the link, in nanoseconds since 1970.
    pub epoch_ns: u64,
    /// The packet, from its IP header on.
    pub bytes: &'a [u8],
    /// Its fate, in words.
    pub fate: &'a str,
}

/// The packets of a log in their order, until its end or the first block that is
/// damaged or was not written by this crate.
pub fn logged_packets(mut log: &[u8]) -> impl Iterator<Item = LoggedPacket<'_>> {
    std::iter::from_fn(move || {
        loop {
            let (kind, body, rest) = block(log)?;
            log = rest;
            if kind == PACKET {
                return packet(body);
            }
        }
    })
}

/// The first block: its kind, what is in it, and what comes after it.
fn block(log: &[u8]) -> Option<(u32, &[u8], &[u8])> {
    let length = word(log, 4)? as usize;
    let body = log.get(8..length.checked_sub(4)?)?;
    Some((word(log, 0)?, body, log.get(length..)?))
}

fn packet(body: &[u8]) -> Option<LoggedPacket<'_>> {
    let length = word(body, 12)? as usize;
    let options = body.get(20 + length.checked_next_multiple_of(4)?..)?;
    Some(LoggedPacket {
        interface: word(body, 0)?,
        epoch_ns: u64::from(word(body, 4)?) << 32 | u64::from(word(body, 8)?),
        bytes: body.get(20..)?.get(..length)?,
        fate: comment(options)?,
    })
}

fn comment(mut options: &[u8]) -> Option<&str> {
    loop {
        let (code, length) = (half(options, 0)?, usize::from(half(options, 2)?));
        match code {
            COMMENT => return std::str::from_utf8(options.get(4..)?.get(..length)?).ok(),
            END => return Some(""),
            _ => options = options.get(4 + length.next_multiple_of(4)..)?,
        }
    }
}

fn word(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

fn half(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_le_bytes(*bytes.get(at..)?.first_chunk()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::pcapng;

    fn log() -> Vec<u8> {
        let mut log = Vec::new();
        pcapng::section(&mut log, "lagometer");
        pcapng::interface(&mut log, "kcp up");
        for (at, bytes) in [(0x1_0000_0002, &b"abcde"[..]), (0x1_0000_0003, b"")] {
            let fate = format_args!("dropped: {}", "burst");
            pcapng::packet(&mut log, 1, at, bytes, fate);
        }
        log
    }

    #[test]
    fn packets_are_read_as_they_were_written() {
        let log = log();
        let packets: Vec<_> = logged_packets(&log).collect();
        let first = LoggedPacket {
            interface: 1,
            epoch_ns: 0x1_0000_0002,
            bytes: b"abcde",
            fate: "dropped: burst",
        };
        assert_eq!(packets[0], first);
        assert_eq!(packets.len(), 2);
    }

    #[test]
    fn a_log_that_is_cut_off_or_damaged_anywhere_ends_there() {
        let whole = log();
        for cut in 0..whole.len() {
            assert!(logged_packets(&whole[..cut]).count() < 2);
            let mut damaged = whole.clone();
            damaged[cut] ^= 0xff;
            assert!(logged_packets(&damaged).count() <= 2);
        }
    }
}
