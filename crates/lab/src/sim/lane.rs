//! One lane in virtual time: two hosts, their applications and a link.

use std::borrow::Cow;
use std::time::Duration;

use lagometer_link::{Direction, Fate, InFlight, Link};
use lagometer_testbed::{EventDriven, run_until};
use lagometer_transport::{Driven, Encapsulation, Spec, State, tcp, turn};
use lagometer_units::Time;

use super::capture::CapturedPacket;
use super::host::Host;
use crate::outcome::{LaneEnd, LaneOutcome, WireCounts};
use crate::plan::Plan;
use crate::workload::{ClientApplication, ServerApplication, Workload, act};

/// One transport under test in virtual time.
///
/// [`run_until`](Self::run_until) may be called any number of times with
/// later and later instants; how the play is sliced does not change it.
pub struct SimLane {
    now: Time,
    plan: Plan,
    encapsulation: Encapsulation,
    reliable: bool,
    path: Path,
    in_flight: InFlight<()>,
    client: Host,
    server: Host,
    client_application: Box<dyn ClientApplication>,
    server_application: Box<dyn ServerApplication>,
    wire: WireCounts,
    ready_at: Option<Time>,
    /// Events handled since time last moved.
    events_at_now: u32,
    end: Option<LaneEnd>,
    /// What was put on its link, if that is asked for.
    offered: Option<Vec<OfferedPacket>>,
    /// The same with their contents, if a capture is written.
    captured: Option<Vec<CapturedPacket>>,
}

/// A packet that a lane put on its link.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OfferedPacket {
    /// When, on the lane's clock.
    pub at: Time,
    /// Which way.
    pub direction: Direction,
    /// Its bytes on the wire, headers included.
    pub bytes: usize,
    /// What became of it.
    pub fate: Fate,
}

/// What a lane's packets are put on.
enum Path {
    /// A link of its own.
    Link(Box<Link>),
    /// What was sent on a shared link and not yet taken out.
    Shared(Vec<(Direction, Vec<u8>)>),
}

/// Events at one instant after which an endpoint counts as stuck.
const EVENTS_AT_ONE_INSTANT: u32 = 100_000;

impl SimLane {
    /// A lane of `spec`'s endpoints over `link`; all start at [`Time::ZERO`].
    #[must_use]
    pub fn new(plan: &Plan, spec: &Spec, link: Link) -> Self {
        Self::on(plan, spec, Path::Link(Box::new(link)))
    }

    /// A lane whose packets are carried by a [`SharedLinkSim`](super::SharedLinkSim).
    #[must_use]
    pub fn on_shared_link(plan: &Plan, spec: &Spec) -> Self {
        Self::on(plan, spec, Path::Shared(Vec::new()))
    }

    fn on(plan: &Plan, spec: &Spec, path: Path) -> Self {
        let pair = spec.pair(plan.seed, Time::ZERO);
        let tick = plan.workload.tick().map(lagometer_units::Span::duration);
        // The remote end's tick falls in the middle of the client's, as two
        // machines' ticks have no reason to agree.
        let server_phase = tick.unwrap_or_default() / 2;
        let encapsulation = spec.encapsulation();
        let is_in_kernel = encapsulation == Encapsulation::Ip;
        let starts = plan.measuring_starts() + plan.offset;
        let mut server_application = Workload::server(plan);
        server_application.begin(starts);
        Self {
            now: Time::ZERO,
            encapsulation,
            reliable: spec.properties().reliable,
            path,
            in_flight: InFlight::default(),
            client: Host::new(pair.client, is_in_kernel, tick, Duration::ZERO),
            server: Host::new(pair.server, is_in_kernel, tick, server_phase),
            client_application: Workload::client(plan, starts),
            server_application,
            wire: WireCounts::default(),
            ready_at: None,
            events_at_now: 0,
            end: None,
            offered: None,
            captured: None,
            plan: plan.clone(),
        }
    }

    /// From now on remembers every packet that is put on its link.
    pub fn remember_packets(&mut self) {
        self.offered.get_or_insert_default();
    }

    /// The packets that were remembered, in the order in which they were put on
    /// the link; on a shared link, in which they left its queue.
    #[must_use]
    pub fn packets(&self) -> &[OfferedPacket] {
        self.offered.as_deref().unwrap_or_default()
    }

    /// From now on keeps every packet that is put on its link, for a capture.
    pub(crate) fn capture_packets(&mut self) {
        self.captured.get_or_insert_default();
    }

    /// Takes out the packets that were kept.
    pub(crate) fn take_captured(&mut self) -> Vec<CapturedPacket> {
        self.captured
            .as_mut()
            .map(std::mem::take)
            .unwrap_or_default()
    }

    /// Plays on until `limit` or the lane's end, whichever is first; says
    /// whether the end was reached.
    pub fn run_until(&mut self, limit: Time) -> bool {
        run_until(self, limit.min(self.plan.gives_up()))
    }

    /// Whether it ended before it should.
    pub(super) fn has_failed(&self) -> bool {
        !matches!(self.end, None | Some(LaneEnd::Done))
    }

