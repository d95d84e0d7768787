//! One connection: its state, and what an application and a driver do with it.
//!
//! The driver hands packets to [`Connection::receive`], calls
//! [`Connection::handle_deadline`] when [`Connection::next_deadline`] has come,
//! and sends whatever [`Connection::poll_transmit`] gives after any call. Each
//! rule lives in a module of its own; they share the state declared here, as
//! the kernel's do its `struct tcp_sock`.

mod ack;
mod acknowledged;
mod app;
mod delivery;
mod event;
mod feedback;
mod handshake;
mod info;
mod input;
mod linger;
mod loss;
mod mtu;
mod origin;
mod output;
mod rack;
mod recovery;
mod retransmit;
mod sack;
mod sack_walk;
mod timers;
mod transmit;
mod undo;
mod validate;
mod window;

use std::collections::VecDeque;
use std::net::SocketAddr;

use crate::config::{Config, KeepAlive};
use crate::congestion::{CongestionControl, Flow};
use crate::received::Received;
use crate::reserve::Reserve;
use crate::rtt::RttEstimator;
use crate::sent::SentQueue;
use crate::state::{CloseReason, State};
use crate::time::Ticks;
use crate::unsent::Unsent;
use crate::wire::SackBlock;
use crate::{Instant, Seq};
pub use event::Event;
use event::Events;
use feedback::Feedback;
pub use info::Info;
use mtu::PathMtu;
pub(crate) use origin::{Earlier, Given, Origin};
use rack::Rack;
use timers::Timers;

/// The sending half.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one half"
)]
struct Sender {
    unsent: Unsent,
    sent: SentQueue,
    /// The byte after the last one written.
    write: Seq,
    /// Up to here a push flag was set.
    pushed: Seq,
    /// The peer's window in bytes, and the sequence number that last set it.
    window: u32,
    wl1: Seq,
    max_window: u32,
    scale: u8,
    /// The peer offered to scale windows.
    scaling: bool,
    /// The end of the last segment shorter than the maximum (Minshall).
    small_end: Seq,
    nodelay: bool,
    corked: bool,
    /// What waits is held back no more, until something new is written (Linux's
    /// `TCP_NAGLE_PUSH`).
    released: bool,
    fin_queued: bool,
    /// The limit of memory, and what written data holds of it (Linux 6.1
    /// `sk_wmem_queued`), in bytes.
    buffer_limit: u32,
    memory: u32,
    no_space: bool,
    /// What the peer takes at most in a segment.
    mss_clamp: u32,
    /// Bytes of the TCP header with time stamps, if they are used.
    header: u32,
    cwnd_used: u32,
    cwnd_stamp: u64,
    cwnd_usage: Seq,
    data_segments: u64,
    /// The burst that is leaving: the departure before it, and its bytes so far.
    burst: Option<(Instant, u32)>,
    bytes_acked: u64,
    retransmissions: u64,
    /// When the most recent packet delivered had been sent, in microseconds.
    first_sent_us: u64,
    ecn: bool,
    queue_cwr: bool,
}

/// The receiving half.
#[derive(Debug, Default)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent facts about one half"
)]
struct Receiver {
    buffer: Received,
    next: Seq,
    /// `next` when the window was last advertised.
    advertised: Seq,
    /// The window advertised then, in bytes.
    window: u32,
    /// The next byte the application reads.
    copied: Seq,
    scale: u8,
    ssthresh: u32,
    window_clamp: u32,
    buffer_limit: u32,
    /// What we take at most in a segment.
    advertised_mss: u32,
    sacks: Vec<SackBlock>,
    duplicate: Option<SackBlock>,
    timestamps: bool,
    sack: bool,
    ts_recent: u32,
    ts_recent_at: Option<Instant>,
    /// Round-trip time as the receiver sees it, eight times, in microseconds.
    rtt_us_x8: u32,
    rtt_mark: Option<(Seq, u64)>,
    last_echo: u32,
    space: (Seq, u64, u32),
    /// The window in the header of a packet that is predicted, unscaled; none
    /// while none is (Linux 6.1 `pred_flags`).
    predicted: Option<u32>,
    fin: bool,
    demand_ece: bool,
    ecn_seen: bool,
    /// The application reads no more: data is answered with a reset.
    shut: bool,
    last_out_of_window: Option<u64>,
    /// The window when nobody read any more, in bytes.
    last_window: u32,
}

