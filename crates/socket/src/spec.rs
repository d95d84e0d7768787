//! Any transport, as one value.

use std::fmt;
use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::sync::Arc;

use lagometer_transport::{
    BadSetting, BadSpec, BoxedEndpoint, Encapsulation, Offer, Spec, TransportProperties, Tunable,
    with_overrides,
};
use serde_json::{Map, Value};

use crate::catalogue::{names, preset};
use crate::connection::BoxedConnection;
use crate::endpoint_connection::EndpointConnection;
use crate::transport::{Opening, SocketTransport, Unavailable};
use crate::udp::{Options, Socket};

/// A transport with its settings, checked, wherever it runs: its endpoints in
/// virtual time, or its connections over real sockets.
#[derive(Clone)]
pub struct SocketSpec(Arc<dyn AnySocketTransport>);

impl SocketSpec {
    /// The transport with these settings.
    ///
    /// # Errors
    ///
    /// [`BadSetting`] when they do not pass their own check.
    pub fn new<T: SocketTransport>(settings: T) -> Result<Self, BadSetting> {
        settings.check()?;
        Ok(Self(Arc::new(settings)))
    }

    /// The preset called `name`, of this crate or of the crate `transport`,
    /// with the settings in `overrides` put in place of its own. Tables
    /// within are merged likewise. TCP is the kernel's here.
    ///
    /// # Errors
    ///
    /// [`BadSpec`] when there is no such preset or no more, and when a setting is
    /// unknown, of the wrong kind or out of range; it is then named.
    pub fn resolve(name: &str, overrides: &Map<String, Value>) -> Result<Self, BadSpec> {
        let base = preset(name).ok_or_else(|| BadSpec::unknown(name, names()))?;
        Ok(base.0.with(overrides)?)
    }

    /// The transport called `transport`, of whichever of its presets, with these
    /// `settings`: what [`transport`](Self::transport) and
    /// [`settings_json`](Self::settings_json) of an equal one say.
    ///
    /// # Errors
    ///
    /// [`BadSpec`], as [`resolve`](Self::resolve).
    pub fn restore(transport: &str, settings: &Map<String, Value>) -> Result<Self, BadSpec> {
        let base = names()
            .filter_map(preset)
            .find(|spec| spec.transport() == transport)
            // A transport that has another name now is found by its preset's.
            .or_else(|| preset(transport))
            .ok_or_else(|| BadSpec::unknown(transport, names()))?;
        Ok(base.0.with(settings)?)
    }

    /// The endpoint, where the transport has one that is driven: in virtual time,
    /// or over a UDP socket. None where it owns its sockets.
    #[must_use]
    pub fn endpoint(&self) -> Option<&Spec> {
        self.0.endpoint()
    }

