//! What follows the tables: lanes that could not be measured, budgets missed,
//! and warnings, each saying what happened, why it matters and what helps.

use lagometer_results::{BudgetResult, Decision, Document};

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
    let count = |decision: Decision| {
        let is = |budget: &&BudgetResult| budget.decision == decision;
        document.budgets.iter().filter(is).count()
    };
    out.push('\n');
    let all = document.budgets.len();
    let summary = match (count(Decision::Missed), count(Decision::Undecided)) {
        (0, 0) => format!("Budgets: all {all} met"),
        (missed, 0) => format!("Budgets: {missed} of {all} missed"),
        (0, open) => format!("Budgets: {open} of {all} not decided by this run"),
        (missed, open) => {
            format!("Budgets: {missed} of {all} missed, {open} not decided by this run")
        }
    };
    line_of(out, &paint.apply(Style::Bold, &summary));
    for limit in budget::by_limit(&document.budgets) {
        let mut parts = Vec::new();
        match limit.met.as_slice() {
            [] => {}
            lanes if lanes.len() <= 3 => parts.push(format!("met by {}", lanes.join(", "))),
            lanes => parts.push(format!("met by {} lanes", lanes.len())),
        }
        for (results, what) in [
            (&limit.undecided, "not decided for"),
            (&limit.missed, "missed by"),
        ] {
            let who: Vec<String> = results.iter().map(|each| budget::who(each)).collect();
            if !who.is_empty() {
                parts.push(format!("{what} {}", who.join(", ")));
            }
        }
        let (style, all_met) = match (limit.missed.is_empty(), limit.undecided.is_empty()) {
            (true, true) => (Style::Plain, true),
            (true, false) => (Style::Notice, false),
            (false, _) => (Style::Bad, false),
        };
        if !all_met {
            let text = format!("{}: {}", limit.asked, parts.join("; "));
            indented(&printable(&text), style, paint, room, out);
        }
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
