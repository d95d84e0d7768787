//! When acknowledgements are sent: quickly at the start and when something is
//! wrong, else delayed by 40 to 200 ms, adapted to how data comes; and
//! compressed while data comes out of order (Linux 6.1 `tcp_event_data_recv`,
//! `__tcp_ack_snd_check`, `tcp_send_delayed_ack`, `tcp_delack_timer_handler`).

use super::Connection;
use super::timers::{Timer, at_least_one};
use crate::time::Ticks;
use crate::{Instant, Seq};

/// The most acknowledgements sent quickly in a row.
const MAX_QUICK: u32 = 16;
/// Duplicate acknowledgements sent one for one before they are compressed, and
/// how many may be compressed into one (`tcp_comp_sack_nr`).
const DUPLICATES_AT_ONCE: u32 = 3;
const COMPRESSED_MOST: u32 = 44;
/// The longest a compressed acknowledgement waits (`tcp_comp_sack_delay_ns`).
const COMPRESSED_NS: u64 = 1_000_000;
/// By how much later it may be (`tcp_comp_sack_slack_ns`): so late it is unless
/// another such timer fires before.
const COMPRESSED_SLACK_NS: u64 = 100_000;
/// The smallest maximum segment size reckoned with, and the default one.
const MIN_MSS: u32 = 88;
const DEFAULT_MSS: u32 = 536;

/// The state of acknowledgements (Linux 6.1 `icsk_ack`).
#[derive(Debug)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "the kernel's flags, each by itself"
)]
pub(super) struct Feedback {
    /// An acknowledgement is owed.
    pub(super) scheduled: bool,
    /// It is owed at once.
    pub(super) at_once: bool,
    pushed: bool,
    pushed_twice: bool,
    /// The timer as it runs: it runs on when an acknowledgement left before, and
    /// then lets a compressed one go.
    timer: Option<Timer>,
    /// The tick for which it waits, while something does (Linux 6.1
    /// `icsk_ack.timeout` with `ICSK_ACK_TIMER`).
    due: Option<u64>,
    quick: u32,
    /// The delay in ticks; 0 before the first data.
    ato: u64,
    ato_min: u64,
    delay_max: u64,
    last_data: u64,
    last_size: u32,
    /// The peer's segment size, estimated.
    pub(super) peer_mss: u32,
    /// Data goes back and forth: acknowledgements wait for answers.
    pingpong: bool,
    compressed: u32,
    /// When a compressed acknowledgement may leave, with whatever else wakes the
    /// kernel.
    compressed_timer: Option<Instant>,
    duplicates: u32,
    duplicates_at: Seq,
}

/// The latest instant at which a timer with slack fires.
const fn with_slack(may_fire: Instant) -> Instant {
    Instant::from_nanos(may_fire.as_nanos().saturating_add(COMPRESSED_SLACK_NS))
}

impl Feedback {
    pub(super) fn new(hz: u32) -> Self {
        let ticks = Ticks::new(hz, false);
        Self {
            scheduled: false,
            at_once: false,
            pushed: false,
            pushed_twice: false,
            timer: None,
            due: None,
            quick: 0,
            ato: 0,
            ato_min: at_least_one(ticks, 40),
            delay_max: at_least_one(ticks, 200),
            last_data: 0,
            last_size: 0,
            peer_mss: DEFAULT_MSS,
            pingpong: false,
            compressed: 0,
            compressed_timer: None,
            duplicates: 0,
            duplicates_at: Seq(0),
        }
    }

    pub(super) fn deadline(&self) -> Option<Instant> {
        let waits = self.due.is_some() || self.compressed > 0;
        let delayed = self.timer.filter(|_| waits).map(|timer| timer.fires);
        let compressed = self.compressed_timer.map(with_slack);
        [delayed, compressed].into_iter().flatten().min()
    }

    /// The timer of delayed acknowledgements.
    pub(super) const fn delay(&self) -> Option<Timer> {
        self.timer
    }

