//! Kernels and the testbed `kernel` through the binary: the same document every
//! time, whatever else the machine does, and for an ordinary user.
//!
//! Without a kernel what needs one is left out, which is said; with
//! `LAGOMETER_REQUIRE_KERNEL` in the environment that is a failure.

#![cfg(target_os = "linux")]

mod audited;
mod bundled;
mod exact;
mod instruments;
#[path = "../marks/mod.rs"]
mod marks;
mod shape;
mod tuning;
mod workloads;
#[path = "../workloads/mod.rs"]
mod workloads_of_tests;

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::sync::{Condvar, Mutex, PoisonError};
use std::thread;

use serde_json::Value;

const BINARY: &str = env!("CARGO_BIN_EXE_lagometer");

fn lagometer(arguments: &[&str]) -> Command {
    let mut command = Command::new(BINARY);
    command.args(arguments).env("NO_COLOR", "1");
    command
}

fn said(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

fn play(arguments: &[&str]) -> Output {
    let all = [
        &["run", "--testbed", "kernel", "--no-html", "--json", "-"],
        arguments,
    ]
    .concat();
    lagometer(&all).output().unwrap()
}

fn document(output: &Output) -> Value {
    assert!(output.status.success(), "{}", said(output));
    serde_json::from_slice(&output.stdout).unwrap()
}

/// How many tests have guests now: no more than there are processors, for a guest
/// keeps one busy.
static WITH_GUESTS: Mutex<usize> = Mutex::new(0);
static ONE_IS_OVER: Condvar = Condvar::new();

/// The right to start guests.
struct Permit;

impl Permit {
    fn wait() -> Self {
        let processors = thread::available_parallelism().unwrap().get();
        let mut with_guests = WITH_GUESTS.lock().unwrap_or_else(PoisonError::into_inner);
        while *with_guests >= processors {
            with_guests = ONE_IS_OVER
                .wait(with_guests)
                .unwrap_or_else(PoisonError::into_inner);
        }
        *with_guests += 1;
        Self
    }
}

impl Drop for Permit {
    fn drop(&mut self) {
        *WITH_GUESTS.lock().unwrap_or_else(PoisonError::into_inner) -= 1;
        ONE_IS_OVER.notify_one();
    }
}

/// The kernel's program and the right to start guests; says why not.
fn kernel() -> Option<(PathBuf, Permit)> {
    let permit = Permit::wait();
    let status = lagometer(&["kernel", "status"]).output().unwrap();
    let status = String::from_utf8(status.stdout).unwrap();
    let path = status
        .lines()
        .rev()
        .find_map(|line| line.trim().strip_prefix("path "));
    if let Some(path) = path {
        return Some((PathBuf::from(path.trim()), permit));
    }
    assert!(
        std::env::var_os("LAGOMETER_REQUIRE_KERNEL").is_none(),
        "LAGOMETER_REQUIRE_KERNEL is set, but there is {status}"
    );
    println!("skipped: {status}");
    None
}

/// Programs that keep every processor busy for as long as this lives.
struct Burners(Vec<Child>);

impl Burners {
    fn start() -> Self {
        let processors = thread::available_parallelism().unwrap().get();
        let burner = || {
            let mut command = Command::new("sh");
            command
                .args(["-c", "while :; do :; done"])
                .stdin(Stdio::null());
            command.spawn().unwrap()
        };
        Self((0..processors).map(|_| burner()).collect())
    }
}

impl Drop for Burners {
    fn drop(&mut self) {
        for burner in &mut self.0 {
            let _ = burner.kill();
            let _ = burner.wait();
        }
    }
}

/// The machine's own kernel may have what the guest's lacks, and the reverse.
#[test]
fn what_the_guests_kernel_lacks_it_says_itself() {
    let Some(_alone) = kernel() else { return };
    let place = tempfile::tempdir().unwrap();
    let experiment = place.path().join("lacking.toml");
    let text = "name = \"lacking\"\nsummary = \"a test\"\nnetwork = \"loss-5\"\nfor = \"2 s\"\n\
                [workload.paced-echo]\nsize = \"100 B\"\ninterval = \"50 ms\"\n\
                [[lane]]\nname = \"old\"\ntransport = \"tcp-cubic\"\n\
                settings = { congestion_control = \"nonesuch\" }\n";
    fs::write(&experiment, text).unwrap();
    let run = ["run", "--testbed", "kernel", "--no-html", "--seeds", "1"];
    let output = lagometer(&run).arg(&experiment).output().unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(
        said.contains("lane `old`: the kernel has no congestion control"),
        "{said}"
    );
    assert!(said.contains("cubic") && said.contains("bbr"), "{said}");
}

#[test]
fn without_a_kernel_the_testbed_says_in_a_line_how_to_have_one() {
    let cache = tempfile::tempdir().unwrap();
    let arguments = ["run", "--testbed", "kernel", "--no-html"];
    let output = lagometer(&arguments)
        .env("XDG_CACHE_HOME", cache.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    let said = said(&output);
    assert!(said.contains("`lagometer kernel build`"), "{said}");
}

#[test]
fn an_empty_cache_is_listed_and_removed_from_without_being_made() {
    let cache = tempfile::tempdir().unwrap();
    for (arguments, code) in [
        (&["kernel", "status"][..], 0),
        (&["kernel", "remove", "--all"][..], 0),
        (&["kernel", "remove"][..], 2),
        (&["kernel", "remove", "6.1.5"][..], 2),
    ] {
        let output = lagometer(arguments)
            .env("XDG_CACHE_HOME", cache.path())
            .output()
            .unwrap();
        assert_eq!(
            output.status.code(),
            Some(code),
            "{arguments:?}: {}",
            said(&output)
        );
    }
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
}

#[test]
#[cfg(target_arch = "x86_64")]
fn what_is_no_kernel_source_is_refused_and_leaves_nothing() {
    let cache = tempfile::tempdir().unwrap();
    let output = lagometer(&["kernel", "build", "--source", "/no such/linux.tar.xz"])
        .env("XDG_CACHE_HOME", cache.path())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
    assert!(
        said(&output).contains("/no such/linux.tar.xz"),
        "{}",
        said(&output)
    );
    assert_eq!(fs::read_dir(cache.path()).unwrap().count(), 0);
}

#[test]
fn flags_of_other_testbeds_are_refused() {
    for flags in [&["--to", "localhost"][..], &["--emu-mode", "proxy"]] {
        let output = play(flags);
        assert_eq!(
            output.status.code(),
            Some(2),
            "{flags:?}: {}",
            said(&output)
        );
    }
    let output = lagometer(&["run", "--kernel", "6.1"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{}", said(&output));
}

#[test]
fn three_runs_beside_busy_programs_give_one_document() {
    let Some(_alone) = kernel() else { return };
    let _burners = Burners::start();
    // SRT's library has threads and random numbers of its own.
    let lanes = if cfg!(feature = "srt") {
        "udp,kcp,quic,tcp-cubic,tcp-bbr,srt"
    } else {
        "udp,kcp,quic,tcp-cubic,tcp-bbr"
    };
    let arguments = [
        "--lanes",
        lanes,
        "--network",
        "busy-wifi",
        "--for",
        "10s",
        "--seeds",
        "2",
    ];
    let [first, second, third] = [(); 3].map(|()| {
        let mut document = document(&play(&arguments));
        document.as_object_mut().unwrap().remove("started");
        document
    });
    for other in [&second, &third] {
        assert!(
            first == *other,
            "{}",
            first_difference(&first, other, "document")
        );
    }
    assert_eq!(first["testbed"], "kernel");
    assert_eq!(first["seeds"].as_array().unwrap().len(), 2);
    let kernel = &first["experiment"]["kernel"];
    assert!(
        kernel["version"].is_string() && kernel["hz"].is_u64(),
        "{kernel}"
    );
    assert_eq!(
        first["audit"]["valid"], true,
        "{}",
        first["audit"]["faults"]
    );
    for lane in first["lanes"].as_array().unwrap() {
        assert_eq!(lane["messages"]["intended"], 400, "{}", lane["lane"]);
        assert!(
            lane["failure"].is_null() && lane["cpu_ns_per_message"].is_null(),
            "{lane}"
        );
    }
}

/// Where two documents begin to differ.
fn first_difference(one: &Value, other: &Value, at: &str) -> String {
    match (one, other) {
        (Value::Object(a), Value::Object(b)) if a.len() == b.len() => a
            .iter()
            .filter_map(|(key, value)| Some((key, value, b.get(key)?)))
            .find(|(_, a, b)| a != b)
            .map(|(key, a, b)| first_difference(a, b, &format!("{at}.{key}"))),
        (Value::Array(a), Value::Array(b)) if a.len() == b.len() => (0..a.len())
            .find(|&index| a[index] != b[index])
            .map(|index| first_difference(&a[index], &b[index], &format!("{at}[{index}]"))),
        _ => None,
    }
    .unwrap_or_else(|| format!("{at}: {one} and {other}"))
}

#[test]
fn an_ordinary_user_plays_from_a_folder_with_an_odd_name() {
    let Some((kernel, _alone)) = kernel() else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let (odd, mut command) = ordinary_user(place.path(), &kernel);
    let network = odd.join("my network.toml");
    fs::write(
        &network,
        "summary = \"a test\"\n[both]\ndelay = \"10 ms\"\n",
    )
    .unwrap();
    command.args(["run", "--testbed", "kernel", "--no-html", "--json", "-"]);
    command.args(["--lanes", "udp,tcp-cubic", "--for", "3s"]);
    command.args(["--network", "./my network.toml"]);
    let output = command.output().unwrap();
    let document = document(&output);
    let delivered = &document["lanes"][1]["messages"];
    assert_eq!(delivered["intended"], delivered["delivered"], "{delivered}");
    assert_left_alone(&odd);
}

/// A folder with an odd name beneath `place`, with the binary and its cache in
/// it, and the binary there as a user without privileges.
fn ordinary_user(place: &Path, kernel: &Path) -> (PathBuf, Command) {
    fs::set_permissions(place, fs::Permissions::from_mode(0o755)).unwrap();
    let odd = place.join("a b,c'd\"e=f");
    let cache = odd.join("cache");
    let home = kernel.parent().unwrap();
    let copy = cache
        .join("lagometer/kernels")
        .join(home.file_name().unwrap());
    fs::create_dir_all(&copy).unwrap();
    for file in ["linux", "kernel.json"] {
        fs::copy(home.join(file), copy.join(file)).unwrap();
    }
    let binary = odd.join("lagometer");
    fs::copy(BINARY, &binary).unwrap();
    // Nobody, where the tests are root's.
    let mut command = if rustix::process::geteuid().is_root() {
        let mut command = Command::new("setpriv");
        command.args(["--reuid=65534", "--regid=65534", "--clear-groups", "--"]);
        command.arg(&binary);
        command
    } else {
        Command::new(&binary)
    };
    command.current_dir(&odd).env("XDG_CACHE_HOME", &cache);
    (odd, command)
}

/// Guests have written nothing.
fn assert_left_alone(folder: &Path) {
    let mut names: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["cache", "lagometer", "my network.toml"]);
}

#[test]
fn a_guest_at_its_limit_ends_with_what_it_has_and_says_so() {
    let Some(_alone) = kernel() else { return };
    let output = play(&["--lanes", "udp", "--for", "50h", "--real-limit", "3s"]);
    let said = said(&output);
    assert!(said.contains("--real-limit"), "{said}");
    assert_eq!(output.status.code(), Some(3), "{said}");
    let document: Value = serde_json::from_slice(&output.stdout).expect(&said);
    assert_eq!(document["partial"], true);
}
