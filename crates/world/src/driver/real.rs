//! A world in real time, over real sockets, on one thread.

mod metrics;

use std::cell::Cell;
use std::collections::VecDeque;
use std::io;
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, Instant};

use lagometer_client::swarm::{MemberId, Swarm, Wire};
use lagometer_client::{Event, Handler, Outbox, Settings};
use lagometer_results::GatewayMetrics;
use lagometer_units::Time;
use rustix::time::{ClockId, clock_gettime};

use crate::driver::backend::{ConnectionBackend, End, Flow, PeerId, PlayError};
use crate::driver::coordination::{Coordination, SingleProcess};
use crate::driver::running_world::{Peer, play_shard};
use crate::driver::shard::Shard;
use crate::measure::outcome::{GatewayTicks, Moment, Outcome};
use crate::sim::scenario::Scenario;
use metrics::Watch;

/// Where a gateway listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Venue {
    /// For players: one address or, of a gateway with several edges, those of all, over which
    /// players are spread.
    pub clients: Vec<SocketAddr>,
    /// For game servers.
    pub servers: SocketAddr,
    /// For whoever asks for metrics, where it is to be asked.
    pub metrics: Option<SocketAddr>,
}

impl Venue {
    /// Where players connect, in words.
    #[must_use]
    pub fn players_place(&self) -> String {
        let edges: Vec<String> = self.clients.iter().map(SocketAddr::to_string).collect();
        edges.join(",")
    }
}

/// By what a run is timed: this process's clock, or one that several processes
/// share.
pub trait RunClock {
    /// Time counts from here on; where others play too, once all are ready.
    ///
    /// # Errors
    ///
    /// [`PlayError::Coordination`] where they are not.
    fn start(&self) -> Result<(), PlayError>;

    /// The time since the start. It never goes back.
    fn now(&self) -> Time;
}

/// Where the sockets of servers and players come from, where they are not just
/// this machine's.
pub trait Connector {
    /// A connection of a game server to the gateway's place for servers.
    ///
    /// # Errors
    ///
    /// The system's.
    fn connect_server(&mut self) -> io::Result<Wire>;

    /// A connection of the player of that number to the gateway's place for
    /// players; one that does not wait may still be on its way.
    ///
    /// # Errors
    ///
    /// The system's.
    fn connect_player(&mut self, number: u32) -> io::Result<Wire>;

    /// Where the gateway is, for whoever reads what went wrong.
    fn place(&self) -> String;

    /// Everybody is in: impairments begin, if there are any.
    ///
    /// # Errors
    ///
    /// The system's.
    fn begin_impairments(&mut self) -> io::Result<()>;

    /// What is measured ends here.
    ///
    /// # Errors
    ///
    /// The system's.
    fn end_measuring(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// See [`ConnectionBackend::timeout`].
    fn timeout(&self) -> Duration;
}

/// Where a gateway is asked for its metrics.
pub struct MetricsSource {
    /// The address that serves the metrics.
    pub at: SocketAddr,
    /// What the thread that asks does first, where the address is of another network
    /// namespace than the caller's: it enters that.
    pub enter: Option<Box<dyn FnOnce() -> io::Result<()> + Send>>,
}

impl From<SocketAddr> for MetricsSource {
    fn from(at: SocketAddr) -> Self {
        Self { at, enter: None }
    }
}

/// Plays `scenario` on the gateway at `venue`, in real time: see [`play_on`](crate::play_on).
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
    let metrics = venue.metrics.map(MetricsSource::from);
    play_over(scenario, &mut Plain(venue.clone()), metrics, progress, stop)
}

/// Plays a shard of `scenario` on the gateway at `venue`, by the clock that
/// `coordination` shares: see [`play_shard`].
///
/// # Errors
///
/// As [`play`], and [`PlayError::Coordination`] where one of the others is gone.
pub fn play_together(
    scenario: &Arc<Scenario>,
    shard: Shard,
    venue: &Venue,
    run_clock: Rc<dyn RunClock>,
    coordination: &mut dyn Coordination,
) -> Result<Outcome, PlayError> {
    let mut connector = Plain(venue.clone());
    play_by(
        scenario,
        shard,
        &mut connector,
        venue.metrics.map(MetricsSource::from),
        run_clock,
        coordination,
    )
}

/// Plays `scenario` over sockets that come from `connector`; `metrics` is where the
/// gateway is asked what it costs.
///
/// # Errors
///
/// As [`play`].
pub fn play_over(
    scenario: &Arc<Scenario>,
    connector: &mut dyn Connector,
    metrics: Option<MetricsSource>,
    progress: &mut dyn FnMut(&Moment),
    stop: &AtomicBool,
) -> Result<Outcome, PlayError> {
    let own = Rc::new(OwnClock(Cell::new(Instant::now())));
    let mut alone = SingleProcess::new(progress, stop);
    play_by(scenario, Shard::WHOLE, connector, metrics, own, &mut alone)
}

