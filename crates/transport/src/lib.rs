//! Ways of carrying a game's messages, each as a state machine that owns no
//! socket, no clock and no thread.
//!
//! [`Endpoint`] is the one trait. A driver hands it the time, the messages of
//! the application and the datagrams of the wire, and takes out datagrams,
//! messages and the next deadline; so the same endpoint runs in virtual time,
//! over an emulated link and on a real network.

mod endpoint;

pub use endpoint::{Closed, Endpoint, Message, Refused, State};
