//! Who has come, and what they said: shared between the conversations with the
//! workers and the thread that plays.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lagometer_remote::{Accepted, Clock, Job, Refusal, Service, Session, understand};
use lagometer_units::Time;
use lagometer_world::{Note, Outcome, Part, PlayError, Report, Scenario, Truth};
use serde::Serialize;
use serde_json::Value;

use crate::seat::Seat;
use crate::words::{FromCoordinator, FromWorker, Request, SERVICE, Task, pieces};

/// What a coordinator tells of its workers while the world is played. Workers
/// are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A worker has left, and its players or game servers with it. Whoever
    /// started it may start it again. Told again every second until one has
    /// come.
    Missing {
        /// The worker.
        index: u32,
        /// How often it was told before.
        attempt: u32,
    },
    /// Another has come: its players log in again, or its game servers have what
    /// they had.
    Back {
        /// The worker.
        index: u32,
    },
}

/// The workers' seats.
#[derive(Debug)]
pub(crate) struct Roll {
    scenario: Scenario,
    /// The gateway's addresses for players and for game servers.
    gateway: String,
    servers: String,
    hall: Mutex<Hall>,
    changed: Condvar,
}

#[derive(Debug)]
struct Hall {
    seats: Vec<Seat>,
    /// When the world began, by the clock that the workers set theirs by.
    /// Once it has, who leaves is missed.
    start: Option<Time>,
    /// Nobody is waited for that has left: what servers say is known, or all
    /// are to stop.
    is_ending: bool,
    /// What game servers said that was not taken yet.
    said: Report,
    /// What those had found who left in the middle, up to their last notes.
    lost: Vec<Outcome>,
    servers_lost: u32,
    servers_returned: u32,
    /// Workers that came in the place of others, and have not been told of.
    back: Vec<u32>,
    /// Why the world cannot be played on.
    failed: Option<String>,
}

impl Hall {
    fn is_playing(&self) -> bool {
        self.start.is_some()
    }

    /// From now on nobody is waited for that has left.
    fn end(&mut self) {
        self.is_ending = true;
        for seat in self.seats.iter_mut().filter(|seat| seat.guest.is_none()) {
            seat.is_excused = true;
        }
    }

    fn guests(&self) -> impl Iterator<Item = &Session> {
        self.seats.iter().filter_map(|seat| seat.guest.as_ref())
    }
}

