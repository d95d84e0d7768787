//! The instruments where the path or the remote end is not as one would have it:
//! packets are lost or cut, the remote end is slow, shared, or of another version.

mod behind_a_link;
mod served;

use std::fs;
use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use behind_a_link::behind_a_link;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use served::{SECRET, Served};

fn lagometer(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_lagometer"));
    command
        .args(arguments)
        .env("LAGOMETER_SECRET", SECRET)
        .env("NO_COLOR", "1");
    command
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn document(bytes: &[u8]) -> Value {
    serde_json::from_slice(bytes).unwrap_or_else(|why| panic!("{why}: {}", text(bytes)))
}

/// A table without its line breaks.
fn prose(bytes: &[u8]) -> String {
    text(bytes).split_whitespace().collect::<Vec<_>>().join(" ")
}

fn count(value: &Value) -> u64 {
    let count = value.as_u64();
    count.unwrap_or_else(|| panic!("{value} is no count"))
}

/// Runs `words` of the binary one after another in one host, towards a remote end
/// in another, behind a link as `network` describes it. Each has its document
/// as `N.json` and its table as `N.txt` in `folder`. Returns false where the
/// system permits no namespaces.
fn measure_behind_a_link(folder: &Path, network: &str, words: &[&str]) -> bool {
    let binary = env!("CARGO_BIN_EXE_lagometer");
    let lines = words.iter().enumerate().map(|(index, words)| {
        format!("{binary} {words} --to $LAGOMETER_SERVER --json {index}.json > {index}.txt")
    });
    let script = lines.collect::<Vec<_>>().join(" &&\n");
    let Some(output) = behind_a_link(folder, network, &script) else {
        return false;
    };
    assert!(output.status.success(), "{}", text(&output.stderr));
    true
}

fn written(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).unwrap_or_else(|why| panic!("{name}: {why}"))
}

#[test]
fn loss_on_the_path_is_reported_by_every_instrument() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let network = "summary = \"a fifth is lost on the way there\"\n\
                   [both]\ndelay = \"1 ms\"\n[up]\nloss = \"20 %\"\n";
    // Enough messages that not all of them can have had luck.
    let words = [
        "echo --for 500ms --outstanding 16 --timeout 200ms --pin none",
        "speed --lanes udp,kcp --for 500ms --chunk 1000B --every 2ms",
        "sweep --tests udp_bw --sizes 1000 --for 50ms --pin none",
    ];
    if !measure_behind_a_link(folder, network, &words) {
        return;
    }
    let echo = &document(&written(folder, "0.json"))["echo"]["messages"];
    let [sent, echoed, lost] = ["sent", "echoed", "lost"].map(|key| count(&echo[key]));
    assert!(echoed > 0 && lost * 20 > sent, "{echo}");
    assert!(prose(&written(folder, "0.txt")).contains("% of messages were lost"));

    let speed = document(&written(folder, "1.json"));
    let [udp, kcp] = [&speed["lanes"][0], &speed["lanes"][1]];
    let share = udp["loss_pct"].as_f64().unwrap();
    assert!((5.0..50.0).contains(&share), "{udp:#}");
    assert_eq!(kcp["sent_bytes"], kcp["received_bytes"], "{kcp:#}");
    assert!(prose(&written(folder, "1.txt")).contains("udp loses"));

    let cell = &document(&written(folder, "2.json"))["sweep"]["cells"][0];
    let [sent, received, lost] = ["sent", "received", "lost"].map(|key| count(&cell[key]));
    assert!(lost * 20 > sent && sent == received + lost, "{cell:#}");
    assert!(prose(&written(folder, "2.txt")).contains("% lost"));
}

#[test]
fn sizes_around_the_mtu_arrive_whole() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    let network = "summary = \"nothing is lost\"\n[both]\ndelay = \"100 us\"\n";
    // With headers of 20 and 8 bytes, 1500 bytes of MTU hold 1472.
    let words = ["sweep --tests tcp_bw,udp_lat,udp_bw,udp_bw_batched \
                  --sizes 1471,1472,1473 --for 20ms --pin none"];
    if !measure_behind_a_link(folder, network, &words) {
        return;
    }
    let sweep = &document(&written(folder, "0.json"))["sweep"];
    let cells = sweep["cells"].as_array().unwrap();
    assert_eq!(cells.len(), 12);
    for cell in cells {
        assert!(cell["failure"].is_null(), "{cell:#}");
        assert!(count(&cell["received"]) > 0, "{cell:#}");
        assert_eq!(count(&cell["corrupt"]), 0, "{cell:#}");
    }
}

