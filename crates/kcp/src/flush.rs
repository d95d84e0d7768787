//! The engine's clockwork: what it sends, and when.

use crate::clock::low;
use crate::config::segment_bytes;
use crate::engine::Engine;
use crate::packer::Packer;
use crate::sender::Resent;
use crate::wire::{Command, HEADER_BYTES, Header};

/// A flush overdue, or not due, by this many milliseconds means that the
/// clock was set, and the flushes start afresh.
const CLOCK_WAS_SET_MS: i64 = 10_000;

/// When an engine has something to do at a flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Work {
    /// At the next flush.
    Now,
    /// At the first flush at which the clock shows this or later.
    At(u32),
    /// Never, by itself.
    Never,
}

impl Engine {
    /// Sets the clock to `now`, in milliseconds since any instant, and flushes
    /// if that is due. Every datagram goes to `output`.
    ///
    /// The clock may wrap. It must neither stand still for 2^31 ms nor run
    /// backwards by as much as a flush interval while segments are in flight;
    /// nothing breaks if it does, but the timing is then not the reference's.
    pub fn update(&mut self, now: u32, output: impl FnMut(&[u8])) {
        self.set_clock(now);
        let now = self.clock.millis();
        if !self.started {
            self.started = true;
            self.flush_due = now;
        }
        let overdue = now - self.flush_due;
        if !(-CLOCK_WAS_SET_MS..CLOCK_WAS_SET_MS).contains(&overdue) {
            self.flush_due = now;
        }
        if now >= self.flush_due {
            let interval = i64::from(self.interval_ms);
            self.flush_due += interval;
            if now >= self.flush_due {
                self.flush_due = now + interval;
            }
            self.flush(output);
        }
    }

    /// Sets the clock to `now` and flushes, whenever that was last done, as the
    /// timer of a kcp-go session does. Returns after how many milliseconds the
    /// timer is to go off again: at the next timeout of a segment in flight,
    /// after an interval at the latest.
    pub fn wake(&mut self, now: u32, output: impl FnMut(&[u8])) -> u32 {
        self.start(now);
        self.flush(output);
        let clock = self.clock.millis();
        let due = self.sender.earliest_due().map(|due| due - clock);
        let nearest = due
            .filter(|&wait| wait > 0)
            .and_then(|wait| u32::try_from(wait).ok());
        nearest.map_or(self.interval_ms, |wait| wait.min(self.interval_ms))
    }

    /// Sets the clock to `now`, from when on flushes send.
    pub fn start(&mut self, now: u32) {
        self.set_clock(now);
        if !self.started {
            self.started = true;
            self.flush_due = self.clock.millis();
        }
    }

    /// Sets the clock to `now` and nothing else, as an application does that
    /// writes `kcp->current` before it hands in a datagram.
    pub fn set_clock(&mut self, now: u32) {
        self.clock.move_to(now);
    }

    /// Sends what there is to send by the clock last set: acknowledgements,
    /// window probes, segments to be sent again, new segments. Does nothing
    /// before the first [`update`](Self::update).
    pub fn flush(&mut self, output: impl FnMut(&[u8])) {
        if !self.started {
            return;
        }
        let now = self.clock.millis();
        let window = self.window();
        let mut header = self.control_header();
        let mut packer = Packer::new(&mut self.staging, self.mtu, output);
        let brief = self.brief_acknowledgements;
        acknowledge(&mut self.acknowledgements, brief, &mut header, &mut packer);
        let (ask, report) = self.probe.on_flush(now, self.remote_window);
        if ask {
            header.command = Command::AskWindow;
            packer.control(&header);
        }
        if report {
            header.command = Command::ReportWindow;
            packer.control(&header);
        }

        let timeout = self.round_trip.timeout_ms();
        let grace = self.grace_shift.map_or(0, |shift| timeout >> shift);
        let mut resent = Resent::default();

        header.command = Command::Push;
        header.timestamp = low(now);
        let sender = &mut self.sender;
        sender.gather_overdue(now);
        let any_new = sender.would_send_new(window);
        for index in 0..sender.batch.len() {
            let sequence = sender.batch[index];
            if sender.renew(sequence, now, timeout, any_new, &mut resent) {
                if let Some(segment) = sender.ring.outstanding_mut(sequence) {
                    segment.write_header(&header, sequence);
                }
                packer.data(&sender.ring, sequence);
            }
        }
        let mut sequence = sender.admit(window, now, timeout, grace, &mut resent);
        while let Some(segment) = sender.ring.outstanding_mut(sequence) {
            segment.write_header(&header, sequence);
            packer.data(&sender.ring, sequence);
            sequence = sequence.wrapping_add(1);
        }
        packer.finish(&sender.ring);
        self.conclude(resent, window);
    }

