//! The peer of the TCP lanes: iperf3, pinned likewise.

use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

const PORT: &str = "15201";

/// Megabits received in each second with the congestion control named, or why
/// there is no such figure.
pub(crate) fn mbit_per_s(congestion: Option<&str>, duration: Duration) -> Result<f64, String> {
    let serve = Command::new("iperf3")
        .args(["-s", "-p", PORT, "-1", "-A", "1", "-B", "127.0.0.1"])
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut server = serve.map_err(|why| format!("iperf3: {why}; apt-get install iperf3"))?;
    thread::sleep(Duration::from_millis(300));
    let found = client(congestion, duration);
    end(&mut server);
    found
}

fn client(congestion: Option<&str>, duration: Duration) -> Result<f64, String> {
    let mut command = Command::new("iperf3");
    command.args(["-c", "127.0.0.1", "-p", PORT, "-A", "0", "-J", "-t"]);
    command.arg(duration.as_secs().max(1).to_string());
    if let Some(congestion) = congestion {
        command.args(["-C", congestion]);
    }
    let output = command.output().map_err(|why| why.to_string())?;
    let told: serde_json::Value =
        serde_json::from_slice(&output.stdout).map_err(|why| why.to_string())?;
    told.pointer("/end/sum_received/bits_per_second")
        .and_then(serde_json::Value::as_f64)
        .map(|bits| bits / 1e6)
        .ok_or_else(|| told["error"].as_str().unwrap_or("no figure").to_owned())
}

/// It ends by itself after one client; where none came, now.
fn end(server: &mut Child) {
    let _ = server.kill();
    let _ = server.wait();
}
