//! The drawing that stands alone.

use lagometer_report::plot;

use crate::synthetic::{failed_lane, full};

#[test]
fn every_lane_of_every_document_has_a_curve_and_a_name() {
    let first = full();
    let mut second = full();
    second.lanes.truncate(2);
    second.lanes[0].lane = "<b> & co".to_owned();
    let drawn = plot(&[first.clone(), second.clone()]);
    let with_curves = |lanes: &[lagometer_results::Lane]| {
        lanes
            .iter()
            .filter(|lane| lane.messages.delivered > 0)
            .count()
    };
    let curves = with_curves(&first.lanes) + with_curves(&second.lanes);
    assert_eq!(drawn.matches(r#"fill="none" stroke="#).count(), curves);
    assert!(drawn.contains("&lt;b&gt; &amp; co"), "names are escaped");
    assert!(drawn.contains(r#"stroke-dasharray="7 4""#));
    assert!(drawn.starts_with("<svg ") && drawn.ends_with("</svg>\n"));
    assert!(!drawn.contains("NaN") && !drawn.contains("inf"));
}

#[test]
fn nothing_delivered_is_nothing_drawn() {
    let mut document = full();
    document.lanes = vec![failed_lane("udp", "it never connected")];
    let drawn = plot(&[document]);
    assert!(!drawn.contains(r#"fill="none""#));
    assert!(plot(&[]).ends_with("</svg>\n"));
}
