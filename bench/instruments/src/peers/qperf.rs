//! `qperf`: latency is half of the round trip, bandwidth what was sent and
//! received.

use std::time::Duration;

use crate::command::{Bench, Placement, Server, free_port, on, printed};

/// The figures of one test at one size, by name: `latency` in microseconds,
/// `bw`, `send_bw`, `recv_bw` in megabits each second.
pub(crate) fn figure(
    bench: &Bench,
    placement: Placement,
    kind: &str,
    size: usize,
    name: &str,
) -> Result<f64, String> {
    let port = free_port()?.to_string();
    let [server_cpu, client_cpu] = placement.cpus();
    let mut server = on(server_cpu, "qperf");
    server.args(["-lp", &port]);
    let _server = Server::start(server)?;
    let mut client = on(client_cpu, "qperf");
    client
        .args([
            "-lp",
            &port,
            "-t",
            &bench.seconds.to_string(),
            "127.0.0.1",
            "-ub",
        ])
        .args(["-oo", &format!("msg_size:{size}"), "-vu", kind]);
    let text = printed(client, Duration::from_secs(u64::from(bench.seconds) + 10))?;
    // "    latency   =  2.13 us", "    bw        =  28.5 Mb/sec"
    text.lines()
        .find_map(|line| {
            let (key, value) = line.split_once('=')?;
            (key.trim() == name).then(|| in_base_units(value.trim()))?
        })
        .ok_or_else(|| format!("qperf reported no {name}"))
}

/// Microseconds, or megabits each second.
fn in_base_units(written: &str) -> Option<f64> {
    let (number, unit) = written.split_once(' ')?;
    let number: f64 = number.replace(',', "").parse().ok()?;
    let factor = match unit.trim() {
        "ns" | "Kb/sec" => 1e-3,
        "us" | "Mb/sec" => 1.0,
        "ms" | "Gb/sec" => 1e3,
        "bits/sec" | "b/sec" => 1e-6,
        "sec" | "Tb/sec" => 1e6,
        _ => return None,
    };
    Some(number * factor)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_understood() {
        assert_eq!(in_base_units("2.13 us"), Some(2.13));
        assert_eq!(in_base_units("16 Gb/sec"), Some(16_000.0));
        assert_eq!(in_base_units("28.5 parsecs"), None);
    }
}
