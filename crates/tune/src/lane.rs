//! A lane that may be tuned: what its transport declares, as far as the lane goes on
//! promising what it promises.

use lagometer_lab::OwnLane;
use lagometer_socket::{SocketSpec, family_of, names};
use lagometer_testbed::Testbed;
use lagometer_transport::{BadSpec, Member, PresetKind, Tunable};
use lagometer_units::Size;
use serde::Serialize;
use serde_json::{Map, Value};
use thiserror::Error;

use crate::sensitivity::LEVELS;
use crate::space::{Candidate, Space, Start};

/// A lane and all that may be chosen of it.
#[derive(Clone, Debug)]
pub struct TunableLane {
    name: String,
    size: Option<Size>,
    space: Space,
    /// In the order of the space's starts.
    starts: Vec<StartSpec>,
}

/// Where a candidate's settings come from that it does not change.
#[derive(Clone, Debug)]
struct StartSpec {
    preset: String,
    overrides: Map<String, Value>,
    spec: SocketSpec,
}

/// Why a lane cannot be tuned.
#[derive(Debug, Error)]
pub enum BadLane {
    /// There is none of that name, it is not played in that testbed, or its settings do
    /// not fit.
    #[error("lane `{lane}`: {why}")]
    Transport {
        /// The lane's name.
        lane: String,
        /// What the transport or its settings lack.
        #[source]
        why: BadSpec,
    },
    /// Its transport has nothing to choose.
    #[error("lane `{lane}` has no settings that are worth searching; {others} have")]
    Nothing {
        /// The lane's name.
        lane: String,
        /// Presets that have.
        others: String,
    },
}

impl TunableLane {
    /// The `game` preset of each family that is played in `testbed` and has settings
    /// worth searching.
    #[must_use]
    pub fn usual(testbed: Testbed) -> Vec<OwnLane> {
        let games = presets().filter(|&(_, member)| is_of_kind(member, PresetKind::Game));
        let lanes = games.filter(|(name, _)| {
            let spec = testbed.transport(name, &Map::new());
            spec.is_ok_and(|spec| !worth_searching(&spec).is_empty())
        });
        lanes.map(|(name, _)| preset_lane(name)).collect()
    }

    /// The lane called `name`, to be played in `testbed`: one of an experiment's `own`, or
    /// a preset.
    ///
    /// # Errors
    ///
    /// [`BadLane`] where there is none, or nothing to choose.
    pub fn named(name: &str, own: &[OwnLane], testbed: Testbed) -> Result<Self, BadLane> {
        let asked = own.iter().find(|lane| lane.name() == name).cloned();
        let lane = asked.unwrap_or_else(|| preset_lane(name));
        if !names().any(|known| known == lane.transport) {
            let mut known: Vec<&str> = names().collect();
            known.extend(own.iter().map(OwnLane::name));
            return Err(BadLane::Transport {
                lane: name.to_owned(),
                why: BadSpec::unknown(&lane.transport, known.into_iter()),
            });
        }
        Self::of(&lane, testbed)
    }

    fn of(lane: &OwnLane, testbed: Testbed) -> Result<Self, BadLane> {
        let name = lane.name().to_owned();
        let bad = |why| BadLane::Transport {
            lane: name.clone(),
            why,
        };
        let overrides = serde_json::to_value(&lane.settings).unwrap_or_default();
        let overrides = overrides.as_object().cloned().unwrap_or_default();
        let spec = testbed.transport(&lane.transport, &overrides);
        let spec = spec.map_err(|why| match (testbed, why) {
            (Testbed::Sim, BadSpec::NotHere(_)) => bad(BadSpec::NotHere(format!(
                "{} owns its sockets, and `sim` has none; `--testbed kernel` searches it",
                lane.transport
            ))),
            (_, why) => bad(why),
        })?;
        let tunables = worth_searching(&spec);
        if tunables.is_empty() {
            let others: Vec<String> = Self::usual(testbed)
                .iter()
                .map(|lane| format!("`{}`", lane.name()))
                .collect();
            return Err(BadLane::Nothing {
                lane: name,
                others: others.join(", "),
            });
        }
        let mut starts = vec![StartSpec {
            preset: lane.transport.clone(),
            overrides,
            spec: spec.clone(),
        }];
        // What a search found is no place for the next to begin: it would find more
        // each time that its own findings were written down.
        let family = family_of(&lane.transport);
        let others = presets().filter(|&(name, member)| {
            !is_of_kind(member, PresetKind::Tuned) && family_of(name) == family
        });
        for (name, _) in others {
            let Ok(other) = testbed.transport(name, &Map::new()) else {
                continue;
            };
            let is_new = starts.iter().all(|start: &StartSpec| start.spec != other);
            if is_new && is_start_for(&other, &spec) {
                starts.push(StartSpec {
                    preset: name.to_owned(),
                    overrides: Map::new(),
                    spec: other,
                });
            }
        }
        let own = |start: &StartSpec| {
            let settings = start.spec.settings_json();
            tunables.iter().map(|it| it.of(&settings)).collect()
        };
        let points = starts.iter().enumerate().map(|(place, start)| Start {
            name: if place == 0 {
                name.clone()
            } else {
                start.preset.clone()
            },
            own: own(start),
        });
        let points = points.collect();
        Ok(Self {
            name: name.clone(),
            size: lane.size,
            space: Space::new(tunables, points),
            starts,
        })
    }

