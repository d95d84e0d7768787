//! The dashboards against the real Prometheus: it scrapes a gateway that has
//! traffic and a world that is played, and every query of every panel gives
//! data.

use std::fmt::Write as _;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::Value;

use crate::nats_server::NatsServer;
use crate::running::{Gateway, TIMEOUT, Talker};
use crate::{CREATE_GLOBAL, SUBSCRIBE, update};

struct Prometheus {
    _child: Killed,
    port: u16,
}

/// A process that ends with this.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// An address of this machine's own that is free, and stays so for a moment.
fn free_address() -> SocketAddr {
    let free = TcpListener::bind("127.0.0.1:0").unwrap();
    free.local_addr().unwrap()
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
    /// Scrapes each address, as a job of its name.
    fn start(folder: &Path, targets: &[(&str, String)]) -> Self {
        let labelled = targets
            .iter()
            .map(|(job, target)| (*job, vec![("all", target.clone())]));
        Self::start_with_roles(folder, labelled)
    }

    /// Scrapes each address of a job, with the role that it is labelled with.
    fn start_with_roles<'a>(
        folder: &Path,
        jobs: impl IntoIterator<Item = (&'a str, Vec<(&'a str, String)>)>,
    ) -> Self {
        let mut config = "global: { scrape_interval: 250ms }\nscrape_configs:\n".to_owned();
        for (job, targets) in jobs {
            let _ = writeln!(config, "- job_name: {job}\n  static_configs:");
            for (role, target) in targets {
                let _ = writeln!(
                    config,
                    "  - {{ targets: [ \"{target}\" ], labels: {{ role: {role} }} }}"
                );
            }
        }
        let path = folder.join("prometheus.yml");
        std::fs::write(&path, config).unwrap();
        let port = free_address().port();
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
        Self {
            _child: Killed(child),
            port,
        }
    }

    /// Waits until each of `waiting` has data, while `meanwhile` goes on.
    fn answers(&self, mut waiting: Vec<(String, String)>, mut meanwhile: impl FnMut()) {
        let give_up = Instant::now() + TIMEOUT;
        while !waiting.is_empty() {
            assert!(Instant::now() < give_up, "no data for {waiting:#?}");
            meanwhile();
            // A quantile of nothing is not a number: that is no data either.
            waiting.retain(|(_, expression)| {
                let values = self.query(expression);
                !values.iter().any(|value| value.is_finite())
            });
        }
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

/// The panels' titles and queries of a dashboard.
fn expressions(dashboard: &str) -> Vec<(String, String)> {
    let path = deploy("grafana/dashboards").join(dashboard);
    let text = std::fs::read_to_string(path).unwrap();
    let dashboard: Value = serde_json::from_str(&text).unwrap();
    let mut all = Vec::new();
    for panel in dashboard["panels"].as_array().unwrap() {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let title = panel["title"].as_str().unwrap().to_owned();
            let expression = target["expr"].as_str().unwrap();
            all.push((title, expression.replace("$__rate_interval", "5s")));
        }
    }
    all
}

#[test]
fn every_panel_of_the_dashboard_has_data() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(&["--threads=1"]);
    let target = ("gateway", gateway.web.to_string());
    let prometheus = Prometheus::start(folder.path(), &[target]);
    let mut master = Talker::let_in(gateway.servers);
    master.send(0, 3, CREATE_GLOBAL);
    master.until(3);
    let mut client = Talker::let_in(gateway.clients);
    client.send(0, 6, SUBSCRIBE);
    client.until(6);
    let waiting = expressions("gateway.json");
    assert!(waiting.len() > 30, "the dashboard has lost its panels");
    prometheus.answers(waiting, || {
        for _ in 0..10 {
            master.send(0, 8, &update("hello"));
            client.until(8);
            client.send(0, 100, b"to the owner");
            std::thread::sleep(Duration::from_millis(30));
        }
    });
}

