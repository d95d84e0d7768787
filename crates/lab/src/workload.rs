//! What the endpoints do: the applications at both ends of a lane.
//!
//! An application is a state machine too: a testbed hands it the time and its
//! endpoint, and asks when it next wants to act. The same application runs in
//! virtual time and over real sockets.

mod echo_client;
mod echo_server;
mod paced_echo;
mod payload;

pub use echo_client::EchoClient;
pub use echo_server::{EchoServer, RemoteArrival};
pub use paced_echo::PacedEcho;
pub use payload::{Damaged, Payload};

/// What an application saw that no transport should let it see.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Misdeliveries {
    /// Messages whose content was not what was sent.
    pub damaged: u64,
    /// Messages that arrived more than once.
    pub duplicated: u64,
    /// Messages that arrived after one sent later.
    pub out_of_order: u64,
}

impl std::ops::AddAssign for Misdeliveries {
    fn add_assign(&mut self, other: Self) {
        self.damaged += other.damaged;
        self.duplicated += other.duplicated;
        self.out_of_order += other.out_of_order;
    }
}
