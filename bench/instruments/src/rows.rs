//! The rows of the table. To add one: say what is measured, who takes part,
//! and what is demanded.

use std::time::Duration;

use crate::PLACEMENTS;
use crate::command::{Bench, Placement};
use crate::contest::{Contender, Row};
use crate::peers::kcp::Case;
use crate::peers::{asio, iperf, kcp, qperf, sockperf};
use crate::raw::{self, Waiting};

/// Every row.
pub(crate) fn all() -> Vec<Row> {
    let mut rows = Vec::new();
    for (name, placement) in PLACEMENTS {
        echo(&mut rows, name, placement, Waiting::Asleep);
    }
    echo(&mut rows, "cross-spin", Placement::Cross, Waiting::Spinning);
    rows.push(unplaced());
    for (name, placement) in PLACEMENTS {
        for size in [1, 16 << 10] {
            for test in ["tcp_lat", "udp_lat"] {
                rows.push(sweep(test, size, name, placement, "latency"));
            }
            rows.push(sweep("tcp_bw", size, name, placement, "bw"));
            rows.push(sweep("udp_bw", size, name, placement, "recv_bw"));
        }
    }
    rows.push(batched(1, 10.0));
    rows.push(batched(1400, 8.0));
    bulk(&mut rows);
    rows
}

/// Bulk transfers against `iperf3` under the same congestion control, and
/// against the C reference of KCP over plain sockets.
fn bulk(rows: &mut Vec<Row>) {
    for (lane, congestion) in [
        ("tcp", None),
        ("tcp-cubic", Some("cubic")),
        ("tcp-bbr", Some("bbr")),
    ] {
        let peer = contender("iperf3", move |bench| iperf::tcp(bench, congestion));
        rows.push(speed(&format!("bulk-{lane}"), lane, Vec::new(), peer, 1.0));
    }
    for (mtu, window, at_least) in [(1400, 1024, 3.0), (65_507, 256, 1.0)] {
        let peer = contender("C reference", move |bench| {
            let span = Duration::from_secs(u64::from(bench.seconds));
            Ok(kcp::mbit_per_s(Case { mtu, window }, span))
        });
        let words = as_the_reference(mtu, window);
        rows.push(speed(
            &format!("bulk-kcp-{mtu}"),
            "kcp",
            words,
            peer,
            at_least,
        ));
    }
    // 62 KB each 100 µs are 4960 Mbit/s; a thousandth may be on its way.
    let offered = contender("offered", |_| Ok(4960.0));
    let clocked = ["--chunk", "62KB", "--every", "100us"].map(str::to_owned);
    let words = [as_the_reference(1400, 1024), clocked.to_vec()].concat();
    rows.push(speed(
        "bulk-kcp-62kb-each-100us",
        "kcp",
        words,
        offered,
        0.999,
    ));
}

/// The settings of the lane `kcp` that the reference runs with.
fn as_the_reference(mtu: u16, window: u16) -> Vec<String> {
    let settings = [
        "nodelay=1".to_owned(),
        "interval=10 ms".to_owned(),
        "resend=2".to_owned(),
        "nc=true".to_owned(),
        format!("mtu={mtu} B"),
        format!("send_window={window}"),
        format!("receive_window={window}"),
    ];
    let named = settings.map(|setting| ["--set".to_owned(), format!("kcp.{setting}")]);
    named.into_iter().flatten().collect()
}

/// A lane of `speed`, verified at the receiver, sender on processor 0 and
/// receiver on processor 1.
fn speed(name: &str, lane: &'static str, more: Vec<String>, peer: Contender, at_least: f64) -> Row {
    let ours = contender(&format!("lagometer speed {lane}"), move |bench| {
        let mut words = vec!["speed", "--lanes", lane, "--pin", "0,1"];
        words.extend(more.iter().map(String::as_str));
        bench.document(&words)?["lanes"][0]["recv_mbit_per_s"]
            .as_f64()
            .ok_or_else(|| "the document has no lane".to_owned())
    });
    Row {
        name: name.to_owned(),
        unit: "Mbit/s",
        less_is_better: false,
        ours,
        others: vec![peer],
        at_least,
    }
}

