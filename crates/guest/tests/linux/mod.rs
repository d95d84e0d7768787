//! The tests and what they share.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use lagometer_guest::{
    BOOT, Cache, Cut, Ended, Error, Guest, INIT, Job, Kernel, Limits, Outcome, Said, Stream, Traps,
    boot, init,
};
use libtest_mimic::{Arguments, Failed, Trial};

const LIMITS: Limits = Limits {
    memory_mib: 512,
    time: Duration::from_mins(5),
    silence: Duration::from_mins(2),
};

pub(crate) fn main() -> ExitCode {
    let arguments: Vec<OsString> = env::args_os().skip(1).collect();
    let asks = |words: [&str; 2]| arguments.starts_with(&words.map(OsString::from));
    if asks(INIT) {
        eprintln!("{}", init());
        return ExitCode::FAILURE;
    }
    if asks(BOOT) {
        eprintln!("{}", boot(Path::new(&arguments[2]), &arguments[3..]));
        return ExitCode::FAILURE;
    }
    let kernel = Cache::of_user().and_then(|cache| cache.find(None));
    let trials = match kernel {
        Ok(kernel) => trials(&kernel),
        Err(why) if env::var_os("LAGOMETER_REQUIRE_KERNEL").is_some() => {
            eprintln!("LAGOMETER_REQUIRE_KERNEL is set, but {why}");
            return ExitCode::FAILURE;
        }
        Err(why) => {
            println!("skipped: {why}");
            Vec::new()
        }
    };
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

type Test = fn(&Kernel) -> Result<(), Failed>;

fn trials(kernel: &Kernel) -> Vec<Trial> {
    let tests: [(&str, Test); 14] = [
        (
            "a_job_ends_with_its_code_and_its_words_have_the_time",
            words_and_code,
        ),
        ("sleeping_takes_no_real_time", sleeping),
        (
            "what_is_written_stays_in_the_guest_but_for_the_share",
            writing,
        ),
        ("files_that_are_kept_are_there_and_nothing_else", keeping),
        (
            "files_that_cannot_be_kept_are_named_and_the_others_kept",
            keeping_what_can_be,
        ),
        (
            "much_output_takes_no_time_and_none_of_it_is_lost",
            much_output,
        ),
        ("programs_meet_on_the_loopback_device", loopback),
        ("a_job_has_no_privileges_and_is_its_user", privileges),
        ("a_job_has_all_groups_of_its_user", groups),
        (
            "nothing_that_root_names_is_started_by_the_kernel",
            no_helpers,
        ),
        ("a_guest_has_no_network_of_the_machine", no_network),
        (
            "random_numbers_addresses_and_clock_are_pinned_and_the_seed_counts",
            pinned,
        ),
        (
            "a_guest_whose_clock_stands_still_is_ended_at_its_limit",
            spinning,
        ),
        ("a_guest_that_is_stopped_leaves_what_it_had_said", stopped),
    ];
    tests
        .into_iter()
        .map(|(name, test)| {
            let kernel = kernel.clone();
            Trial::test(name, move || test(&kernel))
        })
        .collect()
}

/// What a shell's script said and how it ended.
struct GuestOutput {
    ended: Ended,
    lines: Vec<(Duration, String)>,
    streams: Vec<Stream>,
}

impl GuestOutput {
    fn text(&self) -> String {
        let lines: Vec<&str> = self.lines.iter().map(|(_, line)| line.as_str()).collect();
        lines.join("\n")
    }
}

fn job(script: &str, directory: &Path) -> Job {
    Job {
        command: ["/bin/sh", "-c", script].map(OsString::from).to_vec(),
        directory: directory.as_os_str().to_owned(),
        environment: vec![("PATH".into(), "/usr/sbin:/usr/bin:/sbin:/bin".into())],
        keeps_files: false,
    }
}

fn run(kernel: &Kernel, script: &str, seed: u64) -> Result<GuestOutput, Error> {
    run_until(
        kernel,
        &job(script, Path::new("/")),
        seed,
        LIMITS,
        &AtomicBool::new(false),
    )
}

fn run_until(
    kernel: &Kernel,
    job: &Job,
    seed: u64,
    limits: Limits,
    stop: &AtomicBool,
) -> Result<GuestOutput, Error> {
    let own_program = env::current_exe().expect("a program knows its file");
    let guest = Guest {
        kernel,
        own_program: &own_program,
        job,
        seed,
        traps: Traps::Traced,
        limits,
    };
    let (mut lines, mut streams) = (Vec::new(), Vec::new());
    let mut said = |said: &Said<'_>| {
        lines.push((said.at, said.text().into_owned()));
        streams.push(said.stream);
        if said.line == b"enough" {
            stop.store(true, Ordering::Relaxed);
        }
    };
    let ended = guest.run(&mut said, stop)?;
    Ok(GuestOutput {
        ended,
        lines,
        streams,
    })
}

