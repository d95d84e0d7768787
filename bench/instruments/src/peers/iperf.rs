//! `iperf3`, the sender on processor 0 and the receiver on processor 1.

use std::process::Command;
use std::time::Duration;

use serde_json::Value;

use crate::command::{Bench, Server, free_port, printed};

/// Megabits received each second over TCP, under the congestion control named
/// or the system's own.
pub(crate) fn tcp(bench: &Bench, congestion: Option<&str>) -> Result<f64, String> {
    let port = free_port()?.to_string();
    let mut server = Command::new("iperf3");
    server.args(["-s", "-1", "-A", "1", "-B", "127.0.0.1", "-p", &port]);
    let _server = Server::start(server)?;
    let mut client = Command::new("iperf3");
    client.args(["-c", "127.0.0.1", "-p", &port, "-A", "0", "-J", "-t"]);
    client.arg(bench.seconds.to_string());
    if let Some(congestion) = congestion {
        client.args(["-C", congestion]);
    }
    let text = printed(client, Duration::from_secs(u64::from(bench.seconds) + 10))?;
    let report: Value = serde_json::from_str(&text).map_err(|error| error.to_string())?;
    report
        .pointer("/end/sum_received/bits_per_second")
        .and_then(Value::as_f64)
        .map(|bits| bits / 1e6)
        .ok_or_else(|| report["error"].as_str().unwrap_or("no figure").to_owned())
}
