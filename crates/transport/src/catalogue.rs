//! The registry: every transport there is, and by which names it is asked for.

use std::sync::LazyLock;

use crate::{
    Spec, Transport, enet, kcp, quic, renet, tcp, udp, udp_fec, udp_redundant, udp_spaced, webrtc,
};

/// The transports, one a line, in the order in which lanes are best shown. Each
/// brings its presets.
const TRANSPORTS: &[&[Preset]] = &[
    udp::PRESETS,
    udp_redundant::PRESETS,
    udp_spaced::PRESETS,
    udp_fec::PRESETS,
    kcp::PRESETS,
    enet::PRESETS,
    tcp::PRESETS,
    quic::PRESETS,
    webrtc::PRESETS,
    renet::PRESETS,
];

/// A named choice of a transport and its settings; `S` is a transport as its registry
/// has it.
#[derive(Clone, Copy, Debug)]
pub struct Preset<S = Spec> {
    /// The name to write in an experiment.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Names that it had before.
    former_names: &'static [&'static str],
    spec: fn() -> S,
}

impl<S> Preset<S> {
    /// A preset; its settings are made by `spec`, and pass their own check.
    pub const fn new(name: &'static str, about: &'static str, spec: fn() -> S) -> Self {
        Self {
            name,
            about,
            former_names: &[],
            spec,
        }
    }

    /// The same, which had other names before.
    pub(crate) const fn formerly(self, former_names: &'static [&'static str]) -> Self {
        Self {
            former_names,
            ..self
        }
    }

    /// The transport with the preset's settings.
    #[must_use]
    pub fn spec(&self) -> S {
        (self.spec)()
    }
}

/// Every preset, in the order in which lanes are best shown.
#[must_use]
pub fn presets() -> &'static [Preset] {
    static ALL: LazyLock<Vec<Preset>> = LazyLock::new(|| TRANSPORTS.concat());
    &ALL
}

/// What a preset that there once was is called now, if `name` is one's.
#[must_use]
pub fn new_name(name: &str) -> Option<&'static str> {
    let preset = presets()
        .iter()
        .find(|preset| preset.former_names.contains(&name))?;
    Some(preset.name)
}

/// A preset's settings, which a test holds to their own check.
pub(crate) fn checked<T: Transport>(settings: T) -> Spec {
    Spec::new(settings).expect("presets pass their own check")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_every_preset_passes_its_check() {
        let names = presets().iter().map(|preset| preset.name);
        let former = presets().iter().flat_map(|preset| preset.former_names);
        let all: Vec<&str> = names.chain(former.copied()).collect();
        let unique: BTreeSet<_> = all.iter().collect();
        assert_eq!(unique.len(), all.len());
        for preset in presets() {
            let spec = preset.spec();
            assert!(
                preset.name.starts_with(spec.transport()),
                "{} is a {}",
                preset.name,
                spec.transport()
            );
        }
    }

    #[test]
    fn the_presets_of_one_transport_are_those_it_brings() {
        let mut seen = BTreeSet::new();
        for presets in TRANSPORTS {
            let transports: BTreeSet<_> = presets
                .iter()
                .map(|preset| preset.spec().transport())
                .collect();
            assert_eq!(transports.len(), 1, "{transports:?}");
            assert!(seen.insert(transports), "registered twice");
        }
    }

    #[test]
    fn a_former_name_leads_to_the_one_there_is_now() {
        assert_eq!(new_name("tcp-smoltcp-reno"), Some("tcp-reno"));
        assert_eq!(new_name("tcp-reno"), None);
    }
}
