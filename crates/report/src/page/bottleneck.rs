//! Links with several senders, or a queue with a discipline: how deep the queue
//! was, who filled it, and what each got through.

use lagometer_results::{Bottleneck, BottleneckSender, BottleneckWay};

use super::markup::{coordinate, esc};
use super::view::View;
use crate::written::{self, NOTHING};

/// Columns that a picture's series is thinned to; as wide in its own units.
const COLUMNS: usize = 150;
/// Height of a picture in pixels and its own units.
const HEIGHT: f64 = 64.0;
/// Hues in the style sheet.
const HUES: usize = 8;

/// Appends the section; nothing where no link had others on it.
pub(crate) fn render(view: &View<'_>, out: &mut String) {
    let links = &view.document.bottlenecks;
    if links.is_empty() {
        return;
    }
    let id = view.id("queue");
    append!(
        out,
        r#"<section class="bottleneck" aria-labelledby="{id}"><h2 id="{id}">The queue, and who filled it</h2>
<p class="note">Bytes that waited for the bottleneck, one sender's on top of the other's, over the time measured, with the highest at its left; and what each sender got through, with the shares of its packets that were dropped and marked. Jain's index is 1 where all whom the link limits got the same while all other traffic was on, and 1/n where one of n got all; who got all it asked for, and less than an equal share, does not count. The pictures are the first seed's, the figures means over all seeds.</p>"#
    );
    for link in links {
        for (name, way) in [("down", &link.down), ("up", &link.up)] {
            if is_shown(way) {
                figure(view, link, (name, way), out);
            }
        }
    }
    *out += "</section>\n";
}

/// Whether several contended in this direction, or the queue was ever filled.
fn is_shown(way: &BottleneckWay) -> bool {
    let contending = way.senders.iter().filter(|sender| sender.contends).count();
    contending > 1 || deepest(way) > 0
}

/// The most bytes that waited in any step.
fn deepest(way: &BottleneckWay) -> u64 {
    sums(way).into_iter().max().unwrap_or(0)
}

/// What waited in each step, of all senders together.
fn sums(way: &BottleneckWay) -> Vec<u64> {
    let steps = way.senders.iter().map(|sender| sender.waiting_bytes.len());
    let at = |step: usize| {
        let each = way.senders.iter();
        each.map(|sender| sender.waiting_bytes.get(step).copied().unwrap_or(0))
            .fold(0, u64::saturating_add)
    };
    (0..steps.max().unwrap_or(0)).map(at).collect()
}

fn figure(
    view: &View<'_>,
    link: &Bottleneck,
    (direction, way): (&str, &BottleneckWay),
    out: &mut String,
) {
    let lanes = link.lanes.join(", ");
    let jain = way
        .jain
        .map_or_else(|| NOTHING.to_owned(), |index| format!("{index:.2}"));
    append!(
        out,
        r#"<figure class="queue"><figcaption><b>{}</b>, {direction} <small>Jain's index {jain}; at most {} waiting</small></figcaption>"#,
        esc(&lanes),
        written::bytes(deepest(way))
    );
    picture(view, link, way, out);
    *out += r#"<div class="scroll"><table><thead><tr><th scope="col">sender</th><th scope="col" class="n">through <small>kbit/s</small></th><th scope="col" class="n">goodput <small>kbit/s</small></th><th scope="col" class="n">dropped <small>%</small></th><th scope="col" class="n">marked <small>%</small></th></tr></thead><tbody>"#;
    for (nth, sender) in way.senders.iter().enumerate() {
        row(view, link, (nth, sender), out);
    }
    *out += "</tbody></table></div></figure>";
}

fn row(
    view: &View<'_>,
    link: &Bottleneck,
    (nth, sender): (usize, &BottleneckSender),
    out: &mut String,
) {
    let goodput = sender.goodput_kbit_per_s;
    append!(
        out,
        r#"<tr class="h{}"><th scope="row"><i class="fill"></i> {}{}</th><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td></tr>"#,
        hue(view, link, nth),
        esc(&sender.name),
        if sender.contends {
            ""
        } else {
            " <small>acknowledgements</small>"
        },
        kbit(sender.kbit_per_s),
        goodput.map_or_else(|| NOTHING.to_owned(), kbit),
        written::lost_share(sender.dropped_share()),
        written::lost_share(sender.marked_share()),
    );
}

fn kbit(rate: f64) -> String {
    written::count(rate.max(0.0).round() as u64)
}

/// A lane keeps its hue; other traffic has those at the other end.
fn hue(view: &View<'_>, link: &Bottleneck, nth: usize) -> usize {
    let lanes = &view.document.lanes;
    let place = link
        .lanes
        .get(nth)
        .and_then(|name| lanes.iter().position(|lane| lane.lane == *name));
    match place {
        Some(place) => view.look(place).hue,
        None => HUES - 1 - (nth - link.lanes.len()) % HUES,
    }
}

/// Areas, the last sender's at the bottom: other traffic below the lanes.
fn picture(view: &View<'_>, link: &Bottleneck, way: &BottleneckWay, out: &mut String) {
    let most = deepest(way).max(1) as f64;
    append!(
        out,
        r#"<svg class="queue" viewBox="0 0 {COLUMNS} {HEIGHT}" height="{HEIGHT}" preserveAspectRatio="none" role="img" aria-label="Bytes waiting over time">"#
    );
    let mut below = vec![0.0; COLUMNS];
    for (nth, sender) in way.senders.iter().enumerate().rev() {
        let own = thinned(&sender.waiting_bytes);
        let above: Vec<f64> = below.iter().zip(own).map(|(sum, own)| sum + own).collect();
        if above == below {
            continue;
        }
        let y = |bytes: f64| coordinate(HEIGHT - HEIGHT * (bytes / most).min(1.0));
        append!(out, r#"<path class="h{}" d="M"#, hue(view, link, nth));
        for (x, &top) in above.iter().enumerate() {
            append!(out, "{x} {} ", y(top));
        }
        for (x, &bottom) in below.iter().enumerate().rev() {
            append!(out, "{x} {} ", y(bottom));
        }
        *out += r#"Z"/>"#;
        below = above;
    }
    *out += "</svg>";
}

/// The means of as many stretches as the picture has columns.
fn thinned(series: &[u64]) -> Vec<f64> {
    let at = |column: usize| column * series.len() / COLUMNS;
    (0..COLUMNS)
        .map(|column| {
            let end = at(column + 1).max(at(column) + 1).min(series.len());
            let stretch = series.get(at(column)..end).unwrap_or_default();
            let sum: f64 = stretch.iter().map(|&bytes| bytes as f64).sum();
            sum / stretch.len().max(1) as f64
        })
        .collect()
}
