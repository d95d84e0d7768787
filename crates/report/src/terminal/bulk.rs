//! The table of a bulk transfer: what each transport carried, lost and cost.

use lagometer_results::{Bulk, Document, Lane};

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style, fit, printable, wrap};
use crate::written::{self, NOTHING};

/// Columns a lane's name may take.
const WIDEST_NAME: usize = 24;

/// Appends the table, and why lanes failed.
pub(crate) fn render(document: &Document, paint: Paint, room: usize, out: &mut String) {
    let measured: Vec<(&Lane, &Bulk)> = document
        .lanes
        .iter()
        .filter_map(|lane| Some((lane, lane.bulk.as_ref()?)))
        .collect();
    let most = measured
        .iter()
        .map(|(_, bulk)| bulk.recv_mbit_per_s)
        .fold(0.0, f64::max);
    let is_most = |bulk: &Bulk| most > 0.0 && bulk.recv_mbit_per_s >= most;
    let rows = measured
        .iter()
        .map(|(lane, bulk)| Row::Cells(cells(lane, bulk, is_most(bulk))));
    let grid = Grid {
        columns: vec![
            Column::words("lane"),
            Column::numbers("sent", "Mbit/s"),
            Column::numbers("received", "Mbit/s"),
            Column::numbers("lost", "%"),
            Column::numbers("CPU", "s/GB, sending"),
            Column::numbers("CPU", "receiving"),
            Column::numbers("message", "B"),
            Column::words("path"),
        ],
        rows: rows.collect(),
    };
    grid.render(paint, out);
    let note = "Payload, every byte compared on arrival; 1 Mbit is 10^6 bits. CPU is the time of \
                each end's thread in s for 10^9 bytes received.";
    for line in wrap(note, room) {
        line_of(out, &paint.apply(Style::Dim, &line));
    }
    for lane in &document.lanes {
        if let Some(why) = &lane.failure {
            let text = format!("{}: {}", lane.lane, why);
            for line in wrap(&printable(&text), room) {
                line_of(out, &paint.apply(Style::Bad, &line));
            }
        }
    }
}

fn cells(lane: &Lane, bulk: &Bulk, is_most: bool) -> Vec<Cell> {
    let plain = |text: String| Cell::new(text, Style::Plain);
    let cpu = |seconds: Option<f64>| {
        plain(seconds.map_or_else(|| NOTHING.to_owned(), |seconds| format!("{seconds:.2}")))
    };
    let name = Cell::new(
        fit(&printable(&lane.lane), WIDEST_NAME),
        if lane.failure.is_some() {
            Style::Bad
        } else {
            Style::Plain
        },
    );
    let received = Cell::new(
        format!("{:.1}", bulk.recv_mbit_per_s),
        if is_most { Style::Bold } else { Style::Plain },
    );
    let lost = Cell::new(
        written::lost_share(bulk.loss_pct / 100.0),
        if bulk.loss_pct > 0.0 {
            Style::Notice
        } else {
            Style::Plain
        },
    );
    vec![
        name,
        plain(format!("{:.1}", bulk.send_mbit_per_s)),
        received,
        lost,
        cpu(bulk.send_cpu_s_per_gb),
        cpu(bulk.recv_cpu_s_per_gb),
        plain(bulk.chunk_bytes.to_string()),
        plain(fit(&printable(&bulk.path), WIDEST_NAME)),
    ]
}
