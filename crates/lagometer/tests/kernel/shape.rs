//! `shape --testbed kernel`: programs that know nothing of it.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;
use std::process::{Command, Output};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use lagometer_emu::logged_packets;

use super::{BINARY, Burners, assert_left_alone, kernel, lagometer, ordinary_user, said};

/// Runs `script` as client over `network`, with `flags` before it.
fn shape(network: &str, flags: &[&str], script: &str) -> Output {
    lagometer(&["shape", network, "--testbed", "kernel"])
        .args(flags)
        .args(["--", "sh", "-c", script])
        .output()
        .unwrap()
}

fn printed(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn unmodified_programs_send_the_same_packets_every_time_and_the_seed_counts() {
    let Some(_alone) = kernel() else { return };
    let is_there = |path: &str| Path::new(path).exists();
    if !is_there("/usr/bin/iperf3") {
        assert!(
            std::env::var_os("LAGOMETER_REQUIRE_KERNEL").is_none(),
            "LAGOMETER_REQUIRE_KERNEL is set, but iperf3 is missing: apt-get install iperf3"
        );
        println!("skipped: iperf3 is missing: apt-get install iperf3");
        return;
    }
    let _burners = Burners::start();
    let place = tempfile::tempdir().unwrap();
    let play = |name: &str, seed: &str| {
        let log = place.path().join(name);
        let flags = [
            "--seed",
            seed,
            "--server",
            "iperf3 -s -1 >/dev/null",
            "--pcap",
        ];
        let output = lagometer(&["shape", "loss-5", "--testbed", "kernel"])
            .args(flags)
            .arg(&log)
            .args([
                "--",
                "sh",
                "-c",
                "iperf3 -c $LAGOMETER_SERVER -t 2 --logfile /dev/stdout",
            ])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert!(
            printed(&output).contains("receiver"),
            "{}",
            printed(&output)
        );
        (output.stdout, fs::read(log).unwrap())
    };
    let (once, again, other) = (play("a", "1"), play("b", "1"), play("c", "2"));
    assert!(once.0 == again.0, "outputs differ");
    assert!(once.1 == again.1, "packets differ");
    assert!(once.1 != other.1, "another seed, the same packets");
    let fates: Vec<_> = logged_packets(&once.1).map(|packet| packet.fate).collect();
    assert!(fates.len() > 100, "{}", fates.len());
    assert!(fates.iter().any(|fate| fate.starts_with("dropped: ")));
    assert!(fates.iter().any(|fate| fate.starts_with("arrives after ")));
}

#[test]
fn outputs_have_the_guests_time_and_the_exit_code_is_the_clients() {
    let Some(_alone) = kernel() else { return };
    let remote = ["--server", "echo up; sleep 1000"];
    let script = "echo one; sleep 5; printf two; echo wrong >&2; exit 7";
    let output = shape("perfect", &remote, script);
    assert_eq!(output.status.code(), Some(7), "{}", said(&output));
    let lines: Vec<(f64, String)> = printed(&output)
        .lines()
        .map(|line| {
            let (at, text) = line.trim_start_matches('[').split_once("] ").unwrap();
            (at.trim().parse().unwrap(), text.to_owned())
        })
        .collect();
    assert_eq!(lines[0].1, "one");
    assert_eq!(lines[1].1, "two");
    let between = lines[1].0 - lines[0].0;
    assert!((5.0..5.1).contains(&between), "{between}");
    let said = said(&output);
    assert!(said.contains("] server: up\n"), "{said}");
    assert!(said.contains("] client: wrong\n"), "{said}");
    let plain = shape("perfect", &["--plain"], "printf 'a\\n\\377 b'; kill -9 $$");
    assert_eq!(plain.stdout, b"a\n\xff b");
    assert_eq!(plain.status.code(), Some(128 + 9));
}

#[test]
fn what_programs_write_is_gone_unless_it_is_kept() {
    let Some(_alone) = kernel() else { return };
    let place = tempfile::tempdir().unwrap();
    let (file, kept) = (place.path().join("new"), place.path().join("kept"));
    let script = format!("echo text > '{}'", file.display());
    let kept_text = kept.to_str().unwrap();
    for (flags, is_kept) in [(&[][..], false), (&["--keep", kept_text], true)] {
        let output = shape("perfect", flags, &script);
        assert_eq!(output.status.code(), Some(0), "{}", said(&output));
        assert!(!file.exists());
        assert_eq!(kept.exists(), is_kept);
    }
    let copy = kept.join(file.strip_prefix("/").unwrap());
    assert_eq!(fs::read_to_string(copy).unwrap(), "text\n");
    let refused = shape("perfect", &["--keep", kept_text], "true");
    assert_eq!(refused.status.code(), Some(2), "{}", said(&refused));
}

#[test]
fn a_thread_that_holds_the_clock_is_named_at_the_limit() {
    let Some(_alone) = kernel() else { return };
    let place = tempfile::tempdir().unwrap();
    let spin = place.path().join("spin-for-ever");
    fs::write(
        &spin,
        // It never sleeps, so nothing in the guest has the processor after it.
        "#!/bin/sh\necho begun\nwhile :; do :; done\n",
    )
    .unwrap();
    let script = format!("chmod +x '{0}'; exec '{0}'", spin.display());
    let output = shape("perfect", &["--real-limit", "4s"], &script);
    assert_eq!(output.status.code(), Some(3), "{}", said(&output));
    assert!(printed(&output).contains("] begun"), "{}", printed(&output));
    let said = said(&output);
    assert!(said.contains("`spin-for-ever` had the processor"), "{said}");
}

#[test]
fn what_cannot_be_started_in_a_guest_says_why() {
    let Some(_alone) = kernel() else { return };
    // What is beneath is the guest's own there.
    let place = tempfile::tempdir_in("/dev/shm").unwrap();
    let output = Command::new(BINARY)
        .args(["shape", "perfect", "--testbed", "kernel", "--", "true"])
        .current_dir(place.path())
        .output()
        .unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(2), "{said}");
    let folder = place.path().display().to_string();
    assert!(
        said.contains(&folder) && said.contains("No such file"),
        "{said}"
    );
}

