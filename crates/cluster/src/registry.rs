//! The workers and their reports, shared between the threads of their control
//! connections and the thread that plays.

use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use lagometer_remote::{Accepted, Job, Refusal, Service, Session, understand};
use lagometer_units::{Clock, Time};
use lagometer_world::{Note, Outcome, PlayError, Report, Scenario, Shard, Truth};
use serde::Serialize;
use serde_json::Value;

use crate::messages::{FromCoordinator, FromWorker, Request, SERVICE, Task, pieces};
use crate::slot::WorkerSlot;

/// What a coordinator reports of its workers while the world is played. Workers
/// are counted from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A worker has left, and its players or game servers with it. Whoever
    /// started it may start it again. Reported again every second until one has
    /// come.
    Missing {
        /// The worker.
        index: u32,
        /// How often it was reported before.
        attempt: u32,
    },
    /// Another has come: its players log in again, or its game servers have what
    /// they had.
    Back {
        /// The worker.
        index: u32,
    },
}

/// The workers' slots.
#[derive(Debug)]
pub(crate) struct WorkerRegistry {
    scenario: Scenario,
    /// The gateway's addresses for players and for game servers.
    gateway: String,
    servers: String,
    state: Mutex<RegistryState>,
    changed: Condvar,
}

#[derive(Debug)]
struct RegistryState {
    slots: Vec<WorkerSlot>,
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
    /// Workers that came in the place of others, and have not been reported.
    back: Vec<u32>,
    /// Why the world cannot be played on.
    failed: Option<String>,
}

impl RegistryState {
    fn is_playing(&self) -> bool {
        self.start.is_some()
    }

    /// From now on nobody is waited for that has left.
    fn end(&mut self) {
        self.is_ending = true;
        for slot in self
            .slots
            .iter_mut()
            .filter(|slot| slot.worker_session.is_none())
        {
            slot.is_excused = true;
        }
    }

    fn sessions(&self) -> impl Iterator<Item = &Session> {
        self.slots
            .iter()
            .filter_map(|slot| slot.worker_session.as_ref())
    }
}

