//! What the application does: write, read, close (Linux 6.1 `tcp_sendmsg`,
//! `tcp_recvmsg`, `tcp_close`).

use super::transmit::Push;
use super::{Connection, State};
use crate::Instant;
use crate::config::KeepAlive;
use crate::received::{BUFFER_COST, SHARED_COST};
use crate::state::CloseReason;
use crate::unsent::Piece;

impl Connection {
    /// Writes bytes; returns how many found room, 0 when there is none or the
    /// connection takes none. [`Event::Writable`](super::Event::Writable)
    /// follows when there is room again. What is written before the handshake
    /// is over leaves with its end.
    pub fn write(&mut self, now: Instant, bytes: &[u8]) -> usize {
        self.refresh(now);
        let may_queue =
            self.state.can_write() || matches!(self.state, State::SynSent | State::SynReceived);
        if !may_queue || self.snd.fin_queued {
            return 0;
        }
        self.check_app_limited();
        // Once for all of it, although what leaves on the way may carry fewer options.
        let mss = self.current_mss();
        let most = self.size_goal(mss);
        let mut written = 0;
        while written < bytes.len() {
            let room = self.snd.unsent.last_mut().map_or(0, |piece| {
                if piece.fin {
                    0
                } else {
                    most.saturating_sub(piece.length)
                }
            });
            let mut room = room;
            if room == 0 {
                if !self.has_send_room() {
                    self.snd.no_space = true;
                    break;
                }
                self.snd.unsent.push(Piece::default());
                self.snd.released = false;
                self.charge_piece();
                self.restart_after_idle();
                room = most;
            }
            let length = (bytes.len() - written).min(room as usize);
            if written == 0
                && let Some(piece) = self.snd.unsent.last_mut()
            {
                piece.push = false;
            }
            self.snd.unsent.append(&bytes[written..written + length]);
            self.charge_sent(length as u32);
            self.snd.write += length as u32;
            written += length;
            if written < bytes.len() && self.is_full_piece(most) {
                self.push_full_piece(mss);
            }
        }
        if written > 0 {
            self.push_written(written < bytes.len(), mss);
        }
        written
    }

    /// Whether another piece may be written (Linux 6.1 `sk_stream_memory_free`).
    fn has_send_room(&self) -> bool {
        self.snd.memory < self.snd.buffer_limit && self.is_not_sent_below(1)
    }

    /// Whether `factor` times the bytes never sent are below the application's
    /// low-water mark (Linux 6.1 `tcp_stream_memory_free`).
    fn is_not_sent_below(&self, factor: u64) -> bool {
        let not_sent = u64::from(self.snd.write - self.flow.next);
        self.config
            .not_sent_low_water
            .is_none_or(|mark| factor * not_sent < u64::from(mark))
    }

    /// How much of a long write goes into one piece: whole segments, as many as
    /// fit into the largest burst and into half of the peer's window (Linux 6.1
    /// `tcp_xmit_size_goal`, `tcp_bound_to_half_wnd`).
    fn size_goal(&self, mss: u32) -> u32 {
        let mut most = self.largest_burst();
        let widest = self.snd.max_window;
        let half = if widest > 536 { widest >> 1 } else { widest };
        if half > 0 && most > half {
            most = half.max(68 - self.snd.header);
        }
        (most - most % mss).max(mss)
    }

    /// Memory of written data (Linux 6.1 `sk_wmem_queued_add`).
    pub(super) fn charge_sent(&mut self, bytes: u32) {
        self.snd.memory += bytes;
        self.reserve.schedule(bytes);
        self.reserve.charge(bytes);
    }

    /// A buffer for written data.
    pub(super) fn charge_piece(&mut self) {
        self.charge_sent(self.piece_cost());
    }

    /// Written data, or its buffer, is let go.
    pub(super) fn release_sent(&mut self, bytes: u32) {
        self.snd.memory = self.snd.memory.saturating_sub(bytes);
        self.reserve.release(bytes);
    }

    fn is_full_piece(&mut self, most: u32) -> bool {
        self.snd
            .unsent
            .last_mut()
            .is_some_and(|piece| piece.length >= most)
    }

    /// In the middle of a long write: half a window calls for a push (Linux 6.1
    /// `forced_push`), and the first piece may leave.
    fn push_full_piece(&mut self, mss: u32) {
        if !self.state.is_synchronized() {
            return;
        }
        let half = self.snd.pushed + (self.snd.max_window >> 1);
        if self.snd.write.after(half) {
            self.mark_push();
            self.push_segments(Push::All, mss);
        } else if self.snd.unsent.count() == 1 {
            self.transmit(Push::One, mss);
        }
    }