/// Loss recovery.
#[derive(Debug)]
struct Recovery {
    reordering: u32,
    reorder_seen: u32,
    high: Seq,
    undo_marker: Option<Seq>,
    /// Retransmissions not yet known to be needless; none before the first.
    undo_retransmissions: Option<u32>,
    prior_ssthresh: u32,
    prr_delivered: u32,
    prr_out: u32,
    /// When the first retransmission of the episode was sent, in milliseconds.
    first_retransmission_ms: Option<u64>,
    frto: bool,
    reneging: bool,
    probe_high: Option<Seq>,
    probe_was_retransmission: bool,
    duplicates_reported: u64,
    rack: Rack,
    highest_sacked: Seq,
    sack_cache: Vec<SackBlock>,
    hint: Option<Seq>,
}

/// Counts of one connection, for tests and statistics.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Packets sent.
    pub packets_sent: u64,
    /// Segments sent again, for whatever reason.
    pub retransmissions: u64,
    /// Retransmission timeouts.
    pub timeouts: u64,
    /// Tail-loss probes sent.
    pub tail_loss_probes: u64,
    /// Fast recoveries begun.
    pub fast_recoveries: u64,
    /// Reductions of the window taken back.
    pub undos: u64,
    /// Challenge acknowledgements sent (RFC 5961).
    pub challenge_acks: u64,
    /// Zero-window probes sent.
    pub window_probes: u64,
    /// Packets dropped because nobody polled them.
    pub overflows: u64,
    /// Packets received whose bytes were all known already.
    pub duplicates_received: u64,
}

/// A TCP connection.
#[derive(Debug)]
pub struct Connection {
    config: Config,
    ticks: Ticks,
    local: SocketAddr,
    remote: SocketAddr,
    state: State,
    reason: Option<CloseReason>,
    /// Opened by the peer.
    passive: bool,
    /// The application has closed it.
    orphaned: bool,
    iss: Seq,
    irs: Seq,
    flow: Flow,
    control: Box<dyn CongestionControl>,
    rtt: RttEstimator,
    snd: Sender,
    rcv: Receiver,
    rec: Recovery,
    feedback: Feedback,
    timers: Timers,
    mtu: PathMtu,
    keep_alive: Option<KeepAlive>,
    last_received_ticks: u64,
    ts_offset: u32,
    identification: u16,
    outbox: VecDeque<Vec<u8>>,
    /// Memory set aside for both buffers and not in use.
    reserve: Reserve,
    /// How often anything was done to it.
    turn: u64,
    events: Events,
    counters: Counters,
}

impl Connection {
    fn new(
        config: &Config,
        local: SocketAddr,
        remote: SocketAddr,
        now: Instant,
        origin: Origin,
    ) -> Self {
        let (given, phase_seed) = origin.numbers();
        let iss = given.iss;
        let config = config.within_ranges();
        let ticks = Ticks::new(config.hz, config.timer_wheel);
        let phases = config.bbr_phases.clone();
        let mut flow = Flow::with_phases(536, phase_seed, phases);
        flow.hz = ticks.hz();
        flow.cwnd = config.initial_cwnd;
        flow.max_pacing_rate = config.max_pacing_rate.unwrap_or(u64::MAX).max(1);
        flow.pacing = config.pacing || config.max_pacing_rate.is_some();
        flow.una = iss;
        flow.next = iss;
        let header = if config.timestamps { 32 } else { 20 };
        let mut connection = Self {
            ticks,
            local,
            remote,
            state: State::Closed,
            reason: None,
            passive: false,
            orphaned: false,
            iss,
            irs: Seq(0),
            flow,
            control: config.congestion.control(),
            rtt: RttEstimator::new(config.rto_min.as_micros() as u32),
            snd: Sender {
                unsent: Unsent::new(iss + 1),
                write: iss + 1,
                pushed: iss + 1,
                small_end: iss,
                nodelay: config.nodelay,
                buffer_limit: config.send_buffer.0,
                mss_clamp: 536,
                header,
                ..Sender::default()
            },
            rcv: Receiver {
                buffer_limit: config.receive_buffer.0,
                ..Receiver::default()
            },
            rec: Recovery::new(iss),
            feedback: Feedback::new(config.hz),
            timers: Timers::new(ticks.hz()),
            mtu: PathMtu::new(&config, local.is_ipv4()),
            keep_alive: config.keep_alive,
            last_received_ticks: 0,
            ts_offset: given.ts_offset,
            identification: given.identification,
            outbox: VecDeque::new(),
            reserve: Reserve::default(),
            turn: 0,
            events: Events::default(),
            counters: Counters::default(),
            config,
        };
        connection.refresh(now);
        connection
    }

