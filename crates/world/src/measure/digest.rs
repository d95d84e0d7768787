//! The fingerprint of what a world found.

use lagometer_results::World;

/// The digest of everything that a world in virtual time found: equal for
/// equal seeds, whatever machine, thread count or hour it was played at.
///
/// FNV-1a (Fowler, Noll and Vo), 64 bits, over the findings as JSON, in hex. It
/// tells runs apart; it is no protection against forgery.
#[must_use]
pub fn digest(world: &World) -> String {
    let digested = World {
        digest: None,
        ..world.clone()
    };
    // A world is made of numbers and texts, which always have a JSON form.
    let text = serde_json::to_string(&digested).unwrap_or_default();
    let hash = text.bytes().fold(0xCBF2_9CE4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01B3)
    });
    format!("{hash:016x}")
}
