//! Foreign programs behind the link.

use std::fs;
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use libtest_mimic::Trial;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;

use crate::bench::TIMEOUT;
use crate::helper;

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        test(
            "a_client_meets_its_server_behind_the_link",
            client_meets_server,
        ),
        test("exit_codes_are_passed_through", exit_codes),
        test(
            "programs_find_themselves_in_proc_by_their_numbers",
            own_numbers,
        ),
        test("a_command_that_is_not_there_is_said_so", not_there),
        test("a_signal_is_passed_on", signal_is_passed_on),
        test("the_remote_command_ends_with_the_local_one", remote_ends),
        test("a_router_that_was_held_up_says_so", held_up),
        test("nothing_survives_being_killed", nothing_survives),
    ]
}

fn test(name: &str, body: fn()) -> Trial {
    Trial::test(name, move || {
        body();
        Ok(())
    })
}

fn shape(ways: &str, remote: &str) -> Command {
    let mut command = helper::command("shape");
    command
        .args([ways, remote])
        .stderr(Stdio::piped())
        .stdout(Stdio::piped());
    command
}

/// Whether a process runs that has `mark` among its arguments.
fn runs(mark: &str) -> bool {
    let processes = fs::read_dir("/proc").unwrap().flatten();
    processes
        .filter(|process| process.file_name().to_string_lossy().parse::<u32>().is_ok())
        .filter_map(|process| fs::read(process.path().join("cmdline")).ok())
        .any(|arguments| {
            arguments
                .split(|&byte| byte == 0)
                .any(|argument| argument == mark.as_bytes())
        })
}

/// Debuggers, and whoever looks for a process by its number.
fn own_numbers() {
    let script = "echo $$; cat /proc/$$/comm; sleep 100 & kill -0 $! && cat /proc/$!/comm";
    let output = shape("", "").args(["sh", "-c", script]).output();
    let output = output.unwrap();
    let printed = String::from_utf8_lossy(&output.stdout);
    let printed: Vec<&str> = printed.lines().skip(1).collect();
    // What was forked may not be `sleep` yet.
    assert!(matches!(printed[..], ["sh", "sh" | "sleep"]), "{output:?}");
}

/// A time to sleep that no other process sleeps for.
fn mark(nth: u32) -> String {
    format!("{}.{nth}", 100_000 + std::process::id())
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let deadline = Instant::now() + TIMEOUT;
    while !is_so() {
        assert!(Instant::now() < deadline, "waited in vain: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

fn client_meets_server() {
    let output = shape("[both]\ndelay = \"30 ms\"\n", &helper::for_shell("server"))
        .args(helper::command("client").get_program().to_str())
        .args(helper::command("client").get_args())
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert_eq!(output.status.code(), Some(0), "{said}");
    let took: u64 = String::from_utf8_lossy(&output.stdout)
        .trim()
        .parse()
        .unwrap();
    // A connection and an answer, by IPv4 and by IPv6: four round trips.
    assert!(took >= 240, "{took}");
    assert!(took < 2 * 240, "{took}");
    assert!(said.contains("up: "), "{said}");
}

fn exit_codes() {
    for (script, code) in [("exit 0", 0), ("exit 7", 7), ("kill -TERM $$", 128 + 15)] {
        let status = shape("", "").args(["sh", "-c", script]).status().unwrap();
        assert_eq!(status.code(), Some(code), "{script}");
    }
}

fn not_there() {
    let status = shape("", "")
        .arg("no-such-command-anywhere")
        .status()
        .unwrap();
    assert_eq!(status.code(), Some(127));
}

fn signal_is_passed_on() {
    let mark = mark(1);
    // Not SIGINT: a shell's background job is born ignoring it, and a shell
    // cannot trap what it was born ignoring.
    let script = format!("trap 'exit 9' TERM; sleep {mark} & wait");
    let mut shape = shape("", "").args(["sh", "-c", &script]).spawn().unwrap();
    wait_until("the command runs", || runs(&mark));
    kill(Pid::from_raw(shape.id().cast_signed()), Signal::SIGTERM).unwrap();
    assert_eq!(shape.wait().unwrap().code(), Some(9));
    assert!(!runs(&mark));
}

fn remote_ends() {
    let mark = mark(2);
    // Asked to end, it refuses: it is ended all the same.
    let remote = format!("trap '' TERM; sleep {mark}");
    let script = "while ! true; do :; done";
    let mut shape = shape("", &remote);
    let status = shape.args(["sh", "-c", script]).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(!runs(&mark));
}

fn held_up() {
    let mark = mark(6);
    let script = format!("sleep {mark} & wait");
    let mut shape = shape("", "");
    let shape = shape.args(["sh", "-c", &script]).spawn().unwrap();
    wait_until("the command runs", || runs(&mark));
    let process = Pid::from_raw(shape.id().cast_signed());
    kill(process, Signal::SIGSTOP).unwrap();
    thread::sleep(Duration::from_millis(300));
    kill(process, Signal::SIGCONT).unwrap();
    kill(process, Signal::SIGTERM).unwrap();
    let output = shape.wait_with_output().unwrap();
    let said = String::from_utf8_lossy(&output.stderr);
    assert!(said.contains("valid: false"), "{said}");
    assert!(said.contains("the router was away for"), "{said}");
}

fn nothing_survives() {
    let marks = [mark(3), mark(4), mark(5)];
    let remote = format!("sleep {} & sleep {}", marks[0], marks[1]);
    let script = format!("setsid sleep {} & wait", marks[2]);
    let mut shape = shape("", &remote)
        .args(["sh", "-c", &script])
        .spawn()
        .unwrap();
    // The server command never listens, so the client starts after a while.
    wait_until("all commands run", || marks.iter().all(|mark| runs(mark)));
    kill(Pid::from_raw(shape.id().cast_signed()), Signal::SIGKILL).unwrap();
    shape.wait().unwrap();
    wait_until("none is left", || !marks.iter().any(|mark| runs(mark)));
}
