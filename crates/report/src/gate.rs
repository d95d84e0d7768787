//! A run as a gate: what it had to hold, and whether it did.
//!
//! What is held are the run's budgets, the emulator's own audit, and, where an
//! earlier run is given as the baseline, that nothing became worse than it beyond
//! chance, see [`lagometer_results::against_baseline`]. The same list of checks
//! becomes lines on a terminal, a `JUnit` report that CI services read
//! (`junit`), and a summary in Markdown for a reviewer (`markdown`).

mod junit;
mod markdown;

use lagometer_results::{
    BudgetResult, Decision, Document, FEWEST_SEEDS, Lane, Shift, ShiftFinding, against_baseline,
};
use lagometer_units::Share;
use thiserror::Error;

use crate::about::About;
use crate::budget;
use crate::figure::{Figure, LOST};
use crate::trust;
use crate::written::NOTHING;

/// By how much of itself a figure may become worse where nobody says otherwise:
/// nobody feels a hundredth.
pub const USUAL_TOLERANCE: &str = "1 %";

/// An earlier run to hold another against.
#[derive(Clone, Copy, Debug)]
pub struct Baseline<'a> {
    /// What to call it: its file's name.
    pub name: &'a str,
    /// The earlier run's document.
    pub document: &'a Document,
    /// By how much of itself a figure may become worse.
    pub tolerance: Share,
}

/// All that a run had to hold.
#[derive(Clone, Debug, PartialEq)]
pub struct Gate {
    /// Experiment, network, testbed and seeds in one line.
    title: String,
    verdict: Option<String>,
    /// The baseline's name.
    baseline: Option<String>,
    checks: Vec<Check>,
}

/// One thing that a run had to hold.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Check {
    pub(crate) asked_by: AskedBy,
    /// The lane it is asked of; none for what is asked of the run.
    pub(crate) lane: Option<String>,
    /// What is asked, as in `99 % within 150 ms` or `p99 no worse than before`.
    pub(crate) asked: String,
    /// What was found, as in `97.2 %` or `it was cut short`.
    pub(crate) found: String,
    pub(crate) outcome: Outcome,
}

/// Where a check comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum AskedBy {
    /// The experiment, or the testbed itself.
    Experiment,
    /// The earlier run.
    Baseline,
}

/// What became of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// It holds.
    Held,
    /// It holds, and became better than before.
    Better,
    /// It holds by what was measured, or is not known; chance may have made it.
    Undecided,
    /// Nobody measured what it asks for.
    Unmeasured,
    /// It does not hold.
    Failed,
}

/// A run cannot be held against a baseline.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum NoBaseline {
    /// They are not of one kind.
    #[error(
        "its {what} is {before}, and the run's is {now}: play a new baseline with `--json`, or \
         play what the baseline did"
    )]
    Another {
        /// The property that differs, as in `network`.
        what: &'static str,
        /// What the baseline has.
        before: String,
        /// What the run has.
        now: String,
    },
    /// Its emulator's own errors were too large.
    #[error("it is {0}")]
    NotValid(String),
    /// It was interrupted.
    #[error("it was cut short: play a new baseline to its end")]
    CutShort,
}

impl Gate {
    /// Holds `document` against its budgets and, where there is one, the
    /// baseline.
    ///
    /// # Errors
    ///
    /// [`NoBaseline`] where the baseline is of another experiment, network, duration, workload,
    /// tick, lag threshold, other traffic or testbed, was cut short or is not valid.
    pub fn of(document: &Document, baseline: Option<Baseline<'_>>) -> Result<Self, NoBaseline> {
        let mut checks = Vec::new();
        checks.extend(validity(document));
        checks.extend(wholeness(document));
        checks.extend(document.budgets.iter().map(Check::of_budget));
        if let Some(baseline) = baseline {
            alike(baseline.document, document)?;
            checks.extend(gone(baseline.document, document));
            let tolerance = baseline.tolerance.fraction();
            let shifts = against_baseline(baseline.document, document, tolerance);
            checks.extend(shifts.iter().map(Check::of_shift));
        }
        let about = About::of(document);
        Ok(Self {
            title: about.headline(),
            verdict: document.verdict.clone(),
            baseline: baseline.map(|baseline| baseline.name.to_owned()),
            checks,
        })
    }

