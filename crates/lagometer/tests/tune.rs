//! `lagometer tune` as a user meets it: what it finds, that it goes on, and that
//! threads change nothing.

use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use lagometer_lab::Experiment;
use lagometer_transport::PresetKind;
use serde_json::Value;

fn lagometer() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lagometer"));
    command.env_remove("COLUMNS").env("NO_COLOR", "1");
    command
}

/// A search of seconds.
const TINY: [(&str, &str); 4] = [
    ("--for", "20s"),
    ("--seeds", "5"),
    ("--trials", "16"),
    ("--lanes", "kcp,renet"),
];

fn tune(arguments: &[&str]) -> Output {
    let mut command = lagometer();
    command.args(["tune", "--no-html"]).args(arguments);
    for (flag, value) in TINY {
        if !arguments.contains(&flag) {
            command.args([flag, value]);
        }
    }
    command.output().expect("the binary starts")
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// The document of a search, without when, where and how fast it ran.
fn findings(arguments: &[&str]) -> Value {
    let output = tune(&[&["--json", "-"], arguments].concat());
    assert!(output.status.success(), "{}", stderr(&output));
    let mut document: Value =
        serde_json::from_slice(&output.stdout).expect("standard output is the document alone");
    for volatile in ["started", "wall_s", "host"] {
        document.as_object_mut().unwrap().remove(volatile);
    }
    document
}

#[test]
fn the_same_seed_finds_the_same_on_one_thread_and_on_two() {
    let one = findings(&["--jobs", "1"]);
    assert_eq!(one, findings(&["--jobs", "2"]));
    assert_ne!(one["tune"], findings(&["--seed", "9"])["tune"]);
    assert_eq!(one["command"], "tune");
    let seeds = |key: &str| -> Vec<u64> {
        let seeds = one["tune"][key].as_array().unwrap();
        seeds.iter().map(|seed| seed.as_u64().unwrap()).collect()
    };
    assert_eq!(seeds("search_seeds"), [1, 2, 3, 4, 5]);
    assert_eq!(seeds("held_out_seeds"), [6, 7, 8, 9, 10]);
}

#[test]
fn a_search_that_was_cut_short_goes_on_and_finds_the_same() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.json");
    let state = state.to_str().unwrap();
    let whole = findings(&["--state", state]);
    assert_eq!(whole, findings(&[]), "a state changes nothing");
    // What a search that was killed half-way has kept: half of its plays.
    let mut kept: Value = serde_json::from_str(&fs::read_to_string(state).unwrap()).unwrap();
    let plays = kept["plays"].as_object_mut().unwrap();
    let all = plays.len();
    let later: Vec<String> = plays.keys().skip(all / 2).cloned().collect();
    for key in &later {
        plays.remove(key);
    }
    fs::write(state, kept.to_string()).unwrap();
    let output = tune(&["--state", state, "--json", "-"]);
    let said = stderr(&output);
    assert!(
        said.contains(&format!("{} plays are known", all / 2)),
        "{said}"
    );
    fs::write(state, kept.to_string()).unwrap();
    assert_eq!(whole, findings(&["--state", state]));
    // And one that is whole plays nothing but what judges.
    assert_eq!(whole, findings(&["--state", state]));
}

#[test]
fn what_was_found_is_shown_though_it_cannot_be_kept() {
    let folder = tempfile::tempdir().unwrap();
    let place = folder.path().join("place");
    fs::create_dir(&place).unwrap();
    let state = place.join("state.json");
    let mut command = lagometer();
    command.args(["tune", "--no-html", "--json", "-"]);
    command.args(TINY.iter().flat_map(|(flag, value)| [flag, value]));
    command.arg("--state").arg(&state);
    let mut child = command
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It writes an empty state before it plays; then its folder goes.
    while !state.exists() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(1));
    }
    fs::rename(&place, folder.path().join("elsewhere")).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("state.json"), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).expect("the whole document");
    assert!(document["tune"]["lanes"].is_array(), "{document}");
}

#[cfg(unix)]
#[test]
fn a_search_that_is_interrupted_keeps_what_it_played_and_says_how_to_go_on() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("state.json");
    let mut child = lagometer()
        .args([
            "tune",
            "--trials",
            "4000",
            "--no-html",
            "--lanes",
            "kcp,enet,renet",
        ])
        .arg("--state")
        .arg(&state)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    // It writes an empty state before it plays, and something into it within seconds.
    let has_played = || {
        let text = fs::read_to_string(&state).unwrap_or_default();
        let kept: Value = serde_json::from_str(&text).unwrap_or_default();
        kept["plays"]
            .as_object()
            .is_some_and(|plays| !plays.is_empty())
    };
    while !has_played() {
        assert!(child.try_wait().unwrap().is_none(), "it ended by itself");
        std::thread::sleep(Duration::from_millis(20));
    }
    let id = rustix::process::Pid::from_child(&child);
    rustix::process::kill_process(id, rustix::process::Signal::INT).unwrap();
    let output = child.wait_with_output().unwrap();
    let said = stderr(&output);
    assert_eq!(output.status.code(), Some(130), "{said}");
    assert!(said.contains("the same command goes on from"), "{said}");
    assert!(output.stdout.is_empty());
    assert!(has_played(), "what was played is kept");
}

