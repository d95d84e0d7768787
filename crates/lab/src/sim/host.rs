//! One host of a lane: an endpoint, the socket buffer in front of it, and the
//! game's tick where there is one.
//!
//! A game with a tick looks after its endpoint at its ticks alone. TCP is the
//! kernel's, which looks after it at every event; the game then only reads and
//! writes at its ticks.

use std::collections::VecDeque;
use std::time::Duration;

use lagometer_transport::Endpoint;
use lagometer_units::Time;

/// An endpoint and when it is next looked after.
pub(super) struct Host {
    pub(super) endpoint: Box<dyn Endpoint + Send>,
    inbox: VecDeque<Vec<u8>>,
    deadline: Option<Time>,
    tick: Option<Tick>,
    /// The endpoint is looked after whatever the tick.
    is_in_kernel: bool,
}

/// The instants at which a game looks after its endpoint.
#[derive(Clone, Copy, Debug)]
struct Tick {
    every: Duration,
    next: Time,
}

impl Host {
    /// A host whose application acts at every event, or, with a tick, only
    /// every so often from `phase` on. So is its endpoint looked after, unless
    /// the kernel does that.
    pub(super) fn new(
        endpoint: Box<dyn Endpoint + Send>,
        is_in_kernel: bool,
        tick: Option<Duration>,
        phase: Duration,
    ) -> Self {
        let tick = tick.filter(|every| !every.is_zero()).map(|every| Tick {
            every,
            next: Time::ZERO + phase,
        });
        Self {
            endpoint,
            inbox: VecDeque::new(),
            deadline: Some(Time::ZERO),
            tick,
            is_in_kernel,
        }
    }

    /// When the host must next be looked after, given when its application
    /// next wants to act.
    pub(super) fn next_wake(&self, application: Option<Time>) -> Option<Time> {
        let application = self.tick.map_or(application, |tick| Some(tick.next));
        let endpoint = self.deadline.filter(|_| self.is_watched());
        [endpoint, application].into_iter().flatten().min()
    }

    /// Whether there is something to do at `now`. With a tick that is at the
    /// tick and, unless the kernel has the endpoint, at no other time.
    pub(super) fn is_due(&self, now: Time, application: Option<Time>) -> bool {
        let has_arrivals = self.is_watched() && !self.inbox.is_empty();
        has_arrivals || self.next_wake(application).is_some_and(|at| at <= now)
    }

    /// Whether the application may act at `now`.
    pub(super) fn is_application_awake(&self, now: Time) -> bool {
        self.tick.is_none_or(|tick| tick.next <= now)
    }

    /// Whether the endpoint is looked after at every event.
    const fn is_watched(&self) -> bool {
        self.is_in_kernel || self.tick.is_none()
    }

    /// Puts a datagram into the socket buffer.
    pub(super) fn deliver(&mut self, datagram: Vec<u8>) {
        self.inbox.push_back(datagram);
    }

    /// Hands the endpoint the oldest datagram of the socket buffer and gives
    /// the spent buffer back.
    pub(super) fn handle_next(&mut self, now: Time) -> Option<Vec<u8>> {
        let datagram = self.inbox.pop_front()?;
        self.endpoint.handle_datagram(now, &datagram);
        Some(datagram)
    }

    /// Notifies the endpoint of its deadline if that has come, once.
    pub(super) fn handle_deadline(&mut self, now: Time) {
        if self.deadline.take_if(|deadline| *deadline <= now).is_some() {
            self.endpoint.handle_deadline(now);
        }
    }

    /// Ends one round of looking after: notes the next deadline and tick.
    pub(super) fn settle(&mut self, now: Time) {
        self.deadline = self.endpoint.next_deadline();
        if let Some(tick) = &mut self.tick
            && tick.next <= now
        {
            tick.next += tick.every;
        }
    }
}
