//! The remote end of every measurement: control connection, services, data sockets.
//!
//! A *remote end* is a server that plays the other part of what the local end
//! measures: it echoes, receives, sends, answers. The local end reaches it over
//! one control connection on TCP in which both prove that they know the same
//! [`Secret`]; only then does the remote end work for it. What is measured then
//! passes over sockets of its own, which serve nobody but the address that has
//! proved itself on them.
//!
//! ```
//! use std::sync::Arc;
//! use lagometer_remote::{Accepted, Remote, Job, Refusal, Registry, Service, Session};
//! use serde_json::{Value, json};
//!
//! /// Answers with what it was sent.
//! struct Parrot;
//!
//! impl Service for Parrot {
//!     fn name(&self) -> &'static str {
//!         "parrot"
//!     }
//!
//!     fn open(&self, request: &Value, _: &Session) -> Result<Accepted, Refusal> {
//!         Ok(Accepted::new(request.clone(), Idle))
//!     }
//! }
//!
//! struct Idle;
//! impl Job for Idle {}
//!
//! let registry = Registry::new().with(Parrot);
//! let remote = Remote::own(registry)?; // or Remote::connect("host:7711", &secret)
//! let job = remote.open("parrot", &json!({ "say": "hello" }))?;
//! assert_eq!(job.reply()["say"], "hello");
//! # Ok::<(), lagometer_remote::Error>(())
//! ```
//!
//! # Map
//!
//! Sans-IO, handed the time and the bytes:
//! - `handshake`: versions, nonces, proofs; `frame`: sealed messages after it
//! - `message`: what is said in them
//! - `admission`: how an address proves itself on a UDP or TCP data socket
//! - `offset`: how far apart two clocks are, and how sure that is
//!
//! With sockets, threads and a clock:
//! - `server`: the remote end; `service`, `session`: what plugs into it
//! - `client`: the local end; `data`: the sockets that carry what is measured

mod admission;
mod client;
mod data;
mod error;
mod frame;
mod handshake;
mod message;
mod offset;
mod randomness;
mod secret;
mod server;
mod service;
mod session;
mod tag;

pub use client::{Remote, RemoteJob};
pub use data::{NobodyCame, TcpDataListener, UdpDataListener};
pub use error::Error;
pub use message::VERSION;
pub use offset::{Line, Offset, OffsetEstimator, Probe};
pub use secret::{BadSecret, Secret};
pub use server::{Event, Limits, Server, ServerSettings};
pub use service::{Accepted, Job, Refusal, Registry, Service, understand};
pub use session::{Session, Stop, Worker};

/// The port of the control connection where none is said.
pub const DEFAULT_PORT: u16 = 7711;
