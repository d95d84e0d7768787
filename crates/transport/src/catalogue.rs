//! The registry: every transport there is, and by which names it is asked for.

use std::fmt;
use std::sync::LazyLock;

use serde::{Deserialize, Serialize};

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

/// The three ways of setting up a transport that there are of each, under the same
/// names, so that none is compared at its best with another at its worst.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PresetKind {
    /// The library as its documentation shows a beginner to use it.
    Default,
    /// What its own maintainers advise for small messages at a steady rate.
    Game,
    /// What `lagometer tune` finds under the same budget of trials for each.
    Tuned,
}

impl PresetKind {
    /// All three.
    pub const ALL: [Self; 3] = [Self::Default, Self::Game, Self::Tuned];

    /// As it ends a preset's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Default => "default",
            Self::Game => "game",
            Self::Tuned => "tuned",
        }
    }
}

impl fmt::Display for PresetKind {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}

/// Which preset of which family one is: a family is a transport with a promise, as in
/// `enet` and `enet-unreliable`, and has one preset of each kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Member {
    /// The family's name; its presets' names begin with it.
    pub family: &'static str,
    /// Which preset of the family it is.
    pub kind: PresetKind,
}

/// Where a setting of a preset comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Source {
    /// The setting's key; [`Source::REST`] for all that have no source of their own.
    pub setting: &'static str,
    /// What is said there, in a few words, or why it is set without being said.
    pub says: &'static str,
    /// The address, or the name of what is at hand.
    pub address: &'static str,
}

impl Source {
    /// Stands for all settings that are not named.
    pub const REST: &'static str = "*";

    /// What the library has when nothing is set, by its documentation at `address`.
    #[must_use]
    pub const fn library(says: &'static str, address: &'static str) -> Self {
        Self::of(Self::REST, says, address)
    }

    /// Of one setting.
    #[must_use]
    pub const fn of(setting: &'static str, says: &'static str, address: &'static str) -> Self {
        Self {
            setting,
            says,
            address,
        }
    }

    /// A setting that bounds how long a silent peer is kept, which is the same for
    /// every transport.
    #[must_use]
    pub const fn equal(setting: &'static str) -> Self {
        let says = "how long a silent peer is kept is the same for every transport";
        Self::of(setting, says, "docs/transports.md#equal-terms")
    }

    /// A setting that no library has: a bound of the lab's, or how its driver calls.
    #[must_use]
    pub const fn lab(setting: &'static str, says: &'static str) -> Self {
        Self::of(setting, says, "docs/transports.md#equal-terms")
    }
}

/// A named choice of a transport and its settings; `S` is a transport as its registry
/// has it.
#[derive(Clone, Copy, Debug)]
pub struct Preset<S = Spec> {
    /// The name to write in an experiment.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    /// Which of its family's three it is; none for those beside the three.
    pub member: Option<Member>,
    /// Where its settings come from, for those of a family.
    pub sources: &'static [Source],
    /// Other names that go on finding it.
    pub aliases: &'static [&'static str],
    /// Names that it had before, which find nothing.
    former_names: &'static [&'static str],
    spec: fn() -> S,
}

impl<S> Preset<S> {
    /// A preset; its settings are made by `spec`, and pass their own check.
    pub const fn new(name: &'static str, about: &'static str, spec: fn() -> S) -> Self {
        Self {
            name,
            about,
            member: None,
            sources: &[],
            aliases: &[],
            former_names: &[],
            spec,
        }
    }

    /// The same as its family's preset of that kind, with the sources of what it sets
    /// otherwise than the family's default, or of all of that.
    #[must_use]
    pub const fn of(
        self,
        family: &'static str,
        kind: PresetKind,
        sources: &'static [Source],
    ) -> Self {
        Self {
            member: Some(Member { family, kind }),
            sources,
            ..self
        }
    }

    /// What a search found for the family, as it stands in the file that `sources` name.
    #[must_use]
    pub const fn found(
        family: &'static str,
        name: &'static str,
        spec: fn() -> S,
        sources: &'static [Source],
    ) -> Self {
        let about = "what `lagometer tune` found from its `game` preset on, with as many trials as \
                     any transport had";
        Self::new(name, about, spec).of(family, PresetKind::Tuned, sources)
    }

