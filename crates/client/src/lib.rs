//! A client of the channel gateway: for players, game servers and tests.
//!
//! A *session* is one peer's talk with a gateway, this project's or another
//! that speaks the protocol. [`Session`] knows the protocol and nothing else:
//! it is handed the bytes that arrived, hands a [`Handler`] what they mean,
//! and keeps the bytes that are to be sent. Players and game servers use the
//! same session; which of the two a peer is, the gateway decides by the port
//! it connects to.
//!
//! Two drivers own sockets:
//!
//! - [`blocking::Client`]: one connection, for programs that wait;
//! - [`swarm::Swarm`]: thousands of connections on one thread, over TCP,
//!   WebSocket or KCP, for load generators and simulated players.
//!
//! [`stream_transport`] is what lies between: WebSocket and streams of bytes, over
//! anything.
//!
//! [`Mirror`] merges the channel data that arrives, so that a game can look at
//! the state of a channel instead of its updates.
//!
//! ```
//! use lagometer_client::{Event, Outbox, Session, Settings};
//! # use lagometer_protocol::messages::channeldpb::AuthResultMessage;
//! # use lagometer_protocol::{FrameBuilder, MessagePack};
//! # use prost::Message as _;
//!
//! let mut session = Session::new(Settings::default());
//! let login = session.outbox().authenticate("player-1", "secret")?;
//! session.outbox().subscribe(0, 0, None)?; // waits for the answer to the login
//! let wire = session.outbox().pending().to_vec(); // a driver sends this
//! session.outbox().sent(wire.len());
//!
//! # let body = AuthResultMessage { conn_id: 7, ..Default::default() }.encode_to_vec();
//! # let mut builder = FrameBuilder::new();
//! # builder.push(&MessagePack { stub_id: 1, msg_type: 1, body: &body, ..Default::default() })?;
//! # let arrived = builder.finish().unwrap();
//! session.receive(arrived, &mut |_outbox: &mut Outbox, event: Event<'_>| {
//!     if let Event::LoggedIn { stub, conn_id, .. } = event {
//!         assert_eq!((stub, conn_id), (login, 7));
//!     }
//! })?;
//! assert_eq!(session.conn_id(), Some(7));
//! assert!(!session.outbox().pending().is_empty(), "the subscription");
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```

pub mod blocking;
mod event;
mod mirror;
mod outbox;
pub mod recording;
mod session;
pub mod stream_transport;
#[cfg(target_os = "linux")]
pub mod swarm;

pub use event::{Event, Handler, OwnedEvent};
pub use mirror::{Mirror, MirrorError};
pub use outbox::{Outbox, SendError, Stub};
pub use session::{ReceiveError, Session, Settings};
