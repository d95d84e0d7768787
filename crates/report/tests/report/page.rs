//! The page's structure, without a browser.

use lagometer_report::{named_page, page};
use lagometer_results::{Episode, Freeze};

use crate::synthetic::{LANES, document, failed_lane, full};

/// How often `needle` stands in `text`.
fn count(text: &str, needle: &str) -> usize {
    text.matches(needle).count()
}

#[test]
fn every_lane_is_drawn_in_every_chart_without_any_script() {
    let document = full();
    let html = page(std::slice::from_ref(&document));
    for (place, lane) in document.lanes.iter().enumerate() {
        let of_lane = |start: &str| {
            html.lines().any(|line| line.contains(start))
                && count(&html, &format!(r#"data-lane="{place}""#)) >= 5
        };
        assert!(
            of_lane(r#"<path class="ribbon" d="M"#),
            "{} has no ribbon",
            lane.lane
        );
    }
    let lanes = document.lanes.len();
    assert_eq!(count(&html, r#"<path class="ribbon" d="M"#), lanes);
    assert_eq!(
        count(&html, r#"<path class="curve h"#),
        lanes,
        "percentile curves"
    );
    assert_eq!(
        count(&html, r#"<div class="bar-row "#),
        lanes,
        "delivered-in-time bars"
    );
    assert_eq!(
        count(&html, r#"<g class="point "#),
        2 * lanes,
        "points, wide and narrow"
    );
    assert_eq!(
        count(&html, "<tr data-row="),
        2 * lanes,
        "rows of both tables"
    );
    let lags = document.lanes.iter().flat_map(|lane| &lane.lag);
    let freezes: usize = lags.map(|lag| lag.freezes.len()).sum();
    assert!(freezes > 0);
    assert_eq!(count(&html, r#"class="episode""#), freezes);
    assert_eq!(
        count(&html, r#"<path class="series "#),
        4,
        "delay and loss, up and down"
    );
}

#[test]
fn the_page_asks_for_nothing_from_anywhere() {
    let html = page(&[full()]);
    assert!(html.contains("default-src 'none'"));
    let addresses = html.replace("http://www.w3.org/2000/svg", "");
    for foreign in [
        "http:", "https:", "//cdn", "@import", "url(", "<link", "<iframe", "<img",
    ] {
        assert!(!addresses.contains(foreign), "{foreign}");
    }
}

#[test]
fn ten_minutes_of_fourteen_lanes_stay_under_two_megabytes() {
    let bytes = page(&[full()]).len();
    assert!(bytes < 2_000_000, "{bytes}");
}

#[test]
fn the_same_document_makes_the_same_page() {
    let document = document(&LANES[..3], 20, &[7]);
    assert_eq!(page(std::slice::from_ref(&document)), page(&[document]));
}

#[test]
fn runs_of_one_experiment_are_distinguished_by_name() {
    let run = document(&LANES[..2], 10, &[1]);
    let html = named_page(&[("before", &run), ("after <b>", &run)]);
    for name in ["before: ", "after &lt;b&gt;: "] {
        assert_eq!(count(&html, name), 2, "in the contents and above the run");
    }
}

#[test]
fn several_runs_have_a_table_of_contents_and_ids_of_their_own() {
    let runs = [
        document(&LANES[..2], 10, &[1]),
        document(&LANES[2..4], 10, &[2]),
    ];
    let html = page(&runs);
    for run in 0..2 {
        assert_eq!(count(&html, &format!(r##"href="#run{run}-top""##)), 1);
        assert_eq!(count(&html, &format!(r#"id="run{run}-top""#)), 1);
    }
    let mut ids: Vec<&str> = html
        .split(r#" id=""#)
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "ids are unique");
}

#[test]
fn documents_with_holes_and_nonsense_still_make_a_page() {
    let mut empty = document(&LANES[..1], 10, &[1]);
    empty.lanes = vec![failed_lane("udt", "udt owns its sockets")];
    let html = page(&[empty]);
    assert!(html.contains("No lane was measured.") && html.contains("udt owns its sockets"));

    let mut odd = document(&LANES[..3], 10, &[1]);
    odd.impairments = None;
    odd.lanes[0].histogram = "not base64".to_owned();
    odd.lanes[1].timeline.step_s = 0.0;
    odd.lanes[1].timeline.min_ms.truncate(3);
    odd.lanes[1].wire = None;
    odd.lanes[2].rtt_ms.max = Some(f64::MAX);
    odd.lanes[2].rtt_delivered_ms.max = f64::MAX;
    odd.lanes[2].episodes.push(Episode {
        start_s: f64::NAN,
        duration_ms: f64::INFINITY,
        worst_ms: None,
        messages: 0,
        lost: 0,
        recovery_ms: None,
        seed: None,
    });
    odd.lanes[1].lag = None;
    odd.lanes[1].episodes = odd.lanes[2].episodes.clone();
    let lag = odd.lanes[2].lag.as_mut().unwrap();
    lag.freezes.push(Freeze {
        start_s: f64::NAN,
        duration_ms: f64::INFINITY,
        recovery_first_ms: Some(f64::NAN),
        ..Freeze::default()
    });
    lag.s_per_min = f64::NAN;
    lag.longest_freeze = None;
    odd.lanes[2].timeline.step_s = f64::NAN;
    let html = page(&[odd]);
    assert!(!html.contains("NaN") && !html.contains("inf%"));

    assert!(page(&[]).ends_with("</html>\n"));
}