    /// What a search found for a family of this crate.
    pub(crate) const fn tuned(family: &'static str, name: &'static str, spec: fn() -> S) -> Self {
        Self::found(family, name, spec, TUNED)
    }

    /// The same, with other names that find it too.
    #[must_use]
    pub const fn also(self, aliases: &'static [&'static str]) -> Self {
        Self { aliases, ..self }
    }

    /// The same, which had other names before.
    pub(crate) const fn formerly(self, former_names: &'static [&'static str]) -> Self {
        Self {
            former_names,
            ..self
        }
    }

    /// Whether it goes by this name.
    #[must_use]
    pub fn is_called(&self, name: &str) -> bool {
        self.name == name || self.aliases.contains(&name)
    }

    /// The transport with the preset's settings.
    #[must_use]
    pub fn spec(&self) -> S {
        (self.spec)()
    }
}

/// Where tuned settings come from: the search, and for the rest the `game` preset.
const TUNED: &[Source] = &[Source::library(
    "found by the search that stands at its head, on networks that judge nothing",
    "crates/transport/tuned.toml",
)];

/// Every preset, in the order in which lanes are best shown.
#[must_use]
pub fn presets() -> &'static [Preset] {
    static ALL: LazyLock<Vec<Preset>> = LazyLock::new(|| TRANSPORTS.concat());
    &ALL
}

/// The family that a preset called `name` is of or stands beside: the one whose name
/// its own begins with, the longest of these.
#[must_use]
pub fn family_of(name: &str) -> Option<&'static str> {
    family_among(presets(), name)
}

/// The family among those of `presets`, as [`family_of`] has it.
#[must_use]
pub fn family_among<S>(presets: &[Preset<S>], name: &str) -> Option<&'static str> {
    let is_of = |family: &&str| {
        let rest = name.strip_prefix(*family);
        rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    };
    let called = presets.iter().find(|preset| preset.is_called(name));
    let families = presets.iter().filter_map(|preset| preset.member);
    called
        .and_then(|preset| preset.member)
        .map(|member| member.family)
        .or_else(|| {
            let families = families.map(|member| member.family);
            families.filter(is_of).max_by_key(|family| family.len())
        })
}