    /// The transport's name, as in `kcp`; its presets share it.
    #[must_use]
    pub fn transport(&self) -> &'static str {
        self.0.name()
    }

    /// The library that carries the messages and its version.
    #[must_use]
    pub fn library(&self) -> String {
        self.0.library()
    }

    /// Whether this program and this machine have what the transport needs, but for what
    /// [`offered`](Self::offered) says of the kernel.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] says what is missing and what would bring it.
    pub fn available(&self) -> Result<(), Unavailable> {
        self.0.available()
    }

    /// Whether the kernel that this runs on has what the transport needs, which is another
    /// within a guest.
    ///
    /// # Errors
    ///
    /// [`Unavailable`] says what is missing and what would bring it.
    pub fn offered(&self) -> Result<(), Unavailable> {
        self.0.offered()
    }

    /// What is promised and what it costs.
    #[must_use]
    pub fn properties(&self) -> TransportProperties {
        self.0.properties()
    }

    /// What there is for a game whose streams want different deliveries; what owns its
    /// sockets knows one kind of message.
    #[must_use]
    pub fn offer(&self) -> Offer {
        let of_sockets = || Offer::of(self.properties().reliable);
        self.endpoint().map_or_else(of_sockets, Spec::offer)
    }

    /// The largest message that is taken, in bytes.
    #[must_use]
    pub fn largest_message_bytes(&self) -> usize {
        self.0.largest_message_bytes()
    }

    /// Whether a relay of UDP datagrams can stand between the two sides.
    #[must_use]
    pub fn is_carried_by_udp(&self) -> bool {
        self.0.is_carried_by_udp()
    }

    /// Whether its connections are to ask for ECN, which whoever makes their host sees to; on
    /// the machine itself, see [`tcp::machine_asks_for_ecn`](crate::tcp::machine_asks_for_ecn).
    #[must_use]
    pub fn asks_for_ecn(&self) -> bool {
        self.0.asks_for_ecn()
    }

    /// Every setting, as a table.
    #[must_use]
    pub fn settings_json(&self) -> Value {
        self.0.settings()
    }

    /// The settings that are worth searching.
    #[must_use]
    pub fn tunables(&self) -> &'static [Tunable] {
        self.0.tunables()
    }

    /// The same transport with the settings in `overrides` put in place of its own;
    /// tables within are merged likewise.
    ///
    /// # Errors
    ///
    /// [`BadSetting`] when a setting is unknown, of the wrong kind or out of range.
    pub fn with_overrides(&self, overrides: &Map<String, Value>) -> Result<Self, BadSetting> {
        self.0.with(overrides)
    }

    /// Makes the side that opens the connection. Its sockets belong to the
    /// network namespace of the calling thread.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn client(&self, opening: &Opening) -> io::Result<BoxedConnection> {
        self.0.client(opening)
    }

    /// Makes the side that waits for the connection; before the client's, if
    /// the two are to find each other at once.
    ///
    /// # Errors
    ///
    /// What the system says.
    pub fn server(&self, opening: &Opening) -> io::Result<BoxedConnection> {
        self.0.server(opening)
    }
}

/// Transports are equal whose names and settings are.
impl PartialEq for SocketSpec {
    fn eq(&self, other: &Self) -> bool {
        self.transport() == other.transport() && self.settings_json() == other.settings_json()
    }
}

/// An endpoint's transport: in virtual time, or over UDP.
impl From<Spec> for SocketSpec {
    fn from(endpoint: Spec) -> Self {
        Self(Arc::new(OfEndpoint(endpoint)))
    }
}

impl fmt::Debug for SocketSpec {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.0, formatter)
    }
}

/// [`SocketTransport`] for use behind a pointer.
trait AnySocketTransport: fmt::Debug + Send + Sync {
    fn name(&self) -> &'static str;
    fn library(&self) -> String;
    fn available(&self) -> Result<(), Unavailable>;
    fn offered(&self) -> Result<(), Unavailable>;
    fn properties(&self) -> TransportProperties;
    fn largest_message_bytes(&self) -> usize;
    fn is_carried_by_udp(&self) -> bool;
    fn asks_for_ecn(&self) -> bool;
    fn settings(&self) -> Value;
    fn tunables(&self) -> &'static [Tunable];
    fn endpoint(&self) -> Option<&Spec>;
    fn with(&self, overrides: &Map<String, Value>) -> Result<SocketSpec, BadSetting>;
    fn client(&self, opening: &Opening) -> io::Result<BoxedConnection>;
    fn server(&self, opening: &Opening) -> io::Result<BoxedConnection>;
}

