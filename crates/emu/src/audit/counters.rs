//! The router's counters: what came, what the link said, what was done.

use std::time::Duration;

use lagometer_link::{Fate, Reason};
use lagometer_units::Time;

use super::flow::Flow;
use super::outside::Outside;
use super::spread::Durations;
use super::{Audit, Band, Figures, LaneAudit, WayAudit};
use crate::device_counters::DeviceCounters;
use crate::router::Waiting;
use crate::router::hold::Held;

/// Everything the router writes down, from an instant on.
#[derive(Clone, Debug)]
pub(crate) struct AuditCounters {
    /// What is written down here began then; packets that came before are
    /// not in it.
    pub(crate) began: Time,
    /// How many counters were before these: what tells whose a packet is that came
    /// at the very instant at which these began.
    pub(crate) generation: u32,
    pub(crate) lanes: Vec<[DirectionCounters; 2]>,
    wake_late: Durations,
    longest_absence: Duration,
    /// How much of a core's time the router's thread used.
    pub(crate) router_used: Duration,
}

/// One direction of one lane.
#[derive(Clone, Debug)]
pub(crate) struct DirectionCounters {
    packets: u64,
    bytes: u64,
    delivered: u64,
    copies: u64,
    damaged: u64,
    dropped: [u64; Reason::ALL.len()],
    refused: u64,
    /// How long packets wait in the link's queue, all together.
    pub(crate) waited: Duration,
    on_their_way: u64,
    lost_in_router: u64,
    lost_after: u64,
    /// Packets that the sending host's port lost.
    pub(crate) lost_at_port: u64,
    pub(crate) foreign: u64,
    pub(crate) malformed: u64,
    kernel_used: Duration,
    release_error: Durations,
    asked_delay: Durations,
    realised_delay: Durations,
    asked_flow: Flow,
    realised_flow: Flow,
}

/// What is known of a finished run beside the counters.
#[derive(Clone, Debug)]
pub(crate) struct Circumstances {
    pub(crate) ended: Time,
    pub(crate) device: &'static str,
    pub(crate) waiting: &'static str,
    pub(crate) precedence: &'static str,
    /// For each lane its name, and what the devices of local and remote host
    /// counted.
    pub(crate) lanes: Vec<(String, [DeviceCounters; 2])>,
}

impl Circumstances {
    /// Whether the router looked at the CPU time of each packet: not where it always
    /// sleeps.
    fn has_kernel_time(&self) -> bool {
        self.waiting != Waiting::Sleep.name()
    }
}

impl AuditCounters {
    /// Empty counters of `lanes` lanes that begin now.
    pub(crate) fn new(lanes: usize, began: Time) -> Self {
        Self {
            began,
            generation: 0,
            lanes: (0..lanes)
                .map(|_| [DirectionCounters::new(), DirectionCounters::new()])
                .collect(),
            wake_late: fine(),
            longest_absence: Duration::ZERO,
            router_used: Duration::ZERO,
        }
    }

    /// They begin at `now` in place of `others`, which hold the packets that came
    /// before.
    pub(crate) const fn begin(&mut self, now: Time, others: &Self) {
        self.began = now;
        self.generation = others.generation + 1;
    }

    /// A packet that was due `at` has been taken by the host at `now`, or has
    /// not been; the kernel used so much of the router's time for it.
    pub(crate) fn released(
        &mut self,
        held: &Held,
        at: Time,
        now: Time,
        was_taken: bool,
        kernel_used: Duration,
    ) {
        if held.generation != self.generation {
            return;
        }
        let way = &mut self.lanes[usize::from(held.lane)][held.direction.index()];
        way.released(held, at, now, was_taken);
        way.kernel_used += kernel_used;
    }

    /// The router woke so much later than it meant to.
    pub(crate) fn woke(&mut self, late: Duration) {
        self.wake_late.record(late);
        self.was_away(late);
    }

    /// The router was away for so long while it meant to be at work.
    pub(crate) fn was_away(&mut self, absence: Duration) {
        self.longest_absence = self.longest_absence.max(absence);
    }

