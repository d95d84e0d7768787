//! What each preset of each transport made of the same network, side by side: rows for
//! the terminal and the page.

use lagometer_results::{Document, Lane};

use crate::figure::Figure;
use crate::ranking;

/// One family of transports and what its presets found.
#[derive(Debug)]
pub(crate) struct FamilyRow<'a> {
    /// The family's name, as in `kcp`.
    pub(crate) family: &'a str,
    /// The lane of each preset, in the order of [`Document::presets`]; none where it
    /// could not be measured.
    pub(crate) lanes: Vec<Option<&'a Lane>>,
}

/// The figures that are shown of each preset.
pub(crate) fn figures(limit_ms: u32) -> [Figure; 3] {
    [Figure::Within(limit_ms), Figure::P99, Figure::Overhead]
}

/// A row for each family, those whose first preset delivered most in time first, the
/// reliable before the others. Empty where families were played with one preset.
pub(crate) fn rows(document: &Document, limit_ms: u32) -> Vec<FamilyRow<'_>> {
    let presets = document.presets();
    if presets.len() < 2 {
        return Vec::new();
    }
    let mut rows: Vec<FamilyRow<'_>> = Vec::new();
    for lane in ranking::in_order(document, limit_ms) {
        let Some(family) = lane.family.as_deref() else {
            continue;
        };
        let is_first = lane.presets.iter().any(|preset| preset == presets[0]);
        if is_first {
            rows.push(FamilyRow {
                family,
                lanes: presets
                    .iter()
                    .map(|preset| find(document, family, preset))
                    .collect(),
            });
        }
    }
    rows
}

fn find<'a>(document: &'a Document, family: &str, preset: &str) -> Option<&'a Lane> {
    document.lanes.iter().find(|lane| {
        lane.family.as_deref() == Some(family)
            && lane.presets.iter().any(|each| each == preset)
            && ranking::is_measured(lane)
    })
}
