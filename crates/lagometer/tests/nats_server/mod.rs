//! A NATS server of a test's own, with `JetStream`.

use std::fs;
use std::path::PathBuf;
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
    #[allow(dead_code, reason = "only who starts it again needs it")]
    folder: PathBuf,
    pub(crate) url: String,
}

impl NatsServer {
    /// Starts one on any port, which keeps what it has below `folder`. `None` where there is
    /// none to start.
    pub(crate) fn start(folder: PathBuf) -> Option<Self> {
        let (child, url) = start(&folder, -1)?;
        Some(Self { child, folder, url })
    }

    /// Kills it. What it has written stays.
    pub(crate) fn kill(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    /// Starts it again where it was.
    #[allow(dead_code, reason = "not every test kills it")]
    pub(crate) fn start_again(&mut self) {
        let port = self.url.rsplit(':').next().unwrap().parse().unwrap();
        let (child, url) = start(&self.folder, port).expect("it was there before");
        assert_eq!(url, self.url);
        self.child = child;
    }

    /// Its address, without the scheme.
    #[allow(dead_code, reason = "not every test speaks to it by itself")]
    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("nats://")
    }
}

impl Drop for NatsServer {
    fn drop(&mut self) {
        self.kill();
    }
}

fn start(folder: &std::path::Path, port: i32) -> Option<(Child, String)> {
    let path = |name: &str| folder.join(name).display().to_string();
    let config = format!(
        "listen: \"127.0.0.1:{port}\"\nports_file_dir: \"{}\"\njetstream {{ store_dir: \"{}\" }}\n",
        path(""),
        path("store")
    );
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
