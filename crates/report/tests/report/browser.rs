//! The page at work in headless Chromium.
//!
//! Where no Chromium is installed these tests say so and pass; with
//! `LAGOMETER_REQUIRE_BROWSER=1` in the environment that is a failure. The
//! pages stay in the target directory, to be looked at.

use std::path::{Path, PathBuf};
use std::process::Command;

use lagometer_report::page;
use lagometer_results::Document;

use crate::synthetic::{LANES, document, failed_lane, full, judge};

const BROWSERS: [&str; 4] = ["chromium", "chromium-browser", "google-chrome", "chrome"];

/// What the page's own script and the checks below leave in the document.
struct Loaded {
    dom: String,
    console: Vec<String>,
}

/// The browser, or the reason why there is none has been said.
fn browser() -> Option<PathBuf> {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&paths)
        .flat_map(|directory| BROWSERS.map(|name| directory.join(name)))
        .find(|path| path.is_file());
    if found.is_none() {
        assert!(
            std::env::var_os("LAGOMETER_REQUIRE_BROWSER").is_none(),
            "LAGOMETER_REQUIRE_BROWSER is set, but none of {BROWSERS:?} is in PATH"
        );
        eprintln!("skipped: none of {BROWSERS:?} is in PATH");
    }
    found
}

/// Loads `html` in a window of this width until its scripts are done.
fn load(browser: &Path, name: &str, html: &str, width: u32) -> Loaded {
    let directory = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let file = directory.join(format!("{name}.html"));
    std::fs::write(&file, html).expect("the target directory is writable");
    let profile = directory.join(format!("profile-{name}-{}", std::process::id()));
    let output = Command::new(browser)
        .args([
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--disable-dev-shm-usage",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--enable-logging=stderr",
            "--virtual-time-budget=5000",
            "--dump-dom",
        ])
        .arg(format!("--window-size={width},1000"))
        .arg(format!("--user-data-dir={}", profile.display()))
        .arg(format!("file://{}", file.display()))
        .output()
        .expect("the browser starts");
    let _ = std::fs::remove_dir_all(&profile);
    let log = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{name}: {log}");
    Loaded {
        dom: String::from_utf8_lossy(&output.stdout).into_owned(),
        console: log
            .lines()
            .filter(|line| line.contains("CONSOLE"))
            .map(str::to_owned)
            .collect(),
    }
}

/// Loads the page with `checks.js` behind its own script and returns the
/// failures found; each check is a line in the document's last element.
fn check(browser: &Path, name: &str, documents: &[Document], width: u32) -> Vec<String> {
    let html = page(documents);
    let policy = html
        .find("script-src 'sha256-")
        .expect("the policy pins the script");
    let end = policy + html[policy..].find(';').expect("the directive ends");
    let html = format!(
        "{}script-src 'unsafe-inline'{}",
        &html[..policy],
        &html[end..]
    );
    let checks = format!("<script>{}</script></body>", include_str!("checks.js"));
    let loaded = load(browser, name, &html.replace("</body>", &checks), width);
    assert_eq!(loaded.console, [""; 0], "{name}");
    let results = loaded
        .dom
        .split_once("<pre id=\"results\">")
        .and_then(|(_, rest)| rest.split_once("</pre>"))
        .unwrap_or_else(|| panic!("{name}: the checks did not finish"))
        .0;
    let (passed, failed): (Vec<&str>, Vec<&str>) =
        results.lines().partition(|line| line.starts_with("ok "));
    assert!(
        passed.len() + failed.len() >= 15,
        "{name}: only {} checks ran",
        passed.len()
    );
    failed.into_iter().map(str::to_owned).collect()
}

#[test]
fn the_page_loads_under_its_own_policy_without_a_word_on_the_console() {
    let Some(browser) = browser() else { return };
    let loaded = load(&browser, "default", &page(&[full()]), 1400);
    assert_eq!(loaded.console, [""; 0]);
    assert!(
        loaded.dom.contains(r#"data-ready="yes""#),
        "the page's script ran to its end"
    );
}

#[test]
fn lanes_hide_time_zooms_and_pointing_answers_on_a_wide_page() {
    let Some(browser) = browser() else { return };
    assert_eq!(check(&browser, "wide", &[full()], 1400), [""; 0]);
}

#[test]
fn the_same_holds_on_a_phone() {
    let Some(browser) = browser() else { return };
    assert_eq!(check(&browser, "narrow", &[full()], 400), [""; 0]);
}

#[test]
fn long_names_and_many_figures_are_not_cut_at_any_width() {
    let Some(browser) = browser() else { return };
    let mut document = document(&LANES, 60, &[1, 2, 3, 4, 5]);
    judge(&mut document);
    for lane in &mut document.lanes {
        lane.lane = format!("webrtc-str0m-{}-game", lane.lane);
    }
    for result in &mut document.budgets {
        result.lane = format!("webrtc-str0m-{}-game", result.lane);
    }
    for width in [500, 900, 1250, 1500] {
        let failed = check(
            &browser,
            &format!("width-{width}"),
            &[document.clone()],
            width,
        );
        assert_eq!(failed, [""; 0], "{width}");
    }
}

#[test]
fn each_of_several_runs_works_by_itself() {
    let Some(browser) = browser() else { return };
    let mut first = document(&LANES[2..7], 60, &[1, 2, 3]);
    first.lanes.push(failed_lane(
        "udt",
        "udt owns its sockets and runs in emu and net only",
    ));
    judge(&mut first);
    let second = document(&LANES[..4], 60, &[9]);
    assert_eq!(check(&browser, "several", &[first, second], 1400), [""; 0]);
}

#[test]
fn no_text_of_a_document_becomes_markup_or_script() {
    let Some(browser) = browser() else { return };
    let evil =
        r#"</script><script>window.hacked=1</script><img src=x onerror="window.hacked=1">'"&"#;
    let mut document = document(&LANES[..4], 20, &[1]);
    judge(&mut document);
    for lane in &mut document.lanes {
        lane.lane += evil;
        lane.transport += evil;
        lane.library += evil;
        lane.failure = Some(evil.to_owned());
        lane.settings = serde_json::json!({ evil: evil });
        if let Some(properties) = &mut lane.properties {
            properties.acks += evil;
            properties.congestion_control += evil;
        }
        if let Some(wire) = &mut lane.wire {
            wire.dropped.insert(evil.to_owned(), 1);
        }
    }
    for budget in &mut document.budgets {
        budget.lane += evil;
    }
    for warning in &mut document.warnings {
        warning.what += evil;
        warning.why += evil;
        warning.mend += evil;
    }
    if let Some(impairments) = &mut document.impairments {
        for each in &mut impairments.up.disturbances {
            each.kind += evil;
        }
    }
    document.verdict = Some(evil.to_owned());
    document.started = evil.to_owned();
    document.testbed = Some(evil.to_owned());
    document.host.os = evil.to_owned();
    document.experiment = serde_json::json!({
        "name": evil, "summary": evil, "network": evil, "for": evil, evil: evil
    });
    assert_eq!(check(&browser, "hostile", &[document], 1400), [""; 0]);
}
