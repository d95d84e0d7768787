//! The receive window: how it is chosen, when it is advertised, how buffer and window
//! grow with what the application reads (Linux 6.1 `__tcp_select_window`,
//! `tcp_grow_window`, `tcp_rcv_space_adjust`).
//!
//! Half of the buffer's memory counts as room for payload (`tcp_adv_win_scale`
//! 1).

use super::Connection;
use crate::received::payload_room;

/// Rounds up to the unit in which the window is advertised.
const fn align(bytes: u32, scale: u8) -> u32 {
    let unit = 1 << scale;
    bytes.saturating_add(unit - 1) & !(unit - 1)
}

impl Connection {
    /// Room left, in bytes of payload.
    fn free_room(&self) -> u32 {
        payload_room(
            self.rcv
                .buffer_limit
                .saturating_sub(self.rcv.buffer.memory()),
        )
    }

    /// What is left of the window last advertised.
    pub(super) fn window_left(&self) -> u32 {
        let end = self.rcv.advertised + self.rcv.window;
        end.distance(self.rcv.next).max(0).cast_unsigned()
    }

    /// The first window and its scale (Linux 6.1 `tcp_select_initial_window`).
    /// A peer who opens with time stamps leaves less of a segment for payload
    /// (`tcp_openreq_init_rwin`); a buffer that the application set bounds the
    /// window for good.
    pub(super) fn init_window(&mut self) {
        let mut mss = self.rcv.advertised_mss.max(1);
        if self.passive && self.rcv.timestamps {
            mss = mss.saturating_sub(12).max(1);
        }
        let full = payload_room(self.rcv.buffer_limit);
        let mut clamp = 65_535 << 14;
        if !self.config.tune_receive_buffer {
            clamp = full;
        }
        let mut room = full.min(clamp);
        if room > mss {
            room -= room % mss;
        }
        self.rcv.window = room.min(65_535);
        if self.config.window_scaling {
            let most = room.max(self.config.receive_buffer.1).max(212_992);
            let most = most.min(clamp).max(1);
            self.rcv.scale = most.ilog2().saturating_sub(15).min(14) as u8;
        }
        self.rcv.window_clamp = clamp.min(65_535 << self.rcv.scale);
        self.rcv.ssthresh = self.rcv.window;
    }

    /// Buffers once the connection is established (Linux 6.1
    /// `tcp_init_buffer_space`).
    pub(super) fn init_buffers(&mut self) {
        self.expand_send_buffer();
        let rcv = &mut self.rcv;
        let mss = rcv.advertised_mss;
        let most = payload_room(rcv.buffer_limit);
        if rcv.window_clamp >= most {
            rcv.window_clamp = most;
            if most > 4 * mss {
                // A 2^31st for the application (`tcp_app_win`).
                rcv.window_clamp = (most - (most >> 31)).max(4 * mss);
            }
        }
        if rcv.window_clamp > 2 * mss && rcv.window_clamp + mss > most {
            rcv.window_clamp = (2 * mss).max(most.saturating_sub(mss));
        }
        rcv.ssthresh = rcv.ssthresh.min(rcv.window_clamp);
        let space = rcv.ssthresh.min(rcv.window).min(10 * mss);
        rcv.space = (rcv.copied, self.flow.now_us(), space.max(1));
        self.snd.cwnd_stamp = self.flow.ticks;
    }

    /// The window that could be advertised now, in bytes.
    pub(super) fn choose_window(&mut self) -> u32 {
        let mut free = self.free_room();
        let allowed = payload_room(self.rcv.buffer_limit);
        let full = self.rcv.window_clamp.min(allowed);
        let mss = self.feedback.peer_mss.min(full);
        if mss == 0 {
            return 0;
        }
        if free < full >> 1 {
            self.feedback.forbid_quick();
            free &= !((1 << self.rcv.scale) - 1);
            if free < allowed >> 4 || free < mss {
                return 0;
            }
        }
        free = free.min(self.rcv.ssthresh);
        if self.rcv.scale > 0 {
            return align(free, self.rcv.scale);
        }
        let window = self.rcv.window;
        if window <= free.saturating_sub(mss) || window > free {
            free - free % mss
        } else if mss == full && free > window + (full >> 1) {
            free
        } else {
            window
        }
    }

    /// The window as it goes into a header; it is never taken back (RFC 9293,
    /// section 3.8.6; Linux 6.1 `tcp_select_window`).
    pub(super) fn advertise_window(&mut self) -> u16 {
        let left = self.window_left();
        let mut window = self.choose_window();
        if window < left {
            window = align(left, self.rcv.scale);
        }
        self.rcv.window = window;
        self.rcv.advertised = self.rcv.next;
        if window == 0 {
            self.rcv.predicted = None;
        }
        (window.min(65_535 << self.rcv.scale) >> self.rcv.scale) as u16
    }

    /// Opens the window as packets prove to be worth their memory (Linux 6.1
    /// `tcp_grow_window`).
    pub(super) fn grow_window(&mut self, payload: u32, memory: u32) {
        let room = self.rcv.window_clamp.min(self.free_room());
        let Some(room) = room.checked_sub(self.rcv.ssthresh).filter(|room| *room > 0) else {
            return;
        };
        let growth = if payload_room(memory) <= payload {
            2 * self.rcv.advertised_mss
        } else {
            self.slow_growth(payload, memory)
        };
        if growth > 0 {
            self.rcv.ssthresh += room.min(growth.max(2 * payload));
            self.feedback.allow_one_quick();
        }
    }

