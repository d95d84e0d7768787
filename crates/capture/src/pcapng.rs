//! Writing pcapng, the capture format of Wireshark
//! (draft-ietf-opsawg-pcapng): one section, an interface for each direction
//! of each lane, packets with comments.

use std::io::Write as _;

const SECTION: u32 = 0x0a0d_0d0a;
const INTERFACE: u32 = 1;
pub(crate) const PACKET: u32 = 6;
const BYTE_ORDER: u32 = 0x1a2b_3c4d;
/// Packets start with their IPv4 or IPv6 header.
const LINK_TYPE_RAW: u16 = 101;

pub(crate) const END: u16 = 0;
pub(crate) const COMMENT: u16 = 1;
const SECTION_APPLICATION: u16 = 4;
const INTERFACE_NAME: u16 = 2;
const INTERFACE_RESOLUTION: u16 = 9;
/// Time stamps count units of ten to the minus nine seconds.
const NANOSECONDS: u8 = 9;

/// The program that files name as their writer.
const APPLICATION: &str = concat!("lagometer ", env!("CARGO_PKG_VERSION"));

/// The two directions of a lane, in the order of their interfaces.
const DIRECTIONS: [&str; 2] = ["up", "down"];

/// The interface of a direction of a lane: two for each lane, from the client first.
#[must_use]
pub const fn interface_of(lane: usize, is_up: bool) -> u32 {
    (lane * DIRECTIONS.len() + !is_up as usize) as u32
}

/// Appends what a capture of lanes of these names begins with: an interface for each
/// direction of each, as in `kcp up`.
pub fn beginning<'a>(file: &mut Vec<u8>, lanes: impl Iterator<Item = &'a str>) {
    section(file, APPLICATION);
    for lane in lanes {
        for direction in DIRECTIONS {
            interface(file, &format!("{lane} {direction}"));
        }
    }
}

/// Appends the block a file starts with.
pub fn section(file: &mut Vec<u8>, application: &str) {
    block(file, SECTION, |file| {
        file.extend(BYTE_ORDER.to_le_bytes());
        file.extend(1_u16.to_le_bytes());
        file.extend(0_u16.to_le_bytes());
        // How long the section is, is not said.
        file.extend(u64::MAX.to_le_bytes());
        option(file, SECTION_APPLICATION, |file| {
            file.extend(application.as_bytes());
        });
        option(file, END, |_| ());
    });
}

/// Appends an interface; they are numbered from zero in their order.
pub fn interface(file: &mut Vec<u8>, name: &str) {
    block(file, INTERFACE, |file| {
        file.extend(LINK_TYPE_RAW.to_le_bytes());
        file.extend(0_u16.to_le_bytes());
        // Packets are not cut short.
        file.extend(0_u32.to_le_bytes());
        option(file, INTERFACE_NAME, |file| file.extend(name.as_bytes()));
        option(file, INTERFACE_RESOLUTION, |file| file.push(NANOSECONDS));
        option(file, END, |_| ());
    });
}

/// Appends a packet seen on `interface`, `epoch_ns` nanoseconds after 1970
/// began, with a comment.
pub fn packet(
    file: &mut Vec<u8>,
    interface: u32,
    epoch_ns: u64,
    packet: &[u8],
    comment: std::fmt::Arguments<'_>,
) {
    block(file, PACKET, |file| {
        file.extend(interface.to_le_bytes());
        file.extend(((epoch_ns >> 32) as u32).to_le_bytes());
        file.extend((epoch_ns as u32).to_le_bytes());
        file.extend((packet.len() as u32).to_le_bytes());
        file.extend((packet.len() as u32).to_le_bytes());
        file.extend(packet);
        align(file);
        option(file, COMMENT, |file| {
            let _ = file.write_fmt(comment);
        });
        option(file, END, |_| ());
    });
}

/// Appends a block: its kind, its length before and after what `inside`
/// appends.
fn block(file: &mut Vec<u8>, kind: u32, inside: impl FnOnce(&mut Vec<u8>)) {
    let start = file.len();
    file.extend(kind.to_le_bytes());
    file.extend([0; 4]);
    inside(file);
    align(file);
    let length = ((file.len() - start + 4) as u32).to_le_bytes();
    file[start + 4..start + 8].copy_from_slice(&length);
    file.extend(length);
}

fn option(file: &mut Vec<u8>, code: u16, inside: impl FnOnce(&mut Vec<u8>)) {
    file.extend(code.to_le_bytes());
    let length_at = file.len();
    file.extend([0; 2]);
    inside(file);
    let length = ((file.len() - length_at - 2) as u16).to_le_bytes();
    file[length_at..length_at + 2].copy_from_slice(&length);
    align(file);
}

/// Fills up to a multiple of four bytes. Every block is one, so counting from
/// the start of the buffer is counting from the start of the block.
fn align(file: &mut Vec<u8>) {
    file.resize(file.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The blocks of a file: kind and body.
    fn blocks(mut file: &[u8]) -> Vec<(u32, &[u8])> {
        let word = |bytes: &[u8]| u32::from_le_bytes(*bytes.first_chunk().unwrap());
        let mut blocks = Vec::new();
        while !file.is_empty() {
            let length = word(&file[4..]) as usize;
            assert_eq!(length % 4, 0);
            assert_eq!(word(&file[length - 4..]) as usize, length);
            blocks.push((word(file), &file[8..length - 4]));
            file = &file[length..];
        }
        blocks
    }

    #[test]
    fn a_reader_finds_what_was_written() {
        let mut file = Vec::new();
        section(&mut file, "lagometer");
        interface(&mut file, "kcp up");
        packet(
            &mut file,
            0,
            0x1_0000_0002,
            b"abcde",
            format_args!("lost: {}", "burst"),
        );
        let blocks = blocks(&file);
        let kinds: Vec<_> = blocks.iter().map(|block| block.0).collect();
        assert_eq!(kinds, [SECTION, INTERFACE, PACKET]);
        let body = blocks[2].1;
        assert_eq!(body[4..8], 1_u32.to_le_bytes());
        assert_eq!(body[8..12], 2_u32.to_le_bytes());
        assert_eq!(body[12..16], 5_u32.to_le_bytes());
        assert_eq!(&body[20..28], b"abcde\0\0\0");
        assert_eq!(&body[28..32], [1, 0, 11, 0]);
        assert_eq!(&body[32..43], b"lost: burst");
    }
}
