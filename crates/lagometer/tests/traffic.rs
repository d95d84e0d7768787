//! Traffic that is no echo, as a user meets it: a capture played over transports, in
//! virtual time and over sockets, kept in a bundle, and refused where it cannot be played.

use std::fs;
use std::path::PathBuf;
use std::process::{Command, Output};

use serde_json::Value;

/// A folder with a capture and an experiment that plays it.
struct Project(tempfile::TempDir);

impl Project {
    fn new(workload: &str) -> Self {
        let project = Self(tempfile::tempdir().unwrap());
        project.write("match.pcap", capture(101));
        project.write("e.toml", experiment("for = \"10 s\"", workload));
        project
    }

    fn write(&self, name: &str, contents: impl AsRef<[u8]>) {
        fs::write(self.path(name), contents).unwrap();
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn lagometer(&self, arguments: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_lagometer"))
            .current_dir(self.0.path())
            .env("NO_COLOR", "1")
            .args(arguments)
            .output()
            .expect("the binary starts")
    }

    /// The document of a run that ends well, and what it said on standard error.
    fn run(&self, arguments: &[&str]) -> (Value, String) {
        let usual = ["run", "e.toml", "--seeds=1", "--no-html", "--json", "-"];
        let output = self.lagometer(&[&usual, arguments].concat());
        assert!(output.status.success(), "{}", stderr(&output));
        let document = serde_json::from_slice(&output.stdout).expect("a document");
        (document, stderr(&output))
    }
}

/// An experiment with these lines and this workload.
fn experiment(lines: &str, workload: &str) -> String {
    format!(
        "name = \"e\"\nsummary = \"what my game sent\"\nnetwork = \"loss-5\"\n{lines}\n\
         grace = \"1 s\"\nlanes = [\"udp\", \"enet\"]\n{workload}"
    )
}

const REPLAY: &str = "[workload.replay]\nfile = \"match.pcap\"\n";

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

/// A pcap file of UDP over IPv4: a second of 20 messages of 50 B up and 30 of 400 B down,
/// one of them of another conversation.
fn capture(link_type: u32) -> Vec<u8> {
    let udp = |at: u64, from: (u8, u16), to: (u8, u16), bytes: u16| {
        let mut packet = vec![0x45, 0];
        packet.extend((28 + bytes).to_be_bytes());
        packet.extend([0, 0, 0, 0, 64, 17, 0, 0, 10, 0, 0, from.0, 10, 0, 0, to.0]);
        for half in [from.1, to.1, 8 + bytes, 0] {
            packet.extend(half.to_be_bytes());
        }
        packet.resize(28 + usize::from(bytes), 7);
        (at, packet)
    };
    let (client, server) = ((2, 5000), (1, 7777));
    let mut packets: Vec<(u64, Vec<u8>)> = (0..20)
        .map(|number| udp(number * 50_000, client, server, 50))
        .chain((0..30).map(|number| udp(7_000 + number * 33_000, server, client, 400)))
        .collect();
    packets.push(udp(500_000, (2, 6000), (9, 53), 60));
    packets.sort();
    let mut file = Vec::new();
    for word in [0xa1b2_c3d4, 0x0004_0002, 0, 0, 65_535, link_type] {
        file.extend(u32::to_le_bytes(word));
    }
    for (at, packet) in packets {
        let bytes = packet.len() as u32;
        for word in [
            1_700_000_000 + (at / 1_000_000) as u32,
            (at % 1_000_000) as u32,
            bytes,
            bytes,
        ] {
            file.extend(word.to_le_bytes());
        }
        file.extend(packet);
    }
    file
}

fn lane<'a>(document: &'a Value, name: &str) -> &'a Value {
    let lanes = document["lanes"].as_array().unwrap();
    let found = lanes.iter().find(|lane| lane["lane"] == name);
    found.unwrap_or_else(|| panic!("no lane {name}"))
}

fn number(value: &Value) -> f64 {
    value
        .as_f64()
        .unwrap_or_else(|| panic!("{value} is no number"))
}

