//! An experiment: workload, network, lanes and budgets, as a TOML file says.
//!
//! ```toml
//! name = "pvp-500"
//! summary = "A shooter's traffic: 500 B every 50 ms, echoed"
//! network = "busy-wifi"            # a named network, or a file beside this one
//! for = "10 min"
//! lag_threshold = "170 ms"         # of a round trip; 150 ms above the calm path's
//! lanes = ["udp", "kcp", "enet"]   # presets …
//! presets = ["game", "default"]    # … or, with this, families: `udp-game`, …
//!
//! [workload.paced-echo]             # or `game`, `replay`, `stream`, `request-response`
//! size = "500 B"
//! interval = "50 ms"
//!
//! [[lane]]                         # … and lanes of one's own
//! name = "kcp-wide"
//! transport = "kcp"
//! settings = { send_window = 256 }
//!
//! [[cross]]                        # other traffic on every lane's link
//! kind = "bulk"
//! direction = "down"
//!
//! [[budget]]
//! metric = "within 150 ms"
//! at_least = "99.9 %"
//! ```

use std::time::Duration;

use lagometer_link::cross::{self, Cross, check_cross};
use lagometer_results::{Budget, LAG_ABOVE, Prices};
use lagometer_transport::PresetKind;
use lagometer_units::{BadInput, Size, Span, from_toml, suggest};
use serde::{Deserialize, Serialize};

use crate::workload::{PacedEcho, Workload};

mod budgets;

/// What is compared, on which network, with what traffic.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Experiment {
    /// Its name; by convention the file's.
    pub name: String,
    /// What it plays, in one sentence.
    pub summary: String,
    /// The name of a network or the path of its file.
    pub network: String,
    /// How long messages are sent.
    #[serde(rename = "for", default = "ten_minutes")]
    pub duration: Span,
    /// How long the last echoes are waited for.
    #[serde(default = "one_minute")]
    pub grace: Span,
    /// The seed of the impairments and of all that is drawn.
    #[serde(default = "first_seed")]
    pub seed: u64,
    /// What the impairments are keyed by.
    #[serde(default)]
    pub regime: RegimeName,
    /// All lanes share one link, instead of each having a copy of it for itself.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub shared: bool,
    /// The round trip above which a player lags, for every lane alike; where
    /// absent, [`LAG_ABOVE`] more than the calm path's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lag_threshold: Option<Span>,
    /// What the endpoints do.
    pub workload: Workload,
    /// Lanes with a preset's settings.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub lanes: Vec<String>,
    /// The presets with which `lanes` are played, which then are names of families, as
    /// `kcp` of `kcp-game`: the first is what tables show. Where absent, `lanes` are
    /// presets.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub presets: Vec<PresetKind>,
    /// Lanes with settings of their own.
    #[serde(default, rename = "lane", skip_serializing_if = "Vec::is_empty")]
    pub own_lanes: Vec<OwnLane>,
    /// Other traffic on every link, beside that which comes with the network.
    #[serde(
        default,
        deserialize_with = "cross::listed",
        skip_serializing_if = "Vec::is_empty"
    )]
    pub cross: Vec<Cross>,
    /// Price lists by which a player's hour is reckoned in money; those that are built in
    /// where there are none.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub prices: Vec<Prices>,
    /// What the lanes are held against.
    #[serde(default, rename = "budget", skip_serializing_if = "Vec::is_empty")]
    pub budgets: Vec<Budget>,
}

/// What the impairments are keyed by.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RegimeName {
    /// The same impairments at the same time for every lane.
    #[default]
    Time,
    /// The same fate for the n-th packet of every lane.
    Packet,
}

/// A lane whose settings differ from its preset's.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OwnLane {
    /// The lane's name; the transport's where absent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The preset it starts from.
    pub transport: String,
    /// Settings that differ from the preset's.
    #[serde(default, skip_serializing_if = "toml::Table::is_empty")]
    pub settings: toml::Table,
    /// A message size that differs from the workload's.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub size: Option<Size>,
}

impl Experiment {
    /// Reads and checks an experiment; `origin` is the file's name for
    /// messages.
    ///
    /// # Errors
    ///
    /// [`BadInput`] for anything that TOML, the keys or the values have wrong.
    pub fn parse(origin: &str, text: &str) -> Result<Self, BadInput> {
        let experiment: Self = from_toml(origin, text)
            .map_err(cross::name_choices)
            .map_err(|bad| budgets::at_its_own_line(origin, text, bad))?;
        experiment.check_budgets(origin, text)?;
        check_cross(origin, text, &experiment.cross)?;
        experiment
            .check()
            .map_err(|(key, message)| BadInput::at(origin, text, key, message))?;
        Ok(experiment)
    }

