//! A world in virtual time.
//!
//! Time jumps from event to event: a packet arrives, a transport or the
//! gateway is due, a server or a player begins a frame. Nothing takes processor
//! time, so all that ages what players see is the fan-out's cadence, the
//! transport and the link.
//!
//! The gateway is its core as it is, driven as its server drives it; what lies
//! between it and a player are both ends of a transport and the player's own
//! link. Game servers are beside the gateway, with no path between.

mod backend;
mod gateway;
mod half;
mod path;

use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use lagometer_link::Link;
use lagometer_testbed::{Capture, PathStats};
use lagometer_units::Time;
use thiserror::Error;

use crate::{Moment, Outcome, PlayError, PlayerTransport, Scenario, play_on};
use backend::SimBackend;
pub use gateway::GatewayError;

/// Why a world could not be played in virtual time.
#[derive(Debug, Error)]
pub enum SimError {
    /// The gateway cannot be set up.
    #[error(transparent)]
    Gateway(#[from] GatewayError),
    /// The course of the world broke off.
    #[error(transparent)]
    Play(#[from] PlayError),
}

/// What was found in virtual time.
#[derive(Debug)]
pub struct SimulatedWorld {
    /// What was found of the world.
    pub outcome: Outcome,
    /// What went over the players' links while it was measured.
    pub path: PathStats,
    /// How long was played, from the first player's coming to the end.
    pub played: Time,
    /// The capture, where one was to be written.
    pub capture: Option<Capture>,
}

/// Plays `scenario` in virtual time, its players on `transport` and on the
/// links that `link` gives: asked for a player's number and for the instant at
/// which impairments start. What they put on them and what became of it is written into
/// `capture`, if there is one, with instants of virtual time.
///
/// # Errors
///
/// [`SimError`] where the scenario asks for a gateway that cannot be.
pub fn play(
    scenario: &Arc<Scenario>,
    transport: PlayerTransport,
    link: &dyn Fn(u32, Time) -> Link,
    capture: Option<Capture>,
    progress: &mut dyn FnMut(&Moment),
    stop: &AtomicBool,
) -> Result<SimulatedWorld, SimError> {
    let clock = Rc::new(Cell::new(Time::ZERO));
    let measured = Rc::new(Cell::new(PathStats::default()));
    let capture = Rc::new(RefCell::new(capture));
    let backend = SimBackend::new(
        transport,
        scenario,
        link,
        Rc::clone(&capture),
        Rc::clone(&clock),
        Rc::clone(&measured),
    )?;
    let outcome = play_on(scenario, backend, &clock, progress, stop)?;
    Ok(SimulatedWorld {
        outcome,
        path: measured.get(),
        played: clock.get(),
        capture: capture.take(),
    })
}
