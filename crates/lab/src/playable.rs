//! Which transports can be played in which testbed, and as what.

use lagometer_testbed::Testbed;
use lagometer_transport::{BadSetting, Spec, TransportProperties};
use serde_json::{Map, Value};

/// A transport with its settings, as a testbed plays it.
#[derive(Clone, Debug)]
pub enum Playable {
    /// As a pair of endpoints in virtual time.
    Virtual(Spec),
    /// Over real sockets.
    #[cfg(target_os = "linux")]
    Sockets(lagometer_socket::SocketSpec),
}

/// Why a transport cannot be played.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum NotPlayable {
    /// There is such a transport, but not here: why, and where it can.
    NotHere(String),
    /// Its settings do not fit it.
    BadSetting(BadSetting),
}

impl Playable {
    /// The names of all transports, of whatever testbed.
    pub(crate) fn names() -> impl Iterator<Item = &'static str> {
        names()
    }

    /// The transport called `name` with `settings` in place of its own, as
    /// `testbed` plays it.
    pub(crate) fn find(
        name: &str,
        settings: &Map<String, Value>,
        testbed: Testbed,
    ) -> Result<Self, NotPlayable> {
        if testbed != Testbed::Sim {
            return over_sockets(name, settings, testbed);
        }
        if let Some(spec) = Spec::preset(name) {
            let spec = spec
                .with_overrides(settings)
                .map_err(NotPlayable::BadSetting)?;
            return Ok(Self::Virtual(spec));
        }
        Err(NotPlayable::NotHere(format!(
            "{name} owns its sockets and cannot run in virtual time; `--testbed emu` plays it"
        )))
    }

    /// The transport's name, as in `kcp`.
    #[must_use]
    pub fn name(&self) -> &'static str {
        match self {
            Self::Virtual(spec) => spec.transport(),
            #[cfg(target_os = "linux")]
            Self::Sockets(spec) => spec.transport(),
        }
    }

    /// The library that carries the messages and its version.
    #[must_use]
    pub fn library(&self) -> String {
        match self {
            Self::Virtual(spec) => spec.library().to_owned(),
            #[cfg(target_os = "linux")]
            Self::Sockets(spec) => spec.library(),
        }
    }

    /// What is promised and what it costs.
    #[must_use]
    pub fn properties(&self) -> TransportProperties {
        match self {
            Self::Virtual(spec) => spec.properties(),
            #[cfg(target_os = "linux")]
            Self::Sockets(spec) => spec.properties(),
        }
    }

    /// Every setting, as a table.
    #[must_use]
    pub fn settings_json(&self) -> Value {
        match self {
            Self::Virtual(spec) => spec.settings_json(),
            #[cfg(target_os = "linux")]
            Self::Sockets(spec) => spec.settings_json(),
        }
    }
}

#[cfg(target_os = "linux")]
fn names() -> impl Iterator<Item = &'static str> {
    lagometer_socket::names()
}

#[cfg(not(target_os = "linux"))]
fn names() -> impl Iterator<Item = &'static str> {
    let endpoints = lagometer_transport::presets().iter().map(|it| it.name);
    endpoints.chain(OWN_SOCKETS.iter().copied())
}

/// The presets of transports that own their sockets, by name alone: experiments
/// name them on systems, too, where there is no driver for them.
#[cfg(any(test, not(target_os = "linux")))]
const OWN_SOCKETS: &[&str] = &[
    "udt",
    "udt-dgram",
    "udt-stream",
    "udt-epoll",
    "udt-default",
    "udt-dgram-2015",
    "udt-stream-2015",
    "udt-epoll-2015",
    "srt",
    "srt-live",
];

#[cfg(target_os = "linux")]
fn over_sockets(
    name: &str,
    settings: &Map<String, Value>,
    testbed: Testbed,
) -> Result<Playable, NotPlayable> {
    use lagometer_socket::SocketSpec;
    use lagometer_transport::BadSpec;

    let spec = SocketSpec::resolve(name, settings).map_err(|error| match error {
        BadSpec::BadSetting(bad) => NotPlayable::BadSetting(bad),
        BadSpec::UnknownPreset { name, .. } => {
            NotPlayable::NotHere(format!("{name} is not part of this build"))
        }
        renamed @ BadSpec::Renamed { .. } => NotPlayable::NotHere(renamed.to_string()),
    })?;
    if let Err(lacks) = spec.available() {
        return Err(NotPlayable::NotHere(lacks.to_string()));
    }
    if testbed == Testbed::Relay && !spec.is_carried_by_udp() {
        return Err(NotPlayable::NotHere(format!(
            "{name} is not carried by UDP datagrams, and the relay carries nothing else; \
             `--emu-mode namespaces` plays it"
        )));
    }
    Ok(Playable::Sockets(spec))
}

#[cfg(not(target_os = "linux"))]
fn over_sockets(name: &str, _: &Map<String, Value>, _: Testbed) -> Result<Playable, NotPlayable> {
    Err(NotPlayable::NotHere(format!(
        "{name} over real sockets needs Linux"
    )))
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    #[test]
    fn every_system_knows_the_names_of_all_transports() {
        let presets = lagometer_socket::presets().iter().map(|it| it.name);
        assert!(presets.eq(OWN_SOCKETS.iter().copied()));
    }
}