#[test]
fn what_is_found_is_reported_drawn_and_can_be_played() {
    let folder = tempfile::tempdir().unwrap();
    let output = lagometer()
        .current_dir(folder.path())
        .args(["tune", "--for", "20s", "--seeds", "5", "--trials", "16"])
        .args([
            "--lanes",
            "kcp,renet",
            "--network",
            "loss-5=3,cable,4g-moving",
        ])
        .args([
            "--hold-out",
            "4g-moving",
            "--budget",
            "overhead=4",
            "--goal",
            "p99",
        ])
        .args(["--toml", "found.toml", "--json", "found.json"])
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8(output.stdout).unwrap();
    // However its lines are broken.
    let words = table.split_whitespace().collect::<Vec<_>>().join(" ");
    for said in [
        "kcp",
        "renet",
        "loss-5 (75 %)",
        "4g-moving (held out)",
        "never played",
    ] {
        assert!(words.contains(said), "{said} is not in\n{table}");
    }
    let page = fs::read_to_string(folder.path().join("lagometer-tune-pvp-500.html")).unwrap();
    for said in ["What was found", "Delay against bytes", "What matters"] {
        assert!(page.contains(said), "{said}");
    }
    let document = fs::read_to_string(folder.path().join("found.json")).unwrap();
    fits_the_schema(&serde_json::from_str(&document).unwrap());
    let shown = lagometer()
        .current_dir(folder.path())
        .args(["report", "found.json"])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8(shown.stdout).unwrap(), table);
    let lanes = fs::read_to_string(folder.path().join("found.toml")).unwrap();
    let experiment = format!(
        "name = \"x\"\nsummary = \"x\"\nnetwork = \"cable\"\nlanes = [\"udp\"]\n\
         [workload.paced-echo]\nsize = \"100 B\"\ninterval = \"50 ms\"\n{lanes}"
    );
    Experiment::parse("found.toml", &experiment).unwrap_or_else(|why| panic!("{why}\n{lanes}"));
}

#[test]
fn networks_that_each_search_left_out_are_reported() {
    let document = findings(&["--network", "loss-5,cable", "--hold-out", "each"]);
    for lane in document["tune"]["lanes"].as_array().unwrap() {
        let transfer = lane["transfer"].as_array().unwrap();
        let networks: Vec<&str> = transfer
            .iter()
            .map(|each| each["network"].as_str().unwrap())
            .collect();
        assert_eq!(networks, ["loss-5", "cable"]);
        assert!(
            transfer
                .iter()
                .all(|each| each["goal"]["before"].is_number())
        );
    }
    assert!(document["tune"]["networks"][0].get("held_out").is_none());
}

fn fits_the_schema(document: &Value) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/lagometer-2.json");
    let schema: Value = serde_json::from_str(&fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let errors: Vec<String> = validator
        .iter_errors(document)
        .map(|error| error.to_string())
        .collect();
    assert!(errors.is_empty(), "{errors:?}");
}

/// On a network that loses, where what is sent again can be spared.
const CHEAP: [&str; 6] = [
    "--network",
    "loss-5",
    "--budget",
    "within 150 ms=50%",
    "--lanes",
    "kcp",
];

#[test]
fn the_least_bytes_and_money_of_a_players_hour_are_found_and_limited() {
    let goal = |figure: &str| findings(&[&CHEAP[..], &["--goal", figure]].concat());
    let (bytes, money) = (goal("bytes per player hour"), goal("money per player hour"));
    for (found, figure) in [
        (&bytes, "bytes_per_player_hour"),
        (&money, "money_per_player_hour"),
    ] {
        let lane = &found["tune"]["lanes"][0];
        assert_eq!(lane["finding"], "better", "{figure}");
        let of = |when: &str| lane["goal"][when].as_f64().unwrap();
        assert!(of("found") < of("before"), "{figure}");
        assert!(of("found_searched") < of("before_searched"), "{figure}");
        assert!(lane["goal"]["difference_interval"][1].as_f64().unwrap() < 0.0);
        // The same figure, reckoned from the lane's own cost.
        let held_out = lane[figure]["found"].as_f64().unwrap();
        assert!((of("found") / held_out - 1.0).abs() < 1e-9, "{figure}");
    }
    // The cheapest of all are too dear for a limit below them, and it is said.
    let cheapest = bytes["tune"]["lanes"][0]["goal"]["found"].as_f64().unwrap();
    let kept = |times: f64| {
        let limit = format!("bytes per player hour={}", (cheapest * times).round());
        let limited = findings(&[&CHEAP[..], &["--budget", &limit]].concat());
        limited["tune"]["lanes"][0]["limits_kept"].clone()
    };
    assert_eq!(kept(0.8), false);
    // Of twenty seconds nobody knows that a share in time is kept.
    assert_eq!(kept(2.0), Value::Null);
}