    fn mark_push(&mut self) {
        if let Some(piece) = self.snd.unsent.last_mut() {
            piece.push = true;
        }
        self.snd.pushed = self.snd.write;
    }

    fn push_written(&mut self, is_full: bool, mss: u32) {
        self.mark_push();
        if self.state.is_synchronized() {
            let push = if is_full { Push::All } else { Push::AsSet };
            self.push_segments(push, mss);
        }
    }

    /// Reads bytes in order; returns how many. 0 with
    /// [`is_finished`](Self::is_finished) means the end of the stream.
    pub fn read(&mut self, now: Instant, out: &mut [u8]) -> usize {
        self.refresh_ticks(now);
        // The buffer is tuned after each packet that was copied (Linux 6.1
        // `tcp_recvmsg_locked`).
        let mut length = 0;
        while length < out.len() {
            let copied = self.rcv.copied;
            let rest = &mut out[length..];
            let Some(piece) = self.rcv.buffer.read(copied, rest, &mut self.reserve) else {
                break;
            };
            length += piece.bytes;
            self.rcv.copied += piece.bytes as u32;
            if piece.bytes > 0 {
                self.refresh(now);
                self.tune_receive_buffer();
            }
            self.rcv.copied += u32::from(piece.fin);
            if piece.fin || piece.bytes == 0 {
                break;
            }
        }
        if length == 0 {
            return 0;
        }
        if self.state != State::Closed && self.state != State::TimeWait {
            self.acknowledge_read();
        }
        length
    }

    /// Reading may owe an acknowledgement, or have opened the window by so much
    /// that the peer should know (Linux 6.1 `__tcp_cleanup_rbuf`).
    fn acknowledge_read(&mut self) {
        let mut is_due = self.feedback.scheduled
            && (self.rcv.next - self.rcv.advertised > self.feedback.peer_mss
                || (self.feedback.is_due_when_read() && self.rcv.buffer.memory() == 0));
        if !is_due && !self.rcv.fin {
            let left = self.window_left();
            if 2 * u64::from(left) <= u64::from(self.rcv.window_clamp) {
                let window = self.choose_window();
                is_due = window > 0 && u64::from(window) >= 2 * u64::from(left);
            }
        }
        if is_due {
            self.send_ack();
        }
    }

    /// Whether the peer has ended its stream and everything was read.
    #[must_use]
    pub fn is_finished(&self) -> bool {
        self.rcv.fin && self.rcv.buffer.ready() == 0
    }

    /// Lets acknowledgements leave at once until data goes back and forth again
    /// (`TCP_QUICKACK` 1; Linux 6.1 `__tcp_sock_set_quickack`). One that waits
    /// leaves now if everything was read. The kernel forgets it with the next
    /// answer to data, so an application that wants it says it after each read.
    pub fn acknowledge_quickly(&mut self, now: Instant) {
        self.refresh_ticks(now);
        let may_receive = matches!(self.state, State::Established | State::CloseWait);
        if self.feedback.leave_dialogue() && may_receive {
            self.acknowledge_read();
        }
    }

    /// Turns Nagle's algorithm off or on (`TCP_NODELAY`); off sends what it held
    /// back.
    pub fn set_nodelay(&mut self, now: Instant, nodelay: bool) {
        self.refresh_ticks(now);
        self.snd.nodelay = nodelay;
        self.snd.released |= nodelay;
        if nodelay {
            self.push_released(now);
        }
    }

    /// Sends what an option held back. Where nothing waits, the kernel does not look at its
    /// clock (Linux 6.1 `tcp_push_pending_frames`).
    fn push_released(&mut self, now: Instant) {
        if self.state.is_synchronized() && !self.snd.unsent.is_empty() {
            self.refresh(now);
            self.push_pending(Push::AsSet);
        }
    }

    /// Holds partial segments back or no longer (`TCP_CORK`). What waits with
    /// nothing in flight leaves after a retransmission timeout all the same, by
    /// the timer of window probes.
    pub fn set_cork(&mut self, now: Instant, corked: bool) {
        self.refresh_ticks(now);
        self.snd.corked = corked;
        self.snd.released |= !corked && self.snd.nodelay;
        if !corked {
            self.push_released(now);
        }
    }

