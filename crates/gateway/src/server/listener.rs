//! Places where connections come in.
//!
//! All addresses are taken at the start, so that a mistake shows at once.
//! Those for clients are opened later if clients have to wait for an owner of
//! GLOBAL: until then the system turns them away, and whoever watches the port
//! sees when the world is ready.
//!
//! TCP connections are accepted in one place and handed on. Datagrams cannot be:
//! there each loop has a socket of its own at the same address, and the system
//! sends all datagrams of one peer to one of them.

#[cfg_attr(unix, path = "listener/unix.rs")]
#[cfg_attr(not(unix), path = "listener/elsewhere.rs")]
mod system;

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::{Path, PathBuf};

use lagometer_limits::accept_pending;
use lagometer_transport::kcp::StreamProfile;
use lagometer_units::Time;
use socket2::{Domain, Protocol, SockRef, Socket, Type};

use crate::core::Peer;

use super::config::{ListenAddress, Wire};

pub(super) use system::CAN_SHARE_PORTS;

/// Connections that the system holds until they are accepted.
pub(super) const BACKLOG: i32 = 4096;

/// UDP sockets are shared by many, and hold more for it.
const UDP_BUFFER_BYTES: usize = 4 << 20;

/// Where a peer on a Unix socket counts as coming from: it is on this machine.
const FROM_HERE: SocketAddr = SocketAddr::new(std::net::IpAddr::V4(Ipv4Addr::LOCALHOST), 0);

/// A place that is taken, and perhaps open.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) peer: Peer,
    pub(super) wire: Wire,
    /// What it is called in the log.
    pub(super) name: String,
    /// A Unix socket has none.
    pub(super) address: Option<SocketAddr>,
    /// Nobody is accepted here until then.
    pub(super) rests_until: Option<Time>,
    socket: ListenerSocket,
    /// The file of a Unix socket, which goes with it.
    _file: Option<SocketFile>,
}

/// The file of a Unix socket of ours.
#[derive(Debug)]
struct SocketFile(PathBuf);

impl Drop for SocketFile {
    fn drop(&mut self) {
        // Whoever took it away before us has done what was to be done.
        let _ = std::fs::remove_file(&self.0);
    }
}

#[derive(Debug)]
enum ListenerSocket {
    /// Taken; nobody can come yet.
    Bound(Socket),
    Tcp(TcpListener),
    Udp(UdpSocket),
    /// Handed on, or given up.
    Gone,
}

impl Listener {
    /// Takes a place: one listener, or for datagrams one for each of `loops`.
    pub(super) fn bind(at: &ListenAddress, peer: Peer, loops: usize) -> io::Result<Vec<Self>> {
        let Some(mut address) = at.socket() else {
            let path = at.path().unwrap_or(Path::new(""));
            return Ok(vec![Self {
                peer,
                wire: at.wire,
                name: at.to_string(),
                address: None,
                rests_until: None,
                socket: ListenerSocket::Bound(system::bound_unix(path)?),
                _file: Some(SocketFile(path.to_owned())),
            }]);
        };
        let is_udp = at.wire.is_udp();
        let bound = |address, is_udp, shared| bound(address, is_udp, shared, at.is_only_v6());
        let first = match bound(address, is_udp, false) {
            // A system without IPv6 still has an everywhere.
            Err(error)
                if address.ip() == std::net::Ipv6Addr::UNSPECIFIED
                    && !at.is_only_v6()
                    && error.kind() != io::ErrorKind::AddrInUse
                    && error.kind() != io::ErrorKind::PermissionDenied =>
            {
                address = SocketAddr::from(([0, 0, 0, 0], address.port()));
                bound(address, is_udp, false)
            }
            other => other,
        }?;
        // The port may have been left to the system.
        address = first.local_addr()?.as_socket().unwrap_or(address);
        let mut sockets = vec![first];
        if is_udp && loops > 1 {
            // Only now that it is ours alone is the place shared: a second
            // gateway must not slip in beside this one.
            system::share_port(&sockets[0], true)?;
            for _ in 1..loops {
                sockets.push(bound(address, is_udp, true)?);
            }
        }
        let of = |socket| Self {
            peer,
            wire: at.wire,
            name: address.to_string(),
            address: Some(address),
            rests_until: None,
            socket: ListenerSocket::Bound(socket),
            _file: None,
        };
        Ok(sockets.into_iter().map(of).collect())
    }

    /// Lets connections come; nothing changes where they may already.
    pub(super) fn open(&mut self) -> io::Result<()> {
        let socket = match std::mem::replace(&mut self.socket, ListenerSocket::Gone) {
            ListenerSocket::Bound(socket) => socket,
            other => {
                self.socket = other;
                return Ok(());
            }
        };
        self.socket = match self.wire {
            wire if wire.is_udp() => {
                let socket = UdpSocket::from(socket);
                // What came before the place was open is nobody's.
                while socket.recv_from(&mut [0; 1]).is_ok() {}
                ListenerSocket::Udp(socket)
            }
            _ => {
                socket.listen(BACKLOG)?;
                ListenerSocket::Tcp(socket.into())
            }
        };
        Ok(())
    }

    /// The listening socket, if it is open and TCP's.
    pub(super) fn tcp(&self) -> Option<&TcpListener> {
        match &self.socket {
            ListenerSocket::Tcp(listener) => Some(listener),
            _ => None,
        }
    }

    /// Hands on the UDP socket, if it is open, with the profile to speak.
    pub(super) fn take_udp(&mut self) -> Option<(UdpSocket, StreamProfile)> {
        let profile = match self.wire {
            Wire::KcpTuned => StreamProfile::Tuned,
            _ => StreamProfile::KcpGo,
        };
        match std::mem::replace(&mut self.socket, ListenerSocket::Gone) {
            ListenerSocket::Udp(socket) => Some((socket, profile)),
            other => {
                self.socket = other;
                None
            }
        }
    }

    /// The next connection; none while nobody waits.
    pub(super) fn accept(&self) -> io::Result<Option<(TcpStream, SocketAddr)>> {
        let Some(listener) = self.tcp() else {
            return Ok(None);
        };
        // The standard library's own knows no Unix sockets.
        let accepted = accept_pending(listener, |listener| SockRef::from(listener).accept())?;
        Ok(accepted.map(|(socket, from)| {
            let from = from.as_socket().unwrap_or(FROM_HERE);
            (socket.into(), from)
        }))
    }
}

/// A socket at an address, which others may have too if it is `shared`.
fn bound(address: SocketAddr, is_udp: bool, shared: bool, only_v6: bool) -> io::Result<Socket> {
    let (kind, protocol) = if is_udp {
        (Type::DGRAM, Protocol::UDP)
    } else {
        (Type::STREAM, Protocol::TCP)
    };
    let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
    if address.is_ipv6() {
        socket.set_only_v6(only_v6)?;
    }
    socket.set_nonblocking(true)?;
    if is_udp {
        // What the system does not grant it cuts down itself.
        socket.set_recv_buffer_size(UDP_BUFFER_BYTES)?;
        socket.set_send_buffer_size(UDP_BUFFER_BYTES)?;
        system::share_port(&socket, shared)?;
    } else {
        system::reuse_address(&socket)?;
    }
    socket.bind(&address.into())?;
    Ok(socket)
}
