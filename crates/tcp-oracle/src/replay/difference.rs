//! Where an end of ours first parts from the kernel's, written so that the reason can be found.

use std::fmt::Write as _;
use std::time::Duration;

use super::{Difference, Replay, TOLERANCE_NS};
use crate::trace::{Happened, Packet};

/// Lines before a difference that are shown.
const SHOWN: usize = 14;

impl Replay<'_> {
    pub(super) fn difference(&self, kind: &str, ours: &str) -> Difference {
        let lines = &self.trace.lines[..=self.reached];
        let mut own: Vec<String> = Vec::new();
        for line in lines.iter().rev().filter(|line| line.end == self.end) {
            own.push(line.to_string());
            if own.len() > SHOWN {
                break;
            }
        }
        let mut text = format!("{}, end {}: {kind}\n", self.trace.name, self.end);
        for line in own.iter().rev() {
            let _ = writeln!(text, "  {line}");
        }
        let after = self.trace.lines.iter().skip(self.reached + 1);
        let state = after
            .filter(|line| line.end == self.end)
            .find_map(|line| match &line.what {
                Happened::State(state) => Some(state.as_str()),
                _ => None,
            });
        let _ = writeln!(text, "  the kernel then: {}", state.unwrap_or("unknown"));
        let _ = writeln!(text, "  ours: {ours}");
        if let Some(connection) = &self.connection {
            let flow = connection.flow();
            let _ = writeln!(
                text,
                "  ours is: {:?} {:?} cwnd={} ssthresh={} srtt={} out={} sacked={} lost={} retrans={} rto={:?} rcv_mem={} una={} next={} pacing={}",
                connection.state(),
                flow.state,
                flow.cwnd,
                flow.ssthresh,
                flow.srtt_us_x8 >> 3,
                flow.packets_out,
                flow.sacked_out,
                flow.lost_out,
                flow.retransmitted_out,
                connection.rto(),
                connection.receive_memory(),
                flow.una.0.wrapping_sub(self.shift.unwrap_or_default().seq),
                flow.next.0.wrapping_sub(self.shift.unwrap_or_default().seq),
                flow.pacing_rate,
            );
            let deadline = connection.next_deadline();
            let deadline = deadline.map(|at| Duration::from_nanos(at.as_nanos() - self.offset));
            let _ = writeln!(
                text,
                "  ours wakes at: {deadline:?}; {:?}",
                connection.counters()
            );
        }
        Difference {
            end: self.end,
            kind: kind.to_owned(),
            text,
        }
    }
}

/// Whether two time stamps differ by no more than the tolerance of times: the
/// millisecond that they count began that close to the sending.
pub(super) fn is_same_stamp(at: u64, ours: &Packet, theirs: &Packet) -> bool {
    const TICK_NS: u64 = 1_000_000;
    let (Some((ours, our_echo)), Some((theirs, their_echo))) =
        (ours.options.timestamps, theirs.options.timestamps)
    else {
        return false;
    };
    let since_tick = at % TICK_NS;
    let is_near_tick = since_tick.min(TICK_NS - since_tick) <= TOLERANCE_NS;
    let apart = ours.wrapping_sub(theirs).cast_signed();
    is_near_tick && apart.abs() <= 1 && our_echo == their_echo
}

pub(super) fn first_field(ours: &Packet, theirs: &Packet) -> &'static str {
    let (a, b) = (ours, theirs);
    if a.seq != b.seq {
        "sequence number"
    } else if a.length != b.length {
        "length"
    } else if a.flags != b.flags {
        "flags"
    } else if a.ack != b.ack {
        "acknowledgement"
    } else if a.window != b.window {
        "window"
    } else if a.options.sack != b.options.sack {
        "SACK blocks"
    } else if a.options.timestamps != b.options.timestamps {
        "time stamps"
    } else {
        "other options"
    }
}
