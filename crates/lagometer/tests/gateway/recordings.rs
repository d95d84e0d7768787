//! What clients send, recorded by one gateway and played to another.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

use super::running::{Gateway, Talker, lagometer};

fn recordings(folder: &Path) -> Vec<PathBuf> {
    let files = std::fs::read_dir(folder).into_iter().flatten();
    files.map(|file| file.unwrap().path()).collect()
}

#[test]
fn what_was_recorded_is_played_to_another_gateway() {
    let folder = tempfile::tempdir().unwrap();
    let replays = folder.path().join("replays");
    let to = format!("-rspd={}", replays.display());
    let first = Gateway::start(&["-erp", &to]);
    let mut master = Talker::let_in(first.servers);
    master.send(0, 3, super::CREATE_GLOBAL);
    master.until(3);
    let mut client = Talker::let_in(first.clients);
    // A connection that says nothing leaves no file.
    drop(Talker::connect(first.clients));
    client.send(0, 6, super::SUBSCRIBE);
    client.until(6);
    for text in [&b"one"[..], b"two", b"three"] {
        client.send(0, 100, text);
        master.until(100);
    }
    drop(client);
    first.until("the recording is written", |_| {
        recordings(&replays).len() == 1
    });
    drop(first);
    let files = recordings(&replays);
    let [file] = &files[..] else {
        panic!("{files:?}");
    };
    let mode = |path: &Path| path.metadata().unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&replays), mode(file)), (0o700, 0o600));
    let content = std::fs::read(file).unwrap();
    let holds = |text: &[u8]| content.windows(text.len()).any(|at| at == text);
    // The player's name and the login token were both `test`: one is left.
    assert_eq!(content.windows(4).filter(|at| at == b"test").count(), 1);
    assert!(holds(b"three"));

    for pace in ["--as-fast-as-possible", "--speed=2"] {
        let second = Gateway::start(&[]);
        let mut master = Talker::let_in(second.servers);
        master.send(0, 3, super::CREATE_GLOBAL);
        master.until(3);
        let output = lagometer()
            .args(["replay", file.to_str().unwrap(), pace, "--linger=200ms"])
            .arg(format!("--to={}", second.clients))
            .output()
            .unwrap();
        let said = String::from_utf8(output.stdout).unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert!(output.status.success(), "{printed}");
        let said_line = said.lines().next().unwrap();
        assert!(said_line.contains("sent 4 packets, 4 messages"), "{said}");
        assert!(said_line.contains("SUB_TO_CHANNEL 1"), "{said}");
        // The owner receives what the first gateway's received, in order.
        for text in [&b"one"[..], b"two", b"three"] {
            let body = master.until(100).body;
            assert!(body.ends_with(text), "{body:?}");
        }
    }
}

#[test]
fn a_file_that_is_no_recording_is_reported_on_one_line() {
    let folder = tempfile::tempdir().unwrap();
    let bad = folder.path().join("bad.cpr");
    std::fs::write(&bad, b"\x0a\xff\xff\xff\xff\x0f").unwrap();
    for file in [bad.to_str().unwrap(), "/nowhere.cpr", "/dev/zero"] {
        let output = lagometer()
            .args(["replay", file, "--to=127.0.0.1:1"])
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stderr).unwrap();
        assert_eq!(output.status.code(), Some(2), "{printed}");
        assert_eq!(printed.lines().count(), 1, "{printed}");
        assert!(printed.contains(file), "{printed}");
    }
}
