//! Both ends of one connection.

use crate::Endpoint;

/// An endpoint that may move to the thread that plays its lane.
pub type BoxedEndpoint = Box<dyn Endpoint + Send>;

/// Two endpoints of one transport that were made for each other.
pub struct Pair {
    /// The side that opens the connection.
    pub client: BoxedEndpoint,
    /// The side that waits for it.
    pub server: BoxedEndpoint,
}