    /// Takes out what was sent, on a shared link.
    pub(super) fn take_sent(&mut self) -> Vec<(Direction, Vec<u8>)> {
        match &mut self.path {
            Path::Link(_) => Vec::new(),
            Path::Shared(sent) => std::mem::take(sent),
        }
    }

    /// Whether its datagrams are whole IP packets.
    pub(super) fn is_ip(&self) -> bool {
        self.encapsulation == Encapsulation::Ip
    }

    /// What the headers in front of a datagram add to it on the wire, in bytes.
    pub(super) fn header_bytes(&self) -> usize {
        self.encapsulation.header_bytes() as usize
    }

    /// What the lane did so far.
    #[must_use]
    pub fn outcome(&self) -> LaneOutcome {
        let (client, server) = (&self.client_application, &self.server_application);
        let mut misdeliveries = client.misdeliveries();
        misdeliveries += server.misdeliveries();
        let found = client.findings(server.arrivals());
        LaneOutcome {
            bottleneck: None,
            records: found.records,
            game: found.game,
            flows: found.flows,
            wire: self.wire(),
            payload_bytes: client.payload_bytes() + server.payload_bytes(),
            misdeliveries,
            ready_at: self.ready_at,
            end: self.end.clone(),
            cost: None,
        }
    }

    /// Datagrams that are on their way.
    #[must_use]
    pub fn in_flight(&self) -> usize {
        self.in_flight.len()
    }

    fn advance_to(&mut self, next: Time) {
        if next > self.now {
            self.now = next;
            self.events_at_now = 0;
            return;
        }
        self.events_at_now += 1;
        if self.events_at_now > EVENTS_AT_ONE_INSTANT {
            self.end = Some(LaneEnd::NoProgress);
        }
    }

    /// Moves what has arrived into the socket buffers.
    fn deliver(&mut self) {
        while let Some(arrival) = self.in_flight.pop_due(self.now) {
            // A kernel checks the UDP checksum and drops what fails it; TCP
            // checks its own.
            if arrival.damaged && self.encapsulation == Encapsulation::UdpIpv4 {
                self.count_drop("checksum");
                self.in_flight.recycle(arrival.bytes);
                continue;
            }
            match arrival.direction {
                Direction::Up => self.server.deliver(arrival.bytes),
                Direction::Down => self.client.deliver(arrival.bytes),
            }
        }
    }

    /// Looks after the host that sends in `direction` until it has nothing
    /// more to do now.
    fn look_after(&mut self, direction: Direction) {
        let now = self.now;
        let (host, application) = match direction {
            Direction::Up => (&mut self.client, self.client_application.next_send()),
            Direction::Down => (&mut self.server, self.server_application.next_send()),
        };
        if !host.is_due(now, application) {
            return;
        }
        let is_awake = host.is_application_awake(now);
        let mut driven = LaneHost {
            lane: self,
            direction,
        };
        turn(
            &mut driven,
            || now,
            |driven, now| is_awake && driven.lane.act(direction, now),
        );
        self.host(direction).settle(now);
    }

    /// Has the application of the host that sends in `direction` act; whether
    /// it sent or received anything.
    fn act(&mut self, direction: Direction, now: Time) -> bool {
        match direction {
            Direction::Up => act(&mut *self.client.endpoint, |side| {
                self.client_application.turn(now, side)
            }),
            Direction::Down => act(&mut *self.server.endpoint, |side| {
                self.server_application.turn(now, side)
            }),
        }
    }

    /// Puts all that an endpoint has for the wire on the link.
    fn send_all(&mut self, direction: Direction) {
        loop {
            let mut datagram = self.in_flight.buffer();
            let now = self.now;
            if !self
                .host(direction)
                .endpoint
                .poll_datagram(now, &mut datagram)
            {
                self.in_flight.recycle(datagram);
                return;
            }
            self.offer(direction, datagram);
        }
    }

    /// Puts a datagram on the link.
    fn offer(&mut self, direction: Direction, datagram: Vec<u8>) {
        let bytes = datagram.len() + self.header_bytes();
        if self.is_measuring() {
            self.wire.bytes += bytes as u64;
            if self.now < self.play_ends() {
                match direction {
                    Direction::Up => self.wire.play.up += bytes as u64,
                    Direction::Down => self.wire.play.down += bytes as u64,
                }
            }
            match direction {
                Direction::Up => self.wire.up_packets += 1,
                Direction::Down => self.wire.down_packets += 1,
            }
        }
        match &mut self.path {
            Path::Link(link) => {
                let fate = link.offer(direction, self.now, bytes);
                self.remember(self.now, direction, &datagram, fate);
                self.settle(direction, fate, datagram);
            }
            Path::Shared(sent) => sent.push((direction, datagram)),
        }
    }

