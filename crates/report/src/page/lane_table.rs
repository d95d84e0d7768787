//! The main table: key figures of each lane, and beside them its whole
//! distribution as one strip from fastest to slowest.

use lagometer_results::{Decision, Lane};

use super::markup::{esc, per_cent};
use super::scale::tick_label;
use super::view::View;
use crate::figure::Figure;
use crate::ranking;
use crate::terminal::{intervals_from, lag_figures, or_its_ends};
use crate::traffic;
use crate::written;

/// Appends the section: the table, then lanes that could not be measured.
pub(crate) fn render(view: &View<'_>, out: &mut String) {
    let id = view.id("lanes");
    append!(
        out,
        r#"<section class="lanes" aria-labelledby="{id}"><h2 id="{id}">Lanes</h2>
<p class="note">Times in milliseconds from the <em>intended</em> send to the echo, over all intended messages; bold is what no other of its group is shown to surpass{}. The strip runs from the fastest to the slowest echo: ● median, the bar to p99, ❘ p99.9, ○ the slowest that arrived; dashed is {} ms.{}{}</p>"#,
        intervals(view),
        view.about.limit_ms,
        threshold(view),
        of_a_game(view) + &of_traffic(view),
    );
    let figures = figures(view);
    append!(
        out,
        r#"<div class="scroll" tabindex="0" role="region" aria-labelledby="{id}"><table style="--figures:{}"><thead><tr><th scope="col">lane</th>"#,
        figures.len()
    );
    for figure in &figures {
        append!(
            out,
            r#"<th scope="col" class="n" title="{}">{} <small>{}</small></th>"#,
            esc(&figure.meaning()),
            esc(&figure.heading()),
            figure.unit_label()
        );
    }
    *out += r#"<th scope="col" class="strip-head">round trips"#;
    strip_axis(view, out);
    *out += "</th></tr></thead>";
    let best = ranking::best(view.document, &view.groups, &figures);
    for (group, best) in view.groups.iter().zip(best) {
        *out += "<tbody>";
        if let Some(label) = group.label {
            append!(
                out,
                r#"<tr class="group"><th scope="rowgroup" colspan="{}"><span>{label}</span></th></tr>"#,
                figures.len() + 2
            );
        }
        for (lane, best) in group.lanes.iter().zip(best) {
            row(view, lane, figures.iter().copied().zip(best), out);
        }
        *out += "</tbody>";
    }
    *out += "</table></div>";
    failures(view, out);
    *out += "</section>\n";
}

/// What counts as lag, where it is known.
fn threshold(view: &View<'_>) -> String {
    let lag = view.lanes().find_map(|(_, lane)| lane.lag.as_ref());
    lag.map_or_else(String::new, |lag| {
        format!(
            " A player lags while nothing newer has come for more than {} ms, the same for every lane; a freeze is a stretch of that.",
            written::milliseconds(lag.threshold_ms)
        )
    })
}

/// What messages and echoes are where lanes carried a game.
fn of_a_game(view: &View<'_>) -> String {
    let game = view.lanes().find_map(|(_, lane)| lane.game.as_ref());
    game.map_or_else(String::new, |game| {
        format!(
            " The lanes carried a game: a message is an input, its echo the first snapshot that shows the input's effect. The view is shown {} ms (the interpolation delay) behind the server's time as the fastest snapshots have it; it is frozen where the newest is older, and <em>needs</em> is the delay with which it would freeze once a minute.",
            written::milliseconds(game.interpolation_ms)
        )
    })
}

/// What delays are of where messages were not echoed.
fn of_traffic(view: &View<'_>) -> String {
    let traffic = view.lanes().find_map(|(_, lane)| lane.traffic.as_ref());
    traffic.map_or_else(String::new, |traffic| {
        format!(" Messages were not echoed: {}.", traffic::delay_of(traffic))
    })
}

/// What ± means, where figures have intervals.
fn intervals(view: &View<'_>) -> String {
    let drawn = view.lanes().find_map(|(_, lane)| lane.resamples.as_ref());
    match drawn.filter(|drawn| drawn.suffice()) {
        Some(drawn) => format!(
            ", ± is half the 95 % interval{}, from {}",
            or_its_ends(view.lanes().map(|(_, lane)| lane), &figures(view)),
            intervals_from(drawn)
        ),
        None => String::new(),
    }
}

fn figures(view: &View<'_>) -> Vec<Figure> {
    let [lag, longest, recovery] = lag_figures(&view.groups);
    let others = [
        Figure::Within(view.about.limit_ms),
        Figure::P50,
        Figure::P99,
        Figure::P99_9,
        Figure::Worst,
        lag,
        Figure::Freezes,
        longest,
        recovery,
        Figure::RecoveryLast,
        Figure::Lost,
        Figure::Overhead,
    ];
    let all = Figure::OF_GAMES.into_iter().chain(others);
    all.filter(|figure| view.lanes().any(|(_, lane)| figure.of(lane).is_some()))
        .collect()
}

