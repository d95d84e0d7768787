//! A small chart of something over time: a line or two, an axis from nought to
//! a round number.

use super::markup::{coordinate, esc};
use super::scale::round_above;

/// Drawn in these units and stretched to the page.
const WIDTH: f64 = 1000.0;
const HEIGHT: f64 = 100.0;

/// One line of a chart: places in time and values; a gap where there is none.
pub(crate) struct Line<'a> {
    /// What it shows, where a chart has more than one.
    pub(crate) name: &'a str,
    /// Seconds and values.
    pub(crate) points: Vec<(f64, Option<f64>)>,
}

/// Appends a chart of `lines` over `span_s` seconds. `title` says what is
/// shown and in which unit.
pub(crate) fn render(title: &str, lines: &[Line<'_>], span_s: f64, out: &mut String) {
    let values = lines.iter().flat_map(|line| &line.points);
    let most = values.filter_map(|(_, value)| *value).fold(0.0, f64::max);
    let top = round_above(most);
    append!(
        out,
        r#"<figure class="trend"><figcaption><b>{}</b><span>"#,
        esc(title)
    );
    if lines.len() > 1 {
        for (index, line) in lines.iter().enumerate() {
            append!(out, r#"<i class="h{index}"></i>{} "#, esc(line.name));
        }
    }
    append!(
        out,
        r#"</span></figcaption><div class="plot"><span class="top">{}</span><svg viewBox="0 0 {WIDTH} {HEIGHT}" preserveAspectRatio="none" role="img" aria-label="{}">"#,
        esc(&label(top)),
        esc(&format!(
            "{title}: at most {} over {span_s:.0} s",
            label(most)
        ))
    );
    for (index, line) in lines.iter().enumerate() {
        append!(
            out,
            r#"<path class="h{index}" d="{}" vector-effect="non-scaling-stroke"/>"#,
            path(line, span_s, top)
        );
    }
    append!(
        out,
        r#"</svg><span class="bottom">0</span><span class="end">{span_s:.0} s</span></div></figure>"#
    );
}

fn path(line: &Line<'_>, span_s: f64, top: f64) -> String {
    let mut path = String::new();
    let mut pen_is_down = false;
    for &(at_s, value) in &line.points {
        let Some(value) = value else {
            pen_is_down = false;
            continue;
        };
        let x = WIDTH * at_s / span_s.max(1e-9);
        let y = HEIGHT * (1.0 - value / top);
        let command = if pen_is_down { 'L' } else { 'M' };
        append!(path, "{command}{} {}", coordinate(x), coordinate(y));
        pen_is_down = true;
    }
    path
}

/// A number with at most three digits and a prefix: `12 k`.
pub(crate) fn label(value: f64) -> String {
    let (value, prefix) = match value {
        big if big >= 1e9 => (big / 1e9, " G"),
        big if big >= 1e6 => (big / 1e6, " M"),
        big if big >= 1e3 => (big / 1e3, " k"),
        small => (small, ""),
    };
    if value >= 10.0 || value.fract() == 0.0 {
        format!("{value:.0}{prefix}")
    } else {
        format!("{value:.1}{prefix}")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_end_on_round_numbers() {
        let ends = [0.0, 0.3, 1.0, 1.1, 34.0, 60.0, 999.0].map(round_above);
        assert_eq!(ends.map(label), ["1", "0.5", "1", "2", "50", "100", "1 k"]);
    }

    #[test]
    fn numbers_are_short() {
        let labels = [0.5, 2.0, 50.0, 12_000.0, 2_500_000.0].map(label);
        assert_eq!(labels, ["0.5", "2", "50", "12 k", "2.5 M"]);
    }

    #[test]
    fn a_gap_lifts_the_pen() {
        let line = Line {
            name: "",
            points: vec![(0.0, Some(1.0)), (1.0, None), (2.0, Some(0.5))],
        };
        assert_eq!(path(&line, 2.0, 1.0), "M0 0M1000 50");
    }
}
