//! Thousands of connections on one thread, for load generators and simulated
//! players.

mod wire;

use std::collections::{BTreeSet, VecDeque};
use std::fmt;
use std::fs::File;
use std::io::Read as _;
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use lagometer_units::{GOLDEN, Time, mix};

use rustix::event::epoll::{self, EventData, EventFlags};
use rustix::fs::Timespec;
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, timerfd_create, timerfd_settime,
};
use thiserror::Error;

use crate::event::Handler;
use crate::outbox::Outbox;
use crate::session::{ReceiveError, Session, Settings};
use crate::stream_transport::StreamTransportError;
use wire::StreamTransport;
pub use wire::Wire;

/// As much as is read at once, from all connections into the same memory.
const READ_BYTES: usize = 256 * 1024;

/// Connections served in one turn, unless set otherwise: few, so that a turn
/// is short however many connections have something to read.
const EVENTS_AT_ONCE: usize = 64;

/// Epoll's name for the timer; members have smaller ones.
const TIMER: u64 = u64::MAX;

/// One of a swarm's connections. Never used again after its end.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct MemberId(pub usize);

/// Why a connection has ended.
#[derive(Debug, Error)]
pub enum EndReason {
    /// The gateway closed it.
    #[error("the gateway has closed the connection")]
    Closed,
    /// The socket failed.
    #[error(transparent)]
    Io(#[from] std::io::Error),
    /// What arrived is not a gateway's.
    #[error(transparent)]
    Receive(#[from] ReceiveError),
    /// What arrived is no WebSocket's.
    #[error("not a WebSocket: {0}")]
    NotWebSocket(String),
    /// What was sent was not acknowledged for too long.
    #[error("the gateway does not answer")]
    Silent,
}

impl From<StreamTransportError> for EndReason {
    fn from(error: StreamTransportError) -> Self {
        match error {
            StreamTransportError::Io(error) => Self::Io(error),
            StreamTransportError::Closed => Self::Closed,
            StreamTransportError::NotWebSocket(why) => Self::NotWebSocket(why),
        }
    }
}

/// What went over a swarm's sockets so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Traffic {
    /// Bytes read.
    pub received_bytes: u64,
    /// Bytes written.
    pub sent_bytes: u64,
    /// Calls of `read`.
    pub reads: u64,
    /// Calls of `write`.
    pub writes: u64,
}

/// Connections to gateways, each with a [`Handler`] of its own that receives what
/// its gateway says.
///
/// A swarm never waits for one connection alone: [`poll`](Self::poll) reads
/// whichever has something and writes what their handlers put into their
/// outboxes, where they [answer at once](Handler::answers_at_once). What is put
/// there from outside goes out with [`flush`](Self::flush).
pub struct Swarm<H> {
    epoll: OwnedFd,
    timer: OwnedFd,
    members: Vec<Option<Member<H>>>,
    ready: Vec<epoll::Event>,
    buffer: Vec<u8>,
    ended: VecDeque<(MemberId, H, EndReason)>,
    traffic: Traffic,
    /// What the clock of conversations counts from.
    origin: Instant,
    /// What the numbers of conversations follow from: who can guess them can
    /// speak in the name of others.
    secret: u64,
    /// KCP conversations by when they are due.
    due: BTreeSet<(Time, usize)>,
}

impl<H> fmt::Debug for Swarm<H> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Swarm")
            .field("members", &self.members.len())
            .field("traffic", &self.traffic)
            .finish_non_exhaustive()
    }
}

#[derive(Debug)]
struct Member<H> {
    transport: StreamTransport,
    session: Session,
    handler: H,
    /// The socket took less than there was; epoll says when it takes more.
    is_blocked: bool,
    /// What arrives is thrown away: so many bytes so far.
    discarded_bytes: Option<u64>,
}