/// One test of the sweep at one size against qperf's figure `theirs`.
fn sweep(
    test: &'static str,
    size: usize,
    name: &str,
    placement: Placement,
    theirs: &'static str,
) -> Row {
    let is_latency = theirs == "latency";
    Row {
        name: format!("{test}-{size}-{name}"),
        unit: if is_latency { "µs, one way" } else { "Mbit/s" },
        less_is_better: is_latency,
        ours: ours_sweep(test, size, placement),
        others: vec![contender("qperf", move |bench| {
            qperf::figure(bench, placement, test, size, theirs)
        })],
        at_least: 1.0,
    }
}

/// Datagrams that share system calls against one call each, both ours.
fn batched(size: usize, at_least: f64) -> Row {
    Row {
        name: format!("batched-{size}"),
        unit: "Mbit/s",
        less_is_better: false,
        ours: ours_sweep("udp_bw_batched", size, Placement::Cross),
        others: vec![ours_sweep("udp_bw", size, Placement::Cross)],
        at_least,
    }
}

fn ours_sweep(test: &'static str, size: usize, placement: Placement) -> Contender {
    contender(&format!("lagometer {test}"), move |bench| {
        let size = size.to_string();
        let words = [
            "sweep",
            "--tests",
            test,
            "--sizes",
            &size,
            "--pin",
            placement.pin(),
        ];
        let document = bench.document(&words)?;
        let cell = &document["sweep"]["cells"][0];
        cell["latency_us"]
            .as_f64()
            .or_else(|| cell["recv_mbit_per_s"].as_f64())
            .ok_or_else(|| cell["failure"].to_string())
    })
}

/// Echo rate against the raw loop, and against others.
fn echo(rows: &mut Vec<Row>, name: &str, placement: Placement, waiting: Waiting) {
    let row = |suffix: &str, at_least, others| Row {
        name: format!("echo-{name}-{suffix}"),
        unit: "echoes/s, 8 B UDP",
        less_is_better: false,
        ours: ours_echo(placement, waiting),
        others,
        at_least,
    };
    let limit = contender("raw loop", move |bench| {
        let span = Duration::from_secs(u64::from(bench.seconds));
        raw::udp_echo(placement, waiting, 8, span)
    });
    rows.push(row("limit", 0.97, vec![limit]));
    let others = match waiting {
        Waiting::Spinning => vec![contender("sockperf --nonblocked", move |bench| {
            sockperf::echo(bench, placement, &["--nonblocked"])
        })],
        Waiting::Asleep => vec![
            contender("asio sync", move |bench| {
                asio::echo(bench, placement, "sync")
            }),
            contender("asio async", move |bench| {
                asio::echo(bench, placement, "async")
            }),
            contender("sockperf 14 B", move |bench| {
                sockperf::echo(bench, placement, &[])
            }),
            contender("qperf udp_lat", move |bench| {
                let latency = qperf::figure(bench, placement, "udp_lat", 8, "latency")?;
                Ok(1e6 / latency / 2.0)
            }),
        ],
    };
    rows.push(row("peers", 1.0, others));
}

fn ours_echo(placement: Placement, waiting: Waiting) -> Contender {
    contender("lagometer echo", move |bench| {
        let mut words = vec!["echo", "--size", "8", "--pin", placement.pin()];
        if waiting == Waiting::Spinning {
            words.push("--spin");
        }
        iops(bench, &words)
    })
}

/// What each gives where nobody asks for a placement.
fn unplaced() -> Row {
    Row {
        name: "echo-unplaced".to_owned(),
        unit: "echoes/s, 8 B UDP",
        less_is_better: false,
        ours: contender("lagometer echo", |bench| {
            iops(bench, &["echo", "--size", "8"])
        }),
        others: vec![contender("asio sync", |bench| {
            asio::echo(bench, Placement::Free, "sync")
        })],
        at_least: 4.0,
    }
}

fn iops(bench: &Bench, words: &[&str]) -> Result<f64, String> {
    bench.document(words)?["echo"]["iops"]
        .as_f64()
        .ok_or_else(|| "the document has no echo.iops".to_owned())
}

/// Names who takes part.
pub(crate) fn contender(
    name: &str,
    attempt: impl Fn(&Bench) -> Result<f64, String> + 'static,
) -> Contender {
    Contender {
        name: name.to_owned(),
        attempt: Box::new(attempt),
    }
}