fn words_and_code(kernel: &Kernel) -> Result<(), Failed> {
    let output = run(kernel, "echo one; sleep 1.5; echo two >&2; exit 7", 1)?;
    assert_eq!(output.text(), "one\ntwo");
    assert_eq!(output.streams, [Stream::Output, Stream::Error]);
    assert_eq!(output.ended.outcome, Outcome::Exited(7));
    let between = output.lines[1].0.saturating_sub(output.lines[0].0);
    let early = between.as_secs_f64() - 1.5;
    assert!((0.0..0.05).contains(&early), "{between:?}");
    Ok(())
}

fn sleeping(kernel: &Kernel) -> Result<(), Failed> {
    // A day: it would not end within the limits otherwise.
    let output = run(kernel, "sleep 86400", 1)?;
    assert_eq!(output.ended.outcome, Outcome::Exited(0));
    assert!(
        output.ended.at >= Duration::from_hours(24),
        "{:?}",
        output.ended.at
    );
    Ok(())
}

fn writing(kernel: &Kernel) -> Result<(), Failed> {
    let outside = tempfile::tempdir()?;
    // A path with everything in it that shells and mounts stumble over.
    let odd = outside.path().join("a b,c'd\"e=f:g\\h");
    fs::create_dir(&odd)?;
    fs::write(odd.join("before"), "before")?;
    let script = "set -e; cat before; echo; echo changed > before; echo new > after
                  cat before after; rm before; ls
                  cp after /lagometer/result
                  ln -s /etc /lagometer/elsewhere; echo x > /lagometer/elsewhere/lagometer-test
                  cat /etc/lagometer-test";
    let stop = AtomicBool::new(false);
    let output = run_until(kernel, &job(script, &odd), 1, LIMITS, &stop)?;
    assert_eq!(
        output.text(),
        "before\nchanged\nnew\nafter\nx",
        "{:?}",
        output.ended.outcome
    );
    assert_eq!(fs::read_to_string(odd.join("before"))?, "before");
    assert!(!odd.join("after").exists());
    assert!(!Path::new("/etc/lagometer-test").exists());
    assert_eq!(
        fs::read_to_string(output.ended.share().join("result"))?,
        "new\n"
    );
    Ok(())
}

fn keeping(kernel: &Kernel) -> Result<(), Failed> {
    let place = tempfile::tempdir()?;
    let (work, kept) = (place.path().join("work"), place.path().join("kept"));
    fs::create_dir(&work)?;
    fs::write(work.join("before"), "before")?;
    let script = "set -e; echo changed > before; mkdir -p deep/er; echo new > deep/er/new
                  ln -s /etc/passwd link; mkfifo pipe; chmod 4755 deep/er/new; echo x > /lagometer/shared
                  echo sealed > sealed; chmod 000 sealed";
    let job = Job {
        keeps_files: true,
        ..job(script, &work)
    };
    let output = run_until(kernel, &job, 1, LIMITS, &AtomicBool::new(false))?;
    assert_eq!(
        output.ended.outcome,
        Outcome::Exited(0),
        "{}",
        output.text()
    );
    assert_eq!(output.ended.copy_kept(&kept)?, None);
    let beneath = kept.join(work.strip_prefix("/")?);
    let mut names: Vec<_> = fs::read_dir(&beneath)?
        .map(|entry| Ok::<_, std::io::Error>(entry?.file_name()))
        .collect::<Result<_, _>>()?;
    names.sort();
    assert_eq!(names, ["before", "deep", "link", "sealed"]);
    // Also by who is not root.
    let mode = fs::metadata(beneath.join("sealed"))?.permissions().mode();
    assert_eq!(mode & 0o7777, 0o600);
    assert_eq!(fs::read_to_string(beneath.join("before"))?, "changed\n");
    assert_eq!(fs::read_to_string(beneath.join("deep/er/new"))?, "new\n");
    assert_eq!(
        fs::read_link(beneath.join("link"))?,
        Path::new("/etc/passwd")
    );
    assert!(!kept.join("lagometer").exists());
    assert_eq!(fs::read_to_string(work.join("before"))?, "before");
    Ok(())
}

