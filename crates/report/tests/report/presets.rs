//! Runs that played several presets of each transport: what of them a terminal and the
//! page show.

use lagometer_report::{Terminal, page, table};
use lagometer_results::Document;

use crate::synthetic::{LANES, document, judge};

/// Families, each with the place of the rule that plays its `game` and of the one that
/// plays its `default`: one of them with the same settings.
const FAMILIES: [(&str, usize, usize); 3] = [("kcp", 2, 3), ("enet", 4, 5), ("udp", 0, 0)];

fn played() -> Document {
    played_under(&[1])
}

fn played_under(seeds: &[u64]) -> Document {
    let mut run = document(&LANES, 30, seeds);
    let mut lanes = Vec::new();
    for (family, game, default) in FAMILIES {
        let places = [(game, "game"), (default, "default")];
        for (place, preset) in places {
            if preset == "default" && default == game {
                continue;
            }
            let mut lane = run.lanes[place].clone();
            lane.lane = format!("{family}-{preset}");
            lane.family = Some(family.to_owned());
            lane.presets = vec![preset.to_owned()];
            if default == game {
                lane.presets.push("default".to_owned());
            }
            lanes.push(lane);
        }
    }
    run.lanes = lanes;
    run.bottlenecks.clear();
    judge(&mut run);
    run
}

#[test]
fn a_terminal_shows_the_first_preset_and_all_side_by_side() {
    let text = table(&played(), Terminal::PLAIN);
    let (main, beside) = text.split_once("by preset").unwrap();
    assert!(
        main.contains("kcp-game") && main.contains("udp-game"),
        "{text}"
    );
    assert!(!main.contains("-default"), "{text}");
    let row = beside
        .lines()
        .find(|line| line.starts_with("udp "))
        .unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_eq!(
        format!("={}", cells[1]),
        cells[2],
        "the same settings were played once: {row}"
    );
    let row = beside
        .lines()
        .find(|line| line.starts_with("kcp "))
        .unwrap();
    let cells: Vec<&str> = row.split_whitespace().collect();
    assert_ne!(cells[1], cells[2], "{row}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn what_is_not_told_apart_from_the_first_preset_is_marked() {
    let run = played_under(&[1, 2, 3, 4, 5, 6, 7, 8]);
    let text = table(&run, Terminal::PLAIN);
    let (_, beside) = text.split_once("by preset").unwrap();
    let row = |family: &str| -> Vec<&str> {
        let mut lines = beside.lines();
        let row = lines.find(|line| line.starts_with(family)).unwrap();
        row.split_whitespace().collect()
    };
    // The turbo loses little to the plain; the tutorial's window of ENet much.
    assert!(row("kcp ")[2].starts_with('≈'), "{beside}");
    assert!(row("udp ")[2].starts_with('='), "{beside}");
    assert!(beside.contains("≈ not told apart"), "{beside}");
    let page = page(std::slice::from_ref(&run));
    let (_, beside) = page.split_once("Presets side by side").unwrap();
    assert!(beside.contains("≈") && beside.contains(" ±"), "{beside}");
    // Of one seed nothing is known of chance.
    let short = table(&played(), Terminal::PLAIN);
    assert!(
        !short.contains('≈') && short.contains("too little was played"),
        "{short}"
    );
}

#[test]
fn a_long_name_goes_on_in_a_second_line_where_there_is_no_room() {
    let mut run = played();
    run.lanes[0].family = Some("webrtc-str0m-unreliable".to_owned());
    let text = table(&run, Terminal::PLAIN);
    assert!(text.contains("\nwebrtc-str0m-"), "{text}");
    assert!(text.contains("\nunreliable-game"), "{text}");
    assert!(
        text.lines().all(|line| line.chars().count() <= 80),
        "{text}"
    );
}

#[test]
fn the_page_has_every_preset_and_switches_them_without_a_script() {
    let text = page(&[played()]);
    assert_eq!(text.matches(r#"<article class="run""#).count(), 2);
    assert_eq!(text.matches(r#"<input type="radio""#).count(), 2);
    assert_eq!(text.matches(" checked>").count(), 1);
    for (place, preset) in ["game", "default"].into_iter().enumerate() {
        let label = format!(r#"<label class="l{place}" for="run0-preset-{place}""#);
        assert!(text.contains(&label), "{preset}");
        assert!(text.contains(&format!(r#"id="run0-preset-{place}""#)));
        assert!(text.contains(&format!("udp-{preset}")), "{preset}");
    }
    assert!(text.contains("Presets side by side"));
    // Two verdicts on one page are not one.
    assert!(text.contains("held to its error rate by itself"));
    let mut ids: Vec<&str> = text
        .split(" id=\"")
        .skip(1)
        .filter_map(|rest| rest.split('"').next())
        .collect();
    let all = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), all, "an id stands twice");
}

#[test]
fn a_run_with_one_preset_is_a_page_as_ever() {
    let run = played().with_preset("game");
    let text = page(std::slice::from_ref(&run));
    assert_eq!(text.matches(r#"<article class="run""#).count(), 1);
    assert!(!text.contains(r#"type="radio""#));
    assert!(!table(&run, Terminal::PLAIN).contains("by preset"));
}