impl<H: Handler> Swarm<H> {
    /// A swarm without connections.
    ///
    /// # Errors
    ///
    /// When the process may open no more files.
    pub fn new() -> std::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let timer = timerfd_create(
            TimerfdClockId::Monotonic,
            TimerfdFlags::CLOEXEC | TimerfdFlags::NONBLOCK,
        )?;
        epoll::add(&epoll, &timer, EventData::new_u64(TIMER), EventFlags::IN)?;
        Ok(Self {
            epoll,
            timer,
            members: Vec::new(),
            ready: Vec::with_capacity(EVENTS_AT_ONCE),
            buffer: vec![0; READ_BYTES],
            ended: VecDeque::new(),
            traffic: Traffic::default(),
            origin: Instant::now(),
            secret: unforeseeable()?,
            due: BTreeSet::new(),
        })
    }

    /// Serves up to `connections` in one turn: many where nothing but the
    /// connections has to be looked after, few where whoever polls has
    /// deadlines of its own between turns. The system hands out those that
    /// wait one after the other, so that nobody is passed over.
    #[must_use]
    pub fn with_turns_of(mut self, connections: usize) -> Self {
        self.ready = Vec::with_capacity(connections.max(1));
        self
    }

    /// Opens a TCP connection and waits until it stands.
    ///
    /// # Errors
    ///
    /// The socket's.
    pub fn connect(
        &mut self,
        gateway: SocketAddr,
        settings: Settings,
        handler: H,
    ) -> std::io::Result<MemberId> {
        self.add(TcpStream::connect(gateway)?.into(), settings, handler)
    }

    /// Takes in a connection that stands, or is on its way and will.
    ///
    /// # Errors
    ///
    /// The socket's.
    pub fn add(&mut self, wire: Wire, settings: Settings, handler: H) -> std::io::Result<MemberId> {
        let id = self.members.len();
        let number = conversation_number(self.secret, id as u64);
        let transport =
            StreamTransport::new(wire, number, self.now()).map_err(|error| match error {
                EndReason::Io(error) => error,
                error => std::io::Error::other(error),
            })?;
        // A handshake may have found no room: it goes on once there is.
        let is_blocked = matches!(transport, StreamTransport::WebSocket(_));
        if let Some(socket) = transport.socket() {
            let name = EventData::new_u64(id as u64);
            epoll::add(&self.epoll, socket, name, interest(is_blocked))?;
        }
        self.members.push(Some(Member {
            transport,
            session: Session::new(settings),
            handler,
            is_blocked,
            discarded_bytes: None,
        }));
        Ok(MemberId(id))
    }

    /// Waits, `at_most` so long, until connections have something to read or
    /// room to write, and serves them. Returns how many it served.
    ///
    /// # Errors
    ///
    /// The system's; a connection that fails [ends](Self::take_ended) alone.
    pub fn poll(&mut self, at_most: Duration) -> std::io::Result<usize> {
        let no_wait = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let due = self.due.first().map(|(due, _)| due.since(self.now()));
        let at_most = due.map_or(at_most, |due| due.min(at_most));
        let wait = if at_most.is_zero() {
            Some(&no_wait)
        } else {
            self.arm_timer(at_most)?;
            None
        };
        self.ready.clear();
        match epoll::wait(
            &self.epoll,
            rustix::buffer::spare_capacity(&mut self.ready),
            wait,
        ) {
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let mut served = 0;
        for at in 0..self.ready.len() {
            let event = self.ready[at];
            let name = event.data.u64();
            if name == TIMER {
                // Read, so that it is silent until it is armed again.
                let _ = rustix::io::read(&self.timer, &mut [0; 8]);
                continue;
            }
            served += 1;
            self.serve(name as usize, event.flags);
        }
        self.tick();
        Ok(served)
    }

    /// A connection's handler and outbox. `None` when it has ended.
    pub fn member(&mut self, id: MemberId) -> Option<(&mut H, &mut Outbox)> {
        let member = self.members.get_mut(id.0)?.as_mut()?;
        Some((&mut member.handler, member.session.outbox()))
    }

    /// A connection's id at its gateway, once that has let it in.
    #[must_use]
    pub fn conn_id(&self, id: MemberId) -> Option<u32> {
        self.members.get(id.0)?.as_ref()?.session.conn_id()
    }

    /// Sends what is in a connection's outbox, as far as the socket takes it;
    /// the rest goes as it does.
    pub fn flush(&mut self, id: MemberId) {
        self.serve(id.0, EventFlags::empty());
    }

    /// Ends a connection and returns its handler.
    pub fn close(&mut self, id: MemberId) -> Option<H> {
        let member = self.members.get_mut(id.0)?.take()?;
        if let Some(socket) = member.transport.socket() {
            let _ = epoll::delete(&self.epoll, socket);
        }
        if let StreamTransport::Kcp(conversation) = &member.transport
            && let Some(noted) = conversation.noted
        {
            self.due.remove(&(noted, id.0));
        }
        Some(member.handler)
    }

    /// From now on throws away whatever arrives for a connection, which the system then
    /// does not even copy: for load generators of which a part looks at what it gets.
    /// The handler receives nothing more; what is put into the outbox is sent. Returns
    /// whether the connection is one of TCP, where alone that can be done.
    pub fn discard(&mut self, id: MemberId) -> bool {
        let Some(Some(member)) = self.members.get_mut(id.0) else {
            return false;
        };
        let is_tcp = matches!(member.transport, StreamTransport::Tcp(_));
        if is_tcp {
            member.discarded_bytes.get_or_insert(0);
        }
        is_tcp
    }

    /// How many bytes of a connection were thrown away.
    #[must_use]
    pub fn discarded_bytes(&self, id: MemberId) -> u64 {
        let member = self.members.get(id.0).and_then(Option::as_ref);
        member
            .and_then(|member| member.discarded_bytes)
            .unwrap_or_default()
    }

    /// The connections that stand, with their handlers.
    pub fn members(&self) -> impl Iterator<Item = (MemberId, &H)> {
        self.members
            .iter()
            .enumerate()
            .filter_map(|(id, member)| Some((MemberId(id), &member.as_ref()?.handler)))
    }

    /// The next of the connections that have ended, with its handler and why.
    pub fn take_ended(&mut self) -> Option<(MemberId, H, EndReason)> {
        self.ended.pop_front()
    }

    /// What went over the sockets so far.
    #[must_use]
    pub fn traffic(&self) -> Traffic {
        self.traffic
    }

    fn arm_timer(&self, after: Duration) -> std::io::Result<()> {
        let zero = Timespec {
            tv_sec: 0,
            tv_nsec: 0,
        };
        let timer = Itimerspec {
            it_interval: zero,
            it_value: Timespec {
                tv_sec: i64::try_from(after.as_secs()).unwrap_or(i64::MAX),
                tv_nsec: i64::from(after.subsec_nanos()),
            },
        };
        timerfd_settime(&self.timer, TimerfdTimerFlags::empty(), &timer)?;
        Ok(())
    }

    /// How long the swarm has been there.
    fn now(&self) -> Time {
        Time::from_nanos(self.origin.elapsed().as_nanos() as u64)
    }

    /// Reads what one connection has, then writes what it wants to say.
    fn serve(&mut self, id: usize, flags: EventFlags) {
        let now = self.now();
        let Some(Some(member)) = self.members.get_mut(id) else {
            return;
        };
        let readable = EventFlags::IN | EventFlags::HUP | EventFlags::ERR;
        let mut served = Ok(());
        if flags.intersects(readable) {
            served = member.read(now, &mut self.buffer, &mut self.traffic);
        }
        let was_blocked = member.is_blocked;
        let waits = flags == EventFlags::IN && !member.handler.answers_at_once();
        if served.is_ok() && !waits && (!was_blocked || flags.contains(EventFlags::OUT)) {
            served = member.write(now, &mut self.traffic);
        }
        if served.is_ok()
            && member.is_blocked != was_blocked
            && let Some(socket) = member.transport.socket()
        {
            let name = EventData::new_u64(id as u64);
            served = epoll::modify(&self.epoll, socket, name, interest(member.is_blocked))
                .map_err(|error| EndReason::Io(error.into()));
        }
        if let StreamTransport::Kcp(conversation) = &mut member.transport {
            if let Some(noted) = conversation.noted.take() {
                self.due.remove(&(noted, id));
            }
            conversation.noted = conversation.next_deadline(now);
            self.due.extend(conversation.noted.map(|due| (due, id)));
        }
        if let Err(reason) = served
            && let Some(handler) = self.close(MemberId(id))
        {
            self.ended.push_back((MemberId(id), handler, reason));
        }
    }

    /// Does what conversations have to do by now.
    fn tick(&mut self) {
        let now = self.now();
        while let Some(&(due, id)) = self.due.first()
            && due <= now
        {
            self.due.pop_first();
            if let Some(Some(member)) = self.members.get_mut(id)
                && let StreamTransport::Kcp(conversation) = &mut member.transport
            {
                conversation.noted = None;
                conversation.tick(now, &mut self.traffic);
            }
            // Notes the next deadline, and whether the peer is gone.
            self.serve(id, EventFlags::IN);
        }
    }
}