    /// The connection stands: it is as if data had come (Linux 6.1
    /// `tcp_create_openreq_child`, `tcp_finish_connect`).
    pub(super) const fn begin(&mut self, ticks: u64) {
        self.last_data = ticks;
    }

    /// The tick at which data last came.
    pub(super) const fn last_data(&self) -> u64 {
        self.last_data
    }

    /// How long an acknowledgement is delayed, in ticks.
    pub(super) const fn delay_ticks(&self) -> u64 {
        self.ato
    }

    /// Whether the slack of a compressed acknowledgement has begun.
    pub(super) fn may_fire(&self, now: Instant) -> bool {
        self.compressed_timer.is_some_and(|from| from <= now)
    }

    pub(super) fn clear(&mut self) {
        self.timer = None;
        self.due = None;
        self.compressed_timer = None;
        self.scheduled = false;
    }

    const fn is_quick(&self) -> bool {
        self.quick > 0 && !self.pingpong
    }

    /// Withdraws the licence to acknowledge quickly: the buffer is short.
    pub(super) const fn forbid_quick(&mut self) {
        self.quick = 0;
    }

    pub(super) const fn allow_one_quick(&mut self) {
        self.quick |= 1;
    }

    /// An acknowledgement left, alone or with data.
    pub(super) fn sent(&mut self) {
        self.compressed = 0;
        self.compressed_timer = None;
        if self.quick > 0 {
            let count = u32::from(self.scheduled);
            if count >= self.quick {
                self.quick = 0;
                self.ato = self.ato_min;
            } else {
                self.quick -= count;
            }
        }
        self.scheduled = false;
        self.at_once = false;
        self.pushed = false;
        self.pushed_twice = false;
        self.due = None;
    }

    /// Data left: if it followed data closely, the two sides are in dialogue.
    pub(super) const fn data_sent(&mut self, ticks: u64) {
        if ticks.saturating_sub(self.last_data) < self.ato {
            self.pingpong = true;
        }
    }

    /// Acknowledgements wait for answers no longer. Whether one waits, which
    /// then counts as the end of a write.
    pub(super) const fn leave_dialogue(&mut self) -> bool {
        self.pingpong = false;
        self.pushed |= self.scheduled;
        self.scheduled
    }

    /// The peer has ended its stream: what we still send carries the
    /// acknowledgements (Linux 6.1 `tcp_fin`).
    pub(super) const fn enter_dialogue(&mut self) {
        self.pingpong = true;
    }

    /// Reading may owe an acknowledgement: what came was the end of a write.
    pub(super) const fn is_due_when_read(&self) -> bool {
        self.pushed_twice || (self.pushed && !self.pingpong)
    }
}

impl Connection {
    /// Guesses the peer's segment size before any data (Linux 6.1
    /// `tcp_initialize_rcv_mss`).
    pub(super) fn init_peer_mss(&mut self) {
        let hint = self
            .rcv
            .advertised_mss
            .min(self.flow.mss)
            .min(self.rcv.window / 2);
        self.feedback.peer_mss = hint.clamp(MIN_MSS, DEFAULT_MSS);
    }

    fn raise_quick(&mut self, most: u32) {
        let count = match self.rcv.window / (2 * self.feedback.peer_mss.max(1)) {
            0 => 2,
            count => count,
        };
        self.feedback.quick = self.feedback.quick.max(count.min(most));
    }

    /// Something is wrong on the path: the peer needs to know at once.
    pub(super) fn enter_quick(&mut self, most: Option<u32>) {
        self.raise_quick(most.unwrap_or(MAX_QUICK));
        self.feedback.pingpong = false;
        self.feedback.ato = self.feedback.ato_min;
    }

