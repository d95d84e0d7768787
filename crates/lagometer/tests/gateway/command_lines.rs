//! Command lines made for channeld: each starts this gateway as it is.

use std::io::{BufRead, BufReader};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::Stdio;

use super::running::{Gateway, TIMEOUT, Talker, lagometer};

/// The command lines of channeld's deployment files and pages: where each
/// stands, and the words after the program's name. `${workspaceFolder}` is what
/// the editor puts there.
const LINES: &[(&str, &[&str])] = &[
    (
        "channeld docker-compose.yml, channeld",
        &[
            "-cfsm=config/client_authoratative_fsm.json",
            "-sfsm=config/server_authoratative_fsm.json",
            "-logfile=/var/log/channeld/{time}.log",
            "-profile=cpu",
            "-profilepath=/var/log/channeld",
            "-ct=1",
        ],
    ),
    (
        "channeld docker-compose.yml, tps-channeld",
        &[
            "-dev",
            "-cfsm=../../config/client_authoratative_fsm.json",
            "-sfsm=../../config/server_authoratative_fsm.json",
            "-chs=../../config/channel_settings_hifi.json",
            "-loglevel=0",
            "-logfile=/var/log/channeld/{time}.log",
            "-ct=0",
        ],
    ),
    (
        "channeld docker-compose.yml, chat",
        &[
            "-profile=cpu",
            "-dev",
            "-profilepath=/var/log/chat",
            "-ct=0",
            "-chs=../../config/channel_settings_lofi.json",
        ],
    ),
    (
        "channeld k8s/testing/channeld.yaml",
        &["-ct=0", "-chs=../../config/channel_settings_lofi.json"],
    ),
    (
        "channeld .vscode/launch.json, Launch Chat Example",
        &[
            "-dev",
            "-loglevel=0",
            "-profile=cpu",
            "-ct=1",
            "-chs=${workspaceFolder}/config/channel_settings_lofi.json",
        ],
    ),
    (
        "channeld .vscode/launch.json, Launch Tank Example",
        &[
            "-cfsm=config/client_authoratative_fsm.json",
            "-dev",
            "-loglevel=-1",
            "-profile=cpu",
            "-ct=0",
            "-scc=${workspaceFolder}/config/spatial_static_tanks_small.json",
        ],
    ),
    (
        "channeld .vscode/launch.json, Launch TPS Example",
        &[
            "-dev",
            "-loglevel=-1",
            "-logfile=logs/{time}.log",
            "-ct=0",
            "-mcb=13",
            "-cfsm=config/client_authoratative_fsm.json",
            "-chs=config/channel_settings_ue.json",
            "-scc=config/spatial_static_2x2.json",
        ],
    ),
    (
        "channeld .vscode/launch.json, Launch Replay Session",
        &[
            "-dev",
            "-loglevel=0",
            "-ct=1",
            "-chs=${workspaceFolder}/config/channel_settings_hifi.json",
        ],
    ),
    (
        "channeld-ue-plugin, launch parameters of the editor, and by them of its deployment \
         templates",
        &[
            "-dev",
            "-loglevel=-1",
            "-mcb=13",
            "-cfsm=config/client_authoratative_fsm.json",
            "-chs=config/channel_settings_ue.json",
            "-scc=config/spatial_static_2x2.json",
        ],
    ),
    (
        "channeld-ue-plugin, the page on its settings",
        &[
            "-dev",
            "-loglevel=-1",
            "-ct=0",
            "-mcb=13",
            "-cfsm=config/client_authoratative_fsm.json",
            "-scc=config/spatial_static_2x2.json",
            "-chs=config/channel_settings_ue.json",
        ],
    ),
    (
        "channeld-unity-mirror, the page on starting",
        &["-cfsm", "../config/client_authoratative_fsm.json"],
    ),
];

/// Every flag that channeld documents, with values as Go writes them.
const FLAGS: &[&str] = &[
    "-dev",
    "-dev=true",
    "-dev=1",
    "-dev=T",
    "-dev=False",
    "-loglevel=-4",
    "-loglevel=3",
    "-logfile=one.log",
    "-profile=mem",
    "-profile=goroutine",
    "-profilepath=profiles",
    "-sn=tcp",
    "-sn=tcp4",
    "-sn=tcp6",
    "-sn=kcp",
    "-sn=ws",
    "-sn=websocket",
    "-sn=unix",
    "-sa=:0",
    "-sa=127.0.0.1:0",
    "-srb=0x0001ffff",
    "-swb=256",
    "-sfsm=config/server_authoratative_fsm.json",
    "-sba=0",
    "-scr=T",
    "-scr",
    "-scrt=-5",
    "-scrt=30000",
    "-cwm=0",
    "-cwm=f",
    "-cn=kcp",
    "-cn=tcp4",
    "-cn=unix",
    "-ca=localhost:0",
    "-crb=131071",
    "-cwb=512",
    "-cfsm=config/client_non_authoratative_fsm.json",
    "-erp",
    "-erp=false",
    "-rspd=somewhere",
    "-ct=0",
    "-ct=1",
    "-scc=config/spatial_static_4x1.json",
    "-scs=0x00010000",
    "-ecs=0x00080000",
    "-mcb=32",
    "-cat=0",
    "-mfaa=-1",
    "-mfd=0xa",
    "-chs=config/channel_settings_tps.json",
    "-chs=nowhere.json",
    "-web=:8080",
    "-ws=:12108",
];

/// A line as it is, on this machine's folders, and on ports that are free: a
/// later word goes before an earlier one, here as with channeld.
fn words(line: &[&str], folder: &Path) -> Vec<String> {
    let folder = folder.display().to_string();
    line.iter()
        .map(|word| {
            word.replace("/var/log", &folder)
                .replace("${workspaceFolder}", &folder)
        })
        .collect()
}

