//! A bulk transfer on the page: what each transport carried, lost and cost,
//! and the rates as they went.

use lagometer_results::{Bulk, Lane};

use super::markup::{coordinate, esc};
use super::view::View;
use crate::written::{self, NOTHING};

/// Height of a lane's drawing, and what of it the curves may use.
const HEIGHT: f64 = 96.0;
const MARGIN: f64 = 8.0;
/// Units across a drawing; it is stretched to the page's width.
const WIDTH: f64 = 1000.0;

/// Appends the table and the drawings.
pub(crate) fn render(view: &View<'_>, out: &mut String) {
    let lanes = || {
        let lanes = view.document.lanes.iter().enumerate();
        lanes.filter_map(|(place, lane)| Some((place, lane, lane.bulk.as_ref()?)))
    };
    let id = view.id("bulk");
    append!(
        out,
        r#"<section class="lanes" aria-labelledby="{id}"><h2 id="{id}">Bulk transfer</h2>
<p class="note">Payload, every byte compared on arrival. Processor time is that of each end's thread for 10⁹ bytes received, the kernel's part included.</p>
<div class="scroll" tabindex="0" role="region" aria-labelledby="{id}"><table><thead><tr><th scope="col">lane</th><th scope="col" class="n">sent</th><th scope="col" class="n">received</th><th scope="col" class="n">lost <small>%</small></th><th scope="col" class="n">CPU sending <small>s/GB</small></th><th scope="col" class="n">CPU receiving <small>s/GB</small></th><th scope="col" class="n">message <small>B</small></th><th scope="col">path</th></tr></thead><tbody>"#
    );
    let most = lanes()
        .map(|(.., bulk)| bulk.recv_mbit_per_s)
        .fold(0.0, f64::max);
    for (place, lane, bulk) in lanes() {
        row(view, place, lane, bulk, bulk.recv_mbit_per_s >= most, out);
    }
    *out += "</tbody></table></div>";
    for lane in &view.document.lanes {
        if let Some(why) = &lane.failure {
            append!(
                out,
                r#"<div class="warning"><b>{}</b> {}</div>"#,
                esc(&lane.lane),
                esc(why)
            );
        }
    }
    *out += "</section>\n";
    let id = view.id("rates");
    let top = lanes()
        .flat_map(|(.., bulk)| &bulk.series)
        .flat_map(|sample| [sample.send_mbit_per_s, sample.recv_mbit_per_s])
        .filter(|rate| rate.is_finite())
        .fold(0.0, f64::max);
    if top <= 0.0 {
        return;
    }
    append!(
        out,
        r#"<section class="time" aria-labelledby="{id}"><h2 id="{id}">Rates as they went</h2><p class="note">Received, half second by half second, from zero to {}, the same scale for every lane.</p><div class="timeplot">"#,
        esc(&written::rate(top))
    );
    for (place, lane, bulk) in lanes() {
        drawing(view, place, lane, bulk, top, out);
    }
    *out += "</div></section>\n";
}

fn row(view: &View<'_>, place: usize, lane: &Lane, bulk: &Bulk, is_most: bool, out: &mut String) {
    let look = view.look(place);
    let cpu = |seconds: Option<f64>| {
        seconds.map_or_else(|| NOTHING.to_owned(), |seconds| format!("{seconds:.2}"))
    };
    append!(
        out,
        r#"<tr class="{}"><th scope="row"><span class="name">{}{}</span></th><td class="n">{}</td><td class="n{}">{}</td><td class="n{}">{}</td><td class="n">{}</td><td class="n">{}</td><td class="n">{}</td><td>{}</td></tr>"#,
        look.classes(),
        look.swatch(),
        esc(&lane.lane),
        written::rate(bulk.send_mbit_per_s),
        if is_most { " best" } else { "" },
        written::rate(bulk.recv_mbit_per_s),
        if bulk.loss_pct > 0.0 { " bad" } else { "" },
        written::lost_share(bulk.loss_pct / 100.0),
        cpu(bulk.send_cpu_s_per_gb),
        cpu(bulk.recv_cpu_s_per_gb),
        written::count(bulk.chunk_bytes),
        esc(&bulk.path),
    );
}

/// A lane's rates as a curve over time.
fn drawing(view: &View<'_>, place: usize, lane: &Lane, bulk: &Bulk, top: f64, out: &mut String) {
    let end = bulk.series.last().map_or(1.0, |sample| sample.t_s);
    let across = |t_s: f64| coordinate(WIDTH * (t_s / end).clamp(0.0, 1.0));
    let mut path = String::new();
    // Each sample is the mean since the one before, so the curve goes in steps.
    let mut since_s = 0.0;
    for sample in &bulk.series {
        let share = (sample.recv_mbit_per_s / top).clamp(0.0, 1.0);
        let y = coordinate(HEIGHT - MARGIN - (HEIGHT - 2.0 * MARGIN) * share);
        append!(
            path,
            "{}{} {y}L{} {y}",
            if path.is_empty() { 'M' } else { 'L' },
            across(since_s),
            across(sample.t_s)
        );
        since_s = sample.t_s;
    }
    let in_short = format!(
        "{} over {}",
        written::rate(bulk.recv_mbit_per_s),
        written::play_time(end)
    );
    append!(
        out,
        r#"<div class="strip {}"><div class="strip-name"><b>{}</b> <span>{}</span></div><svg class="gutter" height="{HEIGHT}" aria-hidden="true"></svg><svg class="plot" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{}"><path class="curve" vector-effect="non-scaling-stroke" d="{path}"/></svg></div>"#,
        view.look(place).classes(),
        esc(&lane.lane),
        esc(&in_short),
        esc(&format!("{}: received {in_short}", lane.lane)),
    );
}