    /// Turns keep-alive probes on or off (`SO_KEEPALIVE`). Values outside of the ranges
    /// of [`KeepAlive`] count as the nearest inside.
    pub fn set_keep_alive(&mut self, now: Instant, keep_alive: Option<KeepAlive>) {
        self.refresh_ticks(now);
        self.keep_alive = keep_alive.map(KeepAlive::within_ranges);
        self.timers.keep_alive = None;
        if self.state.is_synchronized() {
            self.start_keep_alive();
        }
    }

    /// Ends our stream after what was written; reading goes on
    /// (`shutdown(SHUT_WR)`).
    pub fn finish(&mut self, now: Instant) {
        self.refresh(now);
        match self.state {
            State::SynSent => {
                self.done(CloseReason::Aborted);
                return;
            }
            State::Established => self.state = State::FinWait1,
            // The FIN follows the handshake.
            State::SynReceived if !self.snd.fin_queued => {}
            State::CloseWait => self.state = State::LastAck,
            _ => return,
        }
        self.snd.fin_queued = true;
        self.snd.write += 1;
        if let Some(piece) = self.snd.unsent.last_mut() {
            piece.fin = true;
        } else {
            self.charge_piece();
            self.snd.unsent.push(Piece {
                fin: true,
                ..Piece::default()
            });
        }
        if self.state.is_synchronized() {
            self.push_pending(Push::All);
        }
    }

    /// Ends both directions. Data that was received and not read is lost, which
    /// the peer learns by a reset (RFC 2525, section 2.17).
    pub fn close(&mut self, now: Instant) {
        self.refresh(now);
        if self.state == State::Closed {
            return;
        }
        self.orphaned = true;
        self.rcv.shut = true;
        if self.rcv.buffer.ready() > 0 && self.state != State::TimeWait {
            self.rcv.buffer.clear_ready(&mut self.reserve);
            self.abort(now);
            return;
        }
        self.finish(now);
        if self.state == State::FinWait2 {
            self.await_fin(false);
        }
    }

    /// Gives the connection up at once; the peer gets a reset.
    pub fn abort(&mut self, now: Instant) {
        self.refresh(now);
        if self.state.is_synchronized() && self.state != State::TimeWait
            || self.state == State::SynReceived
        {
            self.send_reset();
        }
        self.done(CloseReason::Aborted);
    }

    /// Grows the send buffer to hold so many congestion windows (Linux 6.1
    /// `tcp_sndbuf_expand`).
    pub(super) fn expand_send_buffer(&mut self) {
        if !self.config.tune_send_buffer {
            return;
        }
        let mss = self.snd.mss_clamp.max(self.flow.mss);
        let room = self.config.header_room.min(65_536) + SHARED_COST;
        let each = u64::from((mss + room).next_power_of_two() + BUFFER_COST);
        let segments = self.flow.cwnd.max(10).max(self.rec.reordering + 1);
        let windows = u64::from(self.control.send_buffer_windows());
        let memory = windows * u64::from(segments) * each;
        let memory = memory.min(u64::from(self.config.send_buffer.1)) as u32;
        self.snd.buffer_limit = self.snd.buffer_limit.max(memory);
    }

    /// Reports room to a writer who found none, when a third of the buffer is
    /// free and half of what may wait unsent (Linux 6.1 `tcp_check_space`,
    /// `sk_stream_write_space`).
    pub(super) fn check_send_space(&mut self) {
        if !self.snd.no_space {
            return;
        }
        if self.flow.in_flight() < self.flow.cwnd {
            self.expand_send_buffer();
            self.snd.cwnd_stamp = self.flow.ticks;
        }
        if self.has_much_room() {
            self.snd.no_space = false;
            self.events.writable = true;
        }
    }

    /// Linux 6.1 `sk_stream_is_writeable`.
    fn has_much_room(&self) -> bool {
        let used = self.snd.memory;
        let limit = self.snd.buffer_limit;
        limit.saturating_sub(used) >= used >> 1 && self.is_not_sent_below(2)
    }

    /// Whether a third of the send buffer is free. If not,
    /// [`Event::Writable`](super::Event::Writable) follows when it is, and the buffer
    /// may grow until then (`poll`; Linux 6.1 `tcp_poll`).
    pub fn poll_writable(&mut self) -> bool {
        let is_writable = self.has_much_room();
        self.snd.no_space |= !is_writable;
        is_writable
    }
}