fn keeping_what_can_be(kernel: &Kernel) -> Result<(), Failed> {
    let place = tempfile::tempdir()?;
    let kept = place.path().join("kept");
    // Deeper than a path may be long.
    let script = "echo first > first; mkdir deep; cd deep
                  name=$(head -c 200 /dev/zero | tr '\\0' d)
                  i=0; while [ $i -lt 30 ]; do mkdir $name; cd $name; i=$((i+1)); done
                  echo lost > lost; exit 5";
    let job = Job {
        keeps_files: true,
        ..job(script, place.path())
    };
    let output = run_until(kernel, &job, 1, LIMITS, &AtomicBool::new(false))?;
    assert_eq!(
        output.ended.outcome,
        Outcome::Exited(5),
        "{}",
        output.text()
    );
    let why = output.ended.copy_kept(&kept)?;
    let why = why.ok_or("all was kept")?;
    assert!(
        why.contains("/deep/ddd") && why.contains("too long"),
        "{why}"
    );
    let first = kept.join(place.path().strip_prefix("/")?).join("first");
    assert_eq!(fs::read_to_string(first)?, "first\n");
    Ok(())
}

fn groups(kernel: &Kernel) -> Result<(), Failed> {
    let output = run(kernel, "id -G | tr ' ' '\\n' | sort -n", 1)?;
    let outside = Command::new("id").arg("-G").output()?.stdout;
    let outside = String::from_utf8(outside)?;
    let mut outside: Vec<u32> = outside
        .split_whitespace()
        .map(str::parse)
        .collect::<Result<_, _>>()?;
    outside.sort_unstable();
    let inside: Vec<u32> = output
        .lines
        .iter()
        .map(|(_, line)| line.parse())
        .collect::<Result<_, _>>()?;
    assert_eq!(inside, outside);
    Ok(())
}

fn no_helpers(kernel: &Kernel) -> Result<(), Failed> {
    // The program for core files, and that for what is asked of a module: root may name
    // both without any right, and a kernel would start them with all.
    let script = r"cd /tmp
                  printf '#!/bin/sh
/bin/touch /lagometer/started
/bin/mount -t hostfs none /mnt && /bin/touch /lagometer/mounted
' > helper
                  chmod 755 helper
                  echo '|/tmp/helper' 2>/dev/null > /proc/sys/kernel/core_pattern
                  echo /tmp/helper 2>/dev/null > /proc/sys/kernel/modprobe
                  ulimit -c unlimited 2>/dev/null
                  sh -c 'kill -SEGV $$' 2>/dev/null
                  sleep 1; echo done";
    let output = run(kernel, script, 1)?;
    assert_eq!(output.text(), "done");
    let share = output.ended.share();
    assert!(!share.join("mounted").exists(), "a helper has rights");
    assert!(!share.join("started").exists(), "a helper was started");
    Ok(())
}

fn much_output(kernel: &Kernel) -> Result<(), Failed> {
    // More than pipes and terminals hold.
    let script = "cat /proc/uptime; i=0; while [ $i -lt 2000 ]
                  do echo $i-123456789012345678901234567890123456789012345678901234567890; i=$((i+1))
                  done; cat /proc/uptime";
    let output = run(kernel, script, 1)?;
    assert_eq!(output.lines.len(), 2002);
    for (index, (_, line)) in output.lines[1..2001].iter().enumerate() {
        assert!(line.starts_with(&format!("{index}-1")), "{line}");
    }
    let took = output.lines[2001].0.saturating_sub(output.lines[0].0);
    assert!(took < Duration::from_millis(100), "{took:?}");
    Ok(())
}

