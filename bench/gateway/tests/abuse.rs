//! The abuse bench from end to end, small and short: a gateway, players, an
//! attacker, and the row that comes of it.
//!
//! The gateway that the bench starts is this program once more, so that nothing
//! but this package has to be built.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use lagometer_gateway::server::config::FileConfig;
use lagometer_gateway::server::{Server, processors};
use libtest_mimic::{Arguments, Failed, Trial};
use serde_json::Value;

fn main() -> ExitCode {
    let words: Vec<OsString> = std::env::args_os().collect();
    if let [_, gateway, _, config] = &*words
        && gateway == "gateway"
    {
        be_a_gateway(Path::new(config));
        return ExitCode::SUCCESS;
    }
    let trials = vec![
        Trial::test("an_abuse_is_played_beside_players_and_measured", played),
        Trial::test("an_abuse_that_there_is_not_is_refused_in_one_line", refused),
        Trial::test("every_abuse_is_listed_with_what_it_does", listed),
    ];
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// What `lagometer gateway --config FILE` does.
fn be_a_gateway(config: &Path) {
    let text = std::fs::read_to_string(config).expect("the bench wrote it");
    let file = FileConfig::parse("gateway.toml", &text).expect("the settings are sound");
    let config = file.resolve(processors()).expect("so is what they name");
    let server = Server::start(config).expect("the ports are free");
    let _ = server.join();
}

fn bench(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_gateway-bench"));
    command.arg("abuse").args(arguments);
    command
}

fn played() -> Result<(), Failed> {
    let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("abuse");
    std::fs::create_dir_all(&folder)?;
    let json = folder.join("rows.json");
    let _ = std::fs::remove_file(&json);
    let gateway = std::env::current_exe()?;
    // Messages of the default rights, datagrams, questions to the web port.
    let output = bench(&["--only", "none,refused,kcp-reflects-logins,web-questions"])
        .args(["--players", "6", "--rooms", "2", "--rate", "10"])
        .args(["--quiet", "300ms", "--for", "600ms", "--after", "1s"])
        .arg(format!("--gateway=own={}", gateway.display()))
        .arg("--json")
        .arg(&json)
        .arg("--logs")
        .arg(&folder)
        .output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(output.status.success(), "{said}");
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    assert_eq!(
        table.lines().filter(|line| line.starts_with('|')).count(),
        2 + 4,
        "a head and a row each:\n{table}"
    );
    let rows: Vec<Value> = std::fs::read_to_string(&json)?
        .lines()
        .map(serde_json::from_str)
        .collect::<Result<_, _>>()?;
    let names: Vec<_> = rows.iter().map(|row| row["abuse"].as_str()).collect();
    let expected = ["none", "refused", "kcp-reflects-logins", "web-questions"];
    assert_eq!(names, expected.map(Some));
    for row in &rows {
        let (name, effort) = (&row["abuse"], &row["effort"]);
        assert_eq!(row["ended"], Value::Null, "the gateway lives: {row}");
        assert!(row["quiet"]["down_ms"]["p50"].as_f64() > Some(0.0), "{row}");
        assert!(
            row["attacked"]["up_ms"]["p50"].as_f64() > Some(0.0),
            "{row}"
        );
        assert!(row["newcomers"]["came"].as_u64() > Some(0), "{row}");
        let sent = effort["sent_bytes"].as_u64();
        assert_eq!(sent > Some(0), name != "none", "{row}");
    }
    // What the bench counts is there: nothing is lost where nobody attacks.
    let lost = &rows[0]["lost"];
    for what in ["updates", "messages", "connections", "wrong"] {
        assert_eq!(lost[what], 0, "{lost}");
    }
    Ok(())
}

fn refused() -> Result<(), Failed> {
    let output = bench(&["--only", "kindness"]).output()?;
    assert_eq!(output.status.code(), Some(3));
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(
        said.contains("kindness") && said.lines().count() == 1,
        "{said}"
    );
    Ok(())
}

fn listed() -> Result<(), Failed> {
    let output = bench(&["--list"]).output()?;
    let listed = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(listed.lines().count() > 50, "{listed}");
    for line in listed.lines() {
        assert!(line.split_whitespace().count() > 2, "{line}");
    }
    Ok(())
}