#[test]
fn every_deployments_command_line_starts_this_gateway() {
    for (whose, line) in LINES {
        let folder = tempfile::tempdir().unwrap();
        let mut child = lagometer()
            .args(words(line, folder.path()))
            .args(["-sa=127.0.0.1:0", "-ca=127.0.0.1:0", "--web=127.0.0.1:0"])
            // Reported even where the line asks for warnings only.
            .arg("-loglevel=0")
            .current_dir(folder.path())
            .stdin(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let mut printed = Vec::new();
        let runs = lines.map_while(Result::ok).any(|line| {
            let runs = line.contains("the gateway runs");
            printed.push(line);
            runs
        });
        let _ = child.kill();
        let _ = child.wait();
        assert!(runs, "{whose}: {printed:#?}");
    }
}

#[test]
fn every_flag_of_channeld_is_taken_as_go_writes_it() {
    let folder = tempfile::tempdir().unwrap();
    for flag in FLAGS {
        let output = lagometer()
            .args([flag, "--check"])
            .current_dir(folder.path())
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(0), "{flag}: {printed}");
    }
}

#[test]
fn a_settings_file_that_is_missing_is_warned_of_and_one_that_is_wrong_refused() {
    let folder = tempfile::tempdir().unwrap();
    let wrong = folder.path().join("wrong.json");
    std::fs::write(&wrong, "{ \"1\": 5 }").unwrap();
    let log = folder.path().join("log");
    let gateway = Gateway::start(&["-chs=nowhere.json", &format!("-logfile={}", log.display())]);
    gateway.until("the warning is logged", |_| {
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        text.lines()
            .any(|line| line.contains("WARN") && line.contains("nowhere.json"))
    });
    let output = lagometer()
        .args([format!("-chs={}", wrong.display()), "--check".into()])
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2));
}

#[test]
fn a_log_file_is_beside_standard_error_and_bears_the_time() {
    let folder = tempfile::tempdir().unwrap();
    // That standard error reports the start the harness waits for.
    let file = format!("-logfile={}/logs/{{time}}.log", folder.path().display());
    let gateway = Gateway::start(&[&file]);
    let logs = folder.path().join("logs");
    gateway.until("the file has the line too", |_| {
        let mut files = std::fs::read_dir(&logs).unwrap().map(Result::unwrap);
        let file = files.next().expect("a file");
        let name = file.file_name().into_string().unwrap();
        let time = name.strip_suffix(".log").unwrap();
        assert!(
            time.len() == 14 && time.bytes().all(|byte| byte.is_ascii_digit()),
            "{name}"
        );
        let text = std::fs::read_to_string(file.path()).unwrap();
        text.contains("the gateway runs") && !text.contains('\x1b')
    });
}

#[test]
fn peers_reach_a_unix_socket_and_its_file_goes_with_the_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("clients");
    let client = format!("-ca={}", path.display());
    for threads in ["--threads=0", "--threads=2"] {
        // A socket that nobody listens at any more is no hindrance.
        drop(std::os::unix::net::UnixListener::bind(&path).unwrap());
        let mut child = lagometer()
            .args(["-dev", "-cwm=0", "-sa=127.0.0.1:0", "-cn=unix", &client])
            .args(["--web=none", threads])
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        assert!(lines.any(|line| line.unwrap().contains("the gateway runs")));
        std::thread::spawn(move || lines.for_each(drop));
        let stream = UnixStream::connect(&path).unwrap();
        let mut talker = Talker::over(std::os::fd::OwnedFd::from(stream).into());
        talker.send(0, 1, b"\x0a\x04test\x12\x04test");
        talker.until(1);
        // It is somebody's: a second gateway does not take it away.
        let second = lagometer()
            .args(["-dev", "-cwm=0", "-sa=127.0.0.1:0", "-cn=unix", &client])
            .arg("--web=none")
            .output()
            .unwrap();
        assert_eq!(second.status.code(), Some(3));
        let pid = child.id().to_string();
        let kill = std::process::Command::new("kill")
            .args(["-TERM", &pid])
            .status();
        assert!(kill.unwrap().success());
        assert!(child.wait().unwrap().success());
        assert!(!path.exists());
    }
}

#[test]
fn a_reader_of_the_log_that_goes_away_or_stands_still_harms_nobody() {
    for closed in [true, false] {
        let folder = tempfile::tempdir().unwrap();
        let mut child = lagometer()
            .args(["-dev", "-cwm=0", "-sa=127.0.0.1:0", "-ca=127.0.0.1:0"])
            // Every message that is dropped has a line: far more than a pipe holds.
            .args(["--web=127.0.0.1:0", "-loglevel=-1"])
            .current_dir(folder.path())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        drop(child.stdout.take());
        let mut lines = BufReader::new(child.stderr.take().unwrap());
        let line = loop {
            let mut line = String::new();
            assert!(lines.read_line(&mut line).unwrap() > 0);
            if line.contains("the gateway runs") {
                break line;
            }
        };
        if closed {
            drop(lines);
        } else {
            // Kept, and not read any more.
            std::mem::forget(lines);
        }
        let gateway = Gateway::named_in(&line, child);
        let mut talker = Talker::let_in(gateway.servers);
        for _ in 0..20_000 {
            // To a channel that is not there.
            talker.send(77, 100, b"");
        }
        // An answer, though thousands of lines before it could not be written.
        talker.send(0, 5, b"");
        talker.until(5);
        assert_eq!(gateway.get("/readyz").0, 200, "within {TIMEOUT:?}");
        drop(Talker::let_in(gateway.clients));
    }
}
