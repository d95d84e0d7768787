//! Views as they are drawn, letter by letter.
//!
//! `docs/how-to/watch-a-run.md` shows the first: what it shows is what is drawn.

use std::time::Duration;

use lagometer_gateway::server::{Glance, LoopGlance};
use lagometer_lab::live::LaneMoment;
use lagometer_lab::{Experiment, Resolved, resolve};
use lagometer_link::Profile;
use lagometer_results::WorldMoment;
use lagometer_testbed::Testbed;
use lagometer_units::Time;
use lagometer_watch::gateway::GatewayView;
use lagometer_watch::remote_end::RemoteEndView;
use lagometer_watch::world::WorldView;
use lagometer_watch::{EVERY, RunView, Theme, View};
use lagometer_world::{GatewayTicks, Moment, Scenario};
use ratatui::Terminal;
use ratatui::backend::TestBackend;

/// What a view draws on a terminal of so many columns and lines.
fn drawn(view: &dyn View, width: u16, height: u16, notes: &[&str]) -> String {
    let mut terminal = Terminal::new(TestBackend::new(width, height)).unwrap();
    let notes: Vec<String> = notes.iter().map(|note| (*note).to_owned()).collect();
    terminal
        .draw(|frame| view.draw(frame.buffer_mut(), Theme { has_colours: true }, &notes))
        .unwrap();
    let buffer = terminal.backend().buffer();
    let rows = buffer.content.chunks(usize::from(width));
    let rows = rows.map(|row| {
        row.iter()
            .map(ratatui::buffer::Cell::symbol)
            .collect::<String>()
    });
    rows.map(|row| row.trim_end().to_owned() + "\n").collect()
}

/// A link that is out for a second, stalls, and has bursts, at known instants.
const NETWORK: &str = "summary = \"t\"\n[both]\ndelay = \"20 ms\"\nrate = \"20 Mbit/s\"\nloss = \"0.5 %\"\n\
     [[down.outages]]\nat = \"6 s\"\nfor = \"1 s\"\n[[up.stalls]]\nat = \"3 s\"\nfor = \"700 ms\"\n";

const LANES: [&str; 3] = ["kcp-game", "enet-game", "tcp-cubic"];

fn resolved() -> Resolved {
    let text = "name = \"pvp-500\"\nsummary = \"t\"\nnetwork = \"t\"\nfor = \"40 s\"\n\
                lanes = [\"kcp-game\", \"enet-game\", \"tcp-cubic\"]\n\
                [workload.paced-echo]\nsize = \"500 B\"\ninterval = \"50 ms\"\n";
    let experiment = Experiment::parse("t.toml", text).unwrap();
    let profile = Profile::from_text("t.toml", NETWORK).unwrap();
    resolve(experiment, "our-players".to_owned(), profile, Testbed::Sim).unwrap()
}