impl Roll {
    /// Seats for workers with these parts, and the gateway's addresses for
    /// players and for game servers.
    pub(crate) fn new(
        scenario: Scenario,
        [gateway, servers]: [String; 2],
        parts: impl IntoIterator<Item = Part>,
    ) -> Self {
        Self {
            scenario,
            gateway,
            servers,
            hall: Mutex::new(Hall {
                seats: parts.into_iter().map(Seat::new).collect(),
                start: None,
                is_ending: false,
                said: Report::default(),
                lost: Vec::new(),
                servers_lost: 0,
                servers_returned: 0,
                back: Vec::new(),
                failed: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// How many workers are ready, after somebody has come or gone or `at_most`
    /// has passed.
    pub(crate) fn ready_within(&self, at_most: Duration) -> u32 {
        let count = |hall: &Hall| hall.seats.iter().filter(|seat| seat.is_ready()).count();
        let hall = self.hall();
        let before = count(&hall);
        let all = hall.seats.len();
        let (hall, _) = self
            .changed
            .wait_timeout_while(hall, at_most, |hall| count(hall) == before && before < all)
            .unwrap_or_else(PoisonError::into_inner);
        count(&hall) as u32
    }

    /// The clock that the workers set theirs by; `None` before any has come.
    pub(crate) fn clock(&self) -> Option<Clock> {
        self.hall().guests().next().map(Session::clock)
    }

    /// Waits until all game servers of workers have what they are to own, but
    /// no longer than `patience`.
    pub(crate) fn open(&self, patience: Duration) -> Result<(), PlayError> {
        self.tell(&FromCoordinator::Open);
        let is_out = |seat: &Seat| seat.has_servers() && !seat.is_open();
        let goes_on = |hall: &mut Hall| {
            hall.failed.is_none()
                && hall.seats.iter().all(Seat::is_ready)
                && hall.seats.iter().any(is_out)
        };
        let (hall, _) = self
            .changed
            .wait_timeout_while(self.hall(), patience, goes_on)
            .unwrap_or_else(PoisonError::into_inner);
        let out = hall.seats.iter().position(is_out);
        drop(hall);
        self.check()?;
        match out {
            Some(nth) => Err(PlayError::Company(format!(
                "worker {} does not get its game servers to work",
                nth + 1
            ))),
            None => Ok(()),
        }
    }

    /// From now on, who leaves is missed.
    pub(crate) fn begin(&self, at: Time) -> Result<(), PlayError> {
        let mut hall = self.hall();
        hall.start = Some(at);
        if let Some(nth) = hall.seats.iter().position(|seat| !seat.is_ready()) {
            let why = format!("worker {} left before the start", nth + 1);
            return Err(PlayError::Company(why));
        }
        drop(hall);
        self.tell(&start(at));
        Ok(())
    }

    /// All are to stop where they are.
    pub(crate) fn stop(&self) {
        self.hall().end();
        self.tell(&FromCoordinator::Stop);
    }

    /// Says something to all workers.
    pub(crate) fn tell(&self, said: &FromCoordinator) {
        let body = written(said);
        // What is said may take as long as a worker that does not read lets
        // it: nobody else has to wait for that.
        let guests: Vec<Session> = self.hall().guests().cloned().collect();
        for guest in guests {
            guest.tell(&body);
        }
    }

    /// Whether the world can still be played.
    pub(crate) fn check(&self) -> Result<(), PlayError> {
        failure(&self.hall())
    }

    /// Whether the world can still be played, and what is to be told of the
    /// workers. One that has left may be out for `patience`.
    pub(crate) fn attend(&self, patience: Duration) -> Result<Vec<Event>, PlayError> {
        let mut hall = self.hall();
        failure(&hall)?;
        let back = std::mem::take(&mut hall.back).into_iter();
        let mut events: Vec<Event> = back.map(|index| Event::Back { index }).collect();
        if hall.is_ending {
            return Ok(events);
        }
        let now = Instant::now();
        for (index, seat) in (0..).zip(&mut hall.seats) {
            let due = seat.replace(now, patience).map_err(|trouble| {
                PlayError::Company(format!(
                    "nobody took the place of worker {} within {} s{trouble}",
                    index + 1,
                    patience.as_secs()
                ))
            })?;
            events.extend(due.map(|attempt| Event::Missing { index, attempt }));
        }
        Ok(events)
    }

    /// Every worker's note of that half second, once all are there that will
    /// be.
    pub(crate) fn notes(&self, nth: u32) -> Option<Vec<Note>> {
        let mut hall = self.hall();
        if !hall.seats.iter().all(|seat| seat.has_noted(nth)) {
            return None;
        }
        let notes = hall.seats.iter_mut().filter_map(|seat| seat.take_note(nth));
        Some(notes.collect())
    }

    /// Adds what the workers' game servers say to what those here say. Of what
    /// time all have told, the earliest of them decides.
    pub(crate) fn report(&self, own: Report) -> Report {
        let mut hall = self.hall();
        let mut all = std::mem::take(&mut hall.said);
        all.claims.extend(own.claims);
        all.losses.extend(own.losses);
        // Who is gone says nothing more, and who is done neither.
        let telling = hall
            .seats
            .iter()
            .filter(|seat| seat.has_servers() && seat.guest.is_some() && seat.found.is_none());
        let told = telling.map(|seat| seat.told_until);
        all.until = told.fold(own.until, Time::min);
        all
    }

    /// Where the characters of all game servers are, once all workers have said
    /// where theirs are; those here are at `own`. From then on nobody who leaves
    /// is waited for.
    pub(crate) fn truth(&self, own: &Truth) -> Option<Truth> {
        let mut hall = self.hall();
        let mut all = own.clone();
        for seat in &hall.seats {
            all.extend(seat.truth()?);
        }
        hall.end();
        drop(hall);
        for (characters, is_all) in pieces(&all) {
            self.tell(&FromCoordinator::Truth { characters, is_all });
        }
        Some(all)
    }

    /// Whether every worker has told what it found.
    pub(crate) fn all_found(&self) -> bool {
        self.still_out().is_none()
    }

    /// The number of the first worker that has not, counted from 1.
    pub(crate) fn still_out(&self) -> Option<usize> {
        let is_out = |seat: &Seat| seat.found.is_none() && !seat.is_excused;
        self.hall().seats.iter().position(is_out).map(|nth| nth + 1)
    }

    /// Adds what the workers found to what was found here.
    pub(crate) fn add_found(&self, outcome: &mut Outcome) {
        let mut hall = self.hall();
        let hall = &mut *hall;
        outcome.servers_lost += hall.servers_lost;
        outcome.returned.servers += hall.servers_returned;
        let found = hall.seats.iter_mut().filter_map(|seat| seat.found.take());
        for found in found.map(|found| *found).chain(hall.lost.drain(..)) {
            outcome.absorb(found);
        }
    }

    fn seat(&self, request: Request, session: &Session) -> Result<Task, Refusal> {
        let mut hall = self.hall();
        let workers = hall.seats.len() as u32;
        let is_late = hall.is_playing();
        if hall.is_ending {
            return Err(Refusal::new("the world has been played"));
        }
        let index = free_seat(&hall.seats, request.index)?;
        let seat = &mut hall.seats[index as usize];
        seat.take(session.clone(), is_late);
        Ok(Task {
            index,
            workers,
            scenario: self.scenario.clone(),
            part: seat.part,
            came: seat.came,
            gateway: self.gateway.clone(),
            servers: self.servers.clone(),
        })
    }

    fn hear(&self, index: u32, said: FromWorker) {
        let mut hall = self.hall();
        let hall_now = &mut *hall;
        let seat = &mut hall_now.seats[index as usize];
        let mut answer = None;
        match said {
            FromWorker::Ready => {
                seat.be_ready();
                if let (Some(at), Some(guest)) = (hall_now.start, &seat.guest) {
                    // What it will say is of the time from now on.
                    seat.told_until = Time::ZERO + guest.clock().now().since(at);
                    // It may have come too late.
                    let word = if hall_now.is_ending {
                        seat.is_excused = true;
                        FromCoordinator::Stop
                    } else {
                        start(at)
                    };
                    answer = Some((guest.clone(), word));
                }
            }
            FromWorker::Opened => {
                if seat.open() {
                    let servers = seat.part.servers;
                    let all = lagometer_world::Server::count(&self.scenario);
                    hall_now.servers_returned += servers.of(all);
                    hall_now.back.push(index);
                }
            }
            FromWorker::Note { note, so_far } => seat.note(*note, so_far),
            FromWorker::Report(claims) => {
                seat.set_clock_error(claims.within());
                let mut report = claims.report();
                seat.told_until = seat.told_until.max(report.until);
                hall_now.said.claims.append(&mut report.claims);
                hall_now.said.losses.append(&mut report.losses);
            }
            FromWorker::Stands { characters, is_all } => seat.stand(characters, is_all),
            FromWorker::Found {
                outcome,
                clock_error,
            } => {
                seat.set_clock_error(clock_error);
                seat.finish(outcome, &self.scenario);
            }
            FromWorker::Failed { why } => {
                if seat.is_excused {
                    // It was told that it is not needed.
                } else if seat.is_on_its_way() {
                    seat.complain(why);
                } else {
                    let why = format!("worker {}: {why}", index + 1);
                    hall_now.failed.get_or_insert(why);
                }
            }
        }
        drop(hall);
        self.changed.notify_all();
        if let Some((guest, word)) = answer {
            guest.tell(&written(&word));
        }
    }

    fn leave(&self, index: u32) {
        let mut hall = self.hall();
        let (is_playing, is_ending) = (hall.is_playing(), hall.is_ending);
        let hall_now = &mut *hall;
        let seat = &mut hall_now.seats[index as usize];
        let is_missed = is_playing && seat.found.is_none() && !seat.is_excused;
        if is_missed {
            let (mut losses, so_far) = seat.lose(&self.scenario);
            seat.is_excused = is_ending;
            hall_now.servers_lost += losses.len() as u32;
            hall_now.said.losses.append(&mut losses);
            hall_now.lost.extend(so_far.map(|found| *found));
        } else {
            seat.leave();
        }
        drop(hall);
        self.changed.notify_all();
    }

    fn hall(&self) -> MutexGuard<'_, Hall> {
        self.hall.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start(at: Time) -> FromCoordinator {
    FromCoordinator::Start {
        at_ns: at.as_nanos(),
    }
}

fn failure(hall: &Hall) -> Result<(), PlayError> {
    match &hall.failed {
        Some(why) => Err(PlayError::Company(why.clone())),
        None => Ok(()),
    }
}

/// The seat of that number, or any, if it is free.
fn free_seat(seats: &[Seat], index: Option<u32>) -> Result<u32, Refusal> {
    let workers = seats.len();
    let is_free = |seat: &Seat| seat.guest.is_none();
    let Some(index) = index else {
        let any = seats.iter().position(is_free).map(|index| index as u32);
        return any.ok_or_else(|| Refusal::new(format!("all {workers} workers have come")));
    };
    match seats.get(index as usize) {
        Some(seat) if is_free(seat) => Ok(index),
        Some(_) => {
            let why = format!("there is a worker {} already", index + 1);
            Err(Refusal::new(why))
        }
        None => {
            let why = format!("there is no worker {}, only {workers}", index + 1);
            Err(Refusal::new(why))
        }
    }
}

/// What workers open.
pub(crate) struct Door(pub(crate) Arc<Roll>);

impl Service for Door {
    fn name(&self) -> &'static str {
        SERVICE
    }

    fn open(&self, request: &Value, session: &Session) -> Result<Accepted, Refusal> {
        let request: Request = understand("what was asked", request)?;
        let task = self.0.seat(request, session)?;
        let guest = Guest {
            roll: Arc::clone(&self.0),
            index: task.index,
        };
        Ok(Accepted::new(written(&task), guest))
    }
}

/// A worker on its seat, as long as it stays.
struct Guest {
    roll: Arc<Roll>,
    index: u32,
}

impl Job for Guest {
    fn ask(&mut self, body: &Value) -> Result<Value, Refusal> {
        let said = understand("what was said", body)?;
        self.roll.hear(self.index, said);
        Ok(Value::Null)
    }
}

impl Drop for Guest {
    fn drop(&mut self) {
        self.roll.leave(self.index);
    }
}

/// Everything that is said has a JSON form: numbers, texts, lists.
pub(crate) fn written(said: &impl Serialize) -> Value {
    serde_json::to_value(said).unwrap_or(Value::Null)
}