    /// Reads the file that the workload plays, if it plays one, and checks the experiment
    /// with it; `read` has the file of a name. `origin` and `text` are those of
    /// [`parse`](Self::parse).
    ///
    /// # Errors
    ///
    /// [`BadInput`] for a file that cannot be read, or is no traffic that can be played.
    pub fn load_traffic(
        &mut self,
        origin: &str,
        text: &str,
        read: &mut dyn FnMut(&str) -> Result<Vec<u8>, String>,
    ) -> Result<(), BadInput> {
        let Some(file) = self.workload.file().map(str::to_owned) else {
            return Ok(());
        };
        let bad = |what: String| {
            let place = ["workload", "replay", "file"];
            BadInput::at_key(origin, text, &place, what)
        };
        let bytes = read(&file).map_err(&bad)?;
        let loaded = self.workload.load(&bytes);
        loaded.map_err(|why| bad(format!("{file} {why}")))?;
        self.check()
            .map_err(|(key, message)| BadInput::at(origin, text, key, message))
    }

    /// The price lists that hold.
    #[must_use]
    pub fn price_lists(&self) -> Vec<Prices> {
        if self.prices.is_empty() {
            Prices::built_in()
        } else {
            self.prices.clone()
        }
    }

    /// A budget that names a lane must find it: a slip of the finger would
    /// else be a budget that is always met.
    fn check_budgets(&self, origin: &str, text: &str) -> Result<(), BadInput> {
        let names: Vec<&str> = self
            .lanes
            .iter()
            .map(String::as_str)
            .chain(self.own_lanes.iter().map(OwnLane::name))
            .collect();
        let budgeted = self.budgets.iter().filter_map(Budget::lanes).flatten();
        match budgeted
            .into_iter()
            .find(|name| !names.contains(&name.as_str()))
        {
            None => Ok(()),
            Some(name) => {
                let help = suggest(name, &names);
                let message = format!("a budget is for lane `{name}`, which there is not; {help}");
                Err(BadInput::at(origin, text, name, message))
            }
        }
    }

    /// Leaves only the lanes named: own lanes by their name, any other name as
    /// a preset, in the order asked for.
    pub fn keep_lanes(&mut self, names: &[String]) {
        self.presets.clear();
        let is_own = |name: &String| self.own_lanes.iter().any(|lane| lane.is_called(name));
        self.lanes = names.iter().filter(|name| !is_own(name)).cloned().collect();
        self.own_lanes
            .retain(|lane| names.iter().any(|name| lane.is_called(name)));
    }

    /// Checks the values against each other and against what can be played.
    ///
    /// # Errors
    ///
    /// The key that is wrong, and what is expected of it.
    pub fn check(&self) -> Result<(), (&'static str, String)> {
        self.workload.check()?;
        self.prices.iter().try_for_each(Prices::check)?;
        let sizes = self.own_lanes.iter().filter_map(|lane| lane.size);
        for bytes in sizes {
            PacedEcho::check_size(bytes)?;
            if !matches!(self.workload, Workload::PacedEcho(_)) {
                return Err((
                    "size",
                    "a lane's own `size` is for `paced-echo`; other workloads' messages have \
                     sizes of their own: leave it out"
                        .into(),
                ));
            }
        }
        if self
            .lag_threshold
            .is_some_and(|lag| lag < Span::from_millis(1))
        {
            return Err((
                "lag_threshold",
                format!(
                    "lag begins at 1 ms or later; leave it out for {} ms above the calm round trip",
                    LAG_ABOVE.as_millis()
                ),
            ));
        }
        let interval = Span(self.workload.interval());
        if self.duration < interval {
            return Err((
                "for",
                format!("`for` must hold at least one interval of {interval}"),
            ));
        }
        let (duration, grace) = (self.duration.duration(), self.grace.duration());
        let messages = self.workload.remembered(duration, grace);
        if messages > MESSAGES_AT_MOST {
            return Err((
                "for",
                format!(
                    "{messages} messages a lane are too many; {MESSAGES_AT_MOST} is the limit: shorten `for` or widen `interval`"
                ),
            ));
        }
        if self.lanes.is_empty() && self.own_lanes.is_empty() {
            return Err((
                "lane",
                "name at least one lane: lanes = [\"udp\", \"kcp\"]".into(),
            ));
        }
        Ok(())
    }
}

impl OwnLane {
    /// The lane's name: its own, or its transport's.
    #[must_use]
    pub fn name(&self) -> &str {
        self.name.as_deref().unwrap_or(&self.transport)
    }

    fn is_called(&self, name: &str) -> bool {
        self.name() == name
    }
}

/// A run keeps a record of every message of every lane in memory.
pub(crate) const MESSAGES_AT_MOST: u64 = 5_000_000;

const fn ten_minutes() -> Span {
    Span(Duration::from_mins(10))
}

const fn one_minute() -> Span {
    Span(Duration::from_mins(1))
}

const fn first_seed() -> u64 {
    1
}
