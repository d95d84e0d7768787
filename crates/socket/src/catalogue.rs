//! The registry of what runs over real sockets: the transports that own theirs,
//! those that the kernel has, and every endpoint of the crate `transport`.

use std::sync::LazyLock;

use lagometer_transport::{Preset, Source, Spec, family_among};

use crate::spec::SocketSpec;
use crate::srt;
use crate::tcp;
use crate::transport::SocketTransport;
use crate::udt;

/// The transports that own their sockets, one a line, in the order in which lanes
/// are best shown. Each brings its presets.
const TRANSPORTS: &[&[Preset<SocketSpec>]] = &[udt::PRESETS, srt::PRESETS];

/// The transports whose presets are endpoints' and that the kernel plays over
/// sockets, one a line: each makes its own of the endpoint's settings.
const IN_KERNEL: &[fn(&Spec) -> Option<SocketSpec>] = &[tcp::in_kernel];

/// Where tuned settings come from: the search, and for the rest the `game` preset.
pub(crate) const TUNED: &[Source] = &[Source::library(
    "found by the search that stands at its head, on networks that judge nothing",
    "crates/socket/tuned.toml",
)];

/// Every preset of a transport that owns its sockets, in the order in which lanes
/// are best shown. The presets of the crate `transport` are not among them.
#[must_use]
pub fn presets() -> &'static [Preset<SocketSpec>] {
    static ALL: LazyLock<Vec<Preset<SocketSpec>>> = LazyLock::new(|| TRANSPORTS.concat());
    &ALL
}

/// The family that a preset called `name` is of or stands beside, whichever of the two
/// crates has it.
#[must_use]
pub fn family_of(name: &str) -> Option<&'static str> {
    lagometer_transport::family_of(name).or_else(|| family_among(presets(), name))
}

/// The names of all presets that run over real sockets: of endpoints first.
pub fn names() -> impl Iterator<Item = &'static str> {
    lagometer_transport::names().chain(own_names())
}

/// The names of the presets of transports that own their sockets: those of each,
/// followed by its others.
pub fn own_names() -> impl Iterator<Item = &'static str> {
    let of_each = |preset: &'static Preset<SocketSpec>| {
        std::iter::once(preset.name).chain(preset.aliases.iter().copied())
    };
    presets().iter().flat_map(of_each)
}

/// The preset called `name` as it runs over real sockets, if there is one.
pub(crate) fn preset(name: &str) -> Option<SocketSpec> {
    if let Some(preset) = presets().iter().find(|preset| preset.is_called(name)) {
        return Some(preset.spec());
    }
    let endpoint = Spec::preset(name)?;
    let in_kernel = IN_KERNEL.iter().find_map(|made_of| made_of(&endpoint));
    Some(in_kernel.unwrap_or_else(|| endpoint.into()))
}

/// A preset's settings, which a test holds to their own check.
pub(crate) fn checked<T: SocketTransport>(settings: T) -> SocketSpec {
    SocketSpec::new(settings).expect("presets pass their own check")
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use lagometer_transport::{Member, PEER_TIMEOUT, PeerTimeout, PresetKind};

    use super::*;

    #[test]
    fn names_are_unique_and_every_preset_passes_its_check() {
        let unique: BTreeSet<_> = names().collect();
        assert_eq!(unique.len(), names().count());
        for name in names() {
            let spec = preset(name).unwrap();
            let family = spec.transport().split('-').next().unwrap_or_default();
            assert!(name.starts_with(family), "{name}");
        }
    }

    #[test]
    fn a_transport_that_owns_its_sockets_has_its_three_presets_too() {
        for family in ["udt", "srt"] {
            for kind in PresetKind::ALL {
                let name = format!("{family}-{kind}");
                let preset = presets().iter().find(|it| it.name == name).unwrap();
                assert_eq!(preset.member, Some(Member { family, kind }));
                assert!(!preset.sources.is_empty(), "{name}");
                let settings = preset.spec().settings_json();
                for source in preset.sources {
                    let key = source.setting;
                    assert!(
                        key == Source::REST || settings.get(key).is_some(),
                        "{name}: {key}"
                    );
                }
            }
        }
    }

    #[test]
    fn what_a_game_preset_sets_otherwise_than_the_default_has_a_source() {
        for family in ["udt", "srt"] {
            let of_kind = |kind| {
                let name = format!("{family}-{kind}");
                presets().iter().find(|it| it.name == name).unwrap()
            };
            let [default, game] = [PresetKind::Default, PresetKind::Game].map(of_kind);
            let [before, after] = [default, game].map(|it| it.spec().settings_json());
            for (key, value) in after.as_object().unwrap() {
                let is_named = game.sources.iter().any(|source| source.setting == key);
                assert!(
                    is_named || before.get(key) == Some(value),
                    "{family}: `{key}` has no source"
                );
            }
        }
    }

    #[test]
    fn the_tuned_presets_are_what_the_search_wrote_down_and_promise_what_the_game_presets_do() {
        for family in ["udt", "srt"] {
            let of_kind = |kind| preset(&format!("{family}-{kind}")).unwrap();
            let (game, tuned) = (of_kind(PresetKind::Game), of_kind(PresetKind::Tuned));
            let is_found = crate::tuned::found().found(family).is_some();
            assert_eq!(game != tuned, is_found, "{family}");
            let promises = |spec: &SocketSpec| {
                let it = spec.properties();
                (it.reliable, it.ordered, it.encrypted)
            };
            assert_eq!(promises(&game), promises(&tuned), "{family}");
        }
        let mut families = crate::tuned::found().families();
        assert!(families.all(|family| ["udt", "srt"].contains(&family)));
    }

    #[test]
    fn a_silent_peer_is_kept_as_long_or_the_library_decides() {
        for preset in presets().iter().filter(|it| it.member.is_some()) {
            match preset.spec().properties().peer_timeout {
                PeerTimeout::After(silence) => assert_eq!(silence, PEER_TIMEOUT.0),
                PeerTimeout::Fixed(_) => assert!(preset.name.starts_with("udt")),
                other => panic!("{}: {other}", preset.name),
            }
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn tcp_is_the_kernels_and_other_endpoints_are_carried_by_udp() {
        let spec = |name: &str| preset(name).unwrap();
        assert!(spec("tcp-cubic").endpoint().is_none());
        assert!(spec("udt").endpoint().is_none());
        assert_eq!(spec("kcp").endpoint(), Spec::preset("kcp").as_ref());
        assert!(preset("nonesuch").is_none());
    }
}
