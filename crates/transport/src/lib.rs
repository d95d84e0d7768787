//! Ways of carrying a game's messages, each as a state machine that owns no
//! socket, no clock and no thread.
//!
//! [`Endpoint`] is the one trait of a connection's side. A driver hands it the
//! time, the messages of the application and the datagrams of the wire, and
//! takes out datagrams, messages and the next deadline; so the same endpoint
//! runs in virtual time, over an emulated link and on a real network.
//!
//! [`ByteStream`] is a side that carries a stream of bytes instead, for
//! protocols that have frames of their own.
//!
//! [`Transport`] is the one trait of a transport's settings: what they
//! promise, what they cost, and how a [`Pair`] of endpoints is made of them.
//! [`Messenger`] is what an application needs of a side, whoever drives it, and
//! [`turn`] the order in which a side and its application are driven.
//! [`Spec`] is any transport with any settings, found by the name of a
//! [preset](presets) and changed key by key.
//!
//! [`framing`] puts messages on a stream of bytes and cuts it into them again.

mod arrivals;
mod byte_queue;
mod byte_stream;
mod catalogue;
mod connection_log;
mod delivery;
mod endpoint;
pub mod enet;
mod entropy;
mod erasure;
pub mod framing;
#[cfg(test)]
mod in_tests;
mod integrity;
pub mod kcp;
mod messenger;
mod numbered;
mod origin;
mod pair;
mod plain_udp;
mod properties;
pub mod quic;
pub mod renet;
mod replay_window;
mod seed;
mod settings;
mod spec;
pub mod tcp;
mod transport;
mod tunable;
mod tuned;
mod turn;
pub mod udp;
pub mod udp_fec;
pub mod udp_redundant;
pub mod udp_spaced;
pub mod webrtc;

pub use byte_stream::ByteStream;
pub use catalogue::{
    Member, Preset, PresetKind, Source, family_among, family_of, names, new_name, presets,
};
pub use connection_log::{ConnectionLogs, End, LogWriter};
pub use delivery::{Delivery, Offer};
pub use endpoint::{Closed, Endpoint, Message, Refused, State};
pub use lagometer_units::Encapsulation;
pub use messenger::Messenger;
pub use pair::{BoxedEndpoint, Pair};
pub use properties::{HeadOfLine, PEER_TIMEOUT, PeerTimeout, TransportProperties};
pub use settings::with_overrides;
pub use spec::{BadSpec, Spec};
pub use transport::{BadSetting, Transport};
pub use tunable::{Tunable, TunableRange};
pub use tuned::TunedLanes;
pub use turn::{Driven, turn};

/// The library named for transports whose engine is this crate.
pub const OWN_LIBRARY: &str = concat!("lagometer ", env!("CARGO_PKG_VERSION"));
