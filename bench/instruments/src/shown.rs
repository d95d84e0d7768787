//! The table of all instruments and their peers, in Markdown.

use std::fmt::Write as _;

use crate::contest::{Contender, Figures, Found, Row};

/// The lines before the first row.
pub(crate) fn heading(repetitions: u32, seconds: u32) -> String {
    format!(
        "Median (least to most) of {repetitions} runs of {seconds} s each, in turn.\n\n\
         | row | unit | ours | others | ratio | at least |\n\
         | --- | --- | --- | --- | --- | --- |"
    )
}

/// One row.
pub(crate) fn lines(row: &Row, found: &Found) -> String {
    let mut others = String::new();
    for (contender, figures) in row.others.iter().zip(&found.others) {
        let separator = if others.is_empty() { "" } else { "; " };
        let _ = write!(others, "{separator}{}", with_name(contender, figures));
    }
    let ratio = found
        .ratio
        .map_or_else(|| "none".to_owned(), |ratio| format!("{ratio:.2}"));
    let reached = if found.is_reached() {
        ""
    } else {
        " **missed**"
    };
    format!(
        "| {} | {} | {} | {others} | {ratio}{reached} | {} |",
        row.name,
        row.unit,
        written(&found.ours),
        row.at_least
    )
}

fn with_name(contender: &Contender, figures: &Figures) -> String {
    format!("{} {}", contender.name, written(figures))
}

fn written(figures: &Figures) -> String {
    match (figures, figures.median()) {
        (Figures::Of(values), Some(median)) => {
            let (least, most) = (values[0], values[values.len() - 1]);
            format!("{} ({} to {})", short(median), short(least), short(most))
        }
        (Figures::None(why), _) => format!("not measured: {}", why.lines().next().unwrap_or("")),
        (Figures::Of(_), None) => "not measured".to_owned(),
    }
}

/// Three significant digits.
fn short(value: f64) -> String {
    let digits = (2 - value.abs().max(1e-9).log10().floor() as i32).clamp(0, 6) as usize;
    format!("{value:.digits$}")
}
