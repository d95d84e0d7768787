//! The gate as a summary in Markdown, for the page of a pull request.

use super::{AskedBy, Check, Gate, Outcome};

/// The verdict, then a table of what failed, is undecided or became better;
/// what simply holds is counted.
pub(super) fn summary(gate: &Gate) -> String {
    let mut text = format!("### {}\n\n", escaped(&gate.title));
    if let Some(verdict) = &gate.verdict {
        append!(text, "{}\n\n", escaped(verdict));
    }
    let held_to = match &gate.baseline {
        Some(name) => format!(" against `{}`", name.replace('`', "'")),
        None => String::new(),
    };
    append!(
        text,
        "**{}**{held_to}: {}.\n",
        if gate.holds() {
            "Holds"
        } else {
            "Does not hold"
        },
        gate.summary(),
    );
    if let Some(unknown) = gate.unknown() {
        append!(text, "\n**Undecided**: {}.\n", escaped(&unknown));
    }
    let listed: Vec<&Check> = gate
        .checks
        .iter()
        .filter(|check| is_listed(check))
        .collect();
    if listed.is_empty() {
        return text;
    }
    text.push_str("\n| | lane | asked | found |\n| --- | --- | --- | --- |\n");
    for check in listed {
        append!(
            text,
            "| {} | {} | {} | {} |\n",
            match check.outcome {
                Outcome::Failed => "❌ failed",
                Outcome::Undecided => "❔ undecided",
                Outcome::Unmeasured => "❔ not measured",
                Outcome::Held => "✅ held",
                Outcome::Better => "✅ better",
            },
            escaped(check.lane.as_deref().unwrap_or("the run")),
            escaped(&check.asked),
            escaped(&check.found),
        );
    }
    text
}

/// What the experiment asks is reported whatever became of it: it is little, and
/// what a reader looks for.
fn is_listed(check: &Check) -> bool {
    check.outcome != Outcome::Held || check.asked_by == AskedBy::Experiment
}

/// The text with what Markdown would take for its own put out of its way.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for char in text.chars() {
        match char {
            '|' | '*' | '_' | '`' | '[' | ']' | '\\' => out.extend(['\\', char]),
            '<' => out.push_str("&lt;"),
            '\n' | '\r' => out.push(' '),
            other => out.push(other),
        }
    }
    out
}
