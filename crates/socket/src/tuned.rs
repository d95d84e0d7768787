//! What a search on a real kernel in virtual time found for the transports that own their
//! sockets: `tuned.toml` beside this crate, with the command that made it.

use std::sync::LazyLock;

use lagometer_transport::{Member, Preset, PresetKind, TunedLanes};

use crate::catalogue::presets;
use crate::spec::SocketSpec;

static FOUND: LazyLock<TunedLanes> =
    LazyLock::new(|| TunedLanes::of(include_str!("../tuned.toml")));

/// What was found.
#[cfg(test)]
pub(crate) fn found() -> &'static TunedLanes {
    &FOUND
}

/// A family's tuned settings.
pub(crate) fn tuned(family: &str) -> SocketSpec {
    if let Some((preset, settings)) = FOUND.found(family) {
        return SocketSpec::resolve(preset, settings).expect("a test makes every preset of them");
    }
    let is_game = |member: Member| member.family == family && member.kind == PresetKind::Game;
    let game = presets().iter().find(|it| it.member.is_some_and(is_game));
    game.map(Preset::spec)
        .expect("every family has a `game` preset")
}
