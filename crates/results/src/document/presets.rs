//! Runs that played several presets of each transport: which there are, and the run as
//! it is with one of them, which is what tables show and verdicts speak of.

use std::borrow::Cow;

use super::{Document, Lane};

impl Document {
    /// The presets that families of transports were played with, the one that is
    /// shown first. Empty where no lane was played as one of several.
    #[must_use]
    pub fn presets(&self) -> Vec<&str> {
        let mut presets: Vec<&str> = Vec::new();
        for preset in self.lanes.iter().flat_map(|lane| &lane.presets) {
            if !presets.contains(&preset.as_str()) {
                presets.push(preset);
            }
        }
        presets
    }

    /// The run as if each family had been played with this preset alone. Lanes of no
    /// family stay; one that stands for several presets has this one's name. The
    /// verdict is that on these lanes.
    #[must_use]
    pub fn with_preset(&self, preset: &str) -> Self {
        let fits = |lane: &&Lane| {
            lane.presets.is_empty() || lane.presets.iter().any(|each| each == preset)
        };
        let called = |lane: &Lane| match &lane.family {
            Some(family) => format!("{family}-{preset}"),
            None => lane.lane.clone(),
        };
        let kept: Vec<&Lane> = self.lanes.iter().filter(fits).collect();
        let new_name = |old: &str| {
            kept.iter()
                .find(|lane| lane.lane == old)
                .map(|it| called(it))
        };
        let only = |lane: &Lane| {
            let preset = (!lane.presets.is_empty()).then(|| preset.to_owned());
            preset.into_iter().collect()
        };
        let lanes = kept.iter().map(|lane| Lane {
            lane: called(lane),
            presets: only(lane),
            ..(*lane).clone()
        });
        let budgets = self.budgets.iter().filter_map(|budget| {
            let mut budget = budget.clone();
            budget.lane = new_name(&budget.lane)?;
            Some(budget)
        });
        let bottlenecks = self
            .bottlenecks
            .iter()
            .filter(|bottleneck| bottleneck.lanes.iter().any(|lane| new_name(lane).is_some()));
        let mut shown = Self {
            lanes: lanes.collect(),
            budgets: budgets.collect(),
            bottlenecks: bottlenecks.cloned().collect(),
            ..self.without_lanes()
        };
        if self.verdict.is_some() {
            shown.verdict = Some(crate::verdict(&shown));
        }
        shown
    }

    /// What there is room for where presets cannot be switched: the run with the first
    /// of them.
    #[must_use]
    pub fn shown(&self) -> Cow<'_, Self> {
        match self.presets()[..] {
            [first, _, ..] => Cow::Owned(self.with_preset(first)),
            _ => Cow::Borrowed(self),
        }
    }

    /// All but what speaks of lanes.
    fn without_lanes(&self) -> Self {
        Self {
            schema: self.schema.clone(),
            command: self.command.clone(),
            testbed: self.testbed.clone(),
            seed: self.seed,
            seeds: self.seeds.clone(),
            partial: self.partial,
            started: self.started.clone(),
            wall_s: self.wall_s,
            host: self.host.clone(),
            experiment: self.experiment.clone(),
            asked: self.asked.clone(),
            impairments: self.impairments.clone(),
            audit: self.audit.clone(),
            verdict: self.verdict.clone(),
            warnings: self.warnings.clone(),
            ..Self::empty(&self.command)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::document::sample::sample_document;

    /// A run with `game` and `default` of two families, whose settings are the same in
    /// one, and a lane of none.
    fn run() -> Document {
        let lane = |name: &str, family: Option<&str>, presets: &[&str]| {
            let mut lane = sample_document().lanes.remove(0);
            lane.lane = name.to_owned();
            lane.family = family.map(str::to_owned);
            lane.presets = presets.iter().map(|&it| it.to_owned()).collect();
            lane
        };
        let mut document = sample_document();
        document.lanes = vec![
            lane("kcp-game", Some("kcp"), &["game"]),
            lane("kcp-default", Some("kcp"), &["default"]),
            lane("udp-game", Some("udp"), &["game", "default"]),
            lane("own", None, &[]),
        ];
        document
    }

    fn names(document: &Document) -> Vec<&str> {
        document.lanes.iter().map(|it| it.lane.as_str()).collect()
    }

    #[test]
    fn one_preset_is_shown_first_and_each_has_a_lane_of_every_family() {
        let run = run();
        assert_eq!(run.presets(), ["game", "default"]);
        assert_eq!(names(&run.shown()), ["kcp-game", "udp-game", "own"]);
        assert!(run.asked.is_some() && run.shown().asked == run.asked);
        let default = run.with_preset("default");
        assert_eq!(names(&default), ["kcp-default", "udp-default", "own"]);
        assert_eq!(default.presets(), ["default"]);
    }

    #[test]
    fn a_run_without_presets_is_shown_as_it_is() {
        let document = sample_document();
        assert!(document.presets().is_empty());
        assert!(matches!(document.shown(), Cow::Borrowed(_)));
    }

    #[test]
    fn budgets_and_the_verdict_are_those_of_the_lanes_shown() {
        let mut run = run();
        let of = |lane: &str| crate::BudgetResult {
            lane: lane.to_owned(),
            ..sample_document().budgets.remove(0)
        };
        run.budgets = vec![of("kcp-game"), of("kcp-default"), of("udp-game")];
        run.verdict = Some("about all of them".to_owned());
        let default = run.with_preset("default");
        let budgeted: Vec<&str> = default.budgets.iter().map(|it| it.lane.as_str()).collect();
        assert_eq!(budgeted, ["kcp-default", "udp-default"]);
        assert_eq!(default.verdict, Some(crate::verdict(&default)));
    }
}