    /// Remembers a datagram that was put on the link at `at`, if that is asked for.
    pub(super) fn remember(&mut self, at: Time, direction: Direction, datagram: &[u8], fate: Fate) {
        let bytes = datagram.len() + self.header_bytes();
        if let Some(offered) = &mut self.offered {
            offered.push(OfferedPacket {
                at,
                direction,
                bytes,
                fate,
            });
        }
        if let Some(captured) = &mut self.captured {
            captured.push(CapturedPacket {
                at,
                direction,
                fate,
                encapsulation: self.encapsulation,
                datagram: datagram.to_vec(),
            });
        }
    }

    /// Lets a datagram have its fate.
    pub(super) fn settle(&mut self, direction: Direction, fate: Fate, datagram: Vec<u8>) {
        match fate {
            Fate::Delivered { .. } => {}
            Fate::Dropped(reason) => self.count_drop(reason.name()),
            Fate::Refused { mtu_bytes } => {
                self.count_drop("refused");
                self.refuse(direction, &datagram, mtu_bytes);
            }
        }
        self.in_flight.settle((), direction, fate, datagram);
    }

    /// Says to a sender that heeds it that a packet was too large for the link.
    fn refuse(&mut self, direction: Direction, packet: &[u8], mtu_bytes: u64) {
        if self.encapsulation == Encapsulation::Ip
            && let Some(answer) = tcp::packet_too_big(packet, mtu_bytes)
        {
            self.in_flight
                .push(self.now, (), direction.opposite(), false, answer);
        }
    }

    /// Notes when the connection stands, and when the lane is over.
    fn watch(&mut self) {
        if self.end.is_some() {
            return;
        }
        let states = [self.client.endpoint.state(), self.server.endpoint.state()];
        if self.ready_at.is_none() && states == [State::Ready, State::Ready] {
            self.ready_at = Some(self.now);
        }
        let closed = states.into_iter().find_map(|state| match state {
            State::Closed(why) => Some(why),
            State::Connecting | State::Ready => None,
        });
        if let Some(why) = closed {
            // Nobody waits for an unreliable transport's last echoes: that it
            // closes when it has been idle for long is no failure.
            let has_sent_all = self.client_application.has_sent_all();
            let over = !self.reliable && has_sent_all && self.now >= self.play_ends();
            self.end = Some(if over {
                LaneEnd::Done
            } else {
                LaneEnd::Died(why)
            });
        } else if self.ready_at.is_none() && self.now >= self.plan.measuring_starts() {
            self.end = Some(LaneEnd::NeverReady);
        } else if self.client_application.is_complete() {
            self.end = Some(LaneEnd::Done);
        }
        if self.end.is_some() {
            self.client_application.abandon();
        }
    }

    /// The host that sends in `direction`.
    fn host(&mut self, direction: Direction) -> &mut Host {
        match direction {
            Direction::Up => &mut self.client,
            Direction::Down => &mut self.server,
        }
    }

    /// What it put on the wire so far. What goes after the lane's end is nothing: the time
    /// of play is over then, or the connection is lost.
    fn wire(&self) -> WireCounts {
        let mut wire = self.wire.clone();
        let played = match self.end {
            Some(LaneEnd::Done) => self.play_ends(),
            _ => self.now.min(self.play_ends()),
        };
        wire.play.over = played.since(self.plan.measuring_starts());
        wire
    }

    /// When no more messages are meant to leave.
    fn play_ends(&self) -> Time {
        self.plan.ends()
    }

    fn is_measuring(&self) -> bool {
        self.now >= self.plan.measuring_starts()
    }

    fn count_drop(&mut self, reason: &'static str) {
        if self.is_measuring() {
            *self.wire.dropped.entry(Cow::Borrowed(reason)).or_default() += 1;
        }
    }
}

impl EventDriven for SimLane {
    fn now(&self) -> Time {
        self.now
    }

    fn is_over(&self) -> bool {
        self.end.is_some()
    }

    fn next_event(&self) -> Option<Time> {
        [
            self.in_flight.next_arrival(),
            self.client.next_wake(self.client_application.next_send()),
            self.server.next_wake(self.server_application.next_send()),
        ]
        .into_iter()
        .flatten()
        .min()
    }

    fn play_instant(&mut self, now: Time) {
        self.advance_to(now);
        self.deliver();
        self.look_after(Direction::Up);
        self.look_after(Direction::Down);
        self.watch();
    }

    fn pass_to(&mut self, until: Time) {
        self.now = until;
        if self.now == self.plan.gives_up() {
            self.end = Some(LaneEnd::Done);
        }
    }
}

/// The host of a lane that sends in a direction, with the link beneath it.
struct LaneHost<'a> {
    lane: &'a mut SimLane,
    direction: Direction,
}

impl Driven for LaneHost<'_> {
    fn take_in(&mut self, now: Time) {
        // A kernel's timers fire at the beginning of its ticks, before a packet that
        // comes at the same instant.
        if self.lane.is_ip() {
            self.lane.host(self.direction).handle_deadline(now);
        }
        while let Some(spent) = self.lane.host(self.direction).handle_next(now) {
            self.lane.in_flight.recycle(spent);
        }
        self.lane.host(self.direction).handle_deadline(now);
    }

    fn put_out(&mut self, _now: Time) {
        self.lane.send_all(self.direction);
    }
}
