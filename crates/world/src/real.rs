//! A world in real time, over real sockets, on one thread.

mod metrics;

use std::cell::Cell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use lagometer_client::swarm::{MemberId, Swarm};
use lagometer_client::{Event, Handler, Outbox, Settings};
use lagometer_units::Time;
use rustix::time::{ClockId, clock_gettime};

use crate::outcome::{GatewayFigures, Moment, Outcome};
use crate::scenario::Scenario;
use crate::stage::{Peer, play_on};
use crate::wires::{End, Flow, PeerId, PlayError, Wires};
use metrics::Watch;

/// Where a gateway listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Venue {
    /// For players.
    pub clients: SocketAddr,
    /// For game servers.
    pub servers: SocketAddr,
    /// For whoever asks for metrics, where it is to be asked.
    pub metrics: Option<SocketAddr>,
}

/// Plays `scenario` on the gateway at `venue`, in real time: see [`play_on`].
///
/// # Errors
///
/// [`PlayError`] where the gateway is not there or leaves; players that lose
/// their connections are counted instead.
pub fn play(
    scenario: &Arc<Scenario>,
    venue: &Venue,
    progress: &mut dyn FnMut(&Moment),
    stop: &AtomicBool,
) -> Result<Outcome, PlayError> {
    let clock = Rc::new(Cell::new(Time::ZERO));
    let sockets = Sockets::new(*venue, &clock)?;
    play_on(scenario, sockets, &clock, progress, stop)
}

/// Sockets to a gateway.
struct Sockets {
    venue: Venue,
    swarm: Swarm<Timed>,
    origin: Rc<Cell<Instant>>,
    clock: Rc<Cell<Time>>,
    watch: Option<Watch>,
}

/// A peer that hears everything at its time: connections are served after a
/// wait, and one after the other.
struct Timed {
    peer: Peer,
    origin: Rc<Cell<Instant>>,
    clock: Rc<Cell<Time>>,
}

impl Handler for Timed {
    fn on_event(&mut self, outbox: &mut Outbox, event: Event<'_>) {
        self.clock.set(since(self.origin.get()));
        self.peer.on_event(outbox, event);
    }
}

fn since(origin: Instant) -> Time {
    Time::from_nanos(origin.elapsed().as_nanos() as u64)
}

impl Sockets {
    fn new(venue: Venue, clock: &Rc<Cell<Time>>) -> Result<Self, PlayError> {
        Ok(Self {
            venue,
            swarm: Swarm::new()?,
            origin: Rc::new(Cell::new(Instant::now())),
            clock: Rc::clone(clock),
            watch: None,
        })
    }
}

impl Wires for Sockets {
    fn start(&mut self) {
        self.origin.set(Instant::now());
    }

    fn now(&self) -> Time {
        since(self.origin.get())
    }

    fn connect(&mut self, end: End, settings: Settings, peer: Peer) -> Result<PeerId, PlayError> {
        let address = match end {
            End::Server => self.venue.servers,
            End::Player(_) => self.venue.clients,
        };
        let timed = Timed {
            peer,
            origin: Rc::clone(&self.origin),
            clock: Rc::clone(&self.clock),
        };
        let MemberId(id) = self
            .swarm
            .connect(address, settings, timed)
            .map_err(|source| PlayError::Connect {
                at: address.to_string(),
                source,
            })?;
        Ok(PeerId(id))
    }

    fn poll(&mut self, at_most: Duration) -> Result<(), PlayError> {
        self.swarm.poll(at_most)?;
        Ok(())
    }

    fn peer(&mut self, id: PeerId) -> Option<(&mut Peer, &mut Outbox)> {
        let (timed, outbox) = self.swarm.member(MemberId(id.0))?;
        Some((&mut timed.peer, outbox))
    }

    fn peers(&self) -> impl Iterator<Item = &Peer> {
        self.swarm.members().map(|(_, timed)| &timed.peer)
    }

    fn flush(&mut self, id: PeerId) {
        self.swarm.flush(MemberId(id.0));
    }

    fn take_ended(&mut self) -> Option<(Peer, String)> {
        let (_, timed, reason) = self.swarm.take_ended()?;
        Some((timed.peer, reason.to_string()))
    }

    fn flow(&self) -> Flow {
        let traffic = self.swarm.traffic();
        Flow {
            received_bytes: traffic.received_bytes,
            sent_bytes: traffic.sent_bytes,
        }
    }

    /// This thread's: servers and players are all on it.
    fn processor_time(&self) -> Option<Duration> {
        let time = clock_gettime(ClockId::ThreadCPUTime);
        Some(Duration::new(
            time.tv_sec.unsigned_abs(),
            time.tv_nsec as u32,
        ))
    }

    fn begin_measuring(&mut self) -> Result<(), PlayError> {
        self.watch = match self.venue.metrics {
            Some(metrics) => Some(Watch::start(metrics)?),
            None => None,
        };
        Ok(())
    }

    fn end_measuring(&mut self) -> Option<GatewayFigures> {
        self.watch.take().and_then(Watch::finish)
    }
}
