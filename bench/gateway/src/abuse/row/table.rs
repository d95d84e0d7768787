//! Rows as a Markdown table, and which of them missed what.

use std::fmt::Write as _;

use super::{Goal, Row};

/// The head of the table.
const HEAD: &str = "| gateway | abuse | goal | p50 ms | p99 ms | late % | lost | newcomers | \
                    slowest ms | health | memory MB | cpu % | attack | why missed; notes |\n\
                    |---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";

/// Rows of gateways as a Markdown table. Where two figures stand with an arrow,
/// the first is without the attacker.
pub(crate) fn table<'a>(rows: impl Iterator<Item = (&'a str, &'a Row)>) -> String {
    let mut text = String::new();
    for (gateway, row) in rows {
        if text.is_empty() {
            text.push_str(HEAD);
        }
        let Row {
            quiet,
            attacked,
            lost,
            newcomers,
            health,
            memory,
            effort,
            ..
        } = row;
        let remarks: Vec<&str> = row
            .faults
            .iter()
            .chain(&row.notes)
            .map(String::as_str)
            .collect();
        let _ = writeln!(
            text,
            "| {gateway} | {} | {} | {:.0} → {:.0} | {:.0} → {:.0} | {:.1} → {:.1} | {} | \
             {} of {} | {:.0} | {} of {} | {:.0} → {:.0} → {:.0} | {:.0} → {:.0} | \
             {:.1} MB/s, {} connections | {} |",
            row.abuse,
            if row.is_met() { "met" } else { "missed" },
            quiet.p50_ms(),
            attacked.p50_ms(),
            quiet.p99_ms(),
            attacked.p99_ms(),
            quiet.late_pct,
            attacked.late_pct,
            lost.updates + lost.messages + lost.wrong,
            newcomers.came - newcomers.refused,
            newcomers.came,
            newcomers.worst_ms,
            health.well,
            health.well + health.unwell + health.unanswered,
            memory.before_mb,
            memory.peak_mb,
            memory.after_mb,
            row.cpu_pct[0],
            row.cpu_pct[1],
            effort.sent_bytes as f64 / 1e6 / row.seconds.max(0.001),
            effort.connections,
            remarks.join("; "),
        );
    }
    text
}

/// Which rows missed which part of the goal, a line of Markdown each; the parts
/// that all rows met are left out.
pub(crate) fn missed(rows: &[(&str, &Row)]) -> String {
    if rows.is_empty() {
        return String::new();
    }
    let met = rows.iter().filter(|(_, row)| row.is_met()).count();
    let mut text = format!("\n{met} of {} rows met the goal.\n", rows.len());
    for goal in Goal::ALL {
        let names: Vec<String> = rows
            .iter()
            .filter(|(_, row)| row.missed.contains(&goal))
            .map(|(gateway, row)| format!("`{}` ({gateway})", row.abuse))
            .collect();
        if !names.is_empty() {
            let _ = writeln!(text, "- Missed: {}: {}", goal.text(), names.join(", "));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::super::tests::row;
    use super::*;

    #[test]
    fn rows_are_named_under_the_parts_of_the_goal_that_they_missed() {
        let mut slow = row(30.0, 101.0);
        slow.memory.after_mb = 11.0;
        let mut fine = row(30.0, 31.0);
        slow.judge(false);
        fine.judge(false);
        let text = missed(&[("old", &slow), ("new", &fine)]);
        assert_eq!(
            text,
            "\n1 of 2 rows met the goal.\n\
             - Missed: p99 at most doubled and below 100 ms: `none` (old)\n\
             - Missed: memory back within 10 MB: `none` (old)\n"
        );
        assert_eq!(missed(&[]), "");
    }

    #[test]
    fn the_table_has_as_many_cells_in_each_row_as_in_its_head() {
        let row = row(30.0, 50.0);
        let text = table([("ours", &row)].into_iter());
        let cells: Vec<usize> = text.lines().map(|line| line.matches('|').count()).collect();
        assert_eq!(cells, [cells[0]; 3]);
        assert_eq!(table(std::iter::empty()), "");
    }
}
