//! A gateway of our own for one world: this program once more, as a process
//! of its own, so that its cost is apart from the generator's.

use std::io::Write as _;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use lagometer_world::Space;
use lagometer_world::real::Venue;

use crate::failure::Failure;

/// How long a gateway may take until it listens.
const GATEWAY_TIMEOUT: Duration = Duration::from_secs(10);

/// How often it is tried whether it does.
const POLL: Duration = Duration::from_millis(10);

/// A running gateway, which ends with this.
pub(super) struct OwnGateway {
    child: Child,
    venue: Venue,
}

impl OwnGateway {
    /// Starts a gateway as the published tests had theirs: ticks and windows
    /// of 20 ms, and clients that may do what players do. With a `space` it
    /// has that grid, and servers that break off may come back for what they
    /// had. Players speak `scheme`, as in `kcp`, and connect to `clients_at`,
    /// which may be every address; all else is on loopback.
    pub(super) fn start(
        space: Option<&Space>,
        scheme: &str,
        clients_at: Ipv4Addr,
    ) -> Result<Self, Failure> {
        let lacks = |what: &str, why: std::io::Error| {
            Failure::Environment(format!("no gateway of our own: {what}: {why}"))
        };
        let program = std::env::current_exe().map_err(|why| lacks("this program", why))?;
        let [servers, clients, metrics] =
            free_addresses().map_err(|why| lacks("a free port", why))?;
        let mut command = Command::new(program);
        command
            .args([
                "gateway",
                "--dev",
                "--cwm=false",
                "--loglevel=2",
                "--with-parent",
            ])
            .args(["--chs", "channel_settings_hifi.json"])
            .args(["--cfsm", "client_authoratative_fsm.json"])
            .args(["--sa", &servers.to_string()])
            .args([
                "--ca",
                &format!("{scheme}://{clients_at}:{}", clients.port()),
            ])
            .args(["--web", &metrics.to_string()])
            // Ctrl-C is for this program, which then ends the gateway.
            .process_group(0)
            .stdin(Stdio::null())
            .stdout(Stdio::null());
        if space.is_some() {
            // The grid comes by standard input: no file is left behind.
            command
                .args(["--scc", "/dev/stdin", "--scr"])
                .stdin(Stdio::piped());
        }
        let mut child = command.spawn().map_err(|why| lacks("its process", why))?;
        if let (Some(space), Some(mut stdin)) = (space, child.stdin.take()) {
            stdin
                .write_all(space.controller_json().as_bytes())
                .map_err(|why| lacks("its grid", why))?;
        }
        let began = Instant::now();
        // Both places are taken before either is served.
        while TcpStream::connect(servers).is_err() {
            if let Ok(Some(status)) = child.try_wait() {
                return Err(Failure::Environment(format!(
                    "no gateway of our own: it ended at once with {status}"
                )));
            }
            if began.elapsed() > GATEWAY_TIMEOUT {
                let _ = child.kill();
                let _ = child.wait();
                return Err(Failure::Environment(format!(
                    "no gateway of our own: it did not listen on {servers}"
                )));
            }
            std::thread::sleep(POLL);
        }
        let venue = Venue {
            clients: vec![clients],
            servers,
            metrics: Some(metrics),
        };
        Ok(Self { child, venue })
    }

    /// Where it listens.
    pub(super) fn venue(&self) -> Venue {
        self.venue.clone()
    }
}

impl Drop for OwnGateway {
    fn drop(&mut self) {
        // Nobody is left to be notified, so it need not take its leave.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Three addresses on loopback that nobody listens on. Somebody may take one
/// before the gateway does; it then says so.
fn free_addresses() -> std::io::Result<[SocketAddr; 3]> {
    let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
    // All three before any is let go, so that they differ.
    let listeners = [listen()?, listen()?, listen()?];
    Ok([
        listeners[0].local_addr()?,
        listeners[1].local_addr()?,
        listeners[2].local_addr()?,
    ])
}
