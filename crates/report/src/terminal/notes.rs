//! What follows the tables: lanes that could not be measured, budgets missed,
//! and warnings, each saying what happened, why it matters and what helps.

use lagometer_stats::Document;

use super::line_of;
use super::paint::{Paint, Style, printable, wrap};
use crate::{budget, ranking, trust};

/// Appends the notes to `out`.
pub(crate) fn render(document: &Document, paint: Paint, room: usize, out: &mut String) {
    not_measured(document, paint, room, out);
    budgets(document, paint, room, out);
    warnings(document, paint, room, out);
    trusted(document, paint, room, out);
}

/// The emulator's audit and the machine's noise floor, where lanes ran in an
/// emulated network.
fn trusted(document: &Document, paint: Paint, room: usize, out: &mut String) {
    let Some(audit) = &document.audit else {
        return;
    };
    out.push('\n');
    let mut lines = vec![format!("Emulator: {}", trust::emulator(audit))];
    if let Some(noise) = &document.host.noise {
        lines.push(format!("Noise: {}", trust::machine(document, noise)));
    }
    for text in lines {
        for line in wrap(&printable(&text), room) {
            line_of(out, &paint.apply(Style::Dim, &line));
        }
    }
}

fn not_measured(document: &Document, paint: Paint, room: usize, out: &mut String) {
    let mut first = true;
    for lane in ranking::unmeasured(document) {
        if std::mem::take(&mut first) {
            out.push('\n');
            line_of(out, &paint.apply(Style::Bold, "Not measured"));
        }
        let reason = lane.failure.as_deref().unwrap_or("no message was due");
        let text = format!("{}: {}", printable(&lane.lane), printable(reason));
        indented(&text, Style::Bad, paint, room, out);
    }
}

fn budgets(document: &Document, paint: Paint, room: usize, out: &mut String) {
    if document.budgets.is_empty() {
        return;
    }
    let missed = document.budgets.iter().filter(|budget| !budget.ok).count();
    out.push('\n');
    let all = document.budgets.len();
    let summary = match missed {
        0 => format!("Budgets: all {all} met"),
        some => format!("Budgets: {some} of {all} missed"),
    };
    line_of(out, &paint.apply(Style::Bold, &summary));
    for (asked, met, missed) in budget::by_limit(&document.budgets) {
        if missed.is_empty() {
            continue;
        }
        let missed: Vec<String> = missed.into_iter().map(budget::missed_by).collect();
        let met = match met.as_slice() {
            [] => String::new(),
            lanes if lanes.len() <= 3 => format!("met by {}, ", lanes.join(", ")),
            lanes => format!("met by {} lanes, ", lanes.len()),
        };
        let text = format!("{asked}: {met}missed by {}", missed.join(", "));
        indented(&printable(&text), Style::Bad, paint, room, out);
    }
}

fn warnings(document: &Document, paint: Paint, room: usize, out: &mut String) {
    for warning in &document.warnings {
        out.push('\n');
        let what = format!("Warning: {}", printable(&warning.what));
        for line in wrap(&what, room) {
            line_of(out, &paint.apply(Style::Notice, &line));
        }
        indented(&printable(&warning.why), Style::Plain, paint, room, out);
        if !warning.mend.is_empty() {
            indented(
                &format!("→ {}", printable(&warning.mend)),
                Style::Plain,
                paint,
                room,
                out,
            );
        }
    }
}

fn indented(text: &str, style: Style, paint: Paint, room: usize, out: &mut String) {
    for line in wrap(text, room - 2) {
        line_of(out, &format!("  {}", paint.apply(style, &line)));
    }
}
