//! An echo run on a terminal.

use lagometer_results::Echo;

use super::line_of;
use super::paint::{Paint, Style, printable, wrap};
use crate::instruments::echo::facts;
use crate::written;

/// Columns that the names of facts take.
const NAMES: usize = 13;

/// Appends the facts and the placements that were tried.
pub(crate) fn render(echo: &Echo, paint: Paint, room: usize, out: &mut String) {
    for (name, value) in facts(echo) {
        let value = printable(&value);
        for (index, line) in wrap(&value, room - NAMES).iter().enumerate() {
            let name = if index == 0 { name } else { "" };
            let name = paint.apply(Style::Dim, &format!("{name:NAMES$}"));
            line_of(out, format!("{name}{line}").trim_end());
        }
    }
    for trial in &echo.placement.tried {
        let cpus = match (trial.local_cpu, trial.remote_cpu) {
            (Some(local), Some(remote)) => format!("({local}, {remote})"),
            (Some(local), None) => format!("({local})"),
            _ => String::new(),
        };
        let line = format!(
            "{:NAMES$}tried: {:22} {cpus:7} {:>10} echoes/s",
            "",
            printable(&trial.name),
            written::count(trial.rate.round() as u64)
        );
        line_of(out, &paint.apply(Style::Dim, &line));
    }
}
