//! The live view in a terminal: a pseudo-terminal that `script` of util-linux makes.

#![cfg(target_os = "linux")]

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

const BINARY: &str = env!("CARGO_BIN_EXE_lagometer");

/// The longest anything is waited for.
const TIMEOUT: Duration = Duration::from_mins(1);

const ENTER: &str = "\u{1b}[?1049h";
const LEAVE: &str = "\u{1b}[?1049l";
const HIDE: &str = "\u{1b}[?25l";
const SHOW: &str = "\u{1b}[?25h";

/// A command in a terminal of its own.
struct Terminal {
    child: Child,
    keys: Option<ChildStdin>,
    chunks: Receiver<Vec<u8>>,
    seen: String,
}

impl Terminal {
    /// Runs `command` by the shell in a terminal of 100 columns and 30 lines, and then
    /// says what the terminal shows of what is typed.
    ///
    /// Ctrl-C interrupts the shell too: with a trap of its own it goes on to what comes
    /// after, as an interactive one would (without, `dash` ends there and `bash` does not).
    fn run(command: &str) -> Self {
        let line = format!("trap : INT; stty cols 100 rows 30; {command}; echo code $?; stty -a");
        let mut child = Command::new("script")
            .args(["-q", "-e", "-c", &line, "/dev/null"])
            .env_remove("CI")
            .env_remove("NO_COLOR")
            .env("SHELL", "/bin/sh")
            .env("TERM", "xterm-256color")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .expect("util-linux has `script`");
        let mut output = child.stdout.take().unwrap();
        let (send, chunks) = channel();
        thread::spawn(move || {
            let mut chunk = [0; 4096];
            while let Ok(length @ 1..) = output.read(&mut chunk) {
                if send.send(chunk[..length].to_vec()).is_err() {
                    return;
                }
            }
        });
        Self {
            keys: child.stdin.take(),
            child,
            chunks,
            seen: String::new(),
        }
    }

    /// Reads on until `words` were written.
    fn await_words(&mut self, words: &str) {
        let until = Instant::now() + TIMEOUT;
        while !shown(&self.seen).contains(words) {
            let left = until.saturating_duration_since(Instant::now());
            match self.chunks.recv_timeout(left) {
                Ok(chunk) => self.seen += &String::from_utf8_lossy(&chunk),
                Err(why) => panic!("`{words}` never came: {why}: {:?}", self.seen),
            }
        }
    }

    fn press(&mut self, keys: &str) {
        let input = self.keys.as_mut().unwrap();
        input.write_all(keys.as_bytes()).unwrap();
        input.flush().unwrap();
    }

    /// All that was written until the end.
    fn finish(mut self) -> String {
        let until = Instant::now() + TIMEOUT;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.chunks.recv_timeout(left) {
                Ok(chunk) => self.seen += &String::from_utf8_lossy(&chunk),
                Err(_) => break,
            }
        }
        drop(self.keys.take());
        self.child.wait().unwrap();
        std::mem::take(&mut self.seen)
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// What was written, without colours, and with a space wherever the cursor was moved: a
/// view leaves places out that are blank already.
fn shown(seen: &str) -> String {
    let mut text = String::new();
    let mut parts = seen.split('\u{1b}');
    text.extend(parts.next());
    for part in parts {
        let Some(end) = part.find(|letter: char| letter.is_ascii_alphabetic()) else {
            continue;
        };
        if part[..=end].ends_with('H') {
            text.push(' ');
        }
        text += &part[end + 1..];
    }
    let words: Vec<&str> = text.split_whitespace().collect();
    words.join(" ")
}

/// Holds that the terminal was taken once and given back, and returns what came after.
fn given_back(seen: &str) -> &str {
    assert_eq!(seen.matches(ENTER).count(), 1, "{seen:?}");
    assert_eq!(seen.matches(LEAVE).count(), 1, "{seen:?}");
    let (_, after) = seen.split_once(LEAVE).unwrap();
    assert!(
        seen.rfind(SHOW) > seen.rfind(HIDE),
        "the cursor is there again"
    );
    assert!(
        after.contains(" echo "),
        "what is typed shows again: {after}"
    );
    after
}

const LANES: &str = "run --live --testbed emu --emu-mode proxy --lanes udp,kcp --no-html";

#[test]
fn a_run_is_watched_and_ctrl_c_gives_the_terminal_back() {
    let mut terminal = Terminal::run(&format!("{BINARY} {LANES} --for 10min"));
    terminal.await_words("worst round trip");
    terminal.await_words("kcp");
    terminal.await_words("link down");
    // A message was back: there is a round trip in the column.
    terminal.await_words("ms");
    terminal.press("\u{3}");
    let seen = terminal.finish();
    let after = given_back(&seen);
    assert!(
        after.contains("stopping"),
        "lines that were said are written: {after}"
    );
    assert!(after.contains("code 0"), "{after}");
    let (watched, _) = seen.split_once(LEAVE).unwrap();
    assert!(
        !watched.contains("^C"),
        "what is typed does not show: {watched:?}"
    );
}

#[test]
fn an_error_gives_the_terminal_back_and_is_said_beneath() {
    let terminal = Terminal::run(&format!(
        "{BINARY} {LANES} --for 1s --json /nonesuch/x.json"
    ));
    let seen = terminal.finish();
    let after = given_back(&seen);
    assert!(
        after.contains("/nonesuch/x.json: cannot be written"),
        "{after}"
    );
    assert!(after.contains("code 3"), "{after}");
}

#[test]
fn a_run_in_virtual_time_a_world_and_a_gateway_are_watched() {
    let commands = [
        (
            "run --live --lanes udp,kcp --no-html",
            "of lanes played each second",
        ),
        (
            "world --live --players 3 --for 60s --no-html",
            "seen, median age",
        ),
        (
            "gateway --live -dev -cwm=false -sa=127.0.0.1:0 -ca=127.0.0.1:0",
            "waits to be sent",
        ),
        ("serve --live --bind 127.0.0.1:0", "LAGOMETER_SECRET="),
    ];
    for (command, words) in commands {
        let mut terminal = Terminal::run(&format!("{BINARY} {command}"));
        terminal.await_words(words);
        terminal.press("\u{3}");
        let seen = terminal.finish();
        let after = given_back(&seen);
        assert!(after.contains("code 0"), "{command}: {after}");
    }
}

#[test]
fn without_a_terminal_or_in_continuous_integration_there_is_no_view() {
    let output = Command::new(BINARY)
        .args([
            "run",
            "--live",
            "--lanes",
            "udp",
            "--for",
            "1s",
            "--no-html",
        ])
        .output()
        .unwrap();
    assert!(output.status.success());
    for stream in [&output.stdout, &output.stderr] {
        assert!(!String::from_utf8_lossy(stream).contains('\u{1b}'));
    }
    let terminal = Terminal::run(&format!("CI=1 {BINARY} {LANES} --for 1s"));
    let seen = terminal.finish();
    assert!(!seen.contains(ENTER), "{seen:?}");
    assert!(seen.contains("code 0"), "{seen:?}");
}
