//! Datagrams that nobody sent so: damaged on their way, or forged.

use kcp_oracle::dice::Dice;

/// Cuts, lengthens or flips bits of a datagram.
pub(crate) fn corrupt(bytes: &mut Vec<u8>, dice: &mut Dice) {
    match dice.below(4) {
        0 => bytes.truncate(dice.below(bytes.len() as u64 + 1) as usize),
        1 => bytes.extend(dice.any().to_le_bytes()),
        _ => {
            for _ in 0..dice.within(1, 3) {
                let at = dice.below(bytes.len() as u64) as usize;
                bytes[at] ^= 1 << dice.below(8);
            }
        }
    }
}

/// A datagram of segments that nobody sent, near enough to what was sent to
/// be believed.
pub(crate) fn forged(
    conversation: u32,
    clock: u32,
    first_sequence: u32,
    dice: &mut Dice,
) -> Vec<u8> {
    let mut bytes = Vec::new();
    for _ in 0..dice.within(1, 4) {
        let near = |dice: &mut Dice, base: u32| match dice.below(4) {
            0 => dice.any() as u32,
            1 => base.wrapping_sub(dice.below(40) as u32),
            _ => base.wrapping_add(dice.below(400) as u32),
        };
        let length = match dice.below(6) {
            0 => dice.any() as u32,
            1 => 0,
            _ => dice.below(300) as u32,
        };
        bytes.extend(conversation.to_le_bytes());
        bytes.push(dice.pick(&[81, 81, 82, 82, 83, 84, 80, 85]));
        bytes.push(dice.pick(&[0, 0, 1, 7, 255]));
        let window = dice.pick(&[0, 1, 128, u16::MAX]);
        bytes.extend(window.to_le_bytes());
        bytes.extend(near(dice, clock).to_le_bytes());
        bytes.extend(near(dice, first_sequence).to_le_bytes());
        bytes.extend(near(dice, first_sequence).to_le_bytes());
        bytes.extend(length.to_le_bytes());
        let present = (length as usize).min(300);
        bytes.resize(bytes.len() + present, 0x5a);
    }
    bytes
}
