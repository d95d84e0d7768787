//! Where in an experiment stands what cannot be played.

use lagometer_units::BadInput;

use super::ResolveError;
use crate::experiment::Experiment;

impl ResolveError {
    /// The same as a mistake in the experiment's text, at the line to be changed; `None`
    /// where it is not in there.
    #[must_use]
    pub fn in_text(&self, experiment: &Experiment, origin: &str, text: &str) -> Option<BadInput> {
        let path = self.path(experiment)?;
        let path: Vec<&str> = path.iter().map(String::as_str).collect();
        Some(BadInput::at_key(origin, text, &path, self.to_string()))
    }

    /// Whether it is about a lane.
    #[must_use]
    pub const fn is_of_a_lane(&self) -> bool {
        matches!(self, Self::SameName { .. } | Self::Transport { .. })
    }

    /// The key that is wrong.
    fn path(&self, experiment: &Experiment) -> Option<Vec<String>> {
        let cross = |name: &str, key| {
            let place = experiment.cross.iter().position(|it| it.name() == name)?;
            Some(
                ["cross", &place.to_string(), key]
                    .map(str::to_owned)
                    .to_vec(),
            )
        };
        let key = |key: &str| vec![key.to_owned()];
        match self {
            Self::SameName { name } | Self::Transport { lane: name, .. } => lane(experiment, name),
            Self::SameCross { name } | Self::LaneAndCross { name } => cross(name, "name"),
            Self::WhichGame { name } => cross(name, "host").or_else(|| Some(key("shared"))),
            Self::NoBottleneck { name, .. } => cross(name, "kind"),
            Self::Overload { overload, .. } => {
                let names = overload.names.iter().rev();
                names.into_iter().find_map(|name| cross(name, "rate"))
            }
            Self::TooLarge { too_large, .. } => cross(&too_large.name, "size"),
            Self::NotOverARealPath { .. } | Self::NothingToRun { .. } | Self::Lanes { .. } => None,
        }
    }
}

/// The last lane of a name: where there are two, the one that comes on top.
fn lane(experiment: &Experiment, name: &str) -> Option<Vec<String>> {
    let own = experiment
        .own_lanes
        .iter()
        .rposition(|it| it.name() == name);
    if let Some(place) = own {
        return Some(vec![
            "lane".to_owned(),
            place.to_string(),
            "name".to_owned(),
        ]);
    }
    let family = |lane: &String| {
        let is_preset = |rest: &str| {
            let kind = rest.strip_prefix('-');
            kind.is_some_and(|kind| experiment.presets.iter().any(|it| it.to_string() == kind))
        };
        lane == name || name.strip_prefix(lane.as_str()).is_some_and(is_preset)
    };
    let place = experiment.lanes.iter().rposition(family)?;
    Some(vec!["lanes".to_owned(), place.to_string()])
}
