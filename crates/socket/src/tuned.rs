//! What a search on a real kernel in virtual time found for the transports that own their
//! sockets: `tuned.toml` beside this crate, with the command that made it.

use std::sync::LazyLock;

use lagometer_transport::TunedLanes;

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
    FOUND.tuned(family, presets(), SocketSpec::resolve)
}