fn loopback(kernel: &Kernel) -> Result<(), Failed> {
    let script = "python3 -c '
import socket
listener = socket.create_server((\"127.0.0.1\", 7777))
there = socket.create_connection((\"127.0.0.1\", 7777))
here, _ = listener.accept()
there.send(b\"met\")
print(here.recv(3).decode())'";
    let output = run(kernel, script, 1)?;
    assert_eq!(output.text(), "met");
    Ok(())
}

fn privileges(kernel: &Kernel) -> Result<(), Failed> {
    let script = "id -u; grep CapEff /proc/self/status | cut -f2
                  mount -t hostfs none /mnt 2>/dev/null && echo mounted
                  mount -o remount,rw / 2>/dev/null && echo remounted
                  unshare --user --map-root-user --net --mount true && echo namespaces
                  unshare --user --map-root-user --mount mount -t hostfs none /mnt 2>/dev/null && echo mounted
                  unshare --user --map-root-user --mount umount /lagometer 2>/dev/null && echo unmounted
                  true";
    let output = run(kernel, script, 1)?;
    let uid = rustix::process::geteuid().as_raw();
    // Without CAP_SETFCAP root could not be root of a user namespace.
    let kept = if uid == 0 { 1_u64 << 31 } else { 0 };
    assert_eq!(output.text(), format!("{uid}\n{kept:016x}\nnamespaces"));
    Ok(())
}

fn no_network(kernel: &Kernel) -> Result<(), Failed> {
    let output = run(kernel, "ls /sys/class/net | sort", 1)?;
    let devices: Vec<&str> = output.lines.iter().map(|(_, line)| line.as_str()).collect();
    assert!(
        devices
            .iter()
            .all(|device| ["lo", "sit0", "ip6tnl0", "dummy0"].contains(device)),
        "{devices:?}"
    );
    Ok(())
}

fn pinned(kernel: &Kernel) -> Result<(), Failed> {
    let script = "head -c 16 /dev/urandom | od -An -tx1; cat /proc/sys/kernel/random/uuid
                  cut -d' ' -f1 /proc/self/maps; date +%s.%N; cat /proc/uptime; echo $$";
    let [once, again, other] = [1, 1, 2].map(|seed| run(kernel, script, seed));
    let (once, again, other) = (once?, again?, other?);
    assert_eq!(once.lines, again.lines);
    assert_eq!(once.ended.at, again.ended.at);
    assert_ne!(
        once.lines[0].1, other.lines[0].1,
        "random numbers follow the seed"
    );
    Ok(())
}

fn spinning(kernel: &Kernel) -> Result<(), Failed> {
    let limits = Limits {
        silence: Duration::from_secs(3),
        ..LIMITS
    };
    let began = Instant::now();
    // No system call within the loop, and so no time for anybody to read what it said
    // before, unless they come first.
    let stop = AtomicBool::new(false);
    let spins = job("echo before; while :; do :; done", Path::new("/"));
    let output = run_until(kernel, &spins, 1, limits, &stop)?;
    assert_eq!(output.text(), "before");
    assert_eq!(output.ended.outcome, Outcome::Cut(Cut::Silence));
    assert_eq!(output.ended.busy.as_deref(), Some("sh"));
    // Its clock stands still, so it is not waited for as long as for one that can end.
    assert!(
        began.elapsed() < Duration::from_secs(15),
        "{:?}",
        began.elapsed()
    );
    Ok(())
}

fn stopped(kernel: &Kernel) -> Result<(), Failed> {
    let script = "echo partial > /lagometer/result; echo enough
                  until [ -e /lagometer/stop ]; do sleep 1; done; echo noticed it; exit 3";
    let stop = AtomicBool::new(false);
    let output = run_until(kernel, &job(script, Path::new("/")), 1, LIMITS, &stop)?;
    assert_eq!(output.text(), "enough\nnoticed it");
    assert_eq!(output.ended.outcome, Outcome::Cut(Cut::Stopped));
    let result: PathBuf = output.ended.share().join("result");
    assert_eq!(fs::read_to_string(result)?, "partial\n");
    Ok(())
}