    /// Data came in order (Linux 6.1 `tcp_event_data_recv`).
    pub(super) fn on_data(&mut self, payload: u32, header: u32, pushed: bool) {
        self.feedback.scheduled = true;
        self.measure_peer_mss(payload, header, pushed);
        self.measure_receive_rtt();
        let now = self.flow.ticks;
        let rto = self.timers.rto;
        let feedback = &mut self.feedback;
        if feedback.ato == 0 {
            feedback.ato = feedback.ato_min;
            self.raise_quick(MAX_QUICK);
        } else {
            let gap = now.saturating_sub(feedback.last_data);
            let half = feedback.ato_min / 2;
            if gap <= half {
                feedback.ato = (feedback.ato >> 1) + half;
            } else if gap < feedback.ato {
                feedback.ato = ((feedback.ato >> 1) + gap).min(rto);
            } else if gap > rto {
                self.raise_quick(MAX_QUICK);
            }
        }
        self.feedback.last_data = now;
    }

    /// Linux 6.1 `tcp_measure_rcv_mss`.
    fn measure_peer_mss(&mut self, payload: u32, header: u32, pushed: bool) {
        let advertised = self.rcv.advertised_mss;
        let fixed_header = self.snd.header;
        let feedback = &mut self.feedback;
        let last = std::mem::take(&mut feedback.last_size);
        if payload >= feedback.peer_mss {
            feedback.peer_mss = payload.min(advertised).max(1);
            feedback.pushed |= pushed;
            return;
        }
        let whole = payload + header;
        if whole >= DEFAULT_MSS + 20 || (whole >= MIN_MSS + 20 && !pushed) {
            let size = whole.saturating_sub(fixed_header);
            feedback.last_size = size;
            if size == last && size > 0 {
                feedback.peer_mss = size;
                return;
            }
        }
        feedback.pushed_twice |= feedback.pushed;
        feedback.pushed = true;
    }

    /// Acknowledges what is owed, now or later (Linux 6.1
    /// `__tcp_ack_snd_check`).
    pub(super) fn check_feedback(&mut self) {
        if !self.feedback.scheduled {
            return;
        }
        let has_full_segment = self.rcv.next - self.rcv.advertised > self.feedback.peer_mss;
        if (has_full_segment && self.is_read_or_window_open())
            || self.feedback.is_quick()
            || self.feedback.at_once
        {
            self.send_ack();
        } else if self.rcv.buffer.has_no_late() {
            self.delay_ack();
        } else {
            self.compress_ack();
        }
    }

    /// Whether the application has read everything (the low-water mark is a
    /// byte), or the window would not shrink.
    fn is_read_or_window_open(&mut self) -> bool {
        self.rcv.next == self.rcv.copied || self.choose_window() >= self.rcv.window
    }

    fn compress_ack(&mut self) {
        if !self.rcv.sack || self.feedback.compressed >= COMPRESSED_MOST {
            self.send_ack();
            return;
        }
        if self.feedback.duplicates_at != self.rcv.next {
            self.feedback.duplicates_at = self.rcv.next;
            self.feedback.duplicates = 0;
        }
        if self.feedback.duplicates < DUPLICATES_AT_ONCE {
            self.feedback.duplicates += 1;
            self.send_ack();
            return;
        }
        if self.feedback.compressed == 0 && self.feedback.due.is_none() {
            // It fired, with nothing to do.
            let now = self.flow.now;
            self.feedback.timer.take_if(|timer| timer.fires <= now);
        }
        self.feedback.compressed += 1;
        if self.feedback.compressed_timer.is_some() {
            return;
        }
        let mut rtt_us_x8 = u64::from(self.rcv.rtt_us_x8);
        let srtt = u64::from(self.flow.srtt_us_x8);
        if srtt > 0 && srtt < rtt_us_x8 {
            rtt_us_x8 = srtt;
        }
        // A twentieth of the round trip.
        let delay_ns = COMPRESSED_NS.min(rtt_us_x8 * (1_000 >> 3) / 20);
        let may_fire = self.flow.now.as_nanos().saturating_add(delay_ns);
        self.feedback.compressed_timer = Some(Instant::from_nanos(may_fire));
    }