    /// The lane's name.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// What the lane is called with the settings that were found, and with those that
    /// a search found that did not play a network.
    #[must_use]
    pub fn found_names(&self) -> [String; 2] {
        [
            format!("{}-tuned", self.name),
            format!("{}-from-others", self.name),
        ]
    }

    /// Its messages' size, where that differs from the workload's.
    #[must_use]
    pub const fn size(&self) -> Option<Size> {
        self.size
    }

    /// What may be chosen.
    #[must_use]
    pub const fn space(&self) -> &Space {
        &self.space
    }

    /// The transport's name.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        self.starts[0].spec.transport()
    }

    /// The preset that a candidate changes.
    #[must_use]
    pub fn preset(&self, candidate: &Candidate) -> &str {
        &self.starts[candidate.start].preset
    }

    /// The candidate as a transport; `None` where its settings do not go together, or
    /// promise something else than the lane.
    #[must_use]
    pub fn spec(&self, candidate: &Candidate) -> Option<SocketSpec> {
        let start = &self.starts[candidate.start].spec;
        let spec = start
            .with_overrides(&self.space.overrides(candidate))
            .ok()?;
        is_alike(&spec, &self.starts[0].spec).then_some(spec)
    }

    /// All that a candidate changes of its preset, as an experiment writes it.
    #[must_use]
    pub fn settings(&self, candidate: &Candidate) -> Map<String, Value> {
        let mut settings = self.starts[candidate.start].overrides.clone();
        merge(&mut settings, self.space.overrides(candidate));
        settings
    }

    /// The candidate as a lane called `name`, as an experiment has it.
    #[must_use]
    pub fn written(&self, candidate: &Candidate, name: &str) -> OwnLane {
        OwnLane {
            name: Some(name.to_owned()),
            transport: self.preset(candidate).to_owned(),
            settings: toml::Table::try_from(self.settings(candidate)).unwrap_or_default(),
            size: self.size,
        }
    }

    /// The candidate as a lane called `name`, to be pasted into an experiment.
    #[must_use]
    pub fn toml(&self, candidate: &Candidate, name: &str) -> String {
        #[derive(Serialize)]
        struct Pasted {
            lane: [OwnLane; 1],
        }
        let lane = [self.written(candidate, name)];
        toml::to_string(&Pasted { lane }).unwrap_or_default()
    }

    /// Every setting of every start, to distinguish one search from another.
    #[must_use]
    pub fn described(&self) -> Value {
        let starts = self.starts.iter();
        let tunables = self.space.tunables().iter();
        serde_json::json!({
            "lane": self.name,
            "size": self.size,
            "starts": starts.map(|start| start.spec.settings_json()).collect::<Vec<_>>(),
            "tunables": tunables.map(|it| format!("{it:?}")).collect::<Vec<_>>(),
        })
    }
}

fn preset_lane(name: &str) -> OwnLane {
    OwnLane {
        name: None,
        transport: name.to_owned(),
        settings: toml::Table::new(),
        size: None,
    }
}

/// What the transport declares, but for settings that would change what the lane
/// promises or that it refuses.
fn worth_searching(spec: &SocketSpec) -> Vec<Tunable> {
    let fits = |tunable: &&Tunable| {
        tunable.range.levels(LEVELS).into_iter().all(|value| {
            let mut overrides = Map::new();
            tunable.put(value, &mut overrides);
            spec.with_overrides(&overrides)
                .is_ok_and(|changed| is_alike(&changed, spec))
        })
    };
    spec.tunables().iter().filter(fits).copied().collect()
}

/// Every preset's name, and which of its family's it is; of endpoints first.
fn presets() -> impl Iterator<Item = (&'static str, Option<Member>)> {
    let of_endpoints = lagometer_transport::presets().iter();
    let of_sockets = lagometer_socket::presets().iter();
    let of_endpoints = of_endpoints.map(|preset| (preset.name, preset.member));
    of_endpoints.chain(of_sockets.map(|preset| (preset.name, preset.member)))
}

fn is_of_kind(member: Option<Member>, kind: PresetKind) -> bool {
    member.is_some_and(|member| member.kind == kind)
}

/// Whether a search for a lane like `spec` may begin at `other`: it promises the same,
/// gives its peer up as late, so that none is better for waiting longer, and takes
/// messages as large.
fn is_start_for(other: &SocketSpec, spec: &SocketSpec) -> bool {
    other.transport() == spec.transport()
        && is_alike(other, spec)
        && other.properties().peer_timeout == spec.properties().peer_timeout
        && other.largest_message_bytes() >= spec.largest_message_bytes()
}

/// Whether two transports promise the same.
fn is_alike(one: &SocketSpec, other: &SocketSpec) -> bool {
    let (one, other) = (one.properties(), other.properties());
    (one.reliable, one.ordered, one.encrypted) == (other.reliable, other.ordered, other.encrypted)
}

/// Puts `over` in place of what `base` has; of two tables, key by key.
fn merge(base: &mut Map<String, Value>, over: Map<String, Value>) {
    for (key, value) in over {
        match (base.get_mut(&key), value) {
            (Some(Value::Object(base)), Value::Object(over)) => merge(base, over),
            (_, value) => {
                base.insert(key, value);
            }
        }
    }
}
