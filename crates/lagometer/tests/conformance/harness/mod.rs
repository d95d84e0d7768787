//! Gateways and peers for the conformance cases.

pub(crate) mod gateway;
pub(crate) mod options;
pub(crate) mod peer;
pub(crate) mod settings;

pub(crate) use gateway::{Gateway, Whose};
pub(crate) use options::{READ, WRITE, options};
pub(crate) use peer::{Peer, SOON};
pub(crate) use settings::Settings;