#[test]
fn an_experiments_budgets_on_what_is_sent_are_limits_too() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cheap.toml");
    let written = |budgets: &str| {
        let head = "name = \"cheap\"\nsummary = \"s\"\nnetwork = \"loss-5\"\nfor = \"20 s\"\n\
                    lanes = [\"kcp\"]\n[workload.paced-echo]\nsize = \"200 B\"\n\
                    interval = \"50 ms\"\n";
        fs::write(&path, format!("{head}{budgets}")).unwrap();
    };
    let output = |experiment: &str| {
        let mut command = lagometer();
        command.args([
            "tune",
            experiment,
            "--no-html",
            "--json",
            "-",
            "--lanes",
            "kcp",
        ]);
        command.args(["--seeds", "5", "--trials", "4"]);
        command.output().expect("the binary starts")
    };
    written(
        "[[budget]]\nmetric = \"overhead\"\nat_most = 3\n\
         [[budget]]\nmetric = \"bytes per player hour\"\nat_most = 90000000\n\
         [[budget]]\nmetric = \"longest freeze\"\nat_most = \"1 s\"\n",
    );
    let found = output(path.to_str().unwrap());
    assert!(found.status.success(), "{}", stderr(&found));
    let document: Value = serde_json::from_slice(&found.stdout).unwrap();
    assert_eq!(
        document["tune"]["limits"],
        serde_json::json!([
            "overhead at most 3",
            "bytes_per_player_hour at most 90000000"
        ])
    );
    let said = stderr(&found);
    assert!(
        said.contains("the budget on longest_freeze_ms is no limit"),
        "{said}"
    );
    assert!(!said.contains("the budget on overhead"), "{said}");
}

#[test]
fn what_cannot_be_searched_is_refused_in_one_line_that_says_how_to_mend_it() {
    let folder = tempfile::tempdir().unwrap();
    let state = folder.path().join("other.json");
    fs::write(&state, "not a state").unwrap();
    let state = state.to_str().unwrap();
    for (arguments, expected) in [
        (
            &["--goal", "max"][..],
            "cannot be searched by: name a share",
        ),
        (&["--goal", "speed"], "--goal: "),
        (&["--budget", "overhead"], "expected a figure and its limit"),
        (&["--budget", "overhead=0.2"], "is above 1"),
        (&["--budget", "p99=5"], "--budget `p99=5`: "),
        (
            &["--budget", "p50=1ms"],
            "the calm round trip of `busy-wifi` is",
        ),
        (
            &["--budget", "p99=200ms", "--budget", "p99=1s"],
            "two limits on",
        ),
        (&["--network", "cable=0"], "a weight is a number above 0"),
        (&["--network", "cable,cable"], "names `cable` twice"),
        (&["--network", "cabel"], "did you mean `cable`?"),
        (&["--hold-out", "cable"], "needs other networks"),
        (
            &["--network", "cable,fiber", "--hold-out", "fibre"],
            "did you mean `fiber`?",
        ),
        (&["--trials", "7"], "ask for at least 8"),
        (&["--for", "100ms"], "each of 5 seeds"),
        (&["--state", state], "it is no state of a search"),
        (&["--kernel", "6.1"], "--kernel is for `--testbed kernel`"),
        (
            &["--testbed", "kernel", "--nats", "nats://127.0.0.1"],
            "--nats is for `--testbed sim`",
        ),
        (&["--lanes", "udt-game"], "`--testbed kernel` searches it"),
    ] {
        let output = tune(arguments);
        let said = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{arguments:?}: {said}");
        assert!(said.contains(expected), "{arguments:?}: {said}");
        assert_eq!(said.trim_end().lines().count(), 1, "{arguments:?}: {said}");
    }
    let udp = lagometer()
        .args(["tune", "--lanes", "udp"])
        .output()
        .unwrap();
    assert_eq!(udp.status.code(), Some(2));
    assert!(stderr(&udp).contains("no settings that are worth searching"));
}

