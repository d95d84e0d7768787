//! Each player's own network conditions.

use lagometer_link::{Link, Profile, Regime};
use lagometer_units::{SplitMix64, Time};

/// The link of the player numbered `player`, calm until `impairments_start`.
///
/// Every player lives elsewhere: one network, but dice of its own, which
/// follow from the seed and the number alone. So the same player meets the
/// same network conditions whatever carries it, in virtual time and in real time.
#[must_use]
pub fn player_link(profile: &Profile, seed: u64, player: u32, impairments_start: Time) -> Link {
    Link::new(
        profile,
        player_seed(seed, player),
        Regime::Time,
        impairments_start,
    )
}

/// The seed of the network conditions of the player numbered `player` in a world of `seed`:
/// an independent one for each player.
#[must_use]
pub const fn player_seed(seed: u64, player: u32) -> u64 {
    SplitMix64::first(SplitMix64::first(seed ^ 0x006c_696e_6b00_0000) ^ player as u64)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn players_have_seeds_of_their_own() {
        let mut seeds: Vec<u64> = (0..1000).map(|player| player_seed(1, player)).collect();
        seeds.extend((0..1000).map(|player| player_seed(2, player)));
        seeds.sort_unstable();
        seeds.dedup();
        assert_eq!(seeds.len(), 2000);
    }
}
