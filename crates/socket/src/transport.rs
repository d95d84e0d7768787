//! What the settings of a transport that owns its sockets can do.

use std::fmt::Debug;
use std::io;
use std::net::{SocketAddr, UdpSocket};

use lagometer_transport::{BadSetting, TransportProperties, Tunable};
use lagometer_units::Time;
use serde::Serialize;
use serde::de::DeserializeOwned;
use thiserror::Error;

use crate::connection::BoxedConnection;

/// Where a lane's two sides are, and what they share.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Opening {
    /// The client's address. A client binds it; port 0 lets the kernel choose
    /// one, and then the server must not need to know it.
    pub local: SocketAddr,
    /// The server's address.
    pub remote: SocketAddr,
    /// What both sides must know follows from it: keys, numbers, names.
    pub seed: u64,
    /// When the connection is made, by the clock of the thread that will use
    /// the side.
    pub now: Time,
}

impl Opening {
    /// Where a client is whose `socket` is connected to its server. The socket may
    /// then give way to the transport's own.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn of_client(socket: &UdpSocket, seed: u64, now: Time) -> io::Result<Self> {
        Ok(Self {
            local: socket.local_addr()?,
            remote: socket.peer_addr()?,
            seed,
            now,
        })
    }

    /// Where a server is whose `socket` is connected to its client.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn of_server(socket: &UdpSocket, seed: u64, now: Time) -> io::Result<Self> {
        Ok(Self {
            local: socket.peer_addr()?,
            remote: socket.local_addr()?,
            seed,
            now,
        })
    }
}

/// The settings of a transport that owns its sockets.
///
/// Written as a table whose keys are the fields; implementors refuse unknown
/// keys.
pub trait SocketTransport:
    Clone + Debug + DeserializeOwned + Serialize + Send + Sync + 'static
{
    /// The transport's name, as in `tcp`. Presets of one transport share it.
    const TRANSPORT: &'static str;

    /// The settings that are worth searching; none unless listed.
    const TUNABLES: &'static [Tunable] = &[];

    /// The library that carries the messages and its version.
    fn library(&self) -> String;

    /// Whether the settings make sense together.
    ///
    /// # Errors
    ///
    /// [`BadSetting`] names the first setting that is out of its range.
    fn check(&self) -> Result<(), BadSetting>;

    /// Whether this program and this machine have what the transport needs, but for what
    /// [`offered`](Self::offered) says of the kernel.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] says what is missing and what would bring it.
    fn available(&self) -> Result<(), Unavailable>;

    /// Whether the kernel that this runs on has what the transport needs.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] says what is missing and what would bring it.
    fn offered(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    /// What is promised and what it costs.
    fn properties(&self) -> TransportProperties;

    /// The largest message that is taken, in bytes.
    fn largest_message_bytes(&self) -> usize;

    /// Whether all that is on the wire are UDP datagrams between the two
    /// addresses, so that a relay of datagrams can stand between.
    fn is_carried_by_udp(&self) -> bool;

    /// Whether its connections are to ask for ECN, which no option of a socket does: the
    /// host's route does, or all its connections.
    fn asks_for_ecn(&self) -> bool {
        false
    }

    /// Makes the side that opens the connection. It returns at once; the
    /// handshake is the business of its turns.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn client(&self, opening: &Opening) -> io::Result<BoxedConnection>;

    /// Makes the side that waits for the connection, from this one client.
    ///
    /// # Errors
    ///
    /// What the system says.
    fn server(&self, opening: &Opening) -> io::Result<BoxedConnection>;
}

/// What a transport needs and this machine lacks.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
#[error("{lacks}: {mend}")]
pub struct Unavailable {
    /// What is missing.
    pub lacks: String,
    /// The command or package that would bring it.
    pub mend: String,
}
