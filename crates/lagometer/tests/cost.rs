//! What a player's hour takes and costs, as a user meets it: in runs, worlds and searches,
//! by the built-in prices and by their own, and held to budgets.

use std::fs;
use std::process::{Command, Output};

use serde_json::Value;

struct Project(tempfile::TempDir);

const PRICES: &str = "name = \"ours\"\nsummary = \"a contract\"\ncurrency = \"EUR\"\n\
                      dated = \"2026-11-25\"\nsource = \"a contract\"\negress_per_gb = 1.0\n\
                      ingress_per_gb = 0.5\ncore_hour = 0.1\n";

impl Project {
    fn new() -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        project.write("ours.toml", PRICES);
        project
    }

    fn write(&self, name: &str, text: &str) {
        fs::write(self.0.path().join(name), text).unwrap();
    }

    fn lagometer(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_lagometer"))
            .current_dir(self.0.path())
            .env("NO_COLOR", "1")
            .args(arguments)
            .output()
            .expect("the binary starts")
    }

    fn document(&self, arguments: &[&str]) -> Value {
        let output = self.lagometer(&[arguments, &["--no-html", "--json", "-"]].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        serde_json::from_slice(&output.stdout).expect("a document")
    }
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

const RUN: [&str; 6] = [
    "run",
    "pvp-500",
    "--for",
    "20s",
    "--seeds=1",
    "--lanes=udp,kcp",
];

/// 500 B and UDP's and IP's headers of 28 B, and what `udp` adds of its own, every 50 ms.
const LEAST_BYTES: f64 = 528.0 * 20.0 * 3600.0;

#[test]
fn bytes_of_a_players_hour_are_those_on_the_wire() {
    let document = Project::new().document(&RUN);
    let cost = &document["lanes"][0]["cost"];
    let [up, down] = ["up_bytes_per_hour", "down_bytes_per_hour"].map(|key| number(&cost[key]));
    assert!((LEAST_BYTES..LEAST_BYTES * 1.1).contains(&up), "{up}");
    // Echoes of what was lost never set out.
    assert!(down <= up && down > up * 0.8, "{down} of {up}");
    // Virtual time has no processor.
    assert!(cost["players_per_core"].is_null());
    let money = &cost["money"][0];
    assert!(money["source"].as_str().unwrap().starts_with("https://"));
    assert!(money["server_per_hour"].is_null());
    assert!(number(&money["per_hour"]) > 0.0);
}

#[test]
fn what_the_hour_of_each_seed_costs_is_on_average_what_the_lanes_does() {
    let several = [
        &RUN[..4],
        &["--seeds=5", "--lanes=kcp", "--prices", "ours.toml"],
    ]
    .concat();
    let document = Project::new().document(&several);
    let lane = &document["lanes"][0];
    let bytes = ["up_bytes_per_hour", "down_bytes_per_hour"].map(|key| number(&lane["cost"][key]));
    let bytes: f64 = bytes.iter().sum();
    let money = number(&lane["cost"]["money"][0]["per_hour"]);
    let seeds = lane["per_seed"].as_array().unwrap();
    let mean = |key: &str| {
        let each = seeds.iter().map(|seed| number(&seed["cost"][key]));
        each.sum::<f64>() / seeds.len() as f64
    };
    let near = |one: f64, other: f64| (one / other - 1.0).abs() < 1e-6;
    assert!(near(mean("bytes_per_hour"), bytes), "{bytes}");
    assert!(near(mean("money_per_hour"), money), "{money}");
    // Of draws of seeds none can be beyond all seeds.
    for (metric, key) in [
        ("bytes_per_player_hour", "bytes_per_hour"),
        ("money_per_player_hour", "money_per_hour"),
    ] {
        let of_seeds = || seeds.iter().map(|seed| number(&seed["cost"][key]));
        let (least, most) = (
            of_seeds().fold(f64::INFINITY, f64::min),
            of_seeds().fold(0.0, f64::max),
        );
        let draws = lane["resamples"]["values"][metric].as_array().unwrap();
        assert!(!draws.is_empty());
        for draw in draws {
            let draw = number(draw);
            assert!(
                least * 0.999_999 <= draw && draw <= most * 1.000_001,
                "{metric}: {draw}"
            );
        }
        assert!(least < most, "{metric}: all seeds cost the same");
    }
}

#[test]
fn ones_own_prices_stand_in_place_of_those_built_in_and_change_no_digest() {
    let project = Project::new();
    let bundled = |prices: &[&str], name: &str| {
        let document = project.document(&[&RUN[..], prices, &["--bundle", name]].concat());
        let output = project.lagometer(&["replay", name]);
        assert!(output.status.success(), "{}", stderr(&output));
        let digest = stderr(&output)
            .split_once("digest ")
            .map(|(_, digest)| digest.trim().to_owned());
        (document, digest)
    };
    let (ours, digest) = bundled(&["--prices", "ours.toml"], "ours.zip");
    let money = ours["lanes"][1]["cost"]["money"].as_array().unwrap();
    assert_eq!(money.len(), 1);
    assert_eq!(money[0]["prices"], "ours");
    let cost = &ours["lanes"][1]["cost"];
    let expected =
        number(&cost["down_bytes_per_hour"]) / 1e9 + number(&cost["up_bytes_per_hour"]) * 0.5 / 1e9;
    assert!((number(&money[0]["traffic_per_hour"]) - expected).abs() < 1e-6);
    assert!(digest.is_some());
    assert_eq!(bundled(&[], "built-in.zip").1, digest);
}

#[test]
fn over_sockets_players_a_core_are_measured_and_priced() {
    let project = Project::new();
    // What is lost is waited for, which is no play.
    let place = [
        "--testbed",
        "emu",
        "--emu-mode",
        "proxy",
        "--for",
        "3s",
        "--network",
        "loss-5",
    ];
    let arguments = [
        "run",
        "pvp-500",
        "--seeds=1",
        "--lanes=udp",
        "--prices",
        "ours.toml",
    ];
    let document = project.document(&[&arguments[..], &place].concat());
    let cost = &document["lanes"][0]["cost"];
    assert!(number(&cost["players_per_core"]) > 1.0, "{cost}");
    let up = number(&cost["up_bytes_per_hour"]);
    assert!((LEAST_BYTES..LEAST_BYTES * 1.1).contains(&up), "{up}");
    let money = &cost["money"][0];
    let parts = number(&money["traffic_per_hour"]) + number(&money["server_per_hour"]);
    assert!((number(&money["per_hour"]) - parts).abs() < 1e-9);
}

#[test]
fn budgets_may_name_bytes_and_money() {
    let project = Project::new();
    let budgeted = |bytes: &str, money: &str| {
        let text = format!(
            "name = \"e\"\nsummary = \"s\"\nnetwork = \"loss-5\"\nfor = \"20 s\"\nlanes = [\"udp\"]\n\
             [workload.paced-echo]\nsize = \"500 B\"\ninterval = \"50 ms\"\n\
             [[budget]]\nmetric = \"bytes per player-hour\"\nat_most = {bytes}\n\
             [[budget]]\nmetric = \"money per player-hour\"\nat_most = {money}\n"
        );
        project.write("e.toml", &text);
        let arguments = [
            "run",
            "e.toml",
            "--no-html",
            "--prices",
            "ours.toml",
            "--assert",
        ];
        project.lagometer(&arguments).status.code()
    };
    assert_eq!(budgeted("1e9", "1.0"), Some(0));
    assert_eq!(budgeted("1e6", "1.0"), Some(1));
    assert_eq!(budgeted("1e9", "0.00001"), Some(1));
}

#[test]
fn a_world_and_a_search_say_what_a_player_takes() {
    let project = Project::new();
    let world = [
        "world",
        "single",
        "--players",
        "4",
        "--for",
        "3s",
        "--testbed",
        "sim",
    ];
    let network = ["--network", "fiber", "--prices", "ours.toml"];
    let document = project.document(&[&world[..], &network].concat());
    let cost = &document["world"]["cost"];
    assert!(number(&cost["down_bytes_per_hour"]) > 0.0, "{cost}");
    assert_eq!(cost["money"][0]["prices"], "ours");
    let tune = [
        "tune", "--for", "20s", "--seeds", "5", "--trials", "8", "--lanes", "kcp",
    ];
    let document = project.document(&tune);
    let lane = &document["tune"]["lanes"][0];
    assert!(number(&lane["bytes_per_player_hour"]["before"]) > LEAST_BYTES);
    assert!(number(&lane["money_per_player_hour"]["before"]) > 0.0);
    assert_eq!(lane["currency"], "USD");
}

#[test]
fn the_table_and_the_page_name_prices_and_say_what_was_not_measured() {
    let project = Project::new();
    let output = project.lagometer(&[&RUN[..], &["--html", "page.html"]].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let table = table.split_whitespace().collect::<Vec<_>>().join(" ");
    let page = fs::read_to_string(project.0.path().join("page.html")).unwrap();
    for text in [table, page] {
        assert!(text.contains("fly-io of 20"), "{text}");
        assert!(text.contains("not measured here"));
    }
}

#[test]
fn price_lists_that_are_wrong_are_refused_in_one_line() {
    let project = Project::new();
    for (from, to, said) in [
        (
            "egress_per_gb = 1.0",
            "egress_per_gb = -1.0",
            "bad.toml:6: `egress_per_gb` is 0 to",
        ),
        ("2026-11-25", "today", "bad.toml:4: `dated` is a day"),
        ("currency = \"EUR\"\n", "", "bad.toml:"),
    ] {
        project.write("bad.toml", &PRICES.replace(from, to));
        let output =
            project.lagometer(&[&RUN[..], &["--no-html", "--prices", "bad.toml"]].concat());
        let said_on_stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said_on_stderr}");
        assert!(said_on_stderr.contains(said), "{said_on_stderr}");
        assert_eq!(said_on_stderr.lines().count(), 1, "{said_on_stderr}");
    }
    let twice = [
        "--no-html",
        "--prices",
        "ours.toml",
        "--prices",
        "ours.toml",
    ];
    let output = project.lagometer(&[&RUN[..], &twice].concat());
    assert_eq!(output.status.code(), Some(2));
    assert!(stderr(&output).contains("another price list is called `ours`"));
    let list = PRICES.replace("egress_per_gb = 1.0", "egress_per_gb = nan");
    let text = format!(
        "name = \"e\"\nsummary = \"s\"\nnetwork = \"loss-5\"\nlanes = [\"udp\"]\n\
         [workload.paced-echo]\nsize = \"500 B\"\ninterval = \"50 ms\"\n[[prices]]\n{list}"
    );
    project.write("e.toml", &text);
    let output = project.lagometer(&["run", "e.toml", "--no-html"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}
