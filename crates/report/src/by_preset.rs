//! What each preset of each transport made of the same network, side by side: rows for
//! the terminal and the page.

use lagometer_results::{Document, Judgement, Lane, difference, judge_together, noise_ms};

use crate::figure::{Figure, Unit};
use crate::ranking;
use crate::written;

/// What all presets of all families found.
#[derive(Debug, Default)]
pub(crate) struct Table<'a> {
    /// The families.
    pub(crate) rows: Vec<FamilyRow<'a>>,
    /// Whether enough was played to tell any preset from another.
    pub(crate) is_judged: bool,
}

/// One family of transports and what its presets found.
#[derive(Debug)]
pub(crate) struct FamilyRow<'a> {
    /// The family's name, as in `kcp`.
    pub(crate) family: &'a str,
    /// The lane of the first preset.
    pub(crate) first: &'a Lane,
    /// What each preset found, in the order of [`Document::presets`]; none where it
    /// could not be measured.
    pub(crate) presets: Vec<Option<Found<'a>>>,
}

/// What one preset of a family found.
#[derive(Debug)]
pub(crate) struct Found<'a> {
    /// The lane with that preset.
    pub(crate) lane: &'a Lane,
    /// How it stands to the first preset, by each of [`figures`].
    pub(crate) beside_first: [Beside; 3],
}

/// How a figure of a preset stands to that of the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Beside {
    /// It is the first's, or differs from it beyond chance, or nothing is known of chance.
    Plain,
    /// Chance may have made the difference.
    Alike,
    /// The settings are the same, and were played once.
    Same,
}

impl Beside {
    /// What stands before the figure.
    pub(crate) const fn mark(self) -> &'static str {
        match self {
            Self::Plain => "",
            Self::Alike => "≈",
            Self::Same => "=",
        }
    }
}

/// The figures that are shown of each preset.
pub(crate) fn figures(limit_ms: u32) -> [Figure; 3] {
    [Figure::Within(limit_ms), Figure::P99, Figure::Overhead]
}

/// A row for each family, those whose first preset delivered most in time first, the
/// reliable before the others. None where families were played with one preset.
pub(crate) fn of(document: &Document, limit_ms: u32) -> Table<'_> {
    let presets = document.presets();
    let mut table = Table::default();
    if presets.len() < 2 {
        return table;
    }
    for first in ranking::in_order(document, limit_ms) {
        let Some(family) = first.family.as_deref() else {
            continue;
        };
        if !first.presets.iter().any(|preset| preset == presets[0]) {
            continue;
        }
        let found = |(place, preset): (usize, &&str)| {
            let lane = find(document, family, preset)?;
            let is_same = place > 0 && lane.lane == first.lane;
            let beside = if is_same { Beside::Same } else { Beside::Plain };
            Some(Found {
                lane,
                beside_first: [beside; 3],
            })
        };
        table.rows.push(FamilyRow {
            family,
            first,
            presets: presets.iter().enumerate().map(found).collect(),
        });
    }
    judge(document, limit_ms, &mut table);
    table
}

/// Marks what chance may have made. Who reads the table holds every preset against the
/// first by every figure, so all these comparisons are one family: together they find a
/// difference where there is none in at most one of twenty tables.
fn judge(document: &Document, limit_ms: u32, table: &mut Table<'_>) {
    let (mut pairs, mut marks) = (Vec::new(), Vec::new());
    for row in &mut table.rows {
        let first = row.first;
        for found in row.presets.iter_mut().flatten() {
            // Neither the first itself nor what has its settings.
            if found.lane.lane == first.lane {
                continue;
            }
            for (mark, figure) in found.beside_first.iter_mut().zip(figures(limit_ms)) {
                if let Some(metric) = figure.metric() {
                    pairs.push((metric, found.lane, first));
                    marks.push(mark);
                }
            }
        }
    }
    let judged = judge_together(&pairs, noise_ms(document));
    table.is_judged = judged.iter().any(|&it| it != Judgement::Unknown);
    for (mark, judgement) in marks.into_iter().zip(judged) {
        let is_apart = matches!(judgement, Judgement::First | Judgement::Second);
        // Where nothing at all is known, a mark at every figure would say no more.
        if table.is_judged && !is_apart {
            *mark = Beside::Alike;
        }
    }
}

impl Found<'_> {
    /// The figure in a table, after the mark of how it stands to the first preset's; none
    /// where it was not measured. `place` is that in [`figures`].
    pub(crate) fn written(&self, place: usize, figure: Figure) -> Option<String> {
        let text = figure.written_of(self.lane)?;
        Some(format!("{}{text}", self.beside_first[place].mark()))
    }
}

/// By how many points a preset's share differs from that of the first, with half of the
/// 95 % interval of that by itself; none of other figures and where nothing is known of
/// chance.
pub(crate) fn points(figure: Figure, found: &Found<'_>, first: &Lane) -> Option<String> {
    if figure.unit() != Unit::Share || found.lane.lane == first.lane {
        return None;
    }
    let found = difference(figure.metric()?, found.lane, first)?;
    let sign = if found.mean < 0.0 { "−" } else { "+" };
    let size = |share: f64| written::factor(share * 100.0);
    Some(format!(
        "{sign}{} ±{}",
        size(found.mean.abs()),
        size(found.high - found.mean)
    ))
}

fn find<'a>(document: &'a Document, family: &str, preset: &str) -> Option<&'a Lane> {
    document.lanes.iter().find(|lane| {
        lane.family.as_deref() == Some(family)
            && lane.presets.iter().any(|each| each == preset)
            && ranking::is_measured(lane)
    })
}
