//! From an experiment's words to things that can be played: its network and
//! its lanes, found in the catalogues or in files.

mod place;

use std::collections::BTreeSet;
use std::time::Duration;

use lagometer_link::cross::Cross;
use lagometer_link::{Direction, Overload, Profile, Regime, TooLarge};
use lagometer_socket::SocketSpec;
use lagometer_testbed::Testbed;
use lagometer_transport::{BadSpec, Offer, PresetKind};
use lagometer_units::Span;
use thiserror::Error;

use crate::experiment::{Experiment, OwnLane, RegimeName};
use crate::plan::Plan;
use crate::workload::Workload;

/// An experiment whose network and lanes have been found.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The experiment, as asked for.
    pub experiment: Experiment,
    /// The network's name.
    pub network: String,
    /// How the network behaves.
    pub profile: Profile,
    /// What its impairments are keyed by.
    pub regime: Regime,
    /// What is played.
    pub plan: Plan,
    /// Other traffic on every link: the network's, then the experiment's.
    pub cross: Vec<Cross>,
    /// Limits in milliseconds for which shares delivered within are wanted beside
    /// the usual ones and those that budgets name.
    pub limits_ms: Vec<u32>,
    /// The lanes that run in this testbed.
    pub lanes: Vec<RunnableLane>,
    /// The lanes that do not, and why.
    pub unrunnable: Vec<UnrunnableLane>,
}

/// A lane that can be played.
#[derive(Clone, Debug)]
pub struct RunnableLane {
    /// The lane's name.
    pub name: String,
    /// Its transport and settings.
    pub transport: SocketSpec,
    /// What its endpoints do.
    pub workload: Workload,
    /// Which presets of which family it is, where families are played.
    pub presets: Option<PlayedPresets>,
}

/// The presets of a family that have a lane's settings.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlayedPresets {
    /// The family's name, as in `kcp`.
    pub family: String,
    /// The presets, in the order asked for; the lane's name has the first.
    pub kinds: Vec<PresetKind>,
}

/// A lane as it is asked for.
struct Asked {
    lane: OwnLane,
    /// The family and the preset of it, where families are played.
    preset: Option<(String, PresetKind)>,
}

/// A lane that cannot be played in this testbed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnrunnableLane {
    /// The lane's name.
    pub name: String,
    /// The transport's name.
    pub transport: String,
    /// Why not, and where it can.
    pub why: String,
}

/// Why an experiment could not be resolved.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ResolveError {
    /// A lane's transport cannot be as it is asked for.
    #[error("lane `{lane}`: {why}")]
    Transport {
        /// The lane's name.
        lane: String,
        /// What is wrong with it.
        #[source]
        why: BadSpec,
    },
    /// Two lanes have one name.
    #[error("two lanes are called `{name}`; give one of them another `name`")]
    SameName {
        /// The name.
        name: String,
    },
    /// What the experiment or the network asks for needs a link that is played here.
    #[error(
        "{what} cannot be played over a real path; use the testbed `sim`, `kernel` or `emu`, or \
         name another network or experiment"
    )]
    NotOverARealPath {
        /// What is asked for.
        what: String,
    },
    /// Two kinds of other traffic have one name.
    #[error(
        "the network and the experiment both have other traffic called `{name}`; give the \
         experiment's `[[cross]]` another `name`"
    )]
    SameCross {
        /// The name.
        name: String,
    },
    /// A lane and other traffic have one name.
    #[error("other traffic is called `{name}`, as a lane is; give one of them another `name`")]
    LaneAndCross {
        /// The name.
        name: String,
    },
    /// Other traffic is on the game's machine, and there are several.
    #[error(
        "other traffic `{name}` is on the game's machine (`host = \"game\"`), but lanes that share \
         a link (`shared = true`) are a machine each: leave out its `host`"
    )]
    WhichGame {
        /// The other traffic's name.
        name: String,
    },
    /// Other traffic would have no limit.
    #[error(
        "other traffic `{name}` sends as fast as it can, and the network `{network}` has no `rate` \
         {direction}: say one there, under `[{direction}]`, or name a network that has one"
    )]
    NoBottleneck {
        /// The other traffic's name.
        name: String,
        /// The network's name or file.
        network: String,
        /// Where its data go.
        direction: Direction,
    },
    /// Other traffic would fill a queue without a bound.
    #[error("over the network `{network}`, {overload}")]
    Overload {
        /// The network's name or file.
        network: String,
        /// What is too much.
        overload: Overload,
    },
    /// Other traffic would not pass the line.
    #[error("over the network `{network}`, {too_large}")]
    TooLarge {
        /// The network's name or file.
        network: String,
        /// What does not pass.
        too_large: TooLarge,
    },
    /// Lanes in place of an experiment's are not as an experiment's may be.
    #[error("`{key}`: {why}")]
    Lanes {
        /// The key that is wrong.
        key: &'static str,
        /// What is wrong with it.
        why: String,
    },
    /// Every lane needs another testbed.
    #[error("no lane of this experiment can run here: {why}")]
    NothingToRun {
        /// The first lane's reason.
        why: String,
    },
}

