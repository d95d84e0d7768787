//! Hosts with addresses of their own on one network, which know each other by
//! name: network namespaces, for which root is needed.

use std::fs;
use std::os::fd::AsFd as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::thread;
use std::time::Duration;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

/// The secret that all commands on them are given.
pub(crate) const SECRET: &str = "0123456789abcdef0123456789abcdef";

/// The host whose part it is to forward between the others.
const SWITCH: &str = "switch";

/// Hosts on one network. Gone with the value.
pub(crate) struct Hosts {
    tag: String,
    namespaces: Vec<String>,
    folders: Vec<PathBuf>,
}

impl Hosts {
    /// Hosts by what they are, each with the name by which all others know it.
    pub(crate) fn make(named: &[(&str, &str)]) -> Self {
        static MADE: AtomicU32 = AtomicU32::new(0);
        let nth = MADE.fetch_add(1, Ordering::Relaxed);
        let mut hosts = Self {
            tag: format!("lgm{}-{nth}", std::process::id()),
            namespaces: Vec::new(),
            folders: Vec::new(),
        };
        let mut addresses = vec!["127.0.0.1 localhost".to_owned()];
        for (address, (_, name)) in (1..).zip(named) {
            addresses.push(format!("10.79.0.{address} {name}"));
        }
        let addresses = addresses.join("\n") + "\n";
        let switch = hosts.add(SWITCH);
        ip(&["-n", &switch, "link", "add", "bridge", "type", "bridge"]);
        ip(&["-n", &switch, "link", "set", "bridge", "up"]);
        for (address, (host, _)) in (1..).zip(named) {
            let host = hosts.add(host);
            // `ip netns exec` puts these files in place of those of `/etc`.
            let folder = Path::new("/etc/netns").join(&host);
            fs::create_dir_all(&folder).unwrap();
            hosts.folders.push(folder.clone());
            fs::write(folder.join("hosts"), &addresses).unwrap();
            let port = format!("port{address}");
            ip(&[
                "link", "add", "eth0", "netns", &host, "type", "veth", "peer", "name", &port,
                "netns", &switch,
            ]);
            ip(&["-n", &switch, "link", "set", &port, "master", "bridge"]);
            ip(&["-n", &switch, "link", "set", &port, "up"]);
            let address = format!("10.79.0.{address}/24");
            ip(&["-n", &host, "address", "add", &address, "dev", "eth0"]);
            ip(&["-n", &host, "link", "set", "eth0", "up"]);
        }
        hosts
    }

    fn add(&mut self, host: &str) -> String {
        let name = self.name(host);
        ip(&["netns", "add", &name]);
        self.namespaces.push(name.clone());
        ip(&["-n", &name, "link", "set", "lo", "up"]);
        name
    }

    fn name(&self, host: &str) -> String {
        format!("{}-{host}", self.tag)
    }

    /// The binary on a host, as the container's entry point has it.
    pub(crate) fn command(&self, host: &str, arguments: &[String]) -> Command {
        let mut command = self.command_of(host, env!("CARGO_BIN_EXE_lagometer"));
        command
            .args(arguments)
            .env("LAGOMETER_SECRET", SECRET)
            .env("NO_COLOR", "1");
        command
    }

    /// A program on a host.
    pub(crate) fn command_of(&self, host: &str, program: &str) -> Command {
        let mut command = Command::new("ip");
        command.args(["netns", "exec", &self.name(host), program]);
        command
    }

    /// Does something on a host, in a thread of its own. Names are looked up as everywhere.
    pub(crate) fn within<T: Send>(&self, host: &str, work: impl FnOnce() -> T + Send) -> T {
        let namespace = Path::new("/run/netns").join(self.name(host));
        let namespace = fs::File::open(namespace).unwrap();
        let done = thread::scope(|scope| {
            let there = scope.spawn(|| {
                let network = Some(LinkNameSpaceType::Network);
                move_into_link_name_space(namespace.as_fd(), network).unwrap();
                work()
            });
            there.join()
        });
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Has the switch forward to and from a host again, or drop everything, which the host
    /// does not see. Hosts are counted from 1.
    #[allow(dead_code, reason = "only tests that cut hosts off need it")]
    pub(crate) fn connect(&self, number: u32, is_connected: bool) {
        let (switch, port) = (self.name(SWITCH), format!("port{number}"));
        let set: [&str; 5] = ["-n", &switch, "link", "set", &port];
        let master: &[&str] = if is_connected {
            &["master", "bridge"]
        } else {
            &["nomaster"]
        };
        ip(&[&set[..], master].concat());
    }

    /// Starts what serves on a host, and waits until it does at that port.
    pub(crate) fn serve(&self, host: &str, arguments: &[String], port: u16) -> Served {
        self.serve_by(host, &mut self.command(host, arguments), port)
    }

    /// The same by any command.
    pub(crate) fn serve_by(&self, host: &str, command: &mut Command, port: u16) -> Served {
        let child = command
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("`ip netns exec` runs");
        let mut served = Served(child);
        while !self.listens(host, port) {
            let ended = served.0.try_wait().unwrap();
            assert!(ended.is_none(), "{command:?} ended: {ended:?}");
            thread::sleep(Duration::from_millis(20));
        }
        served
    }

    /// Whether anything listens on a host at that port, by the kernel's table:
    /// the local address is its second column, and a listener's state `0A`.
    fn listens(&self, host: &str, port: u16) -> bool {
        let output = Command::new("ip")
            .args(["netns", "exec", &self.name(host)])
            .args(["cat", "/proc/net/tcp", "/proc/net/tcp6"])
            .output()
            .expect("`ip netns exec` runs");
        let table = String::from_utf8_lossy(&output.stdout);
        let wanted = format!(":{port:04X}");
        table.lines().any(|line| {
            let columns: Vec<&str> = line.split_whitespace().collect();
            columns.len() > 3 && columns[1].ends_with(&wanted) && columns[3] == "0A"
        })
    }
}

impl Drop for Hosts {
    fn drop(&mut self) {
        for host in &self.namespaces {
            let _ = Command::new("ip").args(["netns", "delete", host]).status();
        }
        for folder in &self.folders {
            let _ = fs::remove_dir_all(folder);
        }
    }
}

/// What serves until the value is gone.
pub(crate) struct Served(Child);

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

fn ip(arguments: &[&str]) {
    let output = Command::new("ip")
        .args(arguments)
        .output()
        .expect("iproute2 is there");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "ip {arguments:?}: {errors}");
}
