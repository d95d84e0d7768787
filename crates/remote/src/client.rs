//! The local end: reaches a remote end, or starts one of its own, and asks it for
//! what it is to do.

mod job;
mod listener;

pub use job::RemoteJob;

use std::io::{self, ErrorKind, Read as _, Write as _};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpStream, ToSocketAddrs};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use lagometer_units::Clock;
use serde_json::Value;

use crate::DEFAULT_PORT;
use crate::data::is_nothing_yet;
use crate::error::{Doing, Error};
use crate::frame::Sealer;
use crate::handshake::{ClientHandshake, ClientStep, Keys};
use crate::message::{FromClient, VERSION};
use crate::offset::Line;
use crate::randomness::unforeseeable;
use crate::secret::Secret;
use crate::server::{Limits, Server, ServerSettings};
use crate::service::Registry;
use crate::tag::Key;
use listener::{Listener, Post};

/// How long reaching a remote end and proving each other may take.
const TIMEOUT: Duration = Duration::from_secs(10);

/// How long the remote end may take to read what it is sent.
const READS_WITHIN: Duration = Duration::from_secs(5);

/// A control connection with a remote end. Dropped, it ends, and with it every job.
#[derive(Debug)]
pub struct Remote {
    wire: Arc<Wire>,
    listener: Option<JoinHandle<()>>,
    /// The remote end, where it is this process's own. Ends last.
    own: Option<Server>,
}

/// What the control connection's threads and jobs share.
#[derive(Debug)]
struct Wire {
    stream: TcpStream,
    sealer: Mutex<Sealer>,
    /// Lets this end's sockets into the remote end's data listeners.
    data: Key,
    host: IpAddr,
    clock: Clock,
    post: Post,
}

impl Remote {
    /// Reaches the remote end at `address`, written as a host's name or address
    /// with or without a port ([`DEFAULT_PORT`]), and proves both to each
    /// other.
    ///
    /// # Errors
    ///
    /// [`Error`], which says what there was instead of the remote end.
    pub fn connect(address: &str, secret: &Secret) -> Result<Self, Error> {
        let candidates = resolve(address).map_err(|source| Error::Address {
            address: address.to_owned(),
            source,
        })?;
        let mut last = ErrorKind::NotFound.into();
        for candidate in candidates {
            match TcpStream::connect_timeout(&candidate, TIMEOUT) {
                Ok(stream) => return Self::begin(address, stream, secret),
                Err(error) => last = error,
            }
        }
        Err(Error::Unreachable {
            address: address.to_owned(),
            source: last,
        })
    }

    /// Starts a remote end that serves `registry` on loopback, for this process
    /// alone, and reaches it as any other.
    ///
    /// # Errors
    ///
    /// As [`connect`](Self::connect), or the system has no socket or thread
    /// for it.
    pub fn own(registry: Registry) -> Result<Self, Error> {
        let secret = Secret::generate();
        let server = Server::start(ServerSettings {
            bind: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            secret: secret.clone(),
            registry,
            data_ports: None,
            limits: Limits::default(),
            on_event: Box::new(|_| {}),
        })?;
        let mut remote = Self::connect(&server.address().to_string(), &secret)?;
        remote.own = Some(server);
        Ok(remote)
    }

    /// Asks for a job of the service called `service`.
    ///
    /// # Errors
    ///
    /// [`Error::Refused`] with the reason, or [`Error::Gone`].
    pub fn open(&self, service: &str, request: &Value) -> Result<RemoteJob, Error> {
        RemoteJob::open(&self.wire, service, request)
    }

    /// The clock of this end, in which [`offset`](Self::offset) is given.
    #[must_use]
    pub fn clock(&self) -> Clock {
        self.wire.clock
    }

    /// How far the remote end's clock is ahead, as far as is known by now. It is
    /// asked for its time as long as the control connection lasts.
    ///
    /// The first answers come within milliseconds of the beginning; `None`
    /// until then.
    #[must_use]
    pub fn offset(&self) -> Option<Line> {
        self.wire.post.offset()
    }

    /// Waits until at least `probes` answers of the remote end's clock are in,
    /// but no longer than `timeout`; what is known then.
    #[must_use]
    pub fn offset_after(&self, probes: u64, timeout: Duration) -> Option<Line> {
        self.wire.post.offset_after(probes, timeout)
    }

    /// Takes an exchange of time that was made elsewhere, as over the path
    /// under test. Its local instants must be of [`clock`](Self::clock).
    pub fn add_probe(&self, probe: crate::offset::Probe) {
        self.wire.post.add_probe(probe);
    }

    /// The remote end's address.
    #[must_use]
    pub fn host(&self) -> IpAddr {
        self.wire.host
    }

    /// Whether the remote end is this process's own.
    #[must_use]
    pub const fn is_own(&self) -> bool {
        self.own.is_some()
    }

    /// Why the control connection has ended, if it has.
    #[must_use]
    pub fn gone(&self) -> Option<String> {
        self.wire.post.gone()
    }

