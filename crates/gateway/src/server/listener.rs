//! Places where connections come in.
//!
//! All addresses are taken at the start, so that a mistake shows at once.
//! Those for clients are opened later if clients have to wait for an owner of
//! GLOBAL: until then the system turns them away, and whoever watches the port
//! sees when the world is ready.

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};

use lagometer_transport::kcp::StreamProfile;
use socket2::{Domain, Protocol, Socket, Type};

use crate::core::Peer;

use super::config::{ListenAddress, Wire};

/// Connections that the system holds until they are accepted.
const BACKLOG: i32 = 4096;

/// UDP sockets are shared by many, and hold more for it.
const UDP_BUFFER_BYTES: usize = 4 << 20;

/// A place that is taken, and perhaps open.
#[derive(Debug)]
pub(super) struct Listener {
    pub(super) peer: Peer,
    pub(super) wire: Wire,
    pub(super) address: SocketAddr,
    socket: Place,
}

#[derive(Debug)]
enum Place {
    /// Taken; nobody can come yet.
    Bound(Socket),
    Tcp(TcpListener),
    Udp(UdpSocket),
    /// Handed on, or given up.
    Gone,
}

impl Listener {
    /// Takes a place.
    pub(super) fn bind(at: ListenAddress, peer: Peer) -> io::Result<Self> {
        let is_udp = matches!(at.wire, Wire::Kcp | Wire::KcpTuned);
        let (kind, protocol) = if is_udp {
            (Type::DGRAM, Protocol::UDP)
        } else {
            (Type::STREAM, Protocol::TCP)
        };
        let mut address = at.socket;
        let make = |address: SocketAddr| -> io::Result<Socket> {
            let socket = Socket::new(Domain::for_address(address), kind, Some(protocol))?;
            if address.is_ipv6() {
                socket.set_only_v6(false)?;
            }
            socket.set_nonblocking(true)?;
            if is_udp {
                // What the system does not grant it cuts down itself.
                socket.set_recv_buffer_size(UDP_BUFFER_BYTES)?;
                socket.set_send_buffer_size(UDP_BUFFER_BYTES)?;
            } else {
                socket.set_reuse_address(true)?;
            }
            socket.bind(&address.into())?;
            Ok(socket)
        };
        let socket = match make(address) {
            // A system without IPv6 still has an everywhere.
            Err(error)
                if address.ip() == std::net::Ipv6Addr::UNSPECIFIED
                    && error.kind() != io::ErrorKind::AddrInUse
                    && error.kind() != io::ErrorKind::PermissionDenied =>
            {
                address = SocketAddr::from(([0, 0, 0, 0], address.port()));
                make(address)
            }
            other => other,
        }?;
        Ok(Self {
            peer,
            wire: at.wire,
            address: socket.local_addr()?.as_socket().unwrap_or(address),
            socket: Place::Bound(socket),
        })
    }

    /// Lets connections come; nothing changes where they may already.
    pub(super) fn open(&mut self) -> io::Result<()> {
        let socket = match std::mem::replace(&mut self.socket, Place::Gone) {
            Place::Bound(socket) => socket,
            other => {
                self.socket = other;
                return Ok(());
            }
        };
        self.socket = match self.wire {
            Wire::Kcp | Wire::KcpTuned => {
                let socket = UdpSocket::from(socket);
                // What came before the place was open is nobody's.
                while socket.recv_from(&mut [0; 1]).is_ok() {}
                Place::Udp(socket)
            }
            _ => {
                socket.listen(BACKLOG)?;
                Place::Tcp(socket.into())
            }
        };
        Ok(())
    }

    /// The listening socket, if it is open and TCP's.
    pub(super) fn tcp(&self) -> Option<&TcpListener> {
        match &self.socket {
            Place::Tcp(listener) => Some(listener),
            _ => None,
        }
    }

    /// Hands on the UDP socket, if it is open, with the profile to speak.
    pub(super) fn take_udp(&mut self) -> Option<(UdpSocket, StreamProfile)> {
        let profile = match self.wire {
            Wire::KcpTuned => StreamProfile::Tuned,
            _ => StreamProfile::KcpGo,
        };
        match std::mem::replace(&mut self.socket, Place::Gone) {
            Place::Udp(socket) => Some((socket, profile)),
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
        loop {
            match listener.accept() {
                Ok(accepted) => return Ok(Some(accepted)),
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(None),
                    // It went again before it was accepted.
                    io::ErrorKind::Interrupted | io::ErrorKind::ConnectionAborted => {}
                    _ => return Err(error),
                },
            }
        }
    }
}
