//! The gateways that are attacked: how each is set, where it listens, and the
//! files that say so.
//!
//! Nobody is let in without the shared token, as in a game that is played: no
//! gateway here runs with `--dev`. Every wire is open, so that every abuse finds
//! its own.

use std::fs;
use std::io::{self, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::{Path, PathBuf};

use lagometer_units::create_private_file;

/// What players and game servers prove themselves with.
pub(super) const TOKEN: &str = "bench-token";

/// A certificate that nobody trusts, for handshakes that nobody completes.
const CERTIFICATE: &str = include_str!("../../../../crates/gateway/tests/data/certificate.pem");
const KEY: &str = include_str!("../../../../crates/gateway/tests/data/key.pem");

/// What clients may send.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Rights {
    /// What the gateway allows where nothing is said.
    Default,
    /// What channeld's `client_authoratative_fsm.json` allows, which engines'
    /// plug-ins want.
    Authoritative,
}

/// What the abuses' gateways differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Deployment {
    /// What clients may send.
    pub(super) rights: Rights,
    /// Logins are decided by a service of the game's own, which takes its time.
    pub(super) asks_provider: bool,
    /// What clients send is recorded.
    pub(super) records: bool,
}

impl Deployment {
    /// Default rights, the shared token, no recordings.
    pub(super) const PLAIN: Self = Self {
        rights: Rights::Default,
        asks_provider: false,
        records: false,
    };

    /// As [`PLAIN`](Self::PLAIN), with the rights that engines want.
    pub(super) const ENGINE: Self = Self {
        rights: Rights::Authoritative,
        ..Self::PLAIN
    };
}

/// Where one gateway listens, all on loopback.
#[derive(Clone, Copy, Debug)]
pub(super) struct Endpoints {
    /// Game servers.
    pub(super) servers: SocketAddr,
    /// Clients over TCP.
    pub(super) tcp: SocketAddr,
    /// Clients over WebSocket.
    pub(super) websocket: SocketAddr,
    /// Clients over TLS.
    pub(super) tls: SocketAddr,
    /// Clients over KCP (UDP).
    pub(super) kcp: SocketAddr,
    /// Metrics and health.
    pub(super) web: SocketAddr,
}

impl Endpoints {
    /// Ports that nobody listens on. Somebody may take one before the gateway
    /// does; it then says so and does not start.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(super) fn free() -> io::Result<Self> {
        let listen = || TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        // All before any is let go, so that they differ.
        let held = [
            listen()?,
            listen()?,
            listen()?,
            listen()?,
            listen()?,
            listen()?,
        ];
        let at = |index: usize| held[index].local_addr();
        Ok(Self {
            servers: at(0)?,
            tcp: at(1)?,
            websocket: at(2)?,
            tls: at(3)?,
            kcp: at(4)?,
            web: at(5)?,
        })
    }
}

/// The files of one gateway, removed with it.
#[derive(Debug)]
pub(super) struct Files {
    folder: PathBuf,
    /// The settings.
    pub(super) config: PathBuf,
}

impl Files {
    /// Writes the settings of a gateway, and what they name, into `folder`,
    /// which is made.
    ///
    /// # Errors
    ///
    /// The system's.
    pub(super) fn write(
        folder: PathBuf,
        deployment: Deployment,
        endpoints: &Endpoints,
        provider: Option<SocketAddr>,
    ) -> io::Result<Self> {
        fs::create_dir_all(&folder)?;
        fs::write(folder.join("certificate.pem"), CERTIFICATE)?;
        private(&folder.join("key.pem"), KEY)?;
        private(&folder.join("secret.txt"), TOKEN)?;
        let config = folder.join("gateway.toml");
        fs::write(&config, toml(&folder, deployment, endpoints, provider))?;
        Ok(Self { folder, config })
    }
}

impl Drop for Files {
    fn drop(&mut self) {
        // What stays behind does no harm.
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Writes a file that its owner alone may read.
fn private(path: &Path, text: &str) -> io::Result<()> {
    create_private_file(path)?.write_all(text.as_bytes())
}

fn toml(
    folder: &Path,
    deployment: Deployment,
    endpoints: &Endpoints,
    provider: Option<SocketAddr>,
) -> String {
    let Endpoints {
        servers,
        tcp,
        websocket,
        tls,
        kcp,
        web,
    } = endpoints;
    let at = |name: &str| folder.join(name).display().to_string();
    let state_machine = match deployment.rights {
        Rights::Default => String::new(),
        Rights::Authoritative => "state_machine = \"client_authoratative_fsm.json\"\n".to_owned(),
    };
    let record_to = if deployment.records {
        format!("record_to = {:?}\n", at("recordings"))
    } else {
        String::new()
    };
    let auth = match provider {
        None => format!(
            "provider = \"shared-token\"\nsecret_file = {:?}\n",
            at("secret.txt")
        ),
        Some(service) => format!("provider = \"http\"\nurl = \"http://{service}/login\"\n"),
    };
    format!(
        "[servers]\nlisten = [\"tcp://{servers}\"]\n\
         [clients]\n\
         listen = [\"tcp://{tcp}\", \"ws://{websocket}\", \"tls://{tls}\", \"kcp://{kcp}\"]\n\
         {state_machine}{record_to}\
         [tls]\ncertificate = {:?}\nkey = {:?}\n\
         [web]\nlisten = \"{web}\"\n\
         [auth]\n{auth}",
        at("certificate.pem"),
        at("key.pem"),
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_deployment_says_what_is_asked_of_it_and_leaves_nothing_behind() {
        let folder = std::env::temp_dir().join(format!("abuse-files-{}", std::process::id()));
        let endpoints = Endpoints::free().unwrap();
        let deployment = Deployment {
            records: true,
            ..Deployment::ENGINE
        };
        let files = Files::write(folder.clone(), deployment, &endpoints, None).unwrap();
        let text = fs::read_to_string(&files.config).unwrap();
        for needed in [
            "client_authoratative_fsm.json",
            "record_to",
            "shared-token",
            &format!("kcp://{}", endpoints.kcp),
        ] {
            assert!(text.contains(needed), "{needed} in\n{text}");
        }
        drop(files);
        assert!(!folder.exists());
        let plain = toml(&folder, Deployment::PLAIN, &endpoints, Some(endpoints.web));
        assert!(!plain.contains("state_machine") && !plain.contains("record_to"));
        assert!(plain.contains("provider = \"http\""));
    }
}
