//! The dashboard against the real Prometheus: it scrapes a gateway that has
//! traffic, and every query of every panel gives data.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::running::{Gateway, PATIENCE, Talker};
use crate::{CREATE_GLOBAL, SUBSCRIBE, update};

struct Prometheus {
    child: Child,
    port: u16,
}

impl Drop for Prometheus {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether Prometheus is there; where it must be, its lack is a failure.
fn is_there() -> bool {
    let found = Command::new("prometheus")
        .arg("--version")
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .status()
        .is_ok();
    let required = std::env::var_os("LAGOMETER_REQUIRE_PROMETHEUS").is_some();
    assert!(
        found || !required,
        "prometheus is missing: apt-get install prometheus"
    );
    if !found {
        eprintln!("skipped: prometheus is missing (apt-get install prometheus)");
    }
    found
}

fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../deploy")
        .join(path)
}

impl Prometheus {
    fn start(folder: &Path, target: &str) -> Self {
        let config = format!(
            "global: {{ scrape_interval: 250ms }}\n\
             scrape_configs:\n- job_name: gateway\n  static_configs: [ {{ targets: [ \"{target}\" ] }} ]\n"
        );
        let path = folder.join("prometheus.yml");
        std::fs::write(&path, config).unwrap();
        // The system chooses a port that is free; it stays so for a moment.
        let free = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let child = Command::new("prometheus")
            .arg(format!("--config.file={}", path.display()))
            .arg(format!(
                "--storage.tsdb.path={}",
                folder.join("data").display()
            ))
            .arg(format!("--web.listen-address=127.0.0.1:{port}"))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Self { child, port }
    }

    /// The values that a query has now; none while there is no answer.
    fn query(&self, expression: &str) -> Vec<f64> {
        let Ok(mut stream) = TcpStream::connect(("127.0.0.1", self.port)) else {
            return Vec::new();
        };
        let body = format!("query={}", escaped(expression));
        let asked = write!(
            stream,
            "POST /api/v1/query HTTP/1.0\r\ncontent-type: application/x-www-form-urlencoded\r\n\
             content-length: {}\r\n\r\n{body}",
            body.len()
        );
        let mut answer = String::new();
        if asked.is_err() || stream.read_to_string(&mut answer).is_err() {
            return Vec::new();
        }
        let body = answer.split_once("\r\n\r\n").map_or("", |(_, body)| body);
        let Ok(answer) = serde_json::from_str::<Value>(body) else {
            return Vec::new();
        };
        assert_ne!(answer["status"], "error", "{expression}: {answer}");
        let results = answer["data"]["result"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        results
            .iter()
            .filter_map(|result| result["value"][1].as_str()?.parse().ok())
            .collect()
    }
}

fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        let _ = write!(escaped, "%{byte:02x}");
        escaped
    })
}

fn expressions() -> Vec<(String, String)> {
    let text = std::fs::read_to_string(deploy("grafana/dashboards/gateway.json")).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut all = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let title = panel["title"].as_str().unwrap().to_owned();
            let expression = target["expr"].as_str().unwrap();
            all.push((title, expression.replace("$__rate_interval", "5s")));
        }
    }
    assert!(all.len() > 30, "the dashboard has lost its panels");
    all
}

#[test]
fn every_panel_of_the_dashboard_has_data() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(&["--threads=1"]);
    let prometheus = Prometheus::start(folder.path(), &gateway.web.to_string());
    let mut master = Talker::let_in(gateway.servers);
    master.send(0, 3, CREATE_GLOBAL);
    master.until(3);
    let mut client = Talker::let_in(gateway.clients);
    client.send(0, 6, SUBSCRIBE);
    client.until(6);
    let mut waiting = expressions();
    let give_up = Instant::now() + PATIENCE;
    while !waiting.is_empty() {
        assert!(Instant::now() < give_up, "no data for {waiting:#?}");
        for _ in 0..10 {
            master.send(0, 8, &update("hello"));
            client.until(8);
            client.send(0, 100, b"to the owner");
            std::thread::sleep(Duration::from_millis(30));
        }
        waiting.retain(|(_, expression)| {
            // A quantile of nothing is not a number: that is no data either.
            !prometheus
                .query(expression)
                .iter()
                .any(|value| value.is_finite())
        });
    }
}

#[test]
fn the_configuration_and_its_rules_are_prometheus_own() {
    if !is_there() {
        return;
    }
    let checked = Command::new("promtool")
        .args(["check", "config"])
        .arg(deploy("prometheus/prometheus.yml"))
        .output()
        .unwrap();
    let told = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{told}");
    assert!(told.contains("3 rules found"), "{told}");
}

#[test]
fn channelds_names_and_labels_are_there() {
    let gateway = Gateway::start(&["--threads=0"]);
    for (name, label) in [
        ("messages_in", "connType"),
        ("messages_out", "connType"),
        ("packets_in", "connType"),
        ("packets_out", "connType"),
        ("packets_drop", "connType"),
        ("packets_frag", "connType"),
        ("packets_comb", "connType"),
        ("bytes_in", "connType"),
        ("bytes_out", "connType"),
        ("connection_closed", "connType"),
        ("connection_num", "type"),
    ] {
        for value in ["SERVER", "CLIENT"] {
            let count = gateway.count(&format!("{name}{{{label}=\"{value}\"}}"));
            assert_eq!(count, 0, "{name}");
        }
    }
    assert_eq!(gateway.count("channel_num{type=\"GLOBAL\"}"), 1);
    gateway.metric("channel_tick_duration{type=\"GLOBAL\"}");
    gateway.metric("process_cpu_seconds_total");
}
