//! Bulk speed against what a user would otherwise pick: the C reference of KCP
//! over plain sockets, and iperf3.
//!
//! Ours and the peer run in turns, each sender pinned to processor 0 and each
//! receiver to processor 1; a ratio is that of one turn, and what is printed
//! is the median over the turns with the least and the most. Ours compares
//! every byte that arrives; the peers do not.
//!
//! ```text
//! cargo bench -p lagometer-instruments --bench speed [-- WORDS]
//! ```
//!
//! `WORDS` choose the rows whose names contain one of them. `--turns=N` and
//! `--for=SECONDS` change how often and how long; `--ours` plays ours alone,
//! for a profiler.

mod iperf;
mod reference;

use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lagometer_far::{Far, Registry};
use lagometer_instruments::speed::{LanePlan, Pin, Plan, SpeedService, measure};
use lagometer_stats::Bulk;
use lagometer_units::Size;
use reference::Case;
use serde_json::{Value, json};

/// A row: one of our lanes, and what it is held against.
struct Row {
    name: &'static str,
    lane: &'static str,
    settings: Value,
    every: Option<Duration>,
    chunk: Option<Size>,
    peer: Peer,
    /// The ratio that is to be reached.
    target: f64,
}

enum Peer {
    Reference(Case),
    Iperf(Option<&'static str>),
    /// A rate in megabits for each second.
    Rate(f64),
}

fn main() {
    let mut words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| word != "--bench")
        .collect();
    let turns = number(&mut words, "--turns=").unwrap_or(5.0) as usize;
    let duration = Duration::from_secs_f64(number(&mut words, "--for=").unwrap_or(2.0));
    let alone = words.iter().any(|word| word == "--ours");
    words.retain(|word| !word.starts_with('-'));
    println!("payload received, Mbit/s; median of {turns} turns of {duration:?} (least to most)");
    for row in rows() {
        if words.is_empty() || words.iter().any(|word| row.name.contains(word.as_str())) {
            compare(&row, turns, duration, alone);
        }
    }
}

fn rows() -> Vec<Row> {
    let kcp = |mtu: u16, window: u16| {
        json!({
            "nodelay": 1, "interval": "10 ms", "resend": 2, "nc": true,
            "mtu": format!("{mtu} B"), "send_window": window, "receive_window": window,
        })
    };
    let reference = |mtu, window| Peer::Reference(Case { mtu, window });
    let row = |name, lane, settings, peer, target| Row {
        name,
        lane,
        settings,
        every: None,
        chunk: None,
        peer,
        target,
    };
    vec![
        row(
            "kcp-1400",
            "kcp",
            kcp(1400, 1024),
            reference(1400, 1024),
            3.0,
        ),
        row(
            "kcp-65507",
            "kcp",
            kcp(65_507, 256),
            reference(65_507, 256),
            1.0,
        ),
        Row {
            every: Some(Duration::from_micros(100)),
            chunk: Some(Size(62_000)),
            ..row(
                "kcp-62kb-each-100us",
                "kcp",
                kcp(1400, 1024),
                Peer::Rate(4960.0),
                1.0,
            )
        },
        row("tcp-default", "tcp", json!({}), Peer::Iperf(None), 1.0),
        row(
            "tcp-cubic",
            "tcp-cubic",
            json!({}),
            Peer::Iperf(Some("cubic")),
            1.0,
        ),
    ]
}

fn compare(row: &Row, turns: usize, duration: Duration, alone: bool) {
    let (mut ours, mut theirs, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
    let mut how = String::new();
    for _ in 0..turns {
        let bulk = match own(row, duration) {
            Ok(bulk) => bulk,
            Err(why) => return println!("{:<22} ours: {why}", row.name),
        };
        how = format!(
            "{}, {:.2}+{:.2} CPU s/GB",
            bulk.path,
            bulk.send_cpu_s_per_gb.unwrap_or(0.0),
            bulk.recv_cpu_s_per_gb.unwrap_or(0.0)
        );
        ours.push(bulk.recv_mbit_per_s);
        if alone {
            continue;
        }
        match peer(row, duration) {
            Ok(rate) => {
                theirs.push(rate);
                ratios.push(bulk.recv_mbit_per_s / rate);
            }
            Err(why) => return println!("{:<22} peer: {why}", row.name),
        }
    }
    println!(
        "{:<22} ours {}  peer {}  ratio {} of {:.1}  [{how}]",
        row.name,
        spread(&mut ours, 0),
        spread(&mut theirs, 0),
        spread(&mut ratios, 2),
        row.target,
    );
}

fn own(row: &Row, duration: Duration) -> Result<Bulk, String> {
    let settings = row.settings.as_object().cloned().unwrap_or_default();
    let lane = LanePlan::resolve(row.lane, &settings).map_err(|why| why.to_string())?;
    let plan = Plan {
        duration,
        every: row.every,
        chunk: row.chunk,
        pin: Some(Pin {
            send: 0,
            receive: 1,
        }),
        ..Plan::default()
    };
    let far = Far::own(Registry::new().with(SpeedService)).map_err(|why| why.to_string())?;
    let found = measure(&far, &plan, &lane, &mut |_| {}, &AtomicBool::new(false));
    match (found.failure, found.bulk) {
        (None, Some(bulk)) => Ok(bulk),
        (why, _) => Err(why.unwrap_or_default()),
    }
}

fn peer(row: &Row, duration: Duration) -> Result<f64, String> {
    match row.peer {
        Peer::Reference(case) => Ok(reference::mbit_per_s(case, duration)),
        Peer::Iperf(congestion) => iperf::mbit_per_s(congestion, duration),
        Peer::Rate(rate) => Ok(rate),
    }
}

/// `median (least to most)`.
fn spread(values: &mut [f64], decimals: usize) -> String {
    values.sort_by(f64::total_cmp);
    match (values.first(), values.get(values.len() / 2), values.last()) {
        (Some(least), Some(median), Some(most)) => {
            format!("{median:.decimals$} ({least:.decimals$} to {most:.decimals$})")
        }
        _ => "-".to_owned(),
    }
}

/// Takes `PREFIXnumber` out of the words.
fn number(words: &mut Vec<String>, prefix: &str) -> Option<f64> {
    let at = words.iter().position(|word| word.starts_with(prefix))?;
    words.remove(at).strip_prefix(prefix)?.parse().ok()
}
