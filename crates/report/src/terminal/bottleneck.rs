//! The table of links with several senders: what each got through.

use lagometer_results::{Bottleneck, BottleneckSender, BottleneckWay, Document};

use super::grid::{Cell, Column, Grid, Row};
use super::line_of;
use super::paint::{Paint, Style, fit, printable, wrap};
use crate::written::{self, NOTHING};

/// Columns a name may take.
const WIDEST_NAME: usize = 24;

/// Appends the table; nothing where no link had others on it.
pub(crate) fn render(document: &Document, paint: Paint, room: usize, out: &mut String) {
    let ways = document.bottlenecks.iter().flat_map(|link| {
        let ways = [("down", &link.down), ("up", &link.up)];
        ways.map(|(direction, way)| (link, direction, way))
    });
    let shared: Vec<_> = ways.filter(|(_, _, way)| contending(way) > 1).collect();
    if shared.is_empty() {
        return;
    }
    out.push('\n');
    let rows = shared
        .iter()
        .flat_map(|(link, direction, way)| way_rows(link, direction, way));
    let grid = Grid {
        columns: vec![
            Column::words("on the link of"),
            Column::words("sender"),
            Column::numbers("through", "kbit/s"),
            Column::numbers("goodput", "kbit/s"),
            Column::numbers("dropped", "%"),
            Column::numbers("Jain", "index"),
        ],
        rows: rows.collect(),
    };
    grid.render(paint, out);
    let note = "What each sender with data to send got through the bottleneck, headers included; \
                goodput is what other traffic's receivers got, each byte once; dropped is the \
                share of its packets that the link dropped: means over all seeds. Jain's index \
                is 1 where all whom the link limits got the same while all other traffic was on; \
                who got all it asked for, and less than an equal share, does not count.";
    for line in wrap(note, room) {
        line_of(out, &paint.apply(Style::Dim, &line));
    }
}

/// How many had data to send.
fn contending(way: &BottleneckWay) -> usize {
    way.senders.iter().filter(|sender| sender.contends).count()
}

fn way_rows(link: &Bottleneck, direction: &str, way: &BottleneckWay) -> Vec<Row> {
    let contending = way.senders.iter().filter(|sender| sender.contends);
    let name = match &link.lanes[..] {
        [lane] => format!("{lane}, {direction}"),
        lanes => format!("{} lanes, {direction}", lanes.len()),
    };
    contending
        .enumerate()
        .map(|(nth, sender)| {
            let first = (nth == 0).then_some((&*name, way.jain));
            Row::Cells(cells(first, sender))
        })
        .collect()
}

fn cells(first: Option<(&str, Option<f64>)>, sender: &BottleneckSender) -> Vec<Cell> {
    let plain = |text: String| Cell::new(text, Style::Plain);
    let words = |text: &str| plain(fit(&printable(text), WIDEST_NAME));
    let kbit = |rate: f64| written::count(rate.max(0.0).round() as u64);
    let goodput = sender.goodput_kbit_per_s;
    vec![
        words(first.map_or("", |(name, _)| name)),
        words(&sender.name),
        plain(kbit(sender.kbit_per_s)),
        plain(goodput.map_or_else(|| NOTHING.to_owned(), kbit)),
        plain(written::lost_share(sender.dropped_share())),
        plain(match first {
            Some((_, Some(index))) => format!("{index:.2}"),
            Some((_, None)) | None => String::new(),
        }),
    ]
}