impl WorkerRegistry {
    /// Slots for workers with these parts, and the gateway's addresses for
    /// players and for game servers.
    pub(crate) fn new(
        scenario: Scenario,
        [gateway, servers]: [String; 2],
        shards: impl IntoIterator<Item = Shard>,
    ) -> Self {
        Self {
            scenario,
            gateway,
            servers,
            state: Mutex::new(RegistryState {
                slots: shards.into_iter().map(WorkerSlot::new).collect(),
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
        let count =
            |state: &RegistryState| state.slots.iter().filter(|slot| slot.is_ready()).count();
        let state = self.state();
        let before = count(&state);
        let all = state.slots.len();
        let (state, _) = self
            .changed
            .wait_timeout_while(state, at_most, |state| {
                count(state) == before && before < all
            })
            .unwrap_or_else(PoisonError::into_inner);
        count(&state) as u32
    }

    /// The clock that the workers set theirs by; `None` before any has come.
    pub(crate) fn clock(&self) -> Option<Clock> {
        self.state().sessions().next().map(Session::clock)
    }

    /// Waits until all game servers of workers have what they are to own, but
    /// no longer than `timeout`.
    pub(crate) fn open(&self, timeout: Duration) -> Result<(), PlayError> {
        self.send(&FromCoordinator::Open);
        let is_out = |slot: &WorkerSlot| slot.has_servers() && !slot.is_open();
        let goes_on = |state: &mut RegistryState| {
            state.failed.is_none()
                && state.slots.iter().all(WorkerSlot::is_ready)
                && state.slots.iter().any(is_out)
        };
        let (state, _) = self
            .changed
            .wait_timeout_while(self.state(), timeout, goes_on)
            .unwrap_or_else(PoisonError::into_inner);
        let out = state.slots.iter().position(is_out);
        drop(state);
        self.check()?;
        match out {
            Some(nth) => Err(PlayError::Coordination(format!(
                "worker {} does not get its game servers to work",
                nth + 1
            ))),
            None => Ok(()),
        }
    }

    /// From now on, who leaves is missed.
    pub(crate) fn begin(&self, at: Time) -> Result<(), PlayError> {
        let mut state = self.state();
        state.start = Some(at);
        if let Some(nth) = state.slots.iter().position(|slot| !slot.is_ready()) {
            let why = format!("worker {} left before the start", nth + 1);
            return Err(PlayError::Coordination(why));
        }
        drop(state);
        self.send(&start(at));
        Ok(())
    }

    /// All are to stop where they are.
    pub(crate) fn stop(&self) {
        self.state().end();
        self.send(&FromCoordinator::Stop);
    }

    /// Says something to all workers.
    pub(crate) fn send(&self, said: &FromCoordinator) {
        let body = written(said);
        // What is said may take as long as a worker that does not read lets
        // it: nobody else has to wait for that.
        let sessions: Vec<Session> = self.state().sessions().cloned().collect();
        for worker_session in sessions {
            worker_session.send_event(&body);
        }
    }

    /// Whether the world can still be played.
    pub(crate) fn check(&self) -> Result<(), PlayError> {
        failure(&self.state())
    }

    /// Whether the world can still be played, and what is to be reported of the
    /// workers. One that has left may be out for `timeout`.
    pub(crate) fn attend(&self, timeout: Duration) -> Result<Vec<Event>, PlayError> {
        let mut state = self.state();
        failure(&state)?;
        let back = std::mem::take(&mut state.back).into_iter();
        let mut events: Vec<Event> = back.map(|index| Event::Back { index }).collect();
        if state.is_ending {
            return Ok(events);
        }
        let now = Instant::now();
        for (index, slot) in (0..).zip(&mut state.slots) {
            let due = slot.replace(now, timeout).map_err(|trouble| {
                PlayError::Coordination(format!(
                    "nobody took the place of worker {} within {} s{trouble}",
                    index + 1,
                    timeout.as_secs()
                ))
            })?;
            events.extend(due.map(|attempt| Event::Missing { index, attempt }));
        }
        Ok(events)
    }

    /// Every worker's note of that half second, once all are there that will
    /// be.
    pub(crate) fn notes(&self, nth: u32) -> Option<Vec<Note>> {
        let mut state = self.state();
        if !state.slots.iter().all(|slot| slot.has_noted(nth)) {
            return None;
        }
        let notes = state
            .slots
            .iter_mut()
            .filter_map(|slot| slot.take_note(nth));
        Some(notes.collect())
    }

    /// Adds what the workers' game servers say to what those here say. Of what
    /// time all have reported, the earliest of them decides.
    pub(crate) fn report(&self, own: Report) -> Report {
        let mut state = self.state();
        let mut all = std::mem::take(&mut state.said);
        all.claims.extend(own.claims);
        all.losses.extend(own.losses);
        // Who is gone says nothing more, and who is done neither.
        let reporting = state.slots.iter().filter(|slot| {
            slot.has_servers() && slot.worker_session.is_some() && slot.found.is_none()
        });
        let reported = reporting.map(|slot| slot.reported_until);
        all.until = reported.fold(own.until, Time::min);
        all
    }

    /// Where the characters of all game servers are, once all workers have said
    /// where theirs are; those here are at `own`. From then on nobody who leaves
    /// is waited for.
    pub(crate) fn truth(&self, own: &Truth) -> Option<Truth> {
        let mut state = self.state();
        let mut all = own.clone();
        for slot in &state.slots {
            all.extend(slot.truth()?);
        }
        state.end();
        drop(state);
        for (characters, is_all) in pieces(&all) {
            self.send(&FromCoordinator::Truth { characters, is_all });
        }
        Some(all)
    }

    /// Whether every worker has reported what it found.
    pub(crate) fn all_found(&self) -> bool {
        self.still_out().is_none()
    }

    /// The number of the first worker that has not, counted from 1.
    pub(crate) fn still_out(&self) -> Option<usize> {
        let is_out = |slot: &WorkerSlot| slot.found.is_none() && !slot.is_excused;
        self.state()
            .slots
            .iter()
            .position(is_out)
            .map(|nth| nth + 1)
    }

    /// Adds what the workers found to what was found here.
    pub(crate) fn add_found(&self, outcome: &mut Outcome) {
        let mut state = self.state();
        let state = &mut *state;
        outcome.servers_lost += state.servers_lost;
        outcome.returned.servers += state.servers_returned;
        let found = state.slots.iter_mut().filter_map(|slot| slot.found.take());
        for found in found.map(|found| *found).chain(state.lost.drain(..)) {
            outcome.absorb(found);
        }
    }

    fn slot(&self, request: Request, session: &Session) -> Result<Task, Refusal> {
        let mut state = self.state();
        let workers = state.slots.len() as u32;
        let is_late = state.is_playing();
        if state.is_ending {
            return Err(Refusal::new("the world has been played"));
        }
        let index = free_slot(&state.slots, request.index)?;
        let slot = &mut state.slots[index as usize];
        slot.take(session.clone(), is_late);
        Ok(Task {
            index,
            workers,
            scenario: self.scenario.clone(),
            shard: slot.shard,
            came: slot.came,
            gateway: self.gateway.clone(),
            servers: self.servers.clone(),
        })
    }

    fn receive(&self, index: u32, said: FromWorker) {
        let mut state = self.state();
        let state_now = &mut *state;
        let slot = &mut state_now.slots[index as usize];
        let mut answer = None;
        match said {
            FromWorker::Ready => {
                slot.be_ready();
                if let (Some(at), Some(worker_session)) = (state_now.start, &slot.worker_session) {
                    // What it will say is of the time from now on.
                    slot.reported_until = Time::ZERO + worker_session.clock().now().since(at);
                    // It may have come too late.
                    let word = if state_now.is_ending {
                        slot.is_excused = true;
                        FromCoordinator::Stop
                    } else {
                        start(at)
                    };
                    answer = Some((worker_session.clone(), word));
                }
            }
            FromWorker::Opened => {
                if slot.open() {
                    let servers = slot.shard.servers;
                    let all = lagometer_world::Server::count(&self.scenario);
                    state_now.servers_returned += servers.of(all);
                    state_now.back.push(index);
                }
            }
            FromWorker::Note { note, so_far } => slot.note(*note, so_far),
            FromWorker::Report(claims) => {
                slot.set_clock_error(claims.within());
                let mut report = claims.report();
                slot.reported_until = slot.reported_until.max(report.until);
                state_now.said.claims.append(&mut report.claims);
                state_now.said.losses.append(&mut report.losses);
            }
            FromWorker::Stands { characters, is_all } => slot.stand(characters, is_all),
            FromWorker::Found {
                outcome,
                clock_error,
            } => {
                slot.set_clock_error(clock_error);
                slot.finish(outcome, &self.scenario);
            }
            FromWorker::Failed { why } => {
                if slot.is_excused {
                    // It was dismissed.
                } else if slot.is_on_its_way() {
                    slot.complain(why);
                } else {
                    let why = format!("worker {}: {why}", index + 1);
                    state_now.failed.get_or_insert(why);
                }
            }
        }
        drop(state);
        self.changed.notify_all();
        if let Some((worker_session, word)) = answer {
            worker_session.send_event(&written(&word));
        }
    }

    fn leave(&self, index: u32) {
        let mut state = self.state();
        let (is_playing, is_ending) = (state.is_playing(), state.is_ending);
        let state_now = &mut *state;
        let slot = &mut state_now.slots[index as usize];
        let is_missed = is_playing && slot.found.is_none() && !slot.is_excused;
        if is_missed {
            let (mut losses, so_far) = slot.lose(&self.scenario);
            slot.is_excused = is_ending;
            state_now.servers_lost += losses.len() as u32;
            state_now.said.losses.append(&mut losses);
            state_now.lost.extend(so_far.map(|found| *found));
        } else {
            slot.leave();
        }
        drop(state);
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, RegistryState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn start(at: Time) -> FromCoordinator {
    FromCoordinator::Start {
        at_ns: at.as_nanos(),
    }
}

fn failure(state: &RegistryState) -> Result<(), PlayError> {
    match &state.failed {
        Some(why) => Err(PlayError::Coordination(why.clone())),
        None => Ok(()),
    }
}

/// The slot of that number, or any, if it is free.
fn free_slot(slots: &[WorkerSlot], index: Option<u32>) -> Result<u32, Refusal> {
    let workers = slots.len();
    let is_free = |slot: &WorkerSlot| slot.worker_session.is_none();
    let Some(index) = index else {
        let any = slots.iter().position(is_free).map(|index| index as u32);
        return any.ok_or_else(|| Refusal::new(format!("all {workers} workers have come")));
    };
    match slots.get(index as usize) {
        Some(slot) if is_free(slot) => Ok(index),
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
pub(crate) struct JoinService(pub(crate) Arc<WorkerRegistry>);

impl Service for JoinService {
    fn name(&self) -> &'static str {
        SERVICE
    }

    fn open(&self, request: &Value, session: &Session) -> Result<Accepted, Refusal> {
        let request: Request = understand("what was asked", request)?;
        let task = self.0.slot(request, session)?;
        let worker_session = WorkerSession {
            registry: Arc::clone(&self.0),
            index: task.index,
        };
        Ok(Accepted::new(written(&task), worker_session))
    }
}

/// A worker on its slot, as long as it stays.
struct WorkerSession {
    registry: Arc<WorkerRegistry>,
    index: u32,
}

impl Job for WorkerSession {
    fn ask(&mut self, body: &Value) -> Result<Value, Refusal> {
        let said = understand("what was said", body)?;
        self.registry.receive(self.index, said);
        Ok(Value::Null)
    }
}

impl Drop for WorkerSession {
    fn drop(&mut self) {
        self.registry.leave(self.index);
    }
}

/// Everything that is said has a JSON form: numbers, texts, lists.
pub(crate) fn written(said: &impl Serialize) -> Value {
    serde_json::to_value(said).unwrap_or(Value::Null)
}