fn play_by(
    scenario: &Arc<Scenario>,
    shard: Shard,
    connector: &mut dyn Connector,
    metrics: Option<MetricsSource>,
    time: Rc<dyn RunClock>,
    coordination: &mut dyn Coordination,
) -> Result<Outcome, PlayError> {
    let clock = Rc::new(Cell::new(Time::ZERO));
    let sockets = Sockets {
        connector,
        metrics,
        swarm: Swarm::new()?,
        given_up: VecDeque::new(),
        time,
        clock: Rc::clone(&clock),
        watch: None,
        measured_from: Time::ZERO,
    };
    play_shard(scenario, shard, sockets, &clock, coordination)
}

/// A process's own time, from one of its instants on.
struct OwnClock(Cell<Instant>);

impl RunClock for OwnClock {
    fn start(&self) -> Result<(), PlayError> {
        self.0.set(Instant::now());
        Ok(())
    }

    fn now(&self) -> Time {
        Time::from_nanos(self.0.get().elapsed().as_nanos() as u64)
    }
}

/// This machine's own sockets, TCP throughout.
struct Plain(Venue);

impl Connector for Plain {
    fn connect_server(&mut self) -> io::Result<Wire> {
        TcpStream::connect(self.0.servers).map(Wire::Tcp)
    }

    fn connect_player(&mut self, number: u32) -> io::Result<Wire> {
        let edges = &self.0.clients;
        let first = number as usize % edges.len().max(1);
        // Where its own is gone a player goes to the next.
        let (before, from) = edges.split_at(first);
        let in_order: Vec<SocketAddr> = from.iter().chain(before).copied().collect();
        TcpStream::connect(&in_order[..]).map(Wire::Tcp)
    }

    fn place(&self) -> String {
        self.0.players_place()
    }

    fn begin_impairments(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn timeout(&self) -> Duration {
        Duration::ZERO
    }
}

/// Sockets to a gateway.
struct Sockets<'a> {
    connector: &'a mut dyn Connector,
    metrics: Option<MetricsSource>,
    swarm: Swarm<Timed>,
    /// Who was given up from this side, and why.
    given_up: VecDeque<(Peer, String)>,
    time: Rc<dyn RunClock>,
    clock: Rc<Cell<Time>>,
    watch: Option<Watch>,
    measured_from: Time,
}

/// A peer that receives everything at its time: connections are served after a
/// wait, and one after the other.
struct Timed {
    peer: Peer,
    time: Rc<dyn RunClock>,
    clock: Rc<Cell<Time>>,
}

impl Handler for Timed {
    fn on_arrival(&mut self) {
        self.clock.set(self.time.now());
    }

    /// See [`Player::speaks_once_a_frame`](crate::player::Player::speaks_once_a_frame).
    fn answers_at_once(&self) -> bool {
        match &self.peer {
            Peer::Server(_) => true,
            Peer::Player(player) => !player.speaks_once_a_frame(),
        }
    }

    fn on_event(&mut self, outbox: &mut Outbox, event: Event<'_>) {
        self.peer.on_event(outbox, event);
    }
}

impl ConnectionBackend for Sockets<'_> {
    fn start(&mut self) -> Result<(), PlayError> {
        self.time.start()?;
        if let Some(metrics) = self.metrics.take() {
            self.watch = Some(Watch::start(metrics, self.time.now())?);
        }
        Ok(())
    }

    fn now(&self) -> Time {
        self.time.now()
    }

    fn connect(&mut self, end: End, settings: Settings, peer: Peer) -> Result<PeerId, PlayError> {
        let wire = match end {
            End::Server => self.connector.connect_server(),
            End::Player(number) => self.connector.connect_player(number),
        };
        let timed = Timed {
            peer,
            time: Rc::clone(&self.time),
            clock: Rc::clone(&self.clock),
        };
        let MemberId(id) = wire
            .and_then(|wire| self.swarm.add(wire, settings, timed))
            .map_err(|source| PlayError::Connect {
                at: self.connector.place(),
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

    fn hang_up(&mut self, id: PeerId) {
        let _ = self.swarm.close(MemberId(id.0));
    }

    fn give_up(&mut self, id: PeerId, why: String) {
        let timed = self.swarm.close(MemberId(id.0));
        self.given_up.extend(timed.map(|timed| (timed.peer, why)));
    }

    fn take_ended(&mut self) -> Option<(Peer, String)> {
        if let Some(given_up) = self.given_up.pop_front() {
            return Some(given_up);
        }
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
        self.measured_from = self.time.now();
        Ok(self.connector.begin_impairments()?)
    }

    fn gateway_ticks(&mut self) -> Option<GatewayTicks> {
        self.watch.as_mut()?.ticks()
    }

    fn end_measuring(&mut self) -> Result<Option<GatewayMetrics>, PlayError> {
        self.connector.end_measuring()?;
        let watch = self.watch.take();
        Ok(watch.and_then(|watch| watch.finish(self.measured_from)))
    }

    fn timeout(&self) -> Duration {
        self.connector.timeout()
    }
}