#[test]
fn a_remote_end_of_another_version_is_refused_in_one_line() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for mut stream in listener.incoming().flatten() {
            let mut hello = [0; 10];
            let _ = stream.read_exact(&mut hello);
            // The same protocol, of version 99.
            let mut answer = [0; 43];
            answer[..11].copy_from_slice(b"LAGOFAR\n\x00\x63\x01");
            let _ = stream.write_all(&answer);
            // Until the local end has read it, the connection must stand.
            let _ = stream.read_to_end(&mut Vec::new());
        }
    });
    for command in ["echo", "sweep", "speed"] {
        let output = lagometer(&[command, "--to", &address]).output().unwrap();
        let said = text(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{command}: {said}");
        assert_eq!(said.lines().count(), 1, "{command}: {said}");
        assert!(said.contains("version 99"), "{command}: {said}");
        assert!(output.stdout.is_empty());
    }
}

impl Served {
    fn signal(&self, signal: Signal) {
        kill_process(Pid::from_child(&self.child), signal).unwrap();
    }

    /// Starts a measurement towards it.
    fn measure(&self, words: &[&str]) -> Child {
        lagometer(words)
            .args(["--to", &self.address, "--json", "-"])
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap()
    }

    /// Lets it work only now and then until `run` has ended.
    fn halts_while(&self, mut run: Child) -> Output {
        while run.try_wait().unwrap().is_none() {
            self.signal(Signal::STOP);
            thread::sleep(Duration::from_millis(150));
            self.signal(Signal::CONT);
            thread::sleep(Duration::from_millis(50));
        }
        run.wait_with_output().unwrap()
    }
}

fn found(output: &Output) -> Value {
    assert!(output.status.success(), "{}", text(&output.stderr));
    document(&output.stdout)
}

#[test]
fn a_remote_end_that_halts_now_and_then_is_waited_for() {
    let remote = Served::start("127.0.0.1:0");
    // Longer than it ever works at a stretch, unless nothing here does.
    let words = ["echo", "--for", "1s", "--timeout", "20ms", "--pin", "none"];
    let echo = &found(&remote.halts_while(remote.measure(&words)))["echo"]["messages"];
    assert!(
        count(&echo["echoed"]) > 0 && count(&echo["lost"]) > 0,
        "{echo}"
    );

    let words = ["speed", "--for", "600ms", "--lanes", "tcp,kcp"];
    let speed = found(&remote.halts_while(remote.measure(&words)));
    for lane in speed["lanes"].as_array().unwrap() {
        assert!(count(&lane["received_bytes"]) > 0, "{lane:#}");
        assert_eq!(lane["sent_bytes"], lane["received_bytes"], "{lane:#}");
    }
}

#[test]
fn one_remote_end_serves_several_at_once_over_both_versions_of_ip() {
    for bind in ["127.0.0.1:0", "[::1]:0"] {
        let remote = Served::start(bind);
        let runs = [
            &["echo", "--for", "200ms", "--pin", "none"][..],
            &["echo", "--for", "200ms", "--tcp", "--pin", "none"],
            &[
                "sweep", "--for", "20ms", "--sizes", "1,1472", "--pin", "none",
            ],
        ]
        .map(|words| remote.measure(words));
        for run in runs {
            let found = found(&run.wait_with_output().unwrap());
            if let Some(cells) = found["sweep"]["cells"].as_array() {
                for cell in cells {
                    assert!(count(&cell["received"]) > 0, "{cell:#}");
                    assert_eq!(count(&cell["corrupt"]), 0, "{cell:#}");
                }
            } else {
                let messages = &found["echo"]["messages"];
                assert!(count(&messages["echoed"]) > 0, "{messages}");
                assert_eq!(count(&messages["corrupt"]), 0, "{messages}");
            }
        }
    }
}
