//! What `tune` found: for each transport the settings that serve best, what they are
//! worth beyond the play they were searched on, and what they cost.

use serde::{Deserialize, Serialize};

/// A search for settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Tune {
    /// The figure that was to become best, as in `within_150ms`.
    pub goal: String,
    /// Limits that settings had to keep, as in `overhead at most 2`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub limits: Vec<String>,
    /// The networks, in the order asked for.
    pub networks: Vec<TuneNetwork>,
    /// Seeds that the search played.
    pub search_seeds: Vec<u64>,
    /// Seeds that judged what it found, and that it never played.
    pub held_out_seeds: Vec<u64>,
    /// Seconds of play under each seed.
    pub seed_s: f64,
    /// Settings that were tried, those of presets among them.
    pub candidates: u32,
    /// Virtual seconds that all of them played together.
    pub played_s: f64,
    /// What was found of each lane.
    pub lanes: Vec<TunedLane>,
}

/// A network of a search.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TuneNetwork {
    /// Its name.
    pub name: String,
    /// Its share of the players, above zero and all together 1; of a network that was
    /// held out its share beside the others.
    pub weight: f64,
    /// Whether the search never played it.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub held_out: bool,
}

/// What was found of one lane.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TunedLane {
    /// The lane that was tuned; what was found is judged against it.
    pub lane: String,
    /// The transport's name.
    pub transport: String,
    /// The preset that the found settings start from.
    pub preset: String,
    /// Settings that differ from that preset's, as an experiment writes them; empty
    /// where a preset is best as it is.
    pub settings: serde_json::Value,
    /// The found lane, to be pasted into an experiment.
    pub toml: String,
    /// Settings that were tried of this lane.
    pub candidates: u32,
    /// What can be said of the goal beyond chance, all lanes together.
    pub finding: TuneFinding,
    /// The goal.
    pub goal: TunedFigure,
    /// Bytes on the wire over payload bytes.
    pub overhead: TunedFigure,
    /// The 99th percentile of the round trip in milliseconds.
    pub p99_ms: TunedFigure,
    /// Bytes on the wire in a player's hour, headers included.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bytes_per_player_hour: Option<TunedFigure>,
    /// What a player's hour costs by the first price list, in its currency.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub money_per_player_hour: Option<TunedFigure>,
    /// That currency, as in `USD`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub currency: Option<String>,
    /// Whether every limit is kept on held-out seeds, beyond chance; absent where that is
    /// not decided, and where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits_kept: Option<bool>,
    /// The same on each network that the search never played.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub transfer: Vec<TuneTransfer>,
    /// What each setting does to the goal, the strongest first.
    pub sensitivity: Vec<TuneSensitivity>,
    /// Candidates of which none is better both by delay and by bytes, from the
    /// leanest on, as held-out seeds have them.
    pub frontier: Vec<TunePoint>,
}

/// What held-out seeds say of found settings beside the lane they were to improve.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
#[serde(rename_all = "kebab-case")]
pub enum TuneFinding {
    /// Better by the goal, beyond chance.
    Better,
    /// Worse by the goal, beyond chance.
    Worse,
    /// No difference that chance could not have made.
    #[default]
    #[serde(rename = "not-told-apart")]
    NotDistinguished,
    /// The search found nothing better than the lane as it was.
    Same,
}

/// One figure of the lane as it was and of what was found, weighted over the
/// networks that were searched on. What is missing was endless or not measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TunedFigure {
    /// Of the lane as it was, on the seeds of the search.
    pub before_searched: Option<f64>,
    /// Of what was found, there.
    pub found_searched: Option<f64>,
    /// Of the lane as it was, on held-out seeds.
    pub before: Option<f64>,
    /// The 95 % interval of `before`, in its unit; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub before_interval: Option<[f64; 2]>,
    /// Of what was found, on held-out seeds.
    pub found: Option<f64>,
    /// The 95 % interval of `found`, in its unit; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub found_interval: Option<[f64; 2]>,
    /// What was found less what was, on held-out seeds, seed by seed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference: Option<f64>,
    /// The 95 % interval of `difference`, in its unit; absent where it is not known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub difference_interval: Option<[f64; 2]>,
}

/// What was found on a network that the search that found it never played.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TuneTransfer {
    /// The network.
    pub network: String,
    /// Settings that were found on the others, as [`TunedLane::settings`].
    pub settings: serde_json::Value,
    /// The goal of the lane as it was and of these settings.
    pub goal: TunedFigure,
}

/// What one setting does to the goal, all others being as found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TuneSensitivity {
    /// The setting's key.
    pub setting: String,
    /// Its value as found.
    pub found: serde_json::Value,
    /// How far the goal moves over all its values, in the goal's unit.
    pub swing: f64,
    /// Values that were tried, in order, and the goal with each.
    pub levels: Vec<TuneLevel>,
}

/// One value of a setting.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TuneLevel {
    /// The value.
    pub value: serde_json::Value,
    /// The goal with it, on the same seeds as all others of this lane.
    pub goal: f64,
}

/// A candidate on the frontier of delay against bytes.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct TunePoint {
    /// The preset it starts from.
    pub preset: String,
    /// Settings that differ from it.
    pub settings: serde_json::Value,
    /// Bytes on the wire over payload bytes.
    pub overhead: f64,
    /// The 99th percentile of the round trip in milliseconds; absent where it is
    /// endless.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub p99_ms: Option<f64>,
    /// The goal.
    pub goal: f64,
}