/// All names that find a preset: those of the presets, each followed by its others.
pub fn names() -> impl Iterator<Item = &'static str> {
    let of_each = |preset: &'static Preset| {
        std::iter::once(preset.name).chain(preset.aliases.iter().copied())
    };
    presets().iter().flat_map(of_each)
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
    use std::collections::{BTreeMap, BTreeSet};
    use std::time::Duration;

    use super::*;
    use crate::{PEER_TIMEOUT, PeerTimeout, tuned};

    #[test]
    fn names_are_unique_and_every_preset_passes_its_check() {
        let former = presets().iter().flat_map(|preset| preset.former_names);
        let all: Vec<&str> = names().chain(former.copied()).collect();
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

    /// The families, each with its presets.
    fn families() -> BTreeMap<&'static str, Vec<&'static Preset>> {
        let mut families: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for preset in presets() {
            if let Some(member) = preset.member {
                families.entry(member.family).or_default().push(preset);
            }
        }
        families
    }

    /// What two presets set differently, by the keys of the settings.
    fn differing(one: &Preset, other: &Preset) -> BTreeSet<String> {
        let (one, other) = (one.spec().settings_json(), other.spec().settings_json());
        let (one, other) = (one.as_object().unwrap(), other.as_object().unwrap());
        let keys = one.keys().chain(other.keys());
        keys.filter(|key| one.get(*key) != other.get(*key))
            .cloned()
            .collect()
    }

    #[test]
    fn every_transport_has_its_three_presets_under_the_same_names() {
        let families = families();
        for (family, presets) in &families {
            let kinds: BTreeSet<_> = presets.iter().map(|it| it.member.unwrap().kind).collect();
            assert!(kinds.iter().eq(&PresetKind::ALL), "{family}: {kinds:?}");
            assert_eq!(presets.len(), 3, "{family}");
            for preset in presets {
                let kind = preset.member.unwrap().kind;
                assert_eq!(preset.name, format!("{family}-{kind}"));
            }
        }
        let with_three: BTreeSet<_> = families
            .values()
            .map(|presets| presets[0].spec().transport())
            .collect();
        let all: BTreeSet<_> = presets().iter().map(|it| it.spec().transport()).collect();
        assert_eq!(with_three, all);
    }

    #[test]
    fn presets_of_a_family_promise_the_same() {
        for (family, presets) in families() {
            let promises: Vec<_> = presets
                .iter()
                .map(|preset| preset.spec().properties())
                .map(|it| (it.reliable, it.ordered, it.encrypted))
                .collect();
            assert!(promises.windows(2).all(|it| it[0] == it[1]), "{family}");
        }
    }

    #[test]
    fn every_setting_of_every_preset_has_a_source() {
        for (family, presets) in families() {
            let kind = |kind| presets.iter().find(|it| it.member.unwrap().kind == kind);
            let default = kind(PresetKind::Default).unwrap();
            for preset in &presets {
                let settings = preset.spec().settings_json();
                for source in preset.sources {
                    let is_there =
                        source.setting == Source::REST || settings.get(source.setting).is_some();
                    assert!(is_there, "{}: {source:?}", preset.name);
                    assert!(!source.says.is_empty() && !source.address.is_empty());
                }
            }
            let rest = |preset: &Preset| preset.sources.iter().any(|it| it.setting == Source::REST);
            assert!(rest(default), "{family}: where do its defaults come from?");
            // What a maintainer advised is named, setting by setting.
            let game = kind(PresetKind::Game).unwrap();
            let named: BTreeSet<String> = game
                .sources
                .iter()
                .map(|it| it.setting.to_owned())
                .collect();
            for key in differing(game, default) {
                assert!(named.contains(&key), "{}: `{key}` has no source", game.name);
            }
        }
    }

    #[test]
    fn the_tuned_presets_are_what_the_search_wrote_down() {
        for (family, presets) in families() {
            let game = presets
                .iter()
                .find(|it| it.name.ends_with("-game"))
                .unwrap();
            let tuned = presets
                .iter()
                .find(|it| it.name.ends_with("-tuned"))
                .unwrap();
            let has_moved = !differing(tuned, game).is_empty();
            assert_eq!(
                has_moved,
                tuned::found().found(family).is_some(),
                "{family}"
            );
        }
        for family in tuned::found().families() {
            assert!(families().contains_key(family), "{family}");
        }
    }

    #[test]
    fn a_silent_peer_is_kept_as_long_by_every_transport_that_can_be_set() {
        for presets in families().values() {
            for preset in presets {
                let timeout = preset.spec().properties().peer_timeout;
                let is_equal = match timeout {
                    PeerTimeout::NoConnection => preset.name.starts_with("udp"),
                    // ICE counts checks, and comes no nearer.
                    PeerTimeout::After(silence) => {
                        let over = silence.checked_sub(PEER_TIMEOUT.0);
                        over.is_some_and(|over| over <= Duration::from_millis(500))
                    }
                    PeerTimeout::Never | PeerTimeout::Fixed(_) => false,
                };
                assert!(is_equal, "{}: {timeout}", preset.name);
            }
        }
    }

    #[test]
    fn a_name_that_was_in_use_goes_on_finding_its_preset() {
        for (old, now) in [
            ("udp", "udp-default"),
            ("enet", "enet-default"),
            ("quic-datagram", "quic-datagram-default"),
            ("webrtc", "webrtc-str0m-default"),
            ("renet", "renet-default"),
        ] {
            assert_eq!(Spec::preset(old), Spec::preset(now), "{old}");
            assert!(Spec::preset(old).is_some(), "{old}");
        }
    }

    #[test]
    fn a_preset_beside_the_three_belongs_to_the_family_that_its_name_begins_with() {
        for (name, family) in [
            ("kcp", Some("kcp")),
            ("kcp-turbo", Some("kcp")),
            ("kcp-go-fec", Some("kcp-go")),
            ("kcp-go-tuned", Some("kcp-go")),
            ("webrtc-unreliable", Some("webrtc-str0m-unreliable")),
            ("enet-no-throttle", Some("enet")),
            ("tcp-cubic", Some("tcp")),
            ("nonesuch", None),
        ] {
            assert_eq!(family_of(name), family, "{name}");
        }
    }

    #[test]
    fn a_former_name_leads_to_the_one_there_is_now() {
        assert_eq!(new_name("tcp-smoltcp-reno"), Some("tcp-reno"));
        assert_eq!(new_name("tcp-reno"), None);
    }
}
