//! A NATS server of a test's own, with `JetStream`.

use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::Value;

/// The longest that its start may take.
const START_AT_MOST: Duration = Duration::from_mins(1);

/// Whether there is one to start. Where `LAGOMETER_REQUIRE_NATS` is set there has to be.
#[allow(dead_code, reason = "others start one at once")]
pub(crate) fn is_there() -> bool {
    let version = Command::new("nats-server").arg("--version").output();
    let is_needed = std::env::var_os("LAGOMETER_REQUIRE_NATS").is_some();
    assert!(
        version.is_ok() || !is_needed,
        "LAGOMETER_REQUIRE_NATS is set, and there is no nats-server"
    );
    version.is_ok()
}

/// A NATS server; killed when dropped.
pub(crate) struct NatsServer {
    child: Child,
    folder: PathBuf,
    pub(crate) url: String,
}

#[allow(dead_code, reason = "not every test needs all of it")]
impl NatsServer {
    /// Starts one on any port, which keeps what it has below `folder`. `None` where there is
    /// none to start.
    pub(crate) fn start(folder: PathBuf) -> Option<Self> {
        Self::start_with(folder, "", "")
    }

    /// Starts one with settings of its `JetStream`, and others, in its configuration's words.
    pub(crate) fn start_with(folder: PathBuf, jetstream: &str, others: &str) -> Option<Self> {
        let store = folder.join("store");
        let store = store.display();
        let settings = format!("jetstream {{ store_dir: \"{store}\", {jetstream} }}\n{others}");
        Self::configured(folder, &settings)
    }

    /// Starts one with these settings alone.
    pub(crate) fn configured(folder: PathBuf, settings: &str) -> Option<Self> {
        fs::create_dir_all(&folder).unwrap();
        let path = |name: &str| folder.join(name).display().to_string();
        let config = format!("ports_file_dir: \"{}\"\n{settings}\n", path(""));
        fs::write(path("settings.conf"), config).unwrap();
        let (child, url) = launch(&folder, -1)?;
        Some(Self { child, folder, url })
    }

    /// Starts three that are a cluster, and waits until they have a leader.
    pub(crate) fn start_cluster(folder: &Path) -> Option<Vec<Self>> {
        // Held until all are known, so that they differ.
        let free: Vec<TcpListener> = (0..3)
            .map(|_| TcpListener::bind("127.0.0.1:0").unwrap())
            .collect();
        let ports: Vec<u16> = free
            .iter()
            .map(|it| it.local_addr().unwrap().port())
            .collect();
        drop(free);
        let routes: Vec<String> = ports
            .iter()
            .map(|port| format!("\"nats://127.0.0.1:{port}\""))
            .collect();
        let servers: Option<Vec<Self>> = (0..3)
            .map(|index| {
                let others = format!(
                    "server_name: n{index}\ncluster {{ name: tests, listen: \"127.0.0.1:{}\", \
                     routes: [{}] }}",
                    ports[index],
                    routes.join(", ")
                );
                Self::start_with(folder.join(format!("nats-{index}")), "", &others)
            })
            .collect();
        let servers = servers?;
        let until = Instant::now() + START_AT_MOST;
        while servers[0].ask("$JS.API.INFO", "").get("memory").is_none() {
            assert!(Instant::now() < until, "the cluster has no leader");
            thread::sleep(Duration::from_millis(50));
        }
        Some(servers)
    }

    /// Kills it. What it has written stays.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again where it was.
    pub(crate) fn start_again(&mut self) {
        let port = self.url.rsplit(':').next().unwrap().parse().unwrap();
        let (child, url) = launch(&self.folder, port).expect("it was there before");
        assert_eq!(url, self.url);
        self.child = child;
    }

    /// Its address, without the scheme.
    pub(crate) fn address(&self) -> &str {
        self.url.split("://").nth(1).unwrap()
    }

    /// What it has said.
    pub(crate) fn log(&self) -> String {
        fs::read_to_string(self.folder.join("nats.log")).unwrap_or_default()
    }

    /// Asks one of its own services; `null` where none answers within a second.
    pub(crate) fn ask(&self, subject: &str, request: &str) -> Value {
        let mut stream = BufReader::new(TcpStream::connect(self.address()).unwrap());
        let within = Some(Duration::from_secs(1));
        stream.get_ref().set_read_timeout(within).unwrap();
        let said = format!(
            "CONNECT {{\"verbose\":false}}\r\nSUB answer 1\r\nPUB {subject} answer {}\r\n{request}\r\n",
            request.len()
        );
        stream.get_mut().write_all(said.as_bytes()).unwrap();
        let mut line = String::new();
        while stream.read_line(&mut line).is_ok_and(|length| length > 0) {
            if line.starts_with("MSG ") {
                let length = line.trim_end().rsplit(' ').next().unwrap();
                let mut answer = vec![0; length.parse().unwrap()];
                stream.read_exact(&mut answer).unwrap();
                return serde_json::from_slice(&answer).unwrap();
            }
            line.clear();
        }
        Value::Null
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn launch(folder: &Path, port: i32) -> Option<(Child, String)> {
    let path = |name: &str| folder.join(name).display().to_string();
    let config = format!("listen: \"127.0.0.1:{port}\"\ninclude \"settings.conf\"\n");
    fs::write(path("nats.conf"), config).unwrap();
    let mut command = Command::new("nats-server");
    command.args(["-c", &path("nats.conf"), "-l", &path("nats.log")]);
    let child = match command.stdout(Stdio::null()).stderr(Stdio::null()).spawn() {
        Ok(child) => child,
        Err(why) => {
            let is_needed = std::env::var_os("LAGOMETER_REQUIRE_NATS").is_some();
            assert!(
                !is_needed,
                "LAGOMETER_REQUIRE_NATS is set, but nats-server: {why}"
            );
            eprintln!("skipped: nats-server: {why}");
            return None;
        }
    };
    let ports = path(&format!("nats-server_{}.ports", child.id()));
    let until = Instant::now() + START_AT_MOST;
    loop {
        let written = fs::read_to_string(&ports).unwrap_or_default();
        if let Ok(ports) = serde_json::from_str::<Value>(&written) {
            let url = ports["nats"][0].as_str().unwrap().to_owned();
            return Some((child, url));
        }
        let log = fs::read_to_string(path("nats.log")).unwrap_or_default();
        assert!(Instant::now() < until, "nats-server does not start: {log}");
        thread::sleep(Duration::from_millis(10));
    }
}
