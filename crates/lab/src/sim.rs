//! The testbed `sim`: endpoints and links in virtual time.
//!
//! A [`SimLane`] is a discrete-event loop over two endpoints, their
//! applications and one lane's own copy of the link. A [`SharedLinkSim`] is the same
//! over a link with others on it: other lanes, other traffic. It owns no clock: time
//! jumps from event to event, so an hour of play takes seconds, and the same
//! seed gives the same bytes on any machine.

mod capture;
mod host;
mod lane;
mod shared_link;

pub use capture::SimCapture;
pub use lane::{OfferedPacket, SimLane};
pub use shared_link::SharedLinkSim;