/// A lane's row, of figures each with whether it stands out.
fn row(
    view: &View<'_>,
    lane: &Lane,
    figures: impl Iterator<Item = (Figure, bool)>,
    out: &mut String,
) {
    let place = view.place(lane);
    let look = view.look(place);
    append!(
        out,
        r#"<tr data-row="{place}" class="{}"><th scope="row"><span class="name">{}{}{}</span></th>"#,
        look.classes(),
        look.swatch(),
        esc(&lane.lane),
        if lane.failure.is_some() {
            r#" <b class="bad" title="ended early, see below">†</b>"#
        } else {
            ""
        }
    );
    for (figure, is_best) in figures {
        cell(view, lane, figure, is_best, out);
    }
    *out += r#"<td class="strip-cell">"#;
    strip(view, lane, out);
    *out += "</td></tr>";
}

fn cell(view: &View<'_>, lane: &Lane, figure: Figure, is_best: bool, out: &mut String) {
    let Some(text) = figure.written_of(lane) else {
        append!(
            out,
            r#"<td class="n none" data-of="{}">{}</td>"#,
            esc(&figure.heading()),
            written::NOTHING
        );
        return;
    };
    let budget =
        view.document.budgets.iter().find(|budget| {
            budget.lane == lane.lane && Figure::named(&budget.metric) == Some(figure)
        });
    let mut class = String::from("n");
    if is_best {
        class += " best";
    }
    let mark = match budget {
        Some(budget) if budget.decision == Decision::Undecided => {
            r#"<abbr class="budget" title="budget not decided by this run">?</abbr>"#
        }
        Some(budget) if budget.decision == Decision::Met => {
            class += " ok";
            r#"<abbr class="budget" title="budget met">✓</abbr>"#
        }
        Some(_) => {
            class += " bad";
            r#"<abbr class="budget" title="budget missed">✗</abbr>"#
        }
        None => "",
    };
    let spread = figure.spread(lane).map_or(String::new(), |spread| {
        format!("<small>{}</small>", figure.written_interval(spread, 2))
    });
    append!(
        out,
        r#"<td class="{class}" data-of="{}">{mark}{text}{spread}</td>"#,
        esc(&figure.heading())
    );
}

fn strip_axis(view: &View<'_>, out: &mut String) {
    *out += r#"<svg class="plot" height="14" aria-hidden="true">"#;
    for decade in view.rtt.decades() {
        let position = view.rtt.position(decade);
        append!(
            out,
            r#"<text class="tick" x="{}" y="11" text-anchor="{}">{}</text>"#,
            per_cent(position),
            super::truth::anchor(position),
            tick_label(decade)
        );
    }
    *out += "</svg>";
}

fn strip(view: &View<'_>, lane: &Lane, out: &mut String) {
    if lane.messages.delivered == 0 {
        return;
    }
    let rtt = &lane.rtt_delivered_ms;
    let at = |value: f64| per_cent(view.rtt.position(value));
    append!(
        out,
        r#"<svg class="plot quantiles" height="18" role="img" aria-label="{}">"#,
        esc(&format!(
            "from {} to {}",
            written::milliseconds_with_unit(rtt.min),
            written::milliseconds_with_unit(rtt.max)
        ))
    );
    for decade in view.rtt.decades() {
        let x = at(decade);
        append!(
            out,
            r#"<line class="grid" x1="{x}" x2="{x}" y1="0" y2="18"/>"#
        );
    }
    let limit = f64::from(view.about.limit_ms);
    if (view.rtt.low..view.rtt.high).contains(&limit) {
        let x = at(limit);
        append!(
            out,
            r#"<line class="limit" x1="{x}" x2="{x}" y1="0" y2="18"/>"#
        );
    }
    append!(
        out,
        r#"<line class="reach" x1="{}" x2="{}" y1="9" y2="9"/>"#,
        at(rtt.min),
        at(rtt.max),
    );
    // What is lost has no place on the axis and is left out.
    let known = |figure: Figure| figure.of(lane).filter(|value| value.is_finite());
    if let Some(p50) = known(Figure::P50) {
        append!(
            out,
            r#"<line class="body" x1="{x}" x2="{}" y1="9" y2="9"/><circle class="p50" cx="{x}" cy="9" r="4"/>"#,
            at(known(Figure::P99).unwrap_or(rtt.max)),
            x = at(p50),
        );
    }
    if let Some(p99_9) = known(Figure::P99_9) {
        append!(
            out,
            r#"<line class="p999" x1="{x}" x2="{x}" y1="4" y2="14"/>"#,
            x = at(p99_9)
        );
    }
    append!(
        out,
        r#"<circle class="worst" cx="{}" cy="9" r="3"/></svg>"#,
        at(rtt.max)
    );
}

fn failures(view: &View<'_>, out: &mut String) {
    let failed: Vec<&Lane> = view
        .document
        .lanes
        .iter()
        .filter(|lane| lane.failure.is_some() || !ranking::is_measured(lane))
        .collect();
    if failed.is_empty() {
        return;
    }
    *out += r#"<ul class="failures">"#;
    for lane in failed {
        let what = if ranking::is_measured(lane) {
            "† ended early"
        } else {
            "not measured"
        };
        let reason = lane.failure.as_deref().unwrap_or("no message was due");
        append!(
            out,
            "<li><b>{}</b> {what}: {}</li>",
            esc(&lane.lane),
            esc(reason)
        );
    }
    *out += "</ul>";
}