#[test]
fn a_capture_is_played_over_and_over_both_ways() {
    let project = Project::new(REPLAY);
    let (document, said) = project.run(&[]);
    assert!(
        said.contains("`match.pcap` has 20 messages up and 30 down in 0.984 s")
            && said.contains("client 10.0.0.2:5000, server 10.0.0.1:7777")
            && said.contains("1 packets of others are left out; it begins again every 0.984 s"),
        "{said}"
    );
    for name in ["udp", "enet"] {
        let traffic = &lane(&document, name)["traffic"];
        assert_eq!(traffic["delay"], "one-way");
        let (up, down) = (&traffic["up"], &traffic["down"]);
        // Ten whole times and a bit.
        assert!(number(&up["intended"]) >= 203.0 && number(&down["intended"]) >= 305.0);
        // One way of the network's, not there and back.
        let p50 = number(&down["delay_ms"]["p50"]);
        assert!((10.0..80.0).contains(&p50), "{p50}");
        let sent = number(&down["intended"]) * 400.0 * 8.0 / 10.0 / 1e3;
        let came = number(&down["kbit_per_s"]);
        assert!(came <= sent && came > sent * 0.8, "{came} of {sent}");
    }
    // Sent once, a twentieth is lost; ENet's reliable channel is not asked for either.
    let lost = number(&lane(&document, "udp")["messages"]["lost"]);
    assert!((5.0..60.0).contains(&lost), "{lost}");
}

#[test]
fn what_is_asked_to_arrive_does_and_the_end_of_the_recording_is_the_end() {
    let workload = format!("{REPLAY}delivery = \"reliable\"\nat_end = \"stop\"\n");
    let project = Project::new(&workload);
    let (document, said) = project.run(&[]);
    assert!(!said.contains("begins again"), "{said}");
    let enet = lane(&document, "enet");
    assert_eq!(enet["messages"]["intended"], 50);
    assert_eq!(enet["messages"]["lost"], 0);
    assert_eq!(enet["traffic"]["down"]["delivered"], 30);
    // The last of 50 messages is sent after 964 ms: 964 ms * 50 / 49.
    assert_eq!(document["experiment"]["for"], "983.673469 ms");
}

