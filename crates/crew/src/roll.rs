//! Who has come, and what they said: shared between the conversations with the
//! workers and the thread that plays.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use lagometer_far::{Accepted, Clock, Job, Refusal, Service, Session, understand};
use lagometer_units::Time;
use lagometer_world::{Fellow, Note, Outcome, Part, PlayError, Scenario, Slice};
use serde::Serialize;
use serde_json::Value;

use crate::words::{FromCoordinator, FromWorker, Request, SERVICE, Task};

/// The workers' seats.
#[derive(Debug)]
pub(crate) struct Roll {
    scenario: Scenario,
    gateway: String,
    hall: Mutex<Hall>,
    changed: Condvar,
}

#[derive(Debug)]
struct Hall {
    seats: Vec<Seat>,
    /// Whether the world is being played, so that who leaves is missed.
    is_playing: bool,
    /// Why it cannot be played on.
    failed: Option<String>,
}

/// The place of one worker.
#[derive(Debug, Default)]
struct Seat {
    guest: Option<Session>,
    is_ready: bool,
    notes: VecDeque<Note>,
    found: Option<Box<Outcome>>,
}

impl Roll {
    pub(crate) fn new(scenario: Scenario, gateway: String, workers: u32) -> Self {
        Self {
            scenario,
            gateway,
            hall: Mutex::new(Hall {
                seats: (0..workers).map(|_| Seat::default()).collect(),
                is_playing: false,
                failed: None,
            }),
            changed: Condvar::new(),
        }
    }

    /// How many workers are ready, after somebody has come or gone or `at_most`
    /// has passed.
    pub(crate) fn ready_within(&self, at_most: Duration) -> u32 {
        let count = |hall: &Hall| hall.seats.iter().filter(|seat| seat.is_ready).count();
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
        let hall = self.hall();
        let mut guests = hall.seats.iter().filter_map(|seat| seat.guest.as_ref());
        guests.next().map(Session::clock)
    }

    /// From now on, who leaves is missed.
    pub(crate) fn begin(&self, at: Time) -> Result<(), PlayError> {
        let mut hall = self.hall();
        hall.is_playing = true;
        if let Some(nth) = hall.seats.iter().position(|seat| !seat.is_ready) {
            let why = format!("worker {} left before the start", nth + 1);
            return Err(PlayError::Company(why));
        }
        drop(hall);
        self.tell(&FromCoordinator::Start {
            at_ns: at.as_nanos(),
        });
        Ok(())
    }

    /// Says something to all workers.
    pub(crate) fn tell(&self, said: &FromCoordinator) {
        let body = written(said);
        // What is said may take as long as a worker that does not read lets
        // it: nobody else has to wait for that.
        let guests: Vec<Session> = {
            let hall = self.hall();
            let guests = hall.seats.iter().filter_map(|seat| seat.guest.clone());
            guests.collect()
        };
        for guest in guests {
            guest.tell(&body);
        }
    }

    /// Whether the world can still be played.
    pub(crate) fn check(&self) -> Result<(), PlayError> {
        match &self.hall().failed {
            Some(why) => Err(PlayError::Company(why.clone())),
            None => Ok(()),
        }
    }

    /// Every worker's note of that half second, once all are there.
    pub(crate) fn notes(&self, nth: u32) -> Option<Vec<Note>> {
        let mut hall = self.hall();
        let all_there = hall
            .seats
            .iter()
            .all(|seat| seat.notes.iter().any(|note| note.nth == nth));
        if !all_there {
            return None;
        }
        let take = |seat: &mut Seat| {
            let at = seat.notes.iter().position(|note| note.nth == nth)?;
            seat.notes.drain(..=at).next_back()
        };
        Some(hall.seats.iter_mut().filter_map(take).collect())
    }

    /// Whether every worker has told what it found.
    pub(crate) fn all_found(&self) -> bool {
        let hall = self.hall();
        hall.seats.iter().all(|seat| seat.found.is_some())
    }

    /// The number of the first worker that has not, counted from 1.
    pub(crate) fn still_out(&self) -> Option<usize> {
        let hall = self.hall();
        let out = hall.seats.iter().position(|seat| seat.found.is_none());
        out.map(|nth| nth + 1)
    }

    /// What the workers found, in their order.
    pub(crate) fn take_found(&self) -> Vec<Outcome> {
        let mut hall = self.hall();
        hall.seats
            .iter_mut()
            .filter_map(|seat| seat.found.take())
            .map(|found| *found)
            .collect()
    }

    fn seat(&self, request: Request, session: &Session) -> Result<Task, Refusal> {
        let mut hall = self.hall();
        let workers = hall.seats.len() as u32;
        let index = free_seat(&hall.seats, request.index)?;
        if hall.is_playing {
            return Err(Refusal::new("the world is being played already"));
        }
        hall.seats[index as usize] = Seat {
            guest: Some(session.clone()),
            ..Seat::default()
        };
        Ok(Task {
            index,
            workers,
            scenario: self.scenario.clone(),
            part: Part {
                servers: Slice::NONE,
                players: Slice::share(index, workers),
            },
            gateway: self.gateway.clone(),
        })
    }

    fn hear(&self, index: u32, said: FromWorker) {
        let mut hall = self.hall();
        let seat = &mut hall.seats[index as usize];
        match said {
            FromWorker::Ready => seat.is_ready = true,
            FromWorker::Note(note) => seat.notes.push_back(note),
            FromWorker::Found {
                mut outcome,
                clock_error,
            } => {
                let at = seat.guest.as_ref().map(|guest| guest.peer().to_string());
                outcome.fellows = vec![Fellow {
                    at: at.unwrap_or_default(),
                    servers: 0,
                    players: Slice::share(index, hall.seats.len() as u32).of(self.scenario.players),
                    cpu: outcome.generator_cpu,
                    clock_error,
                }];
                hall.seats[index as usize].found = Some(outcome);
            }
            FromWorker::Failed { why } => {
                let why = format!("worker {}: {why}", index + 1);
                hall.failed.get_or_insert(why);
            }
        }
        drop(hall);
        self.changed.notify_all();
    }

    fn leave(&self, index: u32) {
        let mut hall = self.hall();
        let is_playing = hall.is_playing;
        let seat = &mut hall.seats[index as usize];
        let at = seat.guest.take().map(|guest| guest.peer());
        seat.is_ready = false;
        if is_playing && seat.found.is_none() {
            let at = at.map_or_else(String::new, |at| format!(" ({at})"));
            let why = format!("worker {}{at} left before it was done", index + 1);
            hall.failed.get_or_insert(why);
        }
        drop(hall);
        self.changed.notify_all();
    }

    fn hall(&self) -> MutexGuard<'_, Hall> {
        self.hall.lock().unwrap_or_else(PoisonError::into_inner)
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