fn millis(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// A run after so many looks: one lane is fine, one is slow to recover, one is frozen.
fn run(looks: u32) -> RunView {
    let resolved = resolved();
    let mut view = RunView::new(&resolved, "emu", &[7, 8]);
    view.know_link(&resolved);
    view.begin_seed(7, &LANES.map(str::to_owned));
    let starts = Time::from_secs(2);
    for look in 0..looks {
        let now = starts + EVERY * look;
        let in_outage = (24..28).contains(&look);
        let after = u64::from(look.saturating_sub(28)).min(12);
        let stalled = (12..15).contains(&look);
        let lane = |round_trip_ms: u64, frozen_for: Option<Duration>, freezes, longest, frozen| {
            LaneMoment {
                is_ready: true,
                is_over: false,
                failure: None,
                starts_at: Some(starts),
                returned: look * 5,
                latest: Some(millis(round_trip_ms)),
                worst: frozen_for.is_none().then(|| millis(round_trip_ms)),
                frozen_for,
                freezes,
                frozen,
                longest,
            }
        };
        let jitter = u64::from(look * 7 % 5);
        let calm = 41 + jitter + if stalled { 150 } else { 0 };
        let frozen = in_outage.then(|| EVERY * (look - 23));
        let (first, second) = (u32::from(look >= 24), u32::from(look >= 24) * 2);
        let moments = vec![
            lane(
                calm,
                frozen,
                first,
                millis(u64::from(first) * 850),
                millis(u64::from(first) * 850),
            ),
            lane(
                calm + if look >= 28 { 340 - after * 28 } else { 0 },
                frozen,
                second,
                millis(u64::from(first) * 1100),
                millis(u64::from(first) * 1400),
            ),
            lane(
                calm,
                (look >= 24).then(|| EVERY * (look - 23)),
                first,
                EVERY * look.saturating_sub(23),
                EVERY * look.saturating_sub(23),
            ),
        ];
        view.note(now, moments);
    }
    view
}

#[test]
fn a_run_is_drawn_as_the_page_shows_it() {
    let shown = drawn(
        &run(60),
        96,
        21,
        &["lagometer: playing 3 lanes over `our-players`"],
    );
    let page = include_str!("../../../docs/how-to/watch-a-run.md");
    assert!(page.contains(&shown), "\n{shown}");
}

#[test]
fn lanes_that_do_not_fit_are_counted_and_columns_are_left_out_where_it_is_narrow() {
    let view = run(60);
    for (width, height) in [(96, 21), (60, 12), (44, 9), (40, 6), (200, 60)] {
        let shown = drawn(&view, width, height, &[]);
        let lines: Vec<&str> = shown.lines().collect();
        assert_eq!(lines.len(), usize::from(height));
        assert!(lines[0].starts_with("lagometer  pvp-500 over"), "{shown}");
        assert!(lines[1].contains("seed 7, 1 of 2"), "{shown}");
    }
    let narrow = drawn(&view, 44, 9, &[]);
    assert!(
        narrow.contains("kcp-game") && !narrow.contains("longest"),
        "{narrow}"
    );
    assert!(
        drawn(&view, 60, 7, &[]).contains("more"),
        "{}",
        drawn(&view, 60, 7, &[])
    );
}

#[test]
fn tiny_terminals_have_one_line_and_none_is_too_small() {
    let view = run(30);
    let line = drawn(&view, 79, 3, &[]);
    assert!(line.contains("frozen: tcp-cubic"), "{line}");
    for width in 0..45 {
        for height in 0..10 {
            if width > 0 && height > 0 {
                drawn(&view, width, height, &["a note", "another"]);
                drawn(world().board(), width, height, &["a note", "another"]);
                drawn(gateway().board(), width, height, &["a note", "another"]);
            }
        }
    }
}

#[test]
fn a_run_that_has_not_begun_and_one_in_virtual_time_say_so() {
    let resolved = resolved();
    let mut view = RunView::new(&resolved, "sim", &[1]);
    assert!(drawn(&view, 80, 10, &[]).contains("beginning"));
    view.speed = Some(812.0);
    view.done = 0.25;
    let shown = drawn(&view, 80, 10, &[]);
    assert!(
        shown.contains("812 s of lanes played each second"),
        "{shown}"
    );
    assert!(shown.contains("25 %"), "{shown}");
}

#[test]
fn lanes_that_failed_or_wait_say_why_in_place_of_a_graph() {
    let resolved = resolved();
    let mut view = RunView::new(&resolved, "net", &[1]);
    view.begin_seed(1, &LANES.map(str::to_owned));
    let failed = LaneMoment {
        is_ready: true,
        is_over: true,
        failure: Some("the peer stopped answering".to_owned()),
        ..LaneMoment::default()
    };
    let waits = LaneMoment {
        is_ready: true,
        ..LaneMoment::default()
    };
    view.note(
        Time::from_secs(1),
        vec![failed, waits, LaneMoment::default()],
    );
    let shown = drawn(&view, 90, 14, &[]);
    for words in [
        "the peer stopped answering",
        "waits for the others",
        "connecting",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    assert!(!shown.contains("link"), "nobody knows the link: {shown}");
}

fn world() -> WorldView {
    let text = lagometer_world::BUILT_IN
        .iter()
        .find(|it| it.0 == "single")
        .unwrap()
        .1;
    let scenario = Scenario::parse("t.toml", text).unwrap();
    let scenario = Scenario {
        players: 200,
        ..scenario
    };
    let mut view = WorldView::new(&scenario);
    for look in 0..60_u32 {
        let players = (look * 8).min(200);
        let world = WorldMoment {
            at_s: f64::from(look) / 4.0,
            players,
            updates_per_s: f64::from(players * players) / 2.0,
            bytes_per_s: f64::from(players * players) * 40.0,
            frames_per_s: 30.0,
            frame_late_ms: if look > 40 { 14.5 } else { 1.2 },
            age_p50_ms: (players > 0).then(|| 30.0 + f64::from(players) / 10.0),
            age_p99_ms: (players > 0).then(|| 60.0 + f64::from(players) / 4.0),
            generator_cpu_pct: Some(f64::from(players) / 2.0),
            handovers_per_s: None,
        };
        view.note(&Moment {
            world,
            gateway_ticks: Some(GatewayTicks {
                per_s: Some(50.0),
                late_pct: Some(0.0),
                longest_ms: Some(0.8 + f64::from(players) / 100.0),
            }),
        });
    }
    view
}

#[test]
fn a_world_shows_its_players_and_what_is_late() {
    let shown = drawn(world().board(), 80, 24, &[]);
    for words in [
        "200 of 200",
        "50 ms",
        "110 ms",
        "14.5 ms",
        "100 % CPU",
        "2.80 ms",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
}

fn gateway() -> GatewayView {
    let mut view = GatewayView::new("127.0.0.1:11288", "0.0.0.0:12108");
    for look in 0..40_u64 {
        let thread = |name: &str, connections, busy, waiting_bytes| LoopGlance {
            name: name.to_owned(),
            connections,
            busy: millis(look * busy),
            queued: look % 3,
            waiting_bytes,
        };
        let glance = Glance {
            players: (look * 5).min(120),
            servers: 1,
            channels: 9,
            messages_in: look * 900,
            messages_out: look * 12_000,
            bytes_out: look * 1_400_000,
            slow_readers: look / 30 * 3,
            updates_merged: look / 30 * 800,
            ticks: look * 12,
            late_ticks: look / 30,
            loops: vec![
                thread("connections-0", Some(61), 90, look * 4_000),
                thread("connections-1", Some(60), 70, 0),
                thread("channels", None, 120, 0),
            ],
        };
        view.note(EVERY * u32::try_from(look).unwrap(), glance);
    }
    view
}

#[test]
fn a_gateway_shows_rates_who_waits_and_how_busy_its_threads_are() {
    let shown = drawn(gateway().board(), 80, 26, &[]);
    for words in [
        "120", "3600/s", "48.0 k/s", "5.6 MB/s", "156 kB", "3 in all", "48 %",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    let mut hanging = gateway();
    hanging.note_hanging("channels does not answer");
    assert!(drawn(hanging.board(), 80, 26, &[]).contains("channels does not answer"));
}

#[test]
fn a_remote_end_shows_whom_it_serves() {
    let mut view = RemoteEndView::new();
    view.call("serves at [::]:7711");
    view.join(millis(1000), 1, "192.0.2.7:50000");
    view.open(1, "lane");
    view.open(1, "lane");
    view.open(1, "record");
    view.join(millis(2000), 2, "192.0.2.9:50001");
    view.close(1, "record");
    view.look(millis(65_000));
    let shown = drawn(view.board(), 80, 16, &["lagometer: joined"]);
    for words in [
        "192.0.2.7:50000",
        "2 lane",
        "01:04",
        "2 sessions and 3 jobs",
    ] {
        assert!(shown.contains(words), "{words}: {shown}");
    }
    view.leave(1);
    view.turn_away();
    view.look(millis(66_000));
    let shown = drawn(view.board(), 80, 16, &[]);
    assert!(!shown.contains("192.0.2.7"), "{shown}");
}