    fn slow_growth(&self, payload: u32, memory: u32) -> u32 {
        let mut memory = payload_room(memory) >> 1;
        let mut window = payload_room(self.config.receive_buffer.1) >> 1;
        while self.rcv.ssthresh <= window && window > 0 {
            if memory <= payload {
                return 2 * self.feedback.peer_mss;
            }
            memory >>= 1;
            window >>= 1;
        }
        0
    }

    /// The round trip as the receiver can see it without time stamps: how long
    /// a window takes.
    pub(super) fn measure_receive_rtt(&mut self) {
        let now_us = self.flow.now_us();
        if let Some((end, since_us)) = self.rcv.rtt_mark {
            if self.rcv.next.before(end) {
                return;
            }
            self.take_receive_rtt((now_us - since_us).max(1), true);
        }
        self.rcv.rtt_mark = Some((self.rcv.next + self.rcv.window, now_us));
    }

    /// The same by the echo of a time stamp.
    pub(super) fn measure_receive_rtt_by_echo(&mut self, echo: u32, payload: u32) {
        if echo == self.rcv.last_echo {
            return;
        }
        self.rcv.last_echo = echo;
        if payload >= self.feedback.peer_mss {
            let ms = (self.now_ms() as u32).wrapping_sub(echo);
            if ms < u32::MAX / 2 / 1_000 {
                self.take_receive_rtt(u64::from(ms.max(1)) * 1_000, false);
            }
        }
    }

    fn take_receive_rtt(&mut self, sample_us: u64, depends_on_window: bool) {
        let sample = u32::try_from(sample_us)
            .unwrap_or(u32::MAX >> 3)
            .min(u32::MAX >> 3);
        let old = self.rcv.rtt_us_x8;
        if old == 0 || sample << 3 < old {
            self.rcv.rtt_us_x8 = sample << 3;
        } else if !depends_on_window {
            self.rcv.rtt_us_x8 = old - (old >> 3) + sample;
        }
    }

    /// Grows the buffer to twice what the application reads in a round trip and
    /// more while that grows (dynamic right-sizing, Feng and Fisk).
    pub(super) fn tune_receive_buffer(&mut self) {
        let (since, since_us, before) = self.rcv.space;
        let now_us = self.flow.now_us();
        let rtt_us = u64::from(self.rcv.rtt_us_x8 >> 3);
        if rtt_us == 0 || now_us - since_us < rtt_us {
            return;
        }
        let copied = self.rcv.copied - since;
        let mut space = before;
        if copied > before {
            space = copied;
            if self.config.tune_receive_buffer {
                self.raise_receive_buffer(copied, before);
            }
        }
        self.rcv.space = (self.rcv.copied, now_us, space);
    }

    fn raise_receive_buffer(&mut self, copied: u32, before: u32) {
        let mss = u64::from(self.rcv.advertised_mss.max(1));
        let mut window = u64::from(copied) * 2 + 16 * mss;
        let growth = window * u64::from(copied - before) / u64::from(before.max(1));
        window += growth * 2;
        // Memory for a full segment with the kernel's room for headers, until
        // half of it holds one.
        let mut memory = mss as u32 + self.config.header_room + 576;
        while u64::from(payload_room(memory)) < mss {
            memory += 128;
        }
        let buffer =
            (window / mss * u64::from(memory)).min(u64::from(self.config.receive_buffer.1));
        let buffer = buffer as u32;
        if buffer > self.rcv.buffer_limit {
            self.rcv.buffer_limit = buffer;
            self.rcv.window_clamp = payload_room(buffer);
        }
    }

    /// Makes room for a packet of so much memory; false when there is none (Linux
    /// 6.1 `tcp_try_rmem_schedule`).
    pub(super) fn make_room(&mut self, memory: u32) -> bool {
        if self.rcv.buffer.memory() > self.rcv.buffer_limit && !self.prune() {
            return false;
        }
        self.reserve.schedule(memory);
        true
    }

    /// Linux 6.1 `tcp_prune_queue`.
    fn prune(&mut self) -> bool {
        let used = self.rcv.buffer.memory();
        self.feedback.forbid_quick();
        if self.config.tune_receive_buffer && self.rcv.buffer_limit < self.config.receive_buffer.1 {
            self.rcv.buffer_limit = used.min(self.config.receive_buffer.1);
        }
        let limit = self.rcv.buffer_limit;
        if used <= limit {
            return true;
        }
        let least = 2 * self.rcv.advertised_mss;
        self.rcv.ssthresh = self.rcv.window_clamp.min(least);
        let (copied, next) = (self.rcv.copied, self.rcv.next);
        let reserve = &mut self.reserve;
        if self.rcv.buffer.prune(limit, copied, next, reserve) {
            self.rcv.sacks.clear();
        }
        if self.rcv.buffer.memory() > limit {
            self.rcv.predicted = None;
            return false;
        }
        true
    }
}