    /// Sends a compressed acknowledgement before its time.
    pub(super) fn flush_compressed(&mut self) {
        if self.feedback.compressed > 0 {
            self.feedback.compressed = 0;
            self.feedback.compressed_timer = None;
            self.send_ack();
        }
    }

    /// Linux 6.1 `tcp_send_delayed_ack`.
    fn delay_ack(&mut self) {
        let hz = self.flow.hz;
        let feedback = &mut self.feedback;
        let mut ato = feedback.ato;
        if ato > feedback.ato_min {
            let mut most = hz / 2;
            if feedback.pingpong || feedback.pushed {
                most = feedback.delay_max;
            }
            if self.flow.srtt_us_x8 > 0 {
                let rtt = self.ticks.of_micros(u64::from(self.flow.srtt_us_x8 >> 3));
                most = most.min(rtt.max(feedback.ato_min));
            }
            ato = ato.min(most);
        }
        ato = ato.min(feedback.delay_max);
        let now = self.flow.ticks;
        let mut expires = now + ato;
        if let Some(due) = feedback.due {
            if due <= now + (ato >> 2) {
                self.send_ack();
                return;
            }
            expires = expires.min(due);
        }
        self.set_feedback_timer(expires);
    }

    /// Sets the timer; one that runs and is set to the same tick stays in its bucket
    /// (Linux 6.1 `mod_timer`).
    fn set_feedback_timer(&mut self, expires: u64) {
        self.feedback.due = Some(expires);
        let runs = self
            .feedback
            .timer
            .is_some_and(|timer| timer.expires == expires && timer.fires > self.flow.now);
        if !runs {
            let timer = self.timer(expires.saturating_sub(self.flow.ticks));
            self.feedback.timer = Some(timer);
        }
    }

    /// A timer of acknowledgements has fired. A compressed one has the time stamp
    /// of `before`, when anything last happened: the kernel does not look at the
    /// clock for it (Linux 6.1 `tcp_compressed_ack_kick`).
    pub(super) fn on_feedback_timer(&mut self, before: Instant) {
        let now = self.flow.now;
        if self
            .feedback
            .timer
            .take_if(|timer| timer.fires <= now)
            .is_some()
        {
            self.on_delay_over();
        }
        if self
            .feedback
            .compressed_timer
            .is_some_and(|may_fire| with_slack(may_fire) <= now)
        {
            self.release_compressed(before);
        }
    }

    /// A timer of the same kind has fired, of this connection or another of its host:
    /// a compressed acknowledgement whose slack has begun leaves with it (Linux 6.1
    /// `hrtimer_run_softirq`). `before` is when anything last happened.
    pub(super) fn on_soft_interrupt(&mut self, before: Instant) {
        if self.feedback.may_fire(self.flow.now) {
            self.release_compressed(before);
        }
    }

    fn release_compressed(&mut self, before: Instant) {
        let now = std::mem::replace(&mut self.flow.now, before);
        self.feedback.compressed_timer = None;
        self.flush_compressed();
        self.flow.now = now;
    }

    /// Linux 6.1 `tcp_delack_timer_handler`.
    fn on_delay_over(&mut self) {
        if self.feedback.compressed > 0 {
            self.flush_compressed();
            return;
        }
        match self.feedback.due {
            None => return,
            Some(due) if due > self.flow.ticks => {
                self.set_feedback_timer(due);
                return;
            }
            Some(_) => self.feedback.due = None,
        }
        if self.feedback.scheduled {
            let feedback = &mut self.feedback;
            if feedback.pingpong {
                feedback.pingpong = false;
                feedback.ato = feedback.ato_min;
            } else {
                feedback.ato = (feedback.ato << 1).min(self.timers.rto);
            }
            self.send_ack();
        }
    }
}
