//! What only some readers need, folded away: each lane's settings, messages,
//! wire and longest lags, each seed's figures, the machine, the experiment.

use lagometer_results::{CensoredQuantiles, Lane, NoiseFloor, NoiseQuantiles, Quantiles};
use serde_json::Value;

use super::markup::esc;
use super::ribbon::is_of_first_seed;
use super::scale::clock;
use super::view::View;
use crate::figure::{Figure, LOST};
use crate::ranking;
use crate::written::{self, NOTHING, milliseconds};

/// Longest lags listed for each lane.
const LONGEST: usize = 8;

/// Appends the section.
pub(crate) fn render(view: &View<'_>, out: &mut String) {
    let id = view.id("details");
    append!(
        out,
        r#"<section class="details" aria-labelledby="{id}"><h2 id="{id}">Details</h2>
<p class="note">All settings and counts, the longest lags, and what the run was made on.</p>"#
    );
    for lane in ranking::in_order(view.document, view.about.limit_ms) {
        of_lane(view, lane, out);
    }
    machine(view, out);
    append!(
        out,
        "<details><summary>The experiment as it was resolved</summary><pre>{}</pre></details></section>",
        esc(&pretty(&view.document.experiment))
    );
}

fn of_lane(view: &View<'_>, lane: &Lane, out: &mut String) {
    let place = view.place(lane);
    append!(
        out,
        r#"<details class="{}"><summary>{}{} <small>{}</small></summary><div class="columns">"#,
        view.look(place).classes(),
        view.look(place).swatch(),
        esc(&lane.lane),
        esc(&lane.library)
    );
    if let Some(failure) = &lane.failure {
        append!(out, r#"<p class="bad">{}</p>"#, esc(failure));
    }
    list("Settings", &settings(&lane.settings), out);
    list("Messages", &messages(lane), out);
    if let Some(wire) = &lane.wire {
        let mut lines = vec![
            ("packets".to_owned(), written::count(wire.packets)),
            (
                "up / down".to_owned(),
                format!(
                    "{} / {}",
                    written::count(wire.up_packets),
                    written::count(wire.down_packets)
                ),
            ),
            ("bytes".to_owned(), written::bytes(wire.bytes)),
            (
                "over the payload".to_owned(),
                format!("{} ×", written::factor(wire.overhead)),
            ),
        ];
        lines.extend(wire.dropped.iter().map(|(reason, count)| {
            (
                format!("lost to {}", reason.replace('_', " ")),
                written::count(*count),
            )
        }));
        list("Wire", &lines, out);
    }
    if let Some(blocked) = &lane.head_of_line {
        list(
            "Head of line",
            &[
                (
                    "messages that waited".to_owned(),
                    written::count(blocked.blocked_messages),
                ),
                (
                    "share of late delay".to_owned(),
                    format!("{} %", written::share(blocked.share_of_late_delay)),
                ),
                (
                    "waited, p99".to_owned(),
                    written::milliseconds_with_unit(blocked.blocked_ms.p99),
                ),
                (
                    "waited, worst".to_owned(),
                    written::milliseconds_with_unit(blocked.blocked_ms.max),
                ),
            ],
            out,
        );
    }
    delays(lane, out);
    longest_freezes(view, lane, out);
    longest_episodes(view, lane, out);
    per_seed(view, lane, out);
    *out += "</div></details>";
}

fn list(title: &str, lines: &[(String, String)], out: &mut String) {
    if lines.is_empty() {
        return;
    }
    append!(out, "<div><h3>{title}</h3><dl>");
    for (name, value) in lines {
        append!(out, "<dt>{}</dt><dd>{}</dd>", esc(name), esc(value));
    }
    *out += "</dl></div>";
}

/// Every setting with its value; settings within settings after their name.
fn settings(settings: &Value) -> Vec<(String, String)> {
    let mut lines = Vec::new();
    flatten("", settings, &mut lines);
    lines
}

fn flatten(prefix: &str, value: &Value, lines: &mut Vec<(String, String)>) {
    match value {
        Value::Object(fields) => {
            for (name, value) in fields {
                let name = name.replace('_', " ");
                let name = if prefix.is_empty() {
                    name
                } else {
                    format!("{prefix}: {name}")
                };
                flatten(&name, value, lines);
            }
        }
        // A document may carry anything in place of settings.
        _ if prefix.is_empty() => {}
        Value::String(text) => lines.push((prefix.to_owned(), text.clone())),
        other => lines.push((prefix.to_owned(), other.to_string())),
    }
}

fn messages(lane: &Lane) -> Vec<(String, String)> {
    let counts = &lane.messages;
    let known = match &lane.imported {
        // Of what was sent or lost it knows nothing.
        Some(log) => vec![("answers in the log", log.samples)],
        None => vec![
            ("intended", counts.intended),
            ("sent", counts.sent),
            ("delivered", counts.delivered),
            ("lost", counts.lost),
            ("refused at first", counts.refused),
        ],
    };
    let mut lines: Vec<(String, String)> = known
        .into_iter()
        .map(|(name, count)| (name.to_owned(), written::count(count)))
        .collect();
    if let Some(cpu) = lane.cpu_ns_per_message {
        let what = match lane.kernel_cpu_ns_per_message {
            Some(_) => "CPU per message",
            None => "CPU of the lane's own threads per message",
        };
        lines.push((
            what.to_owned(),
            format!("{} µs", written::factor(cpu / 1e3)),
        ));
    }
    if let Some(cpu) = lane.kernel_cpu_ns_per_message {
        lines.push((
            "of it the kernel's, delivering".to_owned(),
            format!("{} µs", written::factor(cpu / 1e3)),
        ));
    }
    if let Some(cpu) = lane.library_cpu_ns_per_message {
        lines.push((
            "CPU of the library's own threads".to_owned(),
            format!("{} µs", written::factor(cpu / 1e3)),
        ));
    }
    if let Some(calls) = lane.system_calls_per_message {
        lines.push((
            "system calls per message".to_owned(),
            written::factor(calls),
        ));
    }
    if let Some(path) = &lane.socket_path {
        lines.push(("way to the wire".to_owned(), path.clone()));
    }
    lines
}

fn delays(lane: &Lane, out: &mut String) {
    if lane.messages.delivered == 0 {
        return;
    }
    let rows: Vec<(&str, [Option<f64>; 7])> = [
        ("round trip", Some(censored(&lane.rtt_ms))),
        ("of delivered messages", Some(whole(&lane.rtt_delivered_ms))),
        (
            "from the moment it was taken, delivered",
            lane.rtt_raw_ms.as_ref().map(whole),
        ),
        ("up", lane.up_ms.as_ref().map(censored)),
        (
            "down, of those that got there",
            lane.down_ms.as_ref().map(censored),
        ),
    ]
    .into_iter()
    .filter_map(|(name, quantiles)| Some((name, quantiles?)))
    .collect();
    *out += r#"<div class="broad"><h3>Delays of all intended messages, ms</h3><div class="scroll"><table><thead><tr><th></th><th class="n">min</th><th class="n">p50</th><th class="n">p90</th><th class="n">p99</th><th class="n">p99.9</th><th class="n">worst</th><th class="n">mean</th></tr></thead><tbody>"#;
    for (name, each) in rows {
        append!(out, r#"<tr><th scope="row">{name}</th>"#);
        for value in each {
            let text = value.map_or(LOST.to_owned(), milliseconds);
            append!(out, r#"<td class="n">{text}</td>"#);
        }
        *out += "</tr>";
    }
    *out += "</tbody></table></div></div>";
}

fn censored(of: &CensoredQuantiles) -> [Option<f64>; 7] {
    [of.min, of.p50, of.p90, of.p99, of.p99_9, of.max, of.mean]
}

fn whole(of: &Quantiles) -> [Option<f64>; 7] {
    [of.min, of.p50, of.p90, of.p99, of.p99_9, of.max, of.mean].map(Some)
}

/// One of the longest lags: when, in which seed, and its cells.
struct LongLag {
    seed: Option<u64>,
    start_s: f64,
    duration_ms: f64,
    cells: Vec<String>,
}

fn longest_freezes(view: &View<'_>, lane: &Lane, out: &mut String) {
    let Some(lag) = &lane.lag else { return };
    let optional = |value: Option<f64>| value.map_or(NOTHING.to_owned(), milliseconds);
    let freezes = lag.freezes.iter().map(|each| {
        let at_least = if each.over { "" } else { "≥" };
        LongLag {
            seed: each.seed,
            start_s: each.start_s,
            duration_ms: each.duration_ms,
            cells: vec![
                format!("{at_least}{}", milliseconds(each.duration_ms)),
                milliseconds(each.lag_ms),
                optional(each.recovery_first_ms),
                optional(each.recovery_last_ms),
            ],
        }
    });
    let heads = ["lasted", "lag", "recovery", "from last"];
    longest(view, "freezes", &heads, freezes.collect(), out);
}

/// Lag by the lane's own median, which ranks nothing.
fn longest_episodes(view: &View<'_>, lane: &Lane, out: &mut String) {
    let optional = |value: Option<f64>| value.map_or(NOTHING.to_owned(), milliseconds);
    let episodes = lane.episodes.iter().map(|each| LongLag {
        seed: each.seed,
        start_s: each.start_s,
        duration_ms: each.duration_ms,
        cells: vec![
            milliseconds(each.duration_ms),
            optional(each.worst_ms),
            optional(each.recovery_ms),
            format!("{} late", each.messages),
            format!("{} lost", each.lost),
        ],
    });
    let heads = ["lasted", "worst", "recovery", "", ""];
    let title = "episodes above three medians and 100 ms";
    longest(view, title, &heads, episodes.collect(), out);
}

fn longest(view: &View<'_>, title: &str, heads: &[&str], mut lags: Vec<LongLag>, out: &mut String) {
    if lags.is_empty() {
        return;
    }
    lags.sort_by(|a, b| b.duration_ms.total_cmp(&a.duration_ms));
    append!(
        out,
        r#"<div class="broad"><h3>Longest {title}, {} of {}</h3><div class="scroll"><table><thead><tr><th class="n">from</th>"#,
        lags.len().min(LONGEST),
        lags.len()
    );
    for head in heads {
        let unit = if head.is_empty() {
            ""
        } else {
            " <small>ms</small>"
        };
        append!(out, r#"<th class="n">{head}{unit}</th>"#);
    }
    *out += "<th></th></tr></thead><tbody>";
    for each in lags.iter().take(LONGEST) {
        let seed = match each.seed {
            Some(seed) if seed != view.document.seed => format!(" <small>seed {seed}</small>"),
            _ => String::new(),
        };
        let start = clock(each.start_s, 0.5);
        append!(out, r#"<tr><td class="n">{start}{seed}</td>"#);
        for cell in &each.cells {
            append!(out, r#"<td class="n">{cell}</td>"#);
        }
        *out += "<td>";
        let is_finite = each.start_s.is_finite() && each.duration_ms.is_finite();
        if is_finite && is_of_first_seed(view, each.seed) {
            append!(
                out,
                r#"<button type="button" class="show-lag js-only" data-from="{}" data-to="{}">show</button>"#,
                each.start_s,
                each.start_s + each.duration_ms / 1e3
            );
        }
        *out += "</td></tr>";
    }
    *out += "</tbody></table></div></div>";
}

fn per_seed(view: &View<'_>, lane: &Lane, out: &mut String) {
    if lane.per_seed.is_empty() {
        return;
    }
    let of_games = Figure::OF_GAMES
        .into_iter()
        .filter(|figure| figure.of(lane).is_some());
    let figures: Vec<Figure> = of_games
        .chain([Figure::Within(view.about.limit_ms)])
        .chain(Figure::OF_LANES)
        .collect();
    *out += r#"<div class="broad"><h3>Each seed</h3><div class="scroll"><table><thead><tr><th class="n">seed</th>"#;
    for figure in &figures {
        append!(
            out,
            r#"<th class="n">{} <small>{}</small></th>"#,
            figure.heading(),
            figure.unit_label()
        );
    }
    *out += "</tr></thead><tbody>";
    for seed in &lane.per_seed {
        append!(out, r#"<tr><td class="n">{}</td>"#, seed.seed);
        for figure in &figures {
            let value = figure
                .of_seed(seed)
                .map_or(NOTHING.to_owned(), |value| figure.written(value));
            append!(out, r#"<td class="n">{value}</td>"#);
        }
        *out += "</tr>";
    }
    *out += "</tbody></table></div></div>";
}

fn machine(view: &View<'_>, out: &mut String) {
    let document = view.document;
    let host = &document.host;
    let mut lines = vec![
        ("started".to_owned(), document.started.clone()),
        (
            "took".to_owned(),
            format!("{} s", written::factor(document.wall_s)),
        ),
        (
            "system".to_owned(),
            format!("{} {}, {} processors", host.os, host.kernel, host.cpus),
        ),
    ];
    if let Some(noise) = &host.noise {
        lines.push((
            "a sleeper wakes late by".to_owned(),
            format!(
                "p50 {} µs, p99 {} µs",
                written::factor(noise.wake_us.p50),
                written::factor(noise.wake_us.p99)
            ),
        ));
        lines.push((
            "time lost to gaps".to_owned(),
            format!("{} %", written::factor(noise.steal_pct)),
        ));
        if let Some(floor) = &noise.floor {
            lines.extend(beneath_the_noise(floor));
        }
    }
    if document.testbed.as_deref() == Some("sim") {
        lines.push((
            "which matters".to_owned(),
            "not at all: the run played in virtual time".to_owned(),
        ));
    }
    *out += r#"<details><summary>The machine</summary><div class="columns">"#;
    list("Machine", &lines, out);
    *out += "</div></details>";
}

/// Longest text of an experiment shown whole: a network that is a recorded
/// trace may be megabytes.
const LONGEST_TEXT: usize = 60_000;

/// What a noisy machine's noise is made of.
fn beneath_the_noise(floor: &NoiseFloor) -> Vec<(String, String)> {
    let spread = |of: &NoiseQuantiles| {
        format!(
            "p50 {} µs, p99 {} µs",
            written::factor(of.p50),
            written::factor(of.p99)
        )
    };
    let wakes = [
        ("waking a thread, same core", &floor.wake_same_core_us),
        ("waking a thread, another core", &floor.wake_cross_core_us),
    ];
    let mut lines: Vec<(String, String)> = wakes
        .into_iter()
        .filter_map(|(what, found)| Some((what.to_owned(), spread(found.as_ref()?))))
        .collect();
    lines.push((
        "a sleep of 50 µs is exceeded by".to_owned(),
        spread(&floor.short_sleep_us),
    ));
    lines.push((
        "longest gap while spinning".to_owned(),
        format!("{} µs", written::factor(floor.longest_gap_us)),
    ));
    lines
}

fn pretty(value: &Value) -> String {
    let mut text = serde_json::to_string_pretty(value).unwrap_or_else(|_| value.to_string());
    if text.len() > LONGEST_TEXT {
        text.truncate(text.floor_char_boundary(LONGEST_TEXT));
        text += "\n… the rest is in the result document";
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn settings_within_settings_are_lines_too() {
        let lines =
            settings(&json!({ "no_delay": 2, "rules": { "first_probe": "7 s", "on": true } }));
        let written: Vec<String> = lines
            .iter()
            .map(|(name, value)| format!("{name} = {value}"))
            .collect();
        assert_eq!(
            written,
            [
                "no delay = 2",
                "rules: first probe = 7 s",
                "rules: on = true"
            ]
        );
        assert!(settings(&json!({})).is_empty() && settings(&json!(null)).is_empty());
    }
}
