//! The router's loop: packets in, packets out at their time.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use lagometer_capture::Log;
use lagometer_capture::pcapng::interface_of;
use lagometer_link::{Arrival, Direction, Fate};
use lagometer_platform::{Waker, thread_cpu_time};
use lagometer_tcp::wire::mark_congestion;
use lagometer_units::{Clock, Time};

use super::Finished;
use super::burst::{BATCH, Burst};
use super::hold::{Held, Hold, Slot};
use super::lane::{Lane, Outcome};
use super::too_big;
use super::wait::Waiting;
use super::waiter::Waiter;
use crate::audit::{AuditCounters, Fingerprint, HEAD_BYTES, RouterEvent, fingerprint};
use crate::lane_link::LaneLink;
use crate::port::{Port, is_about_the_packet};

/// What the loop is asked to do.
#[derive(Debug)]
pub(super) enum Command {
    /// Go on with these links and counters, and send the old counters back.
    Begin {
        links: Vec<LaneLink>,
        audit_counters: Box<AuditCounters>,
        old_counters: Sender<Box<AuditCounters>>,
    },
    /// Do nothing for so long.
    HoldUp(Duration),
    /// Come to an end.
    Stop,
}

/// Everything the loop works with.
#[derive(Debug)]
pub(super) struct Engine {
    pub(super) clock: Clock,
    pub(super) waiting: Waiting,
    pub(super) mtu: usize,
    pub(super) lanes: Vec<Lane>,
    /// For each lane the client host's port and the server host's.
    pub(super) ports: Vec<[Port; 2]>,
    pub(super) hold: Hold,
    pub(super) audit_counters: Box<AuditCounters>,
    pub(super) log: Option<Log>,
    pub(super) commands: Receiver<Command>,
    /// Readable when there are commands.
    pub(super) waker: Arc<Waker>,
    /// What the thread had used of a core when the counters began.
    pub(super) used_before: Duration,
    /// Who follows packets by another clock, if anybody does.
    pub(super) observer: Option<Sender<RouterEvent>>,
    /// How many packets have been taken.
    pub(super) taken: u64,
    /// For each port, how many packets it has at a time.
    pub(super) bursts: Vec<Burst>,
    /// Packets whose paths have not reported their fates yet, by their numbers.
    pub(super) on_paths: BTreeMap<u64, Taken>,
}

/// A packet that was taken from a host.
#[derive(Debug)]
pub(super) struct Taken {
    slot: Slot,
    length: usize,
    lane: usize,
    direction: Direction,
    at: Time,
    number: u64,
}

/// The number by which the waker is known to the waiter; ports are numbered
/// from zero.
const WAKER: u64 = u64::MAX;
/// A pass through the loop that takes longer than this is an absence.
const LONG_PASS: Duration = Duration::from_micros(500);

impl Engine {
    /// Routes until asked to stop.
    pub(super) fn run(mut self) -> Finished {
        let outcome = self.route_until_stopped();
        self.complete_counters();
        Finished {
            outcome: outcome.map(|()| self.audit_counters),
            log: self.log.map(Log::finish),
        }
    }

    fn route_until_stopped(&mut self) -> io::Result<()> {
        let mut waiter = Waiter::new(self.waiting, self.ports.len() * 2 + 1)?;
        waiter.add(&*self.waker, WAKER)?;
        for (number, port) in self.ports.iter().flatten().enumerate() {
            waiter.add(port, number as u64)?;
        }
        let mut after = self.clock.now();
        loop {
            let now = self.release_due(after)?;
            let sleep_until = self.waiting.sleep_until(now, self.next_due());
            let any = waiter.wait(sleep_until.map_or(Duration::ZERO, |until| until.since(now)))?;
            after = self.clock.now();
            match sleep_until {
                Some(until) if !any || after > until => {
                    self.audit_counters.woke(after.since(until));
                }
                // Woken by a file: when it became ready is not known.
                Some(_) => {}
                None => self.note_absence(now, after),
            }
            for nth in 0..waiter.ready_count() {
                match waiter.ready(nth) {
                    Some(WAKER) => {
                        let is_to_stop = self.take_commands();
                        if is_to_stop {
                            return Ok(());
                        }
                    }
                    Some(port) => self.take_from(port as usize)?,
                    None => {}
                }
            }
        }
    }

    /// Releases every packet that is due; returns when that was done. The
    /// last time anything was due could be looked at was `before`.
    fn release_due(&mut self, before: Time) -> io::Result<Time> {
        let mut now = self.clock.now();
        self.note_absence(before, now);
        self.look_after_paths(now);
        while let Some((at, held)) = self.hold.take_due(now) {
            let port = match held.direction {
                Direction::Up => &self.ports[usize::from(held.lane)][1],
                Direction::Down => &self.ports[usize::from(held.lane)][0],
            };
            let used_before = self.used_now();
            let was_taken = match port.hand_over(self.hold.bytes(&held)) {
                Ok(()) => true,
                Err(error) if is_about_the_packet(&error) => false,
                Err(error) => return Err(error),
            };
            let kernel_used = self.used_now().saturating_sub(used_before);
            let before = now;
            now = self.clock.now();
            self.note_absence(before, now);
            self.audit_counters
                .released(&held, at, now, was_taken, kernel_used);
            if was_taken {
                self.observe_release(&held, at);
            }
            self.hold.give_back(held.slot);
        }
        Ok(now)
    }