#[test]
fn a_machine_without_room_for_a_guests_memory_says_where_to_make_some() {
    let Some(_alone) = kernel() else { return };
    // A file system of its own, with too little room, in a mount namespace that goes with it.
    let script = format!(
        "mount -t tmpfs -o size=8m none /mnt && TMPDIR=/mnt exec {BINARY} shape cable --testbed kernel \
         -- sh -c 'head -c 60M /dev/zero | tail -c 1'"
    );
    let output = Command::new("unshare")
        .args(["--user", "--map-root-user", "--mount", "sh", "-c", &script])
        .env("NO_COLOR", "1")
        .output()
        .unwrap();
    let said = said(&output);
    assert_eq!(output.status.code(), Some(3), "{said}");
    let expected = "its memory, which is a file, did not fit into /mnt; make room there";
    assert!(said.contains(expected), "{said}");
}

#[test]
fn each_client_has_a_host_and_a_link_of_its_own() {
    let Some(_alone) = kernel() else { return };
    // All of them bind the same port; the server answers with whom it saw.
    let server = "exec python3 -uc '
import socket
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind((\"\", 7777))
while True:
    word, who = here.recvfrom(100)
    here.sendto(who[0].encode(), who)'";
    let client = "exec python3 -c '
import os, socket
here = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
here.bind((\"\", 5555))
here.settimeout(1)
answers = 0
for _ in range(50):
    here.sendto(b\"?\", (os.environ[\"LAGOMETER_SERVER\"], 7777))
    try:
        assert here.recv(100).decode() == os.environ[\"LAGOMETER_LOCAL\"]
        answers += 1
    except TimeoutError:
        pass
print(os.environ[\"LAGOMETER_CLIENT\"], answers)'";
    let output = shape("loss-5", &["--clients", "3", "--server", server], client);
    assert_eq!(output.status.code(), Some(0), "{}", said(&output));
    let printed = printed(&output);
    let answers: Vec<u32> = (1..=3)
        .map(|client| {
            let mark = format!("] client {client}: {client} ");
            let (_, rest) = printed.split_once(&mark).expect(&printed);
            rest.lines().next().unwrap().parse().unwrap()
        })
        .collect();
    assert!(
        answers.iter().all(|&count| (35..=50).contains(&count)),
        "{answers:?}"
    );
    // Other seeds: the same packets are not lost to all.
    assert!(
        answers.windows(2).any(|pair| pair[0] != pair[1]),
        "{answers:?}"
    );
}

#[test]
fn playing_twice_distinguishes_a_program_that_differs_from_one_that_does_not() {
    let Some(_alone) = kernel() else { return };
    let place = tempfile::tempdir().unwrap();
    let counter = place.path().join("counter");
    fs::write(&counter, "0").unwrap();
    let is_over = AtomicBool::new(false);
    let (same, different) = thread::scope(|scope| {
        // Something of the machine that changes meanwhile.
        scope.spawn(|| {
            for count in 1_u64.. {
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let next = place.path().join("next");
                fs::write(&next, count.to_string()).unwrap();
                fs::rename(next, &counter).unwrap();
                thread::sleep(Duration::from_millis(10));
            }
        });
        let same = shape(
            "loss-1",
            &["--twice"],
            "head -c 8 /dev/urandom | od; exit 4",
        );
        let script = format!("echo one; cat '{}'", counter.display());
        let different = shape("loss-1", &["--twice"], &script);
        is_over.store(true, Ordering::Relaxed);
        (same, different)
    });
    assert_eq!(same.status.code(), Some(4), "{}", said(&same));
    assert!(
        said(&same).contains("played twice: the same 2 lines"),
        "{}",
        said(&same)
    );
    assert_eq!(different.status.code(), Some(1), "{}", said(&different));
    let said = said(&different);
    assert!(
        said.contains("not the same: line 2 of the output was first at "),
        "{said}"
    );
}

#[test]
fn two_plays_without_their_logs_of_packets_are_not_called_the_same() {
    let Some(_alone) = kernel() else { return };
    let script = format!("rm {}/packets.pcapng", lagometer_guest::SHARE);
    let output = shape("perfect", &["--twice"], &script);
    let said = said(&output);
    assert_eq!(output.status.code(), Some(1), "{said}");
    assert!(said.contains("the log of packets is gone"), "{said}");
}

/// The shop of `examples/shop`, whose bug a lost answer uncovers.
#[test]
fn a_bug_that_one_loss_uncovers_is_found_by_seeds_and_met_again_under_gdb() {
    let Some(_alone) = kernel() else { return };
    if !Path::new("/usr/bin/gdb").exists() {
        assert!(
            std::env::var_os("LAGOMETER_REQUIRE_KERNEL").is_none(),
            "LAGOMETER_REQUIRE_KERNEL is set, but gdb is missing: apt-get install gdb"
        );
        println!("skipped: gdb is missing: apt-get install gdb");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let shop = folder.path().join("shop").display().to_string();
    let source = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/shop/shop.c");
    let built = Command::new("cc")
        .args(["-g", "-o", &shop, source])
        .status();
    assert!(built.unwrap().success());
    let play = |seed: u32, server: &str| {
        let flags = ["--seed", &seed.to_string(), "--server", server];
        shape(
            "loss-1",
            &flags,
            &format!("timeout 20 {shop} play $LAGOMETER_SERVER"),
        )
    };
    let serve = format!("exec {shop} serve");
    let plays: Vec<Output> = (1..=6).map(|seed| play(seed, &serve)).collect();
    let fails = |play: &Output| play.status.code() == Some(1);
    let bad = plays
        .iter()
        .position(fails)
        .expect("a seed that uncovers it");
    assert!(!plays.iter().all(fails), "every seed uncovers it");
    // The second sale of one item, and when it was.
    let printed = said(&plays[bad]);
    let sales: Vec<&str> = printed
        .lines()
        .filter(|line| line.contains(" sold, "))
        .collect();
    let item = |line: &str| line.split(" sold").next().map(|line| line[14..].to_owned());
    let again = sales.windows(2).find(|two| item(two[0]) == item(two[1]));
    let at = &again.expect("one item sold twice")[1][..14];
    // The same seed again, and the debugger stops there, having taken no time.
    let gdb = format!(
        "exec gdb -q -batch -ex 'break sell if gold != (51 - item) * 3' -ex run -ex backtrace \
         -ex kill --args {shop} serve"
    );
    let stopped = said(&play(bad as u32 + 1, &gdb));
    let breakpoint = stopped
        .lines()
        .find(|line| line.contains("Breakpoint 1, sell "));
    assert!(
        breakpoint.is_some_and(|line| line.starts_with(at)),
        "{at} in\n{stopped}"
    );
}

#[test]
fn an_ordinary_user_shapes_a_program_from_a_folder_with_an_odd_name() {
    let Some((kernel, _alone)) = kernel() else {
        return;
    };
    let place = tempfile::tempdir().unwrap();
    let (odd, mut command) = ordinary_user(place.path(), &kernel);
    // The user may write here, and does not.
    fs::set_permissions(&odd, fs::Permissions::from_mode(0o777)).unwrap();
    let network = "summary = \"a test\"\n[both]\ndelay = \"10 ms\"\n";
    fs::write(odd.join("my network.toml"), network).unwrap();
    command.args(["shape", "./my network.toml", "--testbed", "kernel", "--"]);
    command.args([
        "sh",
        "-c",
        "pwd; ping -c1 $LAGOMETER_SERVER >/dev/null; echo x > here; ls; id -u",
    ]);
    let output = command.output().unwrap();
    assert!(output.status.success(), "{}", said(&output));
    let printed = printed(&output);
    assert!(printed.contains(odd.to_str().unwrap()), "{printed}");
    assert!(printed.contains("] here\n"), "{printed}");
    assert_left_alone(&odd);
}

#[test]
fn flags_of_the_guest_need_the_guest() {
    for flag in [
        &["--twice"][..],
        &["--keep", "x"],
        &["--plain"],
        &["--kernel", "6.1"],
    ] {
        let output = lagometer(&["shape", "perfect"])
            .args(flag)
            .args(["--", "true"])
            .output()
            .unwrap();
        assert_eq!(output.status.code(), Some(2), "{flag:?}: {}", said(&output));
    }
}