#[test]
fn the_same_seed_finds_the_same_and_a_log_of_the_capture_too() {
    let project = Project::new(REPLAY);
    let (first, _) = project.run(&["--seed", "4"]);
    let (again, _) = project.run(&["--seed", "4", "--threads", "2"]);
    assert_eq!(first["lanes"], again["lanes"]);
    let output = project.lagometer(&["import", "match.pcap", "--traffic", "match.csv"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let log = fs::read_to_string(project.path("match.csv")).unwrap();
    assert!(
        log.starts_with("seconds,direction,bytes\n0,up,50\n0.007,down,400\n"),
        "{log}"
    );
    let workload = REPLAY.replace("match.pcap", "match.csv");
    project.write("e.toml", experiment("for = \"10 s\"", &workload));
    let (of_log, _) = project.run(&["--seed", "4"]);
    assert_eq!(first["lanes"], of_log["lanes"]);
}

#[test]
fn a_bundle_has_the_messages_and_needs_no_capture() {
    let project = Project::new(REPLAY);
    let (document, _) = project.run(&["--bundle", "run.zip"]);
    fs::remove_file(project.path("match.pcap")).unwrap();
    fs::remove_file(project.path("e.toml")).unwrap();
    let output = project.lagometer(&["replay", "run.zip", "--json", "-"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let again: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(document["lanes"], again["lanes"]);
}

#[test]
fn over_sockets_it_is_the_same_messages() {
    let project = Project::new(REPLAY);
    for testbed in [
        &["--testbed", "emu", "--emu-mode", "proxy"][..],
        &["--testbed", "net"],
    ] {
        let arguments = [testbed, &["--for", "2s", "--lanes", "udp,kcp"]].concat();
        let (document, _) = project.run(&arguments);
        for name in ["udp", "kcp"] {
            let traffic = &lane(&document, name)["traffic"];
            assert_eq!(traffic["up"]["intended"], 41, "{testbed:?}: {name}");
            assert!(
                number(&traffic["up"]["delivered"]) > 20.0,
                "{testbed:?}: {name}"
            );
            assert!(
                number(&traffic["down"]["delivered"]) > 30.0,
                "{testbed:?}: {name}"
            );
            assert_eq!(lane(&document, name)["messages"]["intended"], 102);
        }
    }
}

#[test]
fn the_table_and_the_page_say_what_delays_are_of() {
    let project = Project::new(REPLAY);
    let output = project.lagometer(&["run", "e.toml", "--html", "page.html"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let table = String::from_utf8_lossy(&output.stdout).into_owned();
    let page = fs::read_to_string(project.path("page.html")).unwrap();
    let table = table.split_whitespace().collect::<Vec<_>>().join(" ");
    // On narrow screens each figure stands below its name, in as many columns as there are.
    for markup in [
        "--figures:8",
        "data-of=\"on time %\"",
        "data-of=\"up MB/h\"",
    ] {
        assert!(page.contains(markup), "{markup}");
    }
    for text in [table, page] {
        assert!(text.contains("elays of the lanes are one way"), "{text}");
        assert!(text.contains("within 100 ms"));
    }
}

#[test]
fn over_sockets_streams_and_requests_are_played_too() {
    for (workload, least) in [(STREAM, 80.0), (REQUESTS, 5.0)] {
        let project = Project::new(workload);
        for testbed in [
            &["--testbed", "emu", "--emu-mode", "proxy"][..],
            &["--testbed", "net"],
        ] {
            let (document, _) =
                project.run(&[testbed, &["--for", "2s", "--lanes", "kcp"]].concat());
            let down = &lane(&document, "kcp")["traffic"]["down"];
            assert!(number(&down["delivered"]) >= least, "{testbed:?}: {down}");
        }
    }
}

const STREAM: &str = "[workload.stream]\nrate = \"160 kbit/s\"\nsize = \"200 B\"\n\
                      on = \"1 s\"\noff = \"1 s\"\n";

#[test]
fn a_stream_comes_down_on_and_off() {
    let project = Project::new(STREAM);
    let (document, said) = project.run(&[]);
    assert!(!said.contains("match.pcap"), "{said}");
    for name in ["udp", "enet"] {
        let traffic = &lane(&document, name)["traffic"];
        assert!(traffic["up"].is_null());
        let down = &traffic["down"];
        assert_eq!(down["intended"], 500);
        let rate = number(&down["kbit_per_s"]);
        assert!((60.0..=80.0).contains(&rate), "{rate}");
        // What it is off is no freeze.
        assert!(number(&down["frozen_s_per_min"]) < 10.0);
    }
    let steady = STREAM.replace("on = \"1 s\"\noff = \"1 s\"\n", "direction = \"both\"\n");
    project.write("e.toml", experiment("for = \"10 s\"", &steady));
    let (document, _) = project.run(&["--lanes", "tcp-cubic"]);
    let traffic = &lane(&document, "tcp-cubic")["traffic"];
    for way in ["up", "down"] {
        assert_eq!(traffic[way]["intended"], 1000);
        assert_eq!(traffic[way]["delivered"], 1000);
    }
}

const REQUESTS: &str = "[workload.request-response]\nrequest = \"200 B\"\nresponse = \"4 KB\"\n\
                        think = \"5 ms\"\npause = \"100 ms\"\n";

#[test]
fn requests_are_answered_and_the_time_to_an_answer_is_the_delay() {
    let project = Project::new(REQUESTS);
    let (document, _) = project.run(&["--lanes", "tcp-cubic,enet,udp"]);
    for name in ["tcp-cubic", "enet", "udp"] {
        let found = lane(&document, name);
        let traffic = &found["traffic"];
        assert_eq!(traffic["delay"], "answer");
        assert_eq!(found["messages"]["intended"], traffic["down"]["intended"]);
        let (answer, request) = (&found["rtt_ms"]["p50"], &traffic["up"]["delay_ms"]["p50"]);
        // There and back, and 5 ms in between.
        assert!(number(answer) > number(request) + 5.0 + 5.0, "{name}");
    }
    assert_eq!(lane(&document, "tcp-cubic")["messages"]["lost"], 0);
    // Four pieces and a request, each lost with 5 %: a fifth, over datagrams alone.
    let udp = lane(&document, "udp");
    let lost = number(&udp["messages"]["lost"]) / number(&udp["messages"]["intended"]);
    assert!((0.05..0.5).contains(&lost), "{lost}");
}

#[test]
fn budgets_name_what_comes() {
    let budget = "[[budget]]\nmetric = \"throughput down\"\nat_least = 70\n";
    let project = Project::new(&format!("{STREAM}{budget}"));
    let (document, _) = project.run(&["--lanes", "enet"]);
    assert_eq!(
        document["budgets"][0]["metric"],
        "throughput_down_kbit_per_s"
    );
    assert_eq!(document["budgets"][0]["ok"], true);
    let missed = format!("{STREAM}{}", budget.replace("70", "90"));
    project.write("e.toml", experiment("", &missed));
    let output = project.lagometer(&["run", "e.toml", "--no-html", "--for", "10s", "--assert"]);
    assert_eq!(output.status.code(), Some(1), "{}", stderr(&output));
}

impl Project {
    /// Checks that a run ends with exit code 2 and one line, which says this, with a file of
    /// this name and these contents beside the experiment.
    fn refuses(&self, (name, contents): (&str, &[u8]), workload: &str, said: &str) {
        self.write("match.pcap", capture(101));
        self.write(name, contents);
        self.write("e.toml", experiment("for = \"20 h\"", workload));
        let output = self.lagometer(&["run", "e.toml", "--no-html"]);
        let stderr = stderr(&output);
        assert_eq!(output.status.code(), Some(2), "{said}: {stderr}");
        assert!(stderr.contains(said), "{said}: {stderr}");
        assert!(stderr.starts_with("lagometer: e.toml:"), "{stderr}");
        assert_eq!(stderr.lines().count(), 1, "{stderr}");
    }
}

#[test]
fn captures_and_logs_that_cannot_be_played_are_refused_in_one_line() {
    let project = Project::new(REPLAY);
    let whole = capture(101);
    let mut backwards = whole.clone();
    // The seconds of the last packet, which carries 400 B down.
    let last = whole.len() - 16 - 28 - 400;
    backwards[last..last + 4].copy_from_slice(&1_600_000_000_u32.to_le_bytes());
    let captures: [(&[u8], &str); 4] = [
        (
            &whole[..whole.len() - 9],
            "match.pcap was cut short within packet 51",
        ),
        (&capture(105), "match.pcap has packets of link type 105"),
        (b"", "match.pcap has no message"),
        (&backwards, "match.pcap packet 51 is"),
    ];
    for (contents, said) in captures {
        project.refuses(("match.pcap", contents), REPLAY, said);
    }
    let log = REPLAY.replace("match.pcap", "t.csv");
    let logs: [(&[u8], &str); 4] = [
        (
            b"0,up,9\n0.4,up,9\n0.3,up,9\n",
            "t.csv line 3: 0.3 s is before the 0.4 s",
        ),
        (
            b"0,up,9\n0.1,up,99999\n",
            "t.csv line 2: `99999` are no bytes",
        ),
        (
            b"\x00\xff\x00",
            "t.csv line 1: is neither text nor a capture",
        ),
        (b"0,up,9\n0.0000001,up,9\n", "messages a lane are too many"),
    ];
    for (contents, said) in logs {
        project.refuses(("t.csv", contents), &log, said);
    }
    let output = project.lagometer(&["import", "match.pcap", "e.toml", "--traffic", "x.csv"]);
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
}

#[cfg(unix)]
#[test]
fn a_recording_in_a_pipe_is_refused_and_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let pipe = folder.path().join("match.pcapng");
    let made = Command::new("mkfifo").arg(&pipe).status().unwrap();
    assert!(made.success());
    let text = experiment("", "[workload.replay]\nfile = \"match.pcapng\"\n");
    let file = folder.path().join("x.toml");
    fs::write(&file, text).unwrap();
    let output = Command::new(env!("CARGO_BIN_EXE_lagometer"))
        .args(["run", "--no-html"])
        .arg(&file)
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", stderr(&output));
    let expected = "match.pcapng is no regular file";
    assert!(stderr(&output).contains(expected), "{}", stderr(&output));
}

#[test]
fn settings_that_contradict_each_other_are_refused_in_one_line() {
    let project = Project::new(REPLAY);
    let with = |line: &str| format!("{REPLAY}{line}\n");
    for (workload, said) in [
        (
            REPLAY.replace("match.pcap", "gone.csv"),
            "gone.csv cannot be read",
        ),
        (
            with("client = \"10.9.9.9\""),
            "has no UDP between 10.9.9.9 and any",
        ),
        (with("client = \"my-laptop\""), "`my-laptop` is no address"),
        (
            with("within = \"0 ms\""),
            "`within` is 1 ms to 10 min, not 0",
        ),
        (with("at_end = \"again\""), "unknown variant `again`"),
        (
            STREAM.replace("off", "tick"),
            "say both `on` and `off`, or neither",
        ),
        (STREAM.replace("200 B", "1 B"), "a message has 8 B"),
        (REQUESTS.replace("pause", "timeout"), "say either a `pause`"),
        (REQUESTS.replace("4 KB", "4 MB"), "`response` is 21 B to"),
    ] {
        project.refuses(("x", b""), &workload, said);
    }
}

#[test]
fn a_log_of_2015_is_shown_with_what_it_does_not_hold() {
    let project = Project::new(REPLAY);
    let log = "40 41 42 43 44 45 46 47 48 49 max: 49\n".repeat(10);
    project.write("old.log", log);
    let output = project.lagometer(&["import", "old.log"]);
    assert!(output.status.success(), "{}", stderr(&output));
    let said = String::from_utf8_lossy(&output.stdout);
    let warning = "Warning: the logs show no loss, nor when a message was sent";
    assert!(said.contains(warning), "{said}");
}
