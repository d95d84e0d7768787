//! The peer `sockperf ping-pong`: how it is run, and its figures read.

use std::time::Duration;

use crate::command::{Bench, Placement, Server, free_port, on, printed};

/// The smallest message it sends, in bytes.
const LEAST: &str = "14";

/// Echoes a second of 14 bytes, the least it can, with `options` for both
/// ends.
pub(crate) fn echo(bench: &Bench, placement: Placement, options: &[&str]) -> Result<f64, String> {
    let port = free_port()?.to_string();
    let [server_cpu, client_cpu] = placement.cpus();
    let mut server = on(server_cpu, "sockperf");
    server
        .args(["server", "-i", "127.0.0.1", "-p", &port])
        .args(options);
    let _server = Server::start(server)?;
    let mut client = on(client_cpu, "sockperf");
    client
        .args([
            "ping-pong",
            "-i",
            "127.0.0.1",
            "-p",
            &port,
            "-m",
            LEAST,
            "--full-rtt",
        ])
        .args(["-t", &bench.seconds.to_string()])
        .args(options);
    let text = printed(client, Duration::from_secs(u64::from(bench.seconds) + 10))?;
    // "sockperf: [Valid Duration] RunTime=1.000 sec; SentMessages=1; ReceivedMessages=1"
    let valid = text
        .lines()
        .find(|line| line.contains("[Valid Duration]"))
        .ok_or("sockperf found no valid duration")?;
    let number = |key: &str| -> Option<f64> {
        let rest = &valid[valid.find(key)? + key.len()..];
        let end = rest
            .find(|c: char| !(c.is_ascii_digit() || c == '.'))
            .unwrap_or(rest.len());
        rest[..end].parse().ok()
    };
    let echoes = number("ReceivedMessages=").ok_or("sockperf counts nothing")?;
    let span = number("RunTime=").ok_or("sockperf reports no time")?;
    Ok(echoes / span)
}