    /// What the counters say, and the clock `outside` of each way, held against `band`.
    pub(crate) fn audit(
        &self,
        circumstances: &Circumstances,
        outside: Option<&[Outside]>,
        band: Band,
    ) -> Audit {
        let seconds = circumstances.ended.since(self.began).as_secs_f64();
        let mut seen = outside.unwrap_or_default().chunks_exact(2);
        let lanes: Vec<LaneAudit> = self
            .lanes
            .iter()
            .zip(&circumstances.lanes)
            .map(|([up, down], (lane, [local, remote]))| {
                let seen = seen.next();
                let way = |way: &DirectionCounters, host, seen| WayAudit {
                    kernel_used: circumstances.has_kernel_time().then_some(way.kernel_used),
                    ..way.audit(host, seen)
                };
                LaneAudit {
                    lane: lane.clone(),
                    up: way(up, *local, seen.map(|seen| &seen[0])),
                    down: way(down, *remote, seen.map(|seen| &seen[1])),
                }
            })
            .collect();
        let mut release_error = fine();
        for way in self.lanes.iter().flatten() {
            release_error.add(&way.release_error);
        }
        let (asked, realised) = self.together(&lanes);
        let mut audit = Audit {
            valid: true,
            faults: Vec::new(),
            band,
            seconds,
            device: circumstances.device.to_owned(),
            waiting: circumstances.waiting.to_owned(),
            precedence: circumstances.precedence.to_owned(),
            router_cpu_pct: percent(self.router_used.as_secs_f64(), seconds),
            release_error_us: release_error.in_micros(),
            outside_error_us: outside.map(|ways| {
                let mut all = Outside::new().error;
                for way in ways {
                    all.add(&way.error);
                }
                all.in_micros()
            }),
            wake_late_us: self.wake_late.in_micros(),
            longest_absence_us: self.longest_absence.as_secs_f64() * 1e6,
            asked,
            realised,
            lanes,
        };
        audit.faults = band.faults(&audit);
        audit.valid = audit.faults.is_empty();
        audit
    }

    /// All lanes and directions as one.
    fn together(&self, lanes: &[LaneAudit]) -> (Figures, Figures) {
        let ways = || lanes.iter().flat_map(|lane| [&lane.up, &lane.down]);
        let sum = |figure: fn(&WayAudit) -> f64| ways().map(figure).sum::<f64>();
        let packets = sum(|way| (way.packets + way.lost_before) as f64);
        let lost = |figure: fn(&WayAudit) -> f64| {
            let lost = ways()
                .map(|way| figure(way) * (way.packets + way.lost_before) as f64)
                .sum::<f64>();
            if packets > 0.0 { lost / packets } else { 0.0 }
        };
        let mut asked_delay = DirectionCounters::delays();
        let mut realised_delay = DirectionCounters::delays();
        for way in self.lanes.iter().flatten() {
            asked_delay.add(&way.asked_delay);
            realised_delay.add(&way.realised_delay);
        }
        let asked = Figures {
            delay_ms: asked_delay.in_millis(),
            loss_pct: lost(|way| way.asked.loss_pct),
            rate_mbit_per_s: sum(|way| way.asked.rate_mbit_per_s),
            peak_mbit_per_s: sum(|way| way.asked.peak_mbit_per_s),
        };
        let realised = Figures {
            delay_ms: realised_delay.in_millis(),
            loss_pct: lost(|way| way.realised.loss_pct),
            rate_mbit_per_s: sum(|way| way.realised.rate_mbit_per_s),
            peak_mbit_per_s: sum(|way| way.realised.peak_mbit_per_s),
        };
        (asked, realised)
    }
}

impl DirectionCounters {
    fn new() -> Self {
        Self {
            packets: 0,
            bytes: 0,
            delivered: 0,
            copies: 0,
            damaged: 0,
            dropped: [0; Reason::ALL.len()],
            refused: 0,
            waited: Duration::ZERO,
            on_their_way: 0,
            lost_in_router: 0,
            lost_after: 0,
            lost_at_port: 0,
            foreign: 0,
            malformed: 0,
            kernel_used: Duration::ZERO,
            release_error: fine(),
            asked_delay: Self::delays(),
            realised_delay: Self::delays(),
            asked_flow: Flow::default(),
            realised_flow: Flow::default(),
        }
    }

    fn delays() -> Durations {
        Durations::new(Duration::from_micros(1))
    }

    /// The link was offered a packet of `bytes` and said its fate.
    pub(crate) fn offered(&mut self, bytes: usize, fate: &Fate) {
        self.packets += 1;
        self.bytes += bytes as u64;
        match fate {
            Fate::Delivered { first, .. } => {
                self.on_their_way += 1;
                self.damaged += u64::from(first.damage.is_some());
            }
            Fate::Dropped(reason) => {
                let place = Reason::ALL.iter().position(|known| known == reason);
                if let Some(place) = place {
                    self.dropped[place] += 1;
                }
            }
            Fate::Refused { .. } => self.refused += 1,
        }
    }

