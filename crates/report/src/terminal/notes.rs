//! What follows the tables: lanes that could not be measured, budgets missed,
//! and warnings, each saying what happened, why it matters and what helps.

use lagometer_stats::{BudgetResult, Document};

use super::line_of;
use super::paint::{Paint, Style, printable, wrap};
use crate::{budget, ranking};

/// Appends the notes to `out`.
pub(crate) fn render(document: &Document, paint: Paint, room: usize, out: &mut String) {
    not_measured(document, paint, room, out);
    budgets(document, paint, room, out);
    warnings(document, paint, room, out);
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
    let missed: Vec<&BudgetResult> = document
        .budgets
        .iter()
        .filter(|budget| !budget.ok)
        .collect();
    out.push('\n');
    let all = document.budgets.len();
    let summary = match missed.len() {
        0 => format!("Budgets: all {all} met"),
        some => format!("Budgets: {some} of {all} missed"),
    };
    line_of(out, &paint.apply(Style::Bold, &summary));
    let mut asked: Vec<(String, Vec<String>)> = Vec::new();
    for budget in missed {
        let (limit, missed) = (budget::asked(budget), budget::missed_by(budget));
        match asked.iter_mut().find(|(each, _)| *each == limit) {
            Some((_, lanes)) => lanes.push(missed),
            None => asked.push((limit, vec![missed])),
        }
    }
    for (limit, lanes) in asked {
        let text = format!("{limit}, missed by {}", lanes.join(", "));
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
