//! The run's series as data for the page's script: what zooming and hovering
//! need beyond the drawings, in as few bytes as is simple.

use super::band::Band;
use super::markup::json_string;
use super::percentile_curves;
use super::percentile_curves::Curve;
use super::ribbon::Strip;
use super::truth::{self, Axis};
use super::view::View;

/// Steps kept of each series; a ten-minute run has no more.
const MOST_STEPS: usize = 4000;

/// The data of one run as a JSON object that may stand inside a `<script>`
/// element.
pub(crate) fn data(view: &View<'_>, curves: &[Curve]) -> String {
    let strip = Strip::among(view.lanes().count());
    let mut out = format!(
        r#"{{"span":{},"rtt":[{},{}],"nines":{},"limit":{},"strip":[{},{},{}],"curve":[{},{}],"lanes":["#,
        number(view.span_s),
        number(view.rtt.low),
        number(view.rtt.high),
        number(view.most_nines()),
        view.about.limit_ms,
        strip.top,
        strip.bottom,
        strip.height,
        percentile_curves::top(view, curves),
        percentile_curves::BOTTOM,
    );
    for (index, lane) in view.document.lanes.iter().enumerate() {
        let timeline = &lane.timeline;
        let band = Band::between(timeline.step_s, &timeline.min_ms, &timeline.max_ms);
        let joined = lost_joined(&timeline.lost);
        append!(
            out,
            r#"{}{{"name":{},"look":{},"band":{},"lost":[{}],"curve":[{}]}}"#,
            if index > 0 { "," } else { "" },
            json_string(&lane.lane),
            json_string(&view.look(index).classes()),
            band_json(&band, 10.0),
            joined
                .iter()
                .map(u32::to_string)
                .collect::<Vec<_>>()
                .join(","),
            curves[index]
                .points
                .iter()
                .map(|(nines, rtt)| format!("{},{}", number(*nines), number(*rtt)))
                .collect::<Vec<_>>()
                .join(","),
        );
    }
    out += r#"],"rows":["#;
    let rows = view
        .document
        .impairments
        .as_ref()
        .map(truth::series_rows)
        .unwrap_or_default();
    for (index, row) in rows.iter().enumerate() {
        let (kind, low, high) = match row.axis {
            Axis::Log(scale) => ("log", scale.low, scale.high),
            Axis::Root(most) => ("root", 0.0, most),
        };
        append!(
            out,
            r#"{}{{"name":"{}","axis":["{kind}",{},{}],"top":{},"height":{},"bands":[{},{}]}}"#,
            if index > 0 { "," } else { "" },
            row.name,
            number(low),
            number(high),
            number(row.top),
            truth::ROW,
            band_json(&row.bands[0], 100.0),
            band_json(&row.bands[1], 100.0),
        );
    }
    out += "]}";
    out
}

/// Lost messages in the steps of the thinned band.
fn lost_joined(lost: &[u32]) -> Vec<u32> {
    let joined = lost.len().div_ceil(MOST_STEPS).max(1);
    lost.chunks(joined)
        .map(|chunk| {
            chunk
                .iter()
                .fold(0_u32, |sum, &each| sum.saturating_add(each))
        })
        .collect()
}

/// `{"step":…,"unit":…,"low":[…],"high":[…]}` in whole units of `1 / unit`;
/// `high` is left out where it is `low`.
fn band_json(band: &Band, unit: f64) -> String {
    let thin = band.thinned(MOST_STEPS);
    let side = |of: fn(&(f64, f64)) -> f64| {
        let values = thin.ranges.iter().map(|range| match range {
            Some(range) => format!("{:.0}", (of(range) * unit).clamp(-1e15, 1e15)),
            None => "null".to_owned(),
        });
        values.collect::<Vec<_>>().join(",")
    };
    let (low, high) = (side(|range| range.0), side(|range| range.1));
    let high = if high == low {
        String::new()
    } else {
        format!(r#","high":[{high}]"#)
    };
    format!(
        r#"{{"step":{},"unit":{unit},"low":[{low}]{high}}}"#,
        number(thin.step_s)
    )
}

/// A number as JSON knows it, with six significant digits.
fn number(value: f64) -> String {
    if !value.is_finite() {
        return "0".to_owned();
    }
    let short: f64 = format!("{value:.5e}").parse().unwrap_or(value);
    serde_json::Value::from(short).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn series_are_whole_numbers_and_equal_sides_are_written_once() {
        let band = Band::between(
            0.05,
            &[Some(1.23), None, Some(4.0)],
            &[Some(5.0), None, Some(4.0)],
        );
        assert_eq!(
            band_json(&band, 10.0),
            r#"{"step":0.05,"unit":10,"low":[12,null,40],"high":[50,null,40]}"#
        );
        assert_eq!(
            band_json(&Band::along(0.5, &[2.0]), 100.0),
            r#"{"step":0.5,"unit":100,"low":[200]}"#
        );
    }

    #[test]
    fn numbers_are_json() {
        assert_eq!(number(f64::NAN), "0");
        assert_eq!(number(0.1 + 0.2), "0.3");
        assert_eq!(number(600.0), "600.0");
    }
}