    /// When there is something to do next: a packet is due, or a path must be looked
    /// after.
    fn next_due(&self) -> Option<Time> {
        let deadlines = self.lanes.iter().filter_map(Lane::next_deadline);
        deadlines.chain(self.hold.next_due()).min()
    }

    /// Lets paths report the fates that are known by `now`.
    fn look_after_paths(&mut self, now: Time) {
        for lane in 0..self.lanes.len() {
            if self.lanes[lane].next_deadline().is_some_and(|at| at <= now) {
                self.lanes[lane].handle_deadline(now);
                self.take_fates(lane);
            }
        }
    }

    /// Lets everything that is on a path leave it as if nothing more came.
    fn empty_paths(&mut self) {
        for lane in 0..self.lanes.len() {
            let has_packets = |engine: &Self| engine.on_paths.values().any(|it| it.lane == lane);
            while has_packets(self)
                && let Some(at) = self.lanes[lane].next_deadline()
            {
                self.lanes[lane].handle_deadline(at);
                self.take_fates(lane);
            }
        }
    }

    /// Does what the path of a lane says of its packets.
    fn take_fates(&mut self, lane: usize) {
        while let Some(decided) = self.lanes[lane].poll_fate() {
            let Some(taken) = self.on_paths.remove(&decided.number) else {
                continue;
            };
            self.audit_counters.lanes[taken.lane][taken.direction.index()]
                .offered(taken.length, &decided.fate);
            if decided.is_marked {
                mark_congestion(&mut self.hold.buffer(&taken.slot)[..taken.length]);
            }
            self.settle(taken, decided.fate);
        }
    }

    /// Takes what the port with `number` has, up to a batch.
    fn take_from(&mut self, number: usize) -> io::Result<()> {
        let (lane, direction) = match number % 2 {
            0 => (number / 2, Direction::Up),
            _ => (number / 2, Direction::Down),
        };
        let batch = match self.waiting {
            Waiting::Sleep => self.bursts[number].batch_at(self.clock.now()),
            Waiting::Hybrid { .. } | Waiting::Spin => BATCH,
        };
        for taken in 0..batch {
            let Some(slot) = self.hold.take() else {
                return self.take_without_room(lane, direction);
            };
            let port = &self.ports[lane][direction.index()];
            let Some(length) = port.take(self.hold.buffer(&slot))? else {
                self.hold.give_back(slot);
                self.bursts[number].ended_after(taken);
                return Ok(());
            };
            let now = self.clock.now();
            self.route(lane, direction, now, slot, length);
        }
        Ok(())
    }

    /// Asks the lane's link about a packet and does what it says, now or when it says it.
    fn route(&mut self, lane: usize, direction: Direction, now: Time, slot: Slot, length: usize) {
        let book = &mut self.audit_counters.lanes[lane][direction.index()];
        let packet = &self.hold.buffer(&slot)[..length];
        self.taken += 1;
        let number = self.taken;
        let outcome = self.lanes[lane].consider(direction, now, (number, packet), self.mtu, book);
        if let Some(observer) = &self.observer {
            // One that a path drops later is followed in vain.
            let may_be_released = matches!(
                outcome,
                Outcome::Fated(Fate::Delivered { .. }) | Outcome::OnPath
            );
            // Whoever follows may be gone.
            let _ = observer.send(RouterEvent::Took {
                way: way(lane, direction),
                fingerprint: seen(packet),
                number: may_be_released.then_some(number),
            });
        }
        let taken = Taken {
            slot,
            length,
            lane,
            direction,
            at: now,
            number,
        };
        match outcome {
            Outcome::LeftOut => self.hold.give_back(taken.slot),
            Outcome::Fated(fate) => self.settle(taken, fate),
            Outcome::OnPath => {
                self.on_paths.insert(number, taken);
                self.take_fates(lane);
            }
        }
    }

    /// Lets a packet have its fate.
    fn settle(&mut self, taken: Taken, fate: Fate) {
        let Taken {
            slot,
            length,
            lane,
            direction,
            at: now,
            number,
        } = taken;
        if let Some(log) = &mut self.log {
            let packet = &self.hold.buffer(&slot)[..length];
            let interface = interface_of(lane, direction == Direction::Up);
            log.packet(
                interface,
                now,
                packet,
                format_args!("{}", fate.in_words(now)),
            );
        }
        let generation = self.audit_counters.generation;
        let held = |slot, arrival: Arrival, is_copy| Held {
            slot,
            length,
            lane: lane as u8,
            direction,
            arrived: now,
            generation,
            number,
            is_copy,
            is_damaged: arrival.damage.is_some(),
        };
        match fate {
            Fate::Delivered { first, copy } => {
                if let Some(arrival) = copy {
                    // Copied before the first is damaged.
                    match self.hold.copy(&slot, length) {
                        Some(second) => {
                            self.damage(&second, length, arrival);
                            self.hold.hold(arrival.at, held(second, arrival, true));
                        }
                        None => self.audit_counters.lanes[lane][direction.index()].found_no_room(),
                    }
                }
                self.damage(&slot, length, first);
                self.hold.hold(first.at, held(slot, first, false));
            }
            Fate::Dropped(_) => self.hold.give_back(slot),
            Fate::Refused { mtu_bytes } => {
                self.refuse(lane, direction, &slot, length, mtu_bytes);
                self.hold.give_back(slot);
            }
        }
    }

