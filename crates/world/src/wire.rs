//! The world on the wire: the messages that servers and players send by way of the
//! gateway, what changes of a character between them, and the identifiers in them.

pub(crate) mod ids;
pub(crate) mod intent;
pub(crate) mod messages;
pub(crate) mod replica;
pub(crate) mod sight;