    /// Takes the time over, which never runs backwards.
    fn refresh(&mut self, now: Instant) {
        self.flow.now = self.flow.now.max(now);
        self.flow.ticks = self.ticks.at(self.flow.now);
        self.turn += u64::from(self.config.orders_by_turn);
    }

    /// Takes the time over for timers alone. Where the kernel does not look at its clock,
    /// what it sends bears the time of what happened before.
    fn refresh_ticks(&mut self, now: Instant) {
        self.flow.ticks = self.ticks.at(self.flow.now.max(now));
    }

    /// Where it stands.
    #[must_use]
    pub const fn state(&self) -> State {
        self.state
    }

    /// Why it was closed; none while it is not.
    #[must_use]
    pub const fn close_reason(&self) -> Option<CloseReason> {
        self.reason
    }

    /// Our address.
    #[must_use]
    pub const fn local(&self) -> SocketAddr {
        self.local
    }

    /// The peer's address.
    #[must_use]
    pub const fn remote(&self) -> SocketAddr {
        self.remote
    }

    /// The connection as its congestion control sees it.
    #[must_use]
    pub const fn flow(&self) -> &Flow {
        &self.flow
    }

    /// The congestion control's name.
    #[must_use]
    pub fn congestion_control(&self) -> &'static str {
        self.control.name()
    }

    /// What was counted so far.
    #[must_use]
    pub const fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The retransmission timeout, with backoff, as it would be armed now.
    #[must_use]
    pub const fn rto(&self) -> std::time::Duration {
        std::time::Duration::from_micros(self.ticks.to_micros(self.timers.rto))
    }

    /// The window last advertised to the peer, in bytes.
    #[must_use]
    pub const fn receive_window(&self) -> u32 {
        self.rcv.window
    }

    /// The peer's window as last advertised, in bytes.
    #[must_use]
    pub const fn send_window(&self) -> u32 {
        self.snd.window
    }

    /// Bytes written that the peer has not acknowledged.
    #[must_use]
    pub fn unacknowledged(&self) -> usize {
        self.snd.unsent.bytes()
    }

    /// Bytes that may be read.
    #[must_use]
    pub fn readable(&self) -> usize {
        self.rcv.buffer.ready()
    }

    /// Bytes of memory that received data holds, as the window counts them.
    #[must_use]
    pub const fn receive_memory(&self) -> u32 {
        self.rcv.buffer.memory()
    }

    /// The next packet to send, a whole IP packet. Call it until it gives none
    /// after every other call.
    pub fn poll_transmit(&mut self) -> Option<Vec<u8>> {
        self.outbox.pop_front()
    }

    /// It is over; buffers and timers are let go.
    fn done(&mut self, reason: CloseReason) {
        if self.state == State::Closed {
            return;
        }
        self.state = State::Closed;
        self.reason = Some(reason);
        self.events.closed = true;
        self.snd.unsent.clear();
        self.snd.sent.clear();
        self.rcv.buffer.clear_late(&mut self.reserve);
        self.flow.packets_out = 0;
        self.flow.sacked_out = 0;
        self.flow.lost_out = 0;
        self.flow.retransmitted_out = 0;
        self.timers.clear();
        self.feedback.clear();
    }
}

impl Recovery {
    fn new(iss: Seq) -> Self {
        Self {
            reordering: 3,
            reorder_seen: 0,
            high: iss,
            undo_marker: None,
            undo_retransmissions: None,
            prior_ssthresh: 0,
            prr_delivered: 0,
            prr_out: 0,
            first_retransmission_ms: None,
            frto: false,
            reneging: false,
            probe_high: None,
            probe_was_retransmission: false,
            duplicates_reported: 0,
            rack: Rack::default(),
            highest_sacked: iss,
            sack_cache: Vec::new(),
            hint: None,
        }
    }
}
