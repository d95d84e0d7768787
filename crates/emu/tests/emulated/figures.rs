//! What the audit says is what was done.

use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use lagometer_emu::{LaneAddresses, Settings, Waiting};
use libtest_mimic::Trial;

use crate::bench::{network, network_with, udp_pair};

pub(crate) fn tests() -> Vec<Trial> {
    vec![
        test("delay_and_loss_are_what_was_asked", delay_and_loss),
        test("the_rate_is_what_was_asked", rate),
        test("every_way_of_waiting_is_never_early", never_early),
        test("the_log_has_every_packet_and_its_fate", log),
        test(
            "nothing_is_lost_at_twenty_thousand_packets_a_second",
            twenty_kpps,
        ),
    ]
}

fn test(name: &str, body: fn()) -> Trial {
    Trial::test(name, move || {
        body();
        Ok(())
    })
}

fn delay_and_loss() {
    let network = network(&["[both]\ndelay = \"20 ms\"\nloss = \"10 %\"\n"]);
    let addresses = LaneAddresses::of(0);
    let (local, remote) = udp_pair(&network, addresses.local_v4, addresses.remote_v4);
    let receiver = thread::spawn(move || {
        remote
            .set_read_timeout(Some(Duration::from_millis(500)))
            .unwrap();
        std::iter::repeat_with(|| remote.recv(&mut [0; 200]))
            .take_while(Result::is_ok)
            .count() as u64
    });
    for _ in 0..1000 {
        local.send(&[0; 100]).unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    let arrived = receiver.join().unwrap();
    let audit = network.stop().unwrap().audit;
    let up = &audit.lanes[0].up;
    assert_eq!(up.packets, 1000);
    assert_eq!(up.delivered, arrived);
    assert_eq!(up.on_their_way, 0);
    assert_eq!(up.dropped["loss"] + arrived, 1000);
    assert!((up.asked.loss_pct - up.realised.loss_pct).abs() < 1e-9);
    // Ten per cent, give or take five standard deviations.
    assert!((up.realised.loss_pct - 10.0).abs() < 4.8, "{up:?}");
    assert!((up.asked.delay_ms.p50 - 20.0).abs() < 0.05, "{up:?}");
    assert!(up.realised.delay_ms.p50 >= up.asked.delay_ms.p50, "{up:?}");
    assert!(
        up.realised.delay_ms.p50 < 2.0 * up.asked.delay_ms.p50,
        "{up:?}"
    );
    assert_eq!(audit.release_error_us.count, arrived);
}

fn rate() {
    let network = network(&["[up]\nrate = \"8 Mbit/s\"\nqueue = \"100 ms\"\n"]);
    let addresses = LaneAddresses::of(0);
    let (local, _remote) = udp_pair(&network, addresses.local_v6, addresses.remote_v6);
    let began = Instant::now();
    while began.elapsed() < Duration::from_millis(800) {
        // 16 Mbit/s or less, as far as sleeping permits.
        local.send(&[0; 952]).unwrap();
        local.send(&[0; 952]).unwrap();
        thread::sleep(Duration::from_millis(1));
    }
    let audit = network.stop().unwrap().audit;
    let up = &audit.lanes[0].up;
    assert!(up.realised.rate_mbit_per_s < 8.4, "{up:?}");
    assert!(up.asked.peak_mbit_per_s < 8.2, "{up:?}");
    assert!(
        up.realised.rate_mbit_per_s > 0.9 * up.asked.rate_mbit_per_s,
        "{up:?}"
    );
}

fn never_early() {
    for waiting in [Waiting::Sleep, Waiting::default(), Waiting::Spin] {
        let settings = Settings {
            waiting,
            ..Settings::default()
        };
        let network = network_with(&settings, &["[both]\ndelay = \"3 ms\"\n"]);
        let addresses = LaneAddresses::of(0);
        let (local, remote) = udp_pair(&network, addresses.local_v4, addresses.remote_v4);
        for _ in 0..20 {
            let sent = Instant::now();
            local.send(b"x").unwrap();
            remote.recv(&mut [0; 10]).unwrap();
            assert!(sent.elapsed() >= Duration::from_millis(3));
        }
        let audit = network.stop().unwrap().audit;
        assert_eq!(audit.waiting, waiting.name());
        assert_eq!(audit.release_error_us.count, 20);
        assert!(audit.router_cpu_pct > 0.0);
        // Whoever always sleeps does so for a clock on which computing takes no time.
        let kernel_used = audit.lanes[0].up.kernel_used;
        let is_known = kernel_used.map(|used| !used.is_zero());
        assert_eq!(is_known, (waiting != Waiting::Sleep).then_some(true));
    }
}

fn log() {
    let path = std::env::temp_dir().join(format!("lagometer-log-{}.pcapng", std::process::id()));
    let settings = Settings {
        log: Some(path.clone()),
        ..Settings::default()
    };
    let network = network_with(
        &settings,
        &["[up]\nloss = \"100 %\"\n[down]\ndelay = \"5 ms\"\n"],
    );
    let addresses = LaneAddresses::of(0);
    let (local, remote) = udp_pair(&network, addresses.local_v4, addresses.remote_v4);
    local.send(b"lost").unwrap();
    remote.send(b"found").unwrap();
    local.recv(&mut [0; 10]).unwrap();
    let summary = network.stop().unwrap().log.unwrap();
    let file = std::fs::read(&path).unwrap();
    // Where Wireshark's own reader is installed, it must agree.
    let shark = Command::new("tshark").arg("-r").arg(&path).output();
    std::fs::remove_file(&path).unwrap();
    assert_eq!((summary.packets, summary.missing), (2, 0));
    assert_eq!(summary.failure, None);
    let text = String::from_utf8_lossy(&file);
    assert!(text.contains("dropped: loss"));
    assert!(text.contains("arrives after 5.000 ms"));
    assert!(text.contains("lane 0 down"));
    match shark {
        Ok(shark) => {
            let said = String::from_utf8_lossy(&shark.stderr);
            assert!(shark.status.success(), "{said}");
            let packets = String::from_utf8_lossy(&shark.stdout).lines().count();
            assert_eq!(packets, 2, "{said}");
        }
        Err(error) => {
            assert!(
                std::env::var_os("LAGOMETER_REQUIRE_TSHARK").is_none(),
                "LAGOMETER_REQUIRE_TSHARK is set, but tshark cannot be started: {error}"
            );
            println!("skipped: tshark does not read the log: {error}");
        }
    }
}

fn twenty_kpps() {
    const PACKETS: u32 = 10_000;
    let network = network(&["[both]\ndelay = \"20 ms\"\n"]);
    let addresses = LaneAddresses::of(0);
    // Nobody reads: what is measured is the way there.
    let (local, _remote) = udp_pair(&network, addresses.local_v4, addresses.remote_v4);
    let began = Instant::now();
    for nth in 0..PACKETS {
        // Twenty for each millisecond.
        while began.elapsed() < Duration::from_micros(u64::from(nth) * 50) {
            thread::sleep(Duration::from_micros(200));
        }
        local.send(&[0; 500]).unwrap();
    }
    // The slowest of them is on its way for 20 ms.
    thread::sleep(Duration::from_millis(200));
    let audit = network.stop().unwrap().audit;
    let up = &audit.lanes[0].up;
    assert_eq!(up.packets, u64::from(PACKETS), "{up:?}");
    assert_eq!(up.delivered, u64::from(PACKETS), "{up:?}");
    assert_eq!(up.lost_by_accident(), 0, "{up:?}");
}