/// Finds the lanes of `experiment`, to be played over `profile` in `testbed`.
///
/// # Errors
///
/// [`ResolveError`] for a lane that does not exist, has wrong settings or
/// another's name, and where nothing is left to run.
pub fn resolve(
    experiment: Experiment,
    network: String,
    profile: Profile,
    testbed: Testbed,
) -> Result<Resolved, ResolveError> {
    let mut experiment = experiment;
    if let Some(end) = experiment.workload.ends_after() {
        experiment.duration = experiment.duration.min(Span(end));
    }
    let cross = cross_of(&experiment, &network, &profile)?;
    check_testbed(&experiment, &profile, &cross, testbed)?;
    let workload = experiment.workload.clone();
    let plan = Plan {
        workload: workload.clone(),
        offer: Offer::Pipe,
        duration: experiment.duration.duration(),
        grace: experiment.grace.duration(),
        seed: experiment.seed,
        offset: Duration::ZERO,
    };
    let regime = match experiment.regime {
        RegimeName::Time => Regime::Time,
        RegimeName::Packet => Regime::Packet {
            spacing: workload.interval(),
        },
    };
    let (lanes, unrunnable) = some_of(lanes_of(&experiment, &cross, testbed)?)?;
    Ok(Resolved {
        experiment,
        network,
        profile,
        regime,
        plan,
        cross,
        limits_ms: Vec::new(),
        lanes,
        unrunnable,
    })
}

/// The lanes that are played in a testbed, and those that are not.
type Lanes = (Vec<RunnableLane>, Vec<UnrunnableLane>);

/// Lanes of which one can be played at least.
fn some_of((lanes, unrunnable): Lanes) -> Result<Lanes, ResolveError> {
    if lanes.is_empty() {
        let why = unrunnable
            .first()
            .map(|lane| lane.why.clone())
            .unwrap_or_default();
        return Err(ResolveError::NothingToRun { why });
    }
    Ok((lanes, unrunnable))
}

/// The lanes that an experiment asks for and that are played in `testbed`, and those that
/// are not.
fn lanes_of(
    experiment: &Experiment,
    cross: &[Cross],
    testbed: Testbed,
) -> Result<Lanes, ResolveError> {
    let mut lanes: Vec<RunnableLane> = Vec::new();
    let mut unrunnable: Vec<UnrunnableLane> = Vec::new();
    let mut names = BTreeSet::new();
    for Asked {
        lane: asked,
        preset,
    } in asked_lanes(experiment)
    {
        let name = asked.name().to_owned();
        if !names.insert(name.clone()) {
            return Err(ResolveError::SameName { name });
        }
        if cross.iter().any(|cross| cross.name() == name) {
            return Err(ResolveError::LaneAndCross { name });
        }
        let transport = match find(&asked, testbed) {
            Ok(transport) => transport,
            Err(BadSpec::NotHere(why)) => {
                // What cannot be played cannot with other settings either.
                if preset.is_none_or(|(_, kind)| experiment.presets.first() == Some(&kind)) {
                    unrunnable.push(UnrunnableLane {
                        name,
                        transport: asked.transport,
                        why,
                    });
                }
                continue;
            }
            Err(why) => return Err(ResolveError::Transport { lane: name, why }),
        };
        if let Some((family, kind)) = &preset
            && let Some(same) = same_settings(&mut lanes, family, &transport)
        {
            same.push(*kind);
            continue;
        }
        let workload = &experiment.workload;
        let workload = asked
            .size
            .map_or_else(|| workload.clone(), |size| workload.of_size(size));
        lanes.push(RunnableLane {
            name,
            transport,
            workload,
            presets: preset.map(|(family, kind)| PlayedPresets {
                family,
                kinds: vec![kind],
            }),
        });
    }
    Ok((lanes, unrunnable))
}