    fn begin(address: &str, stream: TcpStream, secret: &Secret) -> Result<Self, Error> {
        let (keys, rest) = prove(address, &stream, secret)?;
        let host = stream.peer_addr().doing("asking for an address")?.ip();
        let clock = Clock::start();
        let reader = stream.try_clone().doing("sharing a socket")?;
        let wire = Arc::new(Wire {
            stream,
            sealer: Mutex::new(Sealer::new(keys.up)),
            data: keys.data,
            host,
            clock,
            post: Post::default(),
        });
        let listener = Listener::new(Arc::clone(&wire), reader, keys.down, rest);
        let listener = thread::Builder::new()
            .name("remote-server".to_owned())
            .spawn(move || listener.listen())
            .doing("starting a thread")?;
        Ok(Self {
            wire,
            listener: Some(listener),
            own: None,
        })
    }
}

impl Drop for Remote {
    fn drop(&mut self) {
        let _ = self.wire.stream.shutdown(Shutdown::Both);
        if let Some(listener) = self.listener.take() {
            // It has notified every job that the control connection is over.
            let _ = listener.join();
        }
    }
}

impl Wire {
    /// Says something to the remote end.
    fn say(&self, message: &FromClient) -> Result<(), Error> {
        let mut sealer = self.sealer.lock().unwrap_or_else(PoisonError::into_inner);
        let said = sealer
            .seal(message)
            .map_err(|bad| bad.to_string())
            .and_then(|frame| {
                (&self.stream)
                    .write_all(&frame)
                    .map_err(|error| error.to_string())
            });
        said.map_err(|why| Error::Gone {
            why: self.post.gone().unwrap_or(why),
        })
    }
}

/// Exchanges the first words; the keys, and what was said after them.
fn prove(
    address: &str,
    mut stream: &TcpStream,
    secret: &Secret,
) -> Result<(Box<Keys>, Vec<u8>), Error> {
    let deadline = Instant::now() + TIMEOUT;
    stream
        .set_nodelay(true)
        .and_then(|()| stream.set_write_timeout(Some(READS_WITHIN)))
        .doing("setting a socket up")?;
    let unreachable = |source: io::Error| Error::Unreachable {
        address: address.to_owned(),
        source,
    };
    let mut handshake = ClientHandshake::new(secret.key(), unforeseeable());
    let mut output = handshake.start();
    let mut buffer = [0; 256];
    loop {
        stream.write_all(&output).map_err(unreachable)?;
        let left = deadline.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(unreachable(ErrorKind::TimedOut.into()));
        }
        stream
            .set_read_timeout(Some(left))
            .doing("setting a socket up")?;
        let length = match stream.read(&mut buffer) {
            Ok(0) => return Err(unreachable(ErrorKind::UnexpectedEof.into())),
            Ok(length) => length,
            Err(error) if is_nothing_yet(&error) => 0,
            Err(error) => return Err(unreachable(error)),
        };
        match handshake.handle(&buffer[..length]) {
            ClientStep::Wait => {}
            ClientStep::Done(keys) => return Ok((keys, handshake.into_rest())),
            ClientStep::UnknownProtocol => {
                return Err(Error::UnknownProtocol {
                    address: address.to_owned(),
                });
            }
            ClientStep::OtherVersion(theirs) => {
                return Err(Error::OtherVersion {
                    theirs,
                    ours: VERSION,
                });
            }
            ClientStep::OtherSecret => return Err(Error::OtherSecret),
            ClientStep::Busy => return Err(Error::Busy),
        }
        output = handshake.output();
    }
}

/// Addresses of `HOST`, `HOST:PORT`, `[V6]`, `[V6]:PORT` or a bare `V6`.
fn resolve(address: &str) -> io::Result<Vec<SocketAddr>> {
    if let Ok(ip) = address.trim_matches(['[', ']']).parse::<IpAddr>() {
        return Ok(vec![SocketAddr::new(ip, DEFAULT_PORT)]);
    }
    let has_port = address
        .rsplit_once(':')
        .is_some_and(|(_, port)| port.parse::<u16>().is_ok());
    let found: Vec<SocketAddr> = if has_port {
        address.to_socket_addrs()?.collect()
    } else {
        (address, DEFAULT_PORT).to_socket_addrs()?.collect()
    };
    if found.is_empty() {
        return Err(ErrorKind::NotFound.into());
    }
    Ok(found)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_understood_with_and_without_a_port() {
        for (written, meant) in [
            ("127.0.0.1", "127.0.0.1:7711"),
            ("127.0.0.1:80", "127.0.0.1:80"),
            ("::1", "[::1]:7711"),
            ("[::1]", "[::1]:7711"),
            ("[::1]:80", "[::1]:80"),
        ] {
            let found = resolve(written).unwrap();
            assert_eq!(found, [meant.parse().unwrap()], "{written}");
        }
        assert!(resolve("").is_err());
    }
}