#[test]
fn every_panel_of_a_worlds_dashboard_has_data() {
    if !is_there() {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let gateway = Gateway::start(&["--chs=channel_settings_hifi.json"]);
    let export = free_address();
    let world = Command::new(env!("CARGO_BIN_EXE_lagometer"))
        .args(["world", "single", "--players=5", "--for=10min", "--no-html"])
        .arg(format!("--gateway={}", gateway.clients))
        .arg(format!("--servers={}", gateway.servers))
        .arg(format!("--metrics={}", gateway.web))
        .arg(format!("--export={export}"))
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    let world = Killed(world);
    let targets = [
        ("gateway", gateway.web.to_string()),
        ("world", export.to_string()),
    ];
    let prometheus = Prometheus::start(folder.path(), &targets);
    let waiting = expressions("world.json");
    assert!(waiting.len() > 15, "the dashboard has lost its panels");
    prometheus.answers(waiting, || std::thread::sleep(Duration::from_millis(250)));
    drop(world);
}

#[test]
fn every_panel_of_the_dashboard_of_nodes_has_data() {
    let folder = tempfile::tempdir().unwrap();
    if !is_there() {
        return;
    }
    let Some(nats) = NatsServer::start(folder.path().to_owned()) else {
        return;
    };
    let node = |role: &str| Gateway::start(&["--threads=1", role, "--nats", &nats.url]);
    let (channels, edge) = (node("--role=channels"), node("--role=edge"));
    let targets = [
        ("channels", channels.web.to_string()),
        ("edge", edge.web.to_string()),
    ];
    let prometheus = Prometheus::start_with_roles(folder.path(), [("gateway", targets.into())]);
    edge.until("ready", |edge| edge.get("/readyz").0 == 200);
    let mut master = Talker::let_in(edge.servers);
    master.send(0, 3, CREATE_GLOBAL);
    master.until(3);
    let mut client = Talker::let_in(edge.clients);
    client.send(0, 6, SUBSCRIBE);
    client.until(6);
    let waiting = expressions("gateway-nodes.json");
    assert!(waiting.len() > 20, "the dashboard has lost its panels");
    prometheus.answers(waiting, || {
        for _ in 0..10 {
            master.send(0, 8, &update("hello"));
            client.until(8);
            std::thread::sleep(Duration::from_millis(30));
        }
    });
    // Both roles have their label.
    for role in ["channels", "edge"] {
        let answering = format!("sum(up{{job=\"gateway\",role=\"{role}\"}})");
        assert_eq!(prometheus.query(&answering), [1.0], "{role}");
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
    let printed = String::from_utf8_lossy(&checked.stdout).into_owned();
    assert!(checked.status.success(), "{printed}");
    for (rules, count) in [("gateway.rules.yml", 4), ("nodes.rules.yml", 4)] {
        let checked = Command::new("promtool")
            .args(["check", "rules"])
            .arg(deploy("prometheus").join(rules))
            .output()
            .unwrap();
        let printed = String::from_utf8_lossy(&checked.stdout).into_owned();
        assert!(
            printed.contains(&format!("{count} rules found")),
            "{printed}"
        );
    }
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
    // Types of a game's own bear their names once there is one.
    let mut server = Talker::let_in(gateway.servers);
    for (number, name) in [(100, "TEST"), (104, "TEST4"), (107, "107"), (999, "OTHER")] {
        let message = lagometer_protocol::messages::channeldpb::CreateChannelMessage {
            channel_type: number,
            ..Default::default()
        };
        server.send(0, 3, &prost::Message::encode_to_vec(&message));
        server.until(3);
        // It is counted when the turn is over, which the answer may precede.
        let counted = format!("channel_num{{type=\"{name}\"}} 1\n");
        gateway.until(&counted, |gateway| {
            gateway.get("/metrics").1.contains(&counted)
        });
    }
    assert!(gateway.metric("process_virtual_memory_max_bytes") > 0.0);
    // Finer than whole seconds: it has hardly begun.
    let cpu_s = gateway.metric("process_cpu_seconds_total");
    assert!(cpu_s > 0.0 && cpu_s.fract() != 0.0, "{cpu_s}");
}