    /// The packet that was offered last waits so long in the link's queue.
    pub(crate) fn waits(&mut self, waits: Duration) {
        self.waited += waits;
    }

    /// A packet, or a copy of one, found no room in the router.
    pub(crate) fn found_no_room(&mut self) {
        self.lost_in_router += 1;
    }

    fn released(&mut self, held: &Held, at: Time, now: Time, was_taken: bool) {
        self.release_error.record(now.since(at));
        if !held.is_copy {
            self.on_their_way -= 1;
        }
        // A host may refuse what is damaged: then the damage reached it.
        if !was_taken && !held.is_damaged {
            self.lost_after += 1;
            return;
        }
        if held.is_copy {
            self.copies += 1;
        } else {
            self.delivered += 1;
        }
        self.asked_delay.record(at.since(held.arrived));
        self.realised_delay.record(now.since(held.arrived));
        self.asked_flow.pass(at, held.length);
        self.realised_flow.pass(now, held.length);
    }

    fn audit(&self, host: DeviceCounters, outside: Option<&Outside>) -> WayAudit {
        let dropped_by_link = self.dropped.iter().sum::<u64>() + self.refused;
        let lost_before = host.lost_out + self.lost_at_port;
        let by_accident = lost_before + self.lost_in_router + self.lost_after;
        let came = self.packets + lost_before + self.lost_in_router;
        let asked = Figures {
            delay_ms: self.asked_delay.in_millis(),
            loss_pct: percent(dropped_by_link as f64, self.packets as f64),
            rate_mbit_per_s: self.asked_flow.mean_mbit_per_s(),
            peak_mbit_per_s: self.asked_flow.peak_mbit_per_s(),
        };
        let realised = Figures {
            delay_ms: self.realised_delay.in_millis(),
            loss_pct: percent((dropped_by_link + by_accident) as f64, came as f64),
            rate_mbit_per_s: self.realised_flow.mean_mbit_per_s(),
            peak_mbit_per_s: self.realised_flow.peak_mbit_per_s(),
        };
        WayAudit {
            packets: self.packets,
            bytes: self.bytes,
            delivered: self.delivered,
            copies: self.copies,
            damaged: self.damaged,
            dropped: Reason::ALL
                .iter()
                .zip(self.dropped)
                .filter(|&(_, count)| count > 0)
                .map(|(reason, count)| (reason.name().to_owned(), count))
                .collect(),
            refused: self.refused,
            waited: self.waited,
            on_their_way: self.on_their_way,
            foreign: self.foreign,
            malformed: self.malformed,
            lost_before,
            lost_in_router: self.lost_in_router,
            lost_after: self.lost_after,
            kernel_used: Some(self.kernel_used),
            release_error_us: self.release_error.in_micros(),
            outside_error_us: outside.map(|seen| seen.error.in_micros()),
            unseen: outside.map_or(0, |seen| seen.unseen),
            asked,
            realised,
        }
    }
}

/// Lateness, from a ten-millionth of a second on.
fn fine() -> Durations {
    Durations::new(Duration::from_nanos(100))
}

fn percent(part: f64, whole: f64) -> f64 {
    if whole > 0.0 {
        100.0 * part / whole
    } else {
        0.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::router::hold::Hold;
    use lagometer_link::{Arrival, Direction};

    #[test]
    fn a_packet_that_came_when_counters_began_anew_is_in_the_old_ones_alone() {
        let now = Time::from_millis(1);
        let mut old = AuditCounters::new(1, Time::ZERO);
        let held = Held {
            slot: Hold::new(1, 64).take().unwrap(),
            length: 64,
            lane: 0,
            direction: Direction::Up,
            arrived: now,
            generation: old.generation,
            number: 1,
            is_copy: false,
            is_damaged: false,
        };
        let first = Arrival {
            at: now,
            damage: None,
        };
        let fate = Fate::Delivered { first, copy: None };
        old.lanes[0][0].offered(64, &fate);
        let mut new = AuditCounters::new(1, Time::ZERO);
        new.begin(now, &old);
        for counters in [&mut new, &mut old] {
            counters.released(&held, now, now, true, Duration::ZERO);
        }
        assert_eq!([&new, &old].map(|one| one.lanes[0][0].delivered), [0, 1]);
        assert_eq!(old.lanes[0][0].on_their_way, 0);
    }
}