    /// Sends the acknowledgements that wait, and nothing else. The reference
    /// cannot do this.
    pub fn flush_acknowledgements(&mut self, output: impl FnMut(&[u8])) {
        if !self.started {
            return;
        }
        let mut header = self.control_header();
        let mut packer = Packer::new(&mut self.staging, self.mtu, output);
        let brief = self.brief_acknowledgements;
        acknowledge(&mut self.acknowledgements, brief, &mut header, &mut packer);
        packer.finish(&self.sender.ring);
    }

    /// When [`update`](Self::update) should next be called, by the clock that
    /// shows `now`: at the next flush, or earlier if a segment is due earlier.
    ///
    /// As in the reference, the answer is `now` from the moment a segment is
    /// due until the flush that sends it, which comes no sooner for calling
    /// `update`; [`next_flush`](Self::next_flush) has the better answer.
    pub fn check(&mut self, now: u32) -> u32 {
        if !self.started {
            return now;
        }
        let clock = self.clock.extend(now);
        let overdue = clock - self.flush_due;
        if !(-CLOCK_WAS_SET_MS..0).contains(&overdue) {
            return now;
        }
        let mut wait = -overdue;
        if let Some(due) = self.sender.earliest_due() {
            if due <= clock {
                return now;
            }
            wait = wait.min(due - clock);
        }
        let wait = wait.min(i64::from(self.interval_ms));
        now.wrapping_add(wait as u32)
    }

    /// Milliseconds from the clock last set to the next flush that an
    /// [`update`](Self::update) will make; `None` before the first.
    #[must_use]
    pub fn next_flush(&self) -> Option<u32> {
        let wait = (self.flush_due - self.clock.millis()).max(0);
        self.started.then_some(wait as u32)
    }

    /// When a flush will next send anything, or change anything but when the
    /// next is due, if no message and no datagram is handed in before.
    pub fn next_work(&mut self) -> Work {
        let idle = self.started
            && self.acknowledgements.is_empty()
            && self.remote_window != 0
            && self.probe.is_idle()
            && self.congestion.window() > 0
            && !self.sender.would_send_more(self.window());
        if !idle {
            return Work::Now;
        }
        match self.sender.earliest_due() {
            Some(due) => Work::At(low(due)),
            None => Work::Never,
        }
    }

    /// Whether an acknowledgement waits for the next flush.
    #[must_use]
    pub fn owes_acknowledgement(&self) -> bool {
        !self.acknowledgements.is_empty()
    }

    /// Milliseconds between two flushes.
    #[must_use]
    pub const fn interval_ms(&self) -> u32 {
        self.interval_ms
    }

    /// Segments that may be in flight.
    fn window(&self) -> u32 {
        let window = self.send_window.min(self.remote_window);
        if self.congestion_control {
            window.min(self.congestion.window())
        } else {
            window
        }
    }

    /// What the congestion window makes of a flush.
    fn conclude(&mut self, resent: Resent, window: u32) {
        self.dead |= resent.dead;
        if resent.on_skips || resent.on_timeout {
            self.resending_flushes = self.resending_flushes.wrapping_add(1);
        }
        let bytes = segment_bytes(self.mtu) as u32;
        if resent.on_skips {
            let in_flight = self.sender.ring.span() as u32;
            self.congestion
                .on_fast_resend(in_flight, self.resend, bytes);
        }
        if resent.on_timeout {
            self.congestion.on_timeout(window, bytes);
        }
        self.congestion.open(bytes);
    }

    /// A header with what all segments of a flush share.
    fn control_header(&self) -> Header {
        Header {
            conversation: self.conversation,
            command: Command::Acknowledge,
            fragment: 0,
            window: self.receiver.room() as u16,
            timestamp: 0,
            sequence: 0,
            unacknowledged: self.receiver.next(),
            length: 0,
        }
    }
}

/// Packs the acknowledgements that wait, all or in brief, with what `header`
/// has beside them; it keeps the number and the time of the last, as the
/// reference's does.
fn acknowledge<O: FnMut(&[u8])>(
    waiting: &mut Vec<(u32, u32)>,
    brief: bool,
    header: &mut Header,
    packer: &mut Packer<'_, O>,
) {
    let last = waiting.len().saturating_sub(1);
    for (index, (sequence, timestamp)) in waiting.drain(..).enumerate() {
        // kcp-go compares plain numbers, over the wrap too.
        if !brief || index == last || sequence >= header.unacknowledged {
            header.sequence = sequence;
            header.timestamp = timestamp;
            packer.control(header);
        }
    }
}

impl super::send_ring::Segment {
    /// Writes the header in front of the payload; what all segments of a
    /// flush share is taken from `shared`.
    #[inline]
    fn write_header(&mut self, shared: &Header, sequence: u32) {
        let length = self.buffer.len() - HEADER_BYTES;
        if let Some(room) = self.buffer.first_chunk_mut::<HEADER_BYTES>() {
            let header = Header {
                fragment: self.fragment,
                sequence,
                length: length as u32,
                ..*shared
            };
            header.write(room);
        }
    }
}