impl Resolved {
    /// The same traffic on the same network, with `lanes` in place of its own.
    ///
    /// # Errors
    ///
    /// As [`resolve()`], of its lanes alone.
    pub fn with_lanes(&self, lanes: Vec<OwnLane>, testbed: Testbed) -> Result<Self, ResolveError> {
        let mut experiment = self.experiment.clone();
        experiment.lanes.clear();
        experiment.presets.clear();
        experiment.own_lanes = lanes;
        experiment
            .check()
            .map_err(|(key, why)| ResolveError::Lanes { key, why })?;
        let (lanes, unrunnable) = some_of(lanes_of(&experiment, &self.cross, testbed)?)?;
        Ok(Self {
            experiment,
            lanes,
            unrunnable,
            ..self.clone()
        })
    }

    /// Whether a link has more senders than one lane, or a queue with a
    /// discipline.
    #[must_use]
    pub fn needs_shared_link(&self) -> bool {
        self.experiment.shared || !self.cross.is_empty() || self.profile.has_managed_queue()
    }
}

/// The lanes that an experiment asks for: each of its families with each of its
/// presets, names that are no family's as they are, and its own.
fn asked_lanes(experiment: &Experiment) -> Vec<Asked> {
    let known: BTreeSet<&str> = lagometer_socket::names().collect();
    let preset_lane = |name: String| OwnLane {
        name: None,
        transport: name,
        settings: toml::Table::new(),
        size: None,
    };
    let mut asked = Vec::new();
    for name in &experiment.lanes {
        let of_family = experiment.presets.iter().filter_map(|&kind| {
            let preset = format!("{name}-{kind}");
            known.contains(preset.as_str()).then_some((preset, kind))
        });
        let of_family: Vec<_> = of_family.collect();
        if of_family.is_empty() {
            asked.push(Asked {
                lane: preset_lane(name.clone()),
                preset: None,
            });
        }
        asked.extend(of_family.into_iter().map(|(preset, kind)| Asked {
            lane: preset_lane(preset),
            preset: Some((name.clone(), kind)),
        }));
    }
    asked.extend(experiment.own_lanes.iter().map(|lane| Asked {
        lane: lane.clone(),
        preset: None,
    }));
    asked
}

/// The presets of the lane of that family which has the same settings, if there is one:
/// it would find the same again.
fn same_settings<'a>(
    lanes: &'a mut [RunnableLane],
    family: &str,
    transport: &SocketSpec,
) -> Option<&'a mut Vec<PresetKind>> {
    lanes.iter_mut().find_map(|lane| {
        let presets = lane.presets.as_mut()?;
        let is_same = presets.family == family && lane.transport == *transport;
        is_same.then_some(&mut presets.kinds)
    })
}

/// All other traffic: the network's, then the experiment's.
fn cross_of(
    experiment: &Experiment,
    network: &str,
    profile: &Profile,
) -> Result<Vec<Cross>, ResolveError> {
    let cross = [profile.cross(), &experiment.cross].concat();
    let mut names = BTreeSet::new();
    for one in &cross {
        let name = one.name().to_owned();
        let direction = Direction::from(one.direction);
        if experiment.shared && one.host.as_deref() == Some("game") {
            return Err(ResolveError::WhichGame { name });
        }
        if one.is_tcp() && profile.rate_bits_per_second(direction).is_none() {
            let network = network.to_owned();
            return Err(ResolveError::NoBottleneck {
                name,
                network,
                direction,
            });
        }
        if !names.insert(name.clone()) {
            return Err(ResolveError::SameCross { name });
        }
    }
    profile
        .check_overload(&cross)
        .map_err(|overload| ResolveError::Overload {
            network: network.to_owned(),
            overload,
        })?;
    profile
        .check_packets(&cross)
        .map_err(|too_large| ResolveError::TooLarge {
            network: network.to_owned(),
            too_large,
        })?;
    Ok(cross)
}

/// Whether the testbed has what is asked for.
fn check_testbed(
    experiment: &Experiment,
    profile: &Profile,
    cross: &[Cross],
    testbed: Testbed,
) -> Result<(), ResolveError> {
    let what = match cross.first() {
        _ if testbed != Testbed::Net => return Ok(()),
        Some(cross) => format!("other traffic (`{}`)", cross.name()),
        None if experiment.shared => "a link that lanes share".to_owned(),
        None if profile.has_managed_queue() => "a queue with a discipline".to_owned(),
        None => return Ok(()),
    };
    Err(ResolveError::NotOverARealPath { what })
}

/// The lane's transport.
fn find(asked: &OwnLane, testbed: Testbed) -> Result<SocketSpec, BadSpec> {
    let settings = serde_json::to_value(&asked.settings).unwrap_or_default();
    let settings = settings.as_object().cloned().unwrap_or_default();
    testbed.transport(&asked.transport, &settings)
}