    /// Says that a packet which was due `at` has been handed over.
    fn observe_release(&self, held: &Held, at: Time) {
        let Some(observer) = &self.observer else {
            return;
        };
        let _ = observer.send(RouterEvent::Released {
            way: way(usize::from(held.lane), held.direction),
            fingerprint: seen(self.hold.bytes(held)),
            number: (!held.is_copy).then_some(held.number),
            asked: at.since(held.arrived),
            generation: held.generation,
        });
    }

    fn damage(&mut self, slot: &Slot, length: usize, arrival: Arrival) {
        if let Some(damage) = arrival.damage {
            damage.apply(&mut self.hold.buffer(slot)[..length]);
        }
    }

    /// Notifies the sender of the packet in `slot` that it was too large.
    fn refuse(&mut self, lane: usize, direction: Direction, slot: &Slot, length: usize, mtu: u64) {
        let mut answer = [0; too_big::ANSWER_BYTES];
        let packet = &self.hold.buffer(slot)[..length];
        if let Some(length) = too_big::answer(packet, mtu, &mut answer) {
            // A host that does not take it sends on in ignorance, as it may
            // on a real path.
            let _ = self.ports[lane][direction.index()].hand_over(&answer[..length]);
        }
    }

    /// Takes a packet there is no buffer for and loses it.
    fn take_without_room(&mut self, lane: usize, direction: Direction) -> io::Result<()> {
        let mut packet = [0; 64];
        if self.ports[lane][direction.index()]
            .take(&mut packet)?
            .is_some()
        {
            self.audit_counters.lanes[lane][direction.index()].found_no_room();
        }
        Ok(())
    }

    /// Executes the commands that wait; returns whether one is to stop.
    fn take_commands(&mut self) -> bool {
        self.waker.clear();
        while let Ok(command) = self.commands.try_recv() {
            match command {
                Command::Stop => return true,
                Command::HoldUp(how_long) => std::thread::sleep(how_long),
                Command::Begin {
                    links,
                    mut audit_counters,
                    old_counters,
                } => {
                    self.empty_paths();
                    // Not when they were made: what came in between is in the
                    // old ones.
                    audit_counters.begin(self.clock.now(), &self.audit_counters);
                    for (lane, link) in self.lanes.iter_mut().zip(links) {
                        lane.set_link(link);
                    }
                    self.complete_counters();
                    self.used_before += self.audit_counters.router_used;
                    if let Some(observer) = &self.observer {
                        let generation = audit_counters.generation;
                        let _ = observer.send(RouterEvent::Began { generation });
                    }
                    let old = std::mem::replace(&mut self.audit_counters, audit_counters);
                    // Whoever gave the command may have lost interest.
                    let _ = old_counters.send(old);
                }
            }
        }
        false
    }

    /// Writes down what is only asked for at the end.
    fn complete_counters(&mut self) {
        self.audit_counters.router_used = self.used();
        for (audit_counters, ports) in self.audit_counters.lanes.iter_mut().zip(&self.ports) {
            for (way, port) in audit_counters.iter_mut().zip(ports) {
                // A port that cannot say has no way to lose any.
                way.lost_at_port = port.lost().unwrap_or(0);
            }
        }
    }

    /// How much of a core's time the thread has used since the counters began.
    fn used(&self) -> Duration {
        thread_cpu_time().saturating_sub(self.used_before)
    }

    /// How much of a core's time the thread has used, for what is asked with every
    /// packet: 0 where it always sleeps, on a clock by which computing takes no time, and
    /// the audit does not pass it on. It costs a system call.
    fn used_now(&self) -> Duration {
        match self.waiting {
            Waiting::Sleep => Duration::ZERO,
            Waiting::Hybrid { .. } | Waiting::Spin => thread_cpu_time(),
        }
    }

    fn note_absence(&mut self, from: Time, to: Time) {
        let lasted = to.since(from);
        if lasted > LONG_PASS {
            self.audit_counters.was_away(lasted);
        }
    }
}

/// The number of a lane's direction, as the clock outside has it.
const fn way(lane: usize, direction: Direction) -> usize {
    lane * 2 + direction.index()
}

/// What the clock outside knows a packet by.
fn seen(packet: &[u8]) -> Fingerprint {
    fingerprint(&packet[..packet.len().min(HEAD_BYTES)], packet.len())
}