    /// Whether everything holds, or may.
    #[must_use]
    pub fn holds(&self) -> bool {
        self.failed().next().is_none()
    }

    /// What does not hold, in a line each: `kcp: p99 no worse than before: 155
    /// ms, now 190 ms`.
    pub fn failures(&self) -> impl Iterator<Item = String> {
        self.failed().map(Check::line)
    }

    /// Of how many figures nothing can be said against the baseline, why, and how to mend it,
    /// in a sentence; nothing where something can be said of all. What cannot be decided
    /// fails nothing, so a gate that is silent about it would be taken to hold.
    #[must_use]
    pub fn unknown(&self) -> Option<String> {
        let compared = |check: &&Check| check.asked_by == AskedBy::Baseline;
        let of = |outcome| {
            let checks = self.checks.iter().filter(compared);
            checks.filter(|check| check.outcome == outcome).count()
        };
        let all = self.checks.iter().filter(compared).count();
        let mut why = Vec::new();
        match of(Outcome::Undecided) {
            0 => {}
            unknown => why.push(format!(
                "nothing can be said of {unknown} of {all} comparisons with the baseline: too \
                 little was played for them; play the same seeds in both, {FEWEST_SEEDS} or more"
            )),
        }
        match of(Outcome::Unmeasured) {
            0 => {}
            unmeasured => why.push(format!(
                "{unmeasured} of {all} figures of the baseline were not measured in this run"
            )),
        }
        (!why.is_empty()).then(|| why.join("; "))
    }

    /// How many checks there were, in a sentence: `17 of 18 checks hold, 1
    /// undecided`.
    #[must_use]
    pub fn summary(&self) -> String {
        let count = |outcome| {
            let of = |check: &&Check| check.outcome == outcome;
            self.checks.iter().filter(of).count()
        };
        let [failed, undecided, unmeasured] =
            [Outcome::Failed, Outcome::Undecided, Outcome::Unmeasured].map(count);
        let all = self.checks.len();
        let held = all - failed - undecided - unmeasured;
        let mut words = format!("{held} of {all} checks hold");
        for (number, what) in [
            (failed, "failed"),
            (undecided, "undecided"),
            (unmeasured, "not measured"),
            (count(Outcome::Better), "better than before"),
        ] {
            if number > 0 {
                append!(words, ", {number} {what}");
            }
        }
        words
    }

    /// A `JUnit` report: one suite for the run, one case for each check. Undecided
    /// checks are skipped cases that say why.
    #[must_use]
    pub fn junit(&self) -> String {
        junit::report(self)
    }

    /// A summary in Markdown: the verdict, what failed, what is undecided, and
    /// what became better.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::summary(self)
    }

    fn failed(&self) -> impl Iterator<Item = &Check> {
        self.checks
            .iter()
            .filter(|check| check.outcome == Outcome::Failed)
    }
}

impl Check {
    /// A budget fails by what was measured, as `--assert` always had it; that
    /// chance may have made it is said.
    fn of_budget(result: &BudgetResult) -> Self {
        let mut found = budget::measured(result);
        if result.decision == Decision::Undecided {
            match result.needs() {
                Some(seeds) => append!(found, " (not decided; needs {seeds})"),
                None => found.push_str(" (not decided)"),
            }
        }
        Self {
            asked_by: AskedBy::Experiment,
            lane: Some(result.lane.clone()),
            asked: budget::asked(result),
            found,
            outcome: match (result.ok, result.decision) {
                // What nobody measured is neither kept nor missed.
                (false, _) if result.unmeasured => Outcome::Unmeasured,
                (false, _) => Outcome::Failed,
                (true, Decision::Undecided) => Outcome::Undecided,
                (true, _) => Outcome::Held,
            },
        }
    }