/// The file of the tuned presets of a crate.
fn tuned_presets_of(name: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(format!("../{name}/tuned.toml"));
    fs::read_to_string(path).unwrap()
}

/// Those of endpoints.
fn tuned_presets() -> String {
    tuned_presets_of("transport")
}

/// The command that made the tuned presets, as their file has it at its head.
fn command_of(tuned: &str) -> Vec<&str> {
    let lines = tuned.lines().filter_map(|line| line.strip_prefix("#     "));
    let words = lines.flat_map(|line| line.trim_end_matches('\\').split_whitespace());
    words.collect()
}

/// What stands behind a flag.
fn value<'a>(words: &[&'a str], flag: &str) -> &'a str {
    let at = words.iter().position(|it| *it == flag).unwrap();
    words[at + 1]
}

/// Trials of each lane that a command has.
fn trials_of_a_lane(words: &[&str]) -> usize {
    let lanes = value(words, "--lanes").split(',').count();
    value(words, "--trials").parse::<usize>().unwrap() / lanes
}

#[test]
fn every_transport_was_searched_with_as_many_trials_on_the_same_networks() {
    let [of_endpoints, of_sockets] = ["transport", "socket"].map(tuned_presets_of);
    let [in_sim, on_kernel] = [&of_endpoints, &of_sockets].map(|text| command_of(text));
    assert_eq!(value(&on_kernel, "--testbed"), "kernel");
    for flag in ["--network", "--seed"] {
        assert_eq!(value(&in_sim, flag), value(&on_kernel, flag));
    }
    assert_eq!(trials_of_a_lane(&in_sim), trials_of_a_lane(&on_kernel));
    assert_eq!(in_sim[2], on_kernel[2], "the same experiment");
    let searched = [value(&in_sim, "--lanes"), value(&on_kernel, "--lanes")].join(",");
    for lane in ["udt-game", "srt-game", "kcp-game", "tcp-game"] {
        assert!(searched.split(',').any(|it| it == lane), "{lane}");
    }
}

/// Settings that were found on a network are at home there.
#[test]
fn no_experiment_judges_the_tuned_presets_on_a_network_or_a_seed_of_their_search() {
    let tuned = tuned_presets();
    let words = command_of(&tuned);
    let searched: Vec<&str> = value(&words, "--network").split(',').collect();
    let mut judging = 0;
    for name in lagometer_lab::catalogue::names() {
        let text = lagometer_lab::catalogue::text(name).unwrap();
        let experiment = Experiment::parse(name, text).unwrap();
        if experiment.presets.contains(&PresetKind::Tuned) {
            judging += 1;
            let network = experiment.network.as_str();
            assert!(!searched.contains(&network), "{name} on {network}");
        }
    }
    assert!(judging > 0, "an experiment plays them");
    // Runs count their seeds from 1.
    let first: u64 = value(&words, "--seed").parse().unwrap();
    assert!(first > 1000, "{first}");
}

/// One transport of them, for each is searched by itself: its share of the trials finds
/// what is written down. Searches that change nothing are not written.
#[test]
fn the_tuned_presets_are_found_again_by_the_command_at_the_head_of_their_file() {
    const LANE: &str = "udp-spaced-game";
    let tuned = tuned_presets();
    let words = command_of(&tuned);
    assert_eq!(words[..2], ["lagometer", "tune"], "{words:?}");
    assert!(value(&words, "--lanes").split(',').any(|lane| lane == LANE));
    let trials = trials_of_a_lane(&words);
    let folder = tempfile::tempdir().unwrap();
    let found = folder.path().join("found.toml");
    let mut arguments: Vec<String> = words[1..].iter().map(|&it| it.to_owned()).collect();
    for (flag, value) in [
        ("--lanes", LANE.to_owned()),
        ("--trials", trials.to_string()),
        ("--toml", found.to_str().unwrap().to_owned()),
    ] {
        let at = arguments.iter().position(|it| it == flag).unwrap();
        arguments[at + 1] = value;
    }
    let output = lagometer()
        .args(&arguments)
        .arg("--no-html")
        .output()
        .unwrap();
    assert!(output.status.success(), "{}", stderr(&output));
    let found = fs::read_to_string(found).unwrap();
    let of_lane = |text: &str| {
        // What is said of a lane stands above it.
        let without_notes = text.lines().filter(|line| !line.starts_with('#'));
        let text = without_notes.collect::<Vec<_>>().join("\n");
        let lanes = text.split("[[lane]]");
        let named = lanes.filter(|lane| lane.contains(&format!("name = \"{LANE}-tuned\"")));
        named.map(|lane| lane.trim().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(of_lane(&found), of_lane(&tuned));
}
