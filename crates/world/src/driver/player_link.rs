//! Each player's own network conditions.

use lagometer_link::{Link, Profile, Regime};
use lagometer_units::Time;

/// The link of the player numbered `player`, calm until `impairments_start`.
///
/// Every player lives elsewhere: one network, but dice of its own, which
/// follow from the seed and the number alone. So the same player meets the
/// same network conditions whatever carries it, in virtual time and in real time.
#[must_use]
pub fn player_link(profile: &Profile, seed: u64, player: u32, impairments_start: Time) -> Link {
    Link::new(
        profile,
        seed_of(seed, player),
        Regime::Time,
        impairments_start,
    )
}

/// An independent seed for each player: the finaliser of `SplitMix64` (Steele,
/// Lea and Flood 2014) over both.
const fn seed_of(seed: u64, player: u32) -> u64 {
    mix(mix(seed ^ 0x006c_696e_6b00_0000) ^ player as u64)
}

const fn mix(value: u64) -> u64 {
    let mut mixed = value.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_have_seeds_of_their_own() {
        let mut seeds: Vec<u64> = (0..1000).map(|player| seed_of(1, player)).collect();
        seeds.extend((0..1000).map(|player| seed_of(2, player)));
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 2000);
    }
}