    fn of_shift(shift: &Shift) -> Self {
        let name = shift.metric.to_string();
        let figure = Figure::named(&name);
        let written = |value: Option<f64>| match (value, figure) {
            (Some(value), Some(figure)) => figure.written_with_unit(value),
            (Some(value), None) if value.is_finite() => value.to_string(),
            (Some(_), None) => LOST.to_owned(),
            (None, _) => NOTHING.to_owned(),
        };
        let what = match figure {
            Some(Figure::Within(ms)) => format!("share within {ms} ms"),
            Some(Figure::Overhead) => "bytes on the wire".to_owned(),
            Some(figure) => figure.heading(),
            None => name,
        };
        let mut found = written(shift.before);
        if shift.before != shift.now {
            append!(found, ", now {}", written(shift.now));
        }
        let outcome = match shift.finding {
            ShiftFinding::Worse => Outcome::Failed,
            ShiftFinding::Unknown if shift.now.is_none() => {
                found.push_str(" (not measured in this run)");
                Outcome::Unmeasured
            }
            ShiftFinding::Unknown => {
                found.push_str(
                    " (too little to judge by; play the baseline's seeds, and more of them)",
                );
                Outcome::Undecided
            }
            ShiftFinding::Better => Outcome::Better,
            ShiftFinding::Same => Outcome::Held,
        };
        Self {
            asked_by: AskedBy::Baseline,
            lane: Some(shift.lane.clone()),
            asked: format!("{what} no worse than before"),
            found,
            outcome,
        }
    }

    /// `kcp: p99 no worse than before: 155 ms, now 190 ms`.
    fn line(&self) -> String {
        let lane = self.lane.as_deref().unwrap_or("the run");
        format!("{lane}: {}: {}", self.asked, self.found)
    }
}

/// Whether the emulator's own errors were small enough, for a run that has one.
fn validity(document: &Document) -> Option<Check> {
    document.audit.as_ref()?;
    let invalid = trust::invalid(document);
    Some(Check {
        asked_by: AskedBy::Experiment,
        lane: None,
        asked: "the emulator within its band".to_owned(),
        outcome: match invalid {
            Some(_) => Outcome::Failed,
            None => Outcome::Held,
        },
        found: invalid.unwrap_or_else(|| "it is".to_owned()),
    })
}

/// That a run was cut short: what it found is not what was to be held.
fn wholeness(document: &Document) -> Option<Check> {
    document.partial.then(|| Check {
        asked_by: AskedBy::Experiment,
        lane: None,
        asked: "played to its end".to_owned(),
        found: "it was cut short".to_owned(),
        outcome: Outcome::Failed,
    })
}

/// Lanes of the baseline that the run has not, or in which a lane failed that
/// did not.
fn gone(baseline: &Document, document: &Document) -> Vec<Check> {
    let now = |lane: &Lane| document.lanes.iter().find(|each| each.lane == lane.lane);
    let check = |lane: &Lane| {
        let found = match now(lane) {
            None => "it is not in this run".to_owned(),
            Some(now) => match (&lane.failure, &now.failure) {
                (None, Some(failure)) => failure.clone(),
                _ => return None,
            },
        };
        Some(Check {
            asked_by: AskedBy::Baseline,
            lane: Some(lane.lane.clone()),
            asked: "plays as before".to_owned(),
            found,
            outcome: Outcome::Failed,
        })
    };
    baseline.lanes.iter().filter_map(check).collect()
}

/// Whether two runs may be held against each other at all.
fn alike(baseline: &Document, document: &Document) -> Result<(), NoBaseline> {
    let (a, b) = (About::of(baseline), About::of(document));
    let stated = |value: Option<String>| value.unwrap_or_else(|| "not stated".to_owned());
    let asked = |key: &str| {
        [baseline, document].map(|document| {
            let written = document.experiment.get(key)?;
            let text = written.as_str().map(str::to_owned);
            Some(text.unwrap_or_else(|| written.to_string()))
        })
    };
    let commands = [baseline, document].map(|each| Some(each.command.clone()));
    let testbeds = [baseline, document].map(|each| each.testbed.clone());
    let same = [
        ("command", commands),
        ("experiment", [Some(a.experiment), Some(b.experiment)]),
        ("network", [a.network, b.network]),
        ("duration", asked("for")),
        ("workload", asked("workload")),
        ("tick", asked("tick")),
        ("lag threshold", asked("lag_threshold")),
        ("other traffic", asked("cross")),
        ("sharing of links", asked("shared")),
        ("testbed", testbeds),
    ];
    for (what, [before, now]) in same {
        if before != now {
            let [before, now] = [before, now].map(stated);
            return Err(NoBaseline::Another { what, before, now });
        }
    }
    match trust::invalid(baseline) {
        Some(words) => Err(NoBaseline::NotValid(words)),
        None if baseline.partial => Err(NoBaseline::CutShort),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests;