impl<T: SocketTransport> AnySocketTransport for T {
    fn name(&self) -> &'static str {
        T::TRANSPORT
    }

    fn library(&self) -> String {
        SocketTransport::library(self)
    }

    fn available(&self) -> Result<(), Unavailable> {
        SocketTransport::available(self)
    }

    fn offered(&self) -> Result<(), Unavailable> {
        SocketTransport::offered(self)
    }

    fn properties(&self) -> TransportProperties {
        SocketTransport::properties(self)
    }

    fn largest_message_bytes(&self) -> usize {
        SocketTransport::largest_message_bytes(self)
    }

    fn is_carried_by_udp(&self) -> bool {
        SocketTransport::is_carried_by_udp(self)
    }

    fn asks_for_ecn(&self) -> bool {
        SocketTransport::asks_for_ecn(self)
    }

    fn settings(&self) -> Value {
        serde_json::to_value(self).expect("settings are tables with keys that are strings")
    }

    fn tunables(&self) -> &'static [Tunable] {
        T::TUNABLES
    }

    fn endpoint(&self) -> Option<&Spec> {
        None
    }

    fn with(&self, overrides: &Map<String, Value>) -> Result<SocketSpec, BadSetting> {
        SocketSpec::new(with_overrides(self, overrides)?)
    }

    fn client(&self, opening: &Opening) -> io::Result<BoxedConnection> {
        SocketTransport::client(self, opening)
    }

    fn server(&self, opening: &Opening) -> io::Result<BoxedConnection> {
        SocketTransport::server(self, opening)
    }
}

/// The transport of an endpoint.
#[derive(Debug)]
struct OfEndpoint(Spec);

impl OfEndpoint {
    /// A socket at `own` for datagrams from and to `peer`.
    fn socket(&self, own: SocketAddr, peer: SocketAddr) -> io::Result<UdpSocket> {
        if !self.is_carried_by_udp() {
            return Err(io::ErrorKind::Unsupported.into());
        }
        let socket = UdpSocket::bind(own)?;
        socket.connect(peer)?;
        Ok(socket)
    }
}

impl AnySocketTransport for OfEndpoint {
    fn name(&self) -> &'static str {
        self.0.transport()
    }

    fn library(&self) -> String {
        self.0.library().to_owned()
    }

    fn available(&self) -> Result<(), Unavailable> {
        if self.is_carried_by_udp() {
            return Ok(());
        }
        Err(Unavailable {
            lacks: format!(
                "{} over real sockets is the kernel's, whose congestion control can be chosen on \
                 Linux alone",
                self.name()
            ),
            mend: "`--testbed sim` plays it everywhere".to_owned(),
        })
    }

    fn offered(&self) -> Result<(), Unavailable> {
        Ok(())
    }

    fn properties(&self) -> TransportProperties {
        self.0.properties()
    }

    fn largest_message_bytes(&self) -> usize {
        self.0.largest_message_bytes()
    }

    fn is_carried_by_udp(&self) -> bool {
        self.0.encapsulation() == Encapsulation::UdpIpv4
    }

    /// UDP sockets here neither ask for marks nor read them.
    fn asks_for_ecn(&self) -> bool {
        false
    }

    fn settings(&self) -> Value {
        self.0.settings_json()
    }

    fn tunables(&self) -> &'static [Tunable] {
        self.0.tunables()
    }

    fn endpoint(&self) -> Option<&Spec> {
        Some(&self.0)
    }

    fn with(&self, overrides: &Map<String, Value>) -> Result<SocketSpec, BadSetting> {
        let settings = self.0.with_overrides(overrides)?;
        Ok(settings.into())
    }

    fn client(&self, opening: &Opening) -> io::Result<BoxedConnection> {
        let socket = self.socket(opening.local, opening.remote)?;
        over(socket, self.0.client(opening.seed, opening.now))
    }

    fn server(&self, opening: &Opening) -> io::Result<BoxedConnection> {
        let socket = self.socket(opening.remote, opening.local)?;
        over(socket, self.0.server(opening.seed, opening.now))
    }
}

fn over(socket: UdpSocket, endpoint: BoxedEndpoint) -> io::Result<BoxedConnection> {
    let socket = Socket::from_std(socket, &Options::default())?;
    Ok(Box::new(EndpointConnection::new(socket, endpoint)))
}