/// Eight bytes that follow from nothing.
fn unforeseeable() -> std::io::Result<u64> {
    let mut bytes = [0; 8];
    File::open("/dev/urandom")?.read_exact(&mut bytes)?;
    Ok(u64::from_le_bytes(bytes))
}

/// The number of a member's KCP conversation, a hash of both.
fn conversation_number(secret: u64, member: u64) -> u32 {
    let numbered = secret.wrapping_add((member + 1).wrapping_mul(GOLDEN));
    (mix(numbered) >> 32) as u32
}

/// What is waited for at a connection.
fn interest(is_blocked: bool) -> EventFlags {
    let mut wanted = EventFlags::IN;
    wanted.set(EventFlags::OUT, is_blocked);
    wanted
}

impl<H: Handler> Member<H> {
    fn read(
        &mut self,
        now: Time,
        buffer: &mut [u8],
        traffic: &mut Traffic,
    ) -> Result<(), EndReason> {
        let Self {
            transport,
            session,
            handler,
            discarded_bytes,
            ..
        } = self;
        if let (Some(discarded), StreamTransport::Tcp(stream)) = (discarded_bytes, &transport) {
            *discarded += wire::discard(stream, buffer, traffic)?;
            return Ok(());
        }
        transport.read(now, session, handler, buffer, traffic)
    }

    fn write(&mut self, now: Time, traffic: &mut Traffic) -> Result<(), EndReason> {
        let all_went = self.transport.write(now, &mut self.session, traffic)?;
        self.is_blocked = !all_went;
        Ok(())
    }
}
