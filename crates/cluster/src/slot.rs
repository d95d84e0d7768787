//! The slot of one worker, and what is known of the worker assigned to it.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use lagometer_remote::Session;
use lagometer_units::Time;
use lagometer_world::{Loss, Note, Outcome, ProcessStats, Scenario, Server, Shard, Share, Truth};

use crate::messages::{CharacterPosition, places};

/// From a worker's leaving to the first attempt to have another in its place:
/// the gateway must have seen that its servers' connections are gone.
const REPLACE_AFTER: Duration = Duration::from_millis(500);

/// From one attempt to the next.
const REPLACE_AGAIN: Duration = Duration::from_secs(1);

/// Why a player has lost its connection whose worker is lost.
const WITH_ITS_PROCESS: &str = "the process that played it is gone";

/// The place of one worker.
#[derive(Debug)]
pub(crate) struct WorkerSlot {
    pub(crate) shard: Shard,
    pub(crate) worker_session: Option<Session>,
    state: WorkerState,
    /// It took another's place while the world was being played.
    is_late: bool,
    notes: VecDeque<Note>,
    /// The number of the last note of the worker assigned now.
    last_note: Option<u32>,
    /// What its game servers claim of the time before is known.
    pub(crate) reported_until: Time,
    clock_error: Duration,
    /// How many of its players had come by the last note of anybody who sat
    /// there.
    pub(crate) came: u32,
    /// How many were connected at its last note.
    connected: u32,
    /// All that it found up to its last note.
    so_far: Option<Box<Outcome>>,
    /// Where its servers' characters are, as far as it has come.
    received: Truth,
    stands: Option<Truth>,
    pub(crate) found: Option<Box<Outcome>>,
    /// Nobody is waited for here any more.
    pub(crate) is_excused: bool,
    gone: Option<Absence>,
}

/// The state of the worker assigned to a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum WorkerState {
    /// It has its task, or nobody is there.
    Coming,
    /// Its clock is known, and it waits for the start.
    Ready,
    /// It plays: its game servers have what they are to own.
    Open,
}

/// A worker that has left in the middle.
#[derive(Debug)]
struct Absence {
    since: Instant,
    attempts: u32,
    next_at: Instant,
    /// What the last that came in its place said.
    trouble: Option<String>,
}

impl WorkerSlot {
    pub(crate) fn new(shard: Shard) -> Self {
        Self {
            shard,
            worker_session: None,
            state: WorkerState::Coming,
            is_late: false,
            notes: VecDeque::new(),
            last_note: None,
            reported_until: Time::ZERO,
            clock_error: Duration::ZERO,
            came: 0,
            connected: 0,
            so_far: None,
            received: Truth::new(),
            stands: None,
            found: None,
            is_excused: false,
            gone: None,
        }
    }

    /// Whether game servers are played there.
    pub(crate) fn has_servers(&self) -> bool {
        self.shard.servers != Share::NONE
    }

    /// Its clock is known.
    pub(crate) fn be_ready(&mut self) {
        self.state = WorkerState::Ready;
    }

    /// Whether its clock is known, so that it can begin.
    pub(crate) fn is_ready(&self) -> bool {
        self.state >= WorkerState::Ready
    }

    /// Whether it plays.
    pub(crate) fn is_open(&self) -> bool {
        self.state == WorkerState::Open
    }

    /// Whether it took another's place and does not play yet.
    pub(crate) fn is_on_its_way(&self) -> bool {
        self.is_late && !self.is_open()
    }

    /// Assigns a worker to this slot; `is_late` while the world is being played.
    pub(crate) fn take(&mut self, worker_session: Session, is_late: bool) {
        self.worker_session = Some(worker_session);
        self.is_late = is_late;
        self.last_note = None;
    }

    /// Its worker has left. What its notes reported stays.
    pub(crate) fn leave(&mut self) {
        self.worker_session = None;
        self.state = WorkerState::Coming;
        self.last_note = None;
        self.connected = 0;
        self.received.clear();
        self.stands = None;
    }

    /// A worker has left in the middle. Its servers, where they were lost with
    /// it, and what it had found up to its last note.
    pub(crate) fn lose(&mut self, scenario: &Scenario) -> (Vec<Loss>, Option<Box<Outcome>>) {
        let at = self.reported_until;
        let mut losses = Vec::new();
        // One that came in another's place and had not begun had nothing.
        if self.is_open() {
            losses.extend(
                (0..Server::count(scenario))
                    .filter(|number| self.shard.servers.has(*number))
                    .filter_map(|number| Server::simulating(scenario, number))
                    .map(|server| Loss { at, server }),
            );
        }
        let process_stats = self.process_stats(scenario, true);
        // One that played and has reported nothing is named all the same.
        let played = self.is_open();
        let nothing = || played.then(|| Box::new(Outcome::nothing(scenario)));
        let so_far = self.so_far.take().or_else(nothing).map(|mut found| {
            found.processes = vec![ProcessStats {
                cpu: found.generator_cpu,
                ..process_stats
            }];
            let gone = std::iter::repeat_n(WITH_ITS_PROCESS, self.connected as usize);
            found.lost.extend(gone.map(str::to_owned));
            found
        });
        self.leave();
        let now = Instant::now();
        let absence = self.gone.get_or_insert(Absence {
            since: now,
            attempts: 0,
            next_at: now,
            trouble: None,
        });
        absence.next_at = now + REPLACE_AFTER;
        (losses, so_far)
    }

    /// Whoever came in a lost worker's place says that it cannot play.
    pub(crate) fn complain(&mut self, why: String) {
        if let Some(absence) = &mut self.gone {
            absence.trouble = Some(why);
        }
    }

    /// It plays. Whether it was missed.
    pub(crate) fn open(&mut self) -> bool {
        self.state = WorkerState::Open;
        self.gone.take().is_some()
    }

    /// The number of the attempt to have another in a lost worker's place, if
    /// one is due.
    ///
    /// # Errors
    ///
    /// Nobody has come within `timeout`; what those said who tried.
    pub(crate) fn replace(
        &mut self,
        now: Instant,
        timeout: Duration,
    ) -> Result<Option<u32>, String> {
        let Some(absence) = &mut self.gone else {
            return Ok(None);
        };
        if now.duration_since(absence.since) > timeout {
            let trouble = absence.trouble.take();
            return Err(trouble.map_or_else(String::new, |why| format!(": {why}")));
        }
        if self.worker_session.is_some() || now < absence.next_at {
            return Ok(None);
        }
        let attempt = absence.attempts;
        absence.attempts += 1;
        absence.next_at = now + REPLACE_AGAIN;
        Ok(Some(attempt))
    }

    /// Takes a note, and all that was found up to then.
    pub(crate) fn note(&mut self, note: Note, so_far: Box<Outcome>) {
        self.last_note = Some(note.nth);
        self.came = self.came.max(note.came);
        self.connected = note.connected;
        self.notes.push_back(note);
        self.so_far = Some(so_far);
    }

    /// Whether its note of that half second is here, or will never be.
    pub(crate) fn has_noted(&self, nth: u32) -> bool {
        let is_past = self.last_note.is_some_and(|last| last >= nth);
        // Who takes another's place begins with a later one.
        let has_not_begun = self.is_late && self.last_note.is_none();
        is_past || has_not_begun || self.worker_session.is_none()
    }

    /// Its note of that half second; those before it are of no use any more.
    pub(crate) fn take_note(&mut self, nth: u32) -> Option<Note> {
        while self.notes.front().is_some_and(|note| note.nth < nth) {
            self.notes.pop_front();
        }
        if self.notes.front().is_some_and(|note| note.nth == nth) {
            return self.notes.pop_front();
        }
        None
    }

    /// Takes where some of its servers' characters are.
    pub(crate) fn stand(&mut self, characters: Vec<CharacterPosition>, is_all: bool) {
        self.received.extend(places(characters));
        if is_all {
            self.stands = Some(std::mem::take(&mut self.received));
        }
    }

    /// Where its servers' characters are, once nobody moves there and everybody
    /// has received everything.
    pub(crate) fn truth(&self) -> Option<Truth> {
        if self.is_excused {
            return Some(Truth::new());
        }
        self.stands.clone()
    }

    /// Takes how far its clock may be off.
    pub(crate) fn set_clock_error(&mut self, error: Duration) {
        self.clock_error = error;
    }

    /// Takes all that it found.
    pub(crate) fn finish(&mut self, mut outcome: Box<Outcome>, scenario: &Scenario) {
        outcome.processes = vec![ProcessStats {
            cpu: outcome.generator_cpu,
            ..self.process_stats(scenario, false)
        }];
        self.found = Some(outcome);
    }

    fn process_stats(&self, scenario: &Scenario, lost: bool) -> ProcessStats {
        let at = self
            .worker_session
            .as_ref()
            .map(|worker_session| worker_session.peer().to_string());
        ProcessStats {
            at: at.unwrap_or_default(),
            servers: self.shard.servers.of(Server::count(scenario)),
            players: self.shard.players.of(scenario.players),
            cpu: None,
            clock_error: self.clock_error,
            lost,
        }
    }
}

#[cfg(test)]
mod tests {
    use lagometer_stats::Distribution;
    use lagometer_world::{BUILT_IN, Moment};

    use super::*;

    fn spatial() -> Scenario {
        let (name, text) = BUILT_IN
            .iter()
            .find(|(name, _)| *name == "spatial")
            .unwrap();
        Scenario::parse(name, text).unwrap()
    }

    /// A worker's with servers 1 and 4.
    fn slot() -> WorkerSlot {
        WorkerSlot::new(Shard {
            servers: Share::even_from(1, 0, 3),
            players: Share::NONE,
        })
    }

    /// A worker's with players 0, 2 and so on.
    fn slot_of_players() -> WorkerSlot {
        WorkerSlot::new(Shard {
            servers: Share::NONE,
            players: Share::even(0, 2),
        })
    }

    /// Of a half second at whose end so many players had come and were
    /// connected.
    fn note(nth: u32, came: u32, connected: u32) -> Note {
        Note {
            nth,
            moment: Moment::default(),
            ages: Distribution::new(),
            came,
            connected,
        }
    }

    fn nothing() -> Box<Outcome> {
        Box::new(Outcome::nothing(&spatial()))
    }

    #[test]
    fn what_the_lost_had_noted_is_used_and_no_more_is_waited_for() {
        let mut slot = slot();
        slot.note(note(0, 0, 0), nothing());
        slot.note(note(1, 0, 0), nothing());
        assert!(slot.has_noted(0) && slot.has_noted(1));
        assert_eq!(slot.take_note(0).map(|note| note.nth), Some(0));
        let (losses, so_far) = slot.lose(&spatial());
        assert!(losses.is_empty(), "it had not begun");
        let so_far = so_far.unwrap();
        assert!(so_far.processes[0].lost && so_far.lost.is_empty());
        assert!(slot.has_noted(1) && slot.has_noted(2));
        // Another comes, and begins with a later one.
        slot.note(note(5, 0, 0), nothing());
        assert_eq!(slot.take_note(1).map(|note| note.nth), Some(1));
        assert_eq!(slot.take_note(4), None);
        assert_eq!(slot.take_note(5).map(|note| note.nth), Some(5));
        assert_eq!(slot.take_note(6), None);
    }

    #[test]
    fn whose_players_were_connected_loses_them_and_all_that_came_come_back() {
        let mut slot = slot_of_players();
        assert!(slot.lose(&spatial()).1.is_none(), "it had not begun");
        slot.open();
        slot.note(note(3, 5, 4), nothing());
        let lost = |so_far: Option<Box<Outcome>>| so_far.map(|found| found.lost.len());
        assert_eq!(lost(slot.lose(&spatial()).1), Some(4));
        assert_eq!(slot.came, 5);
        // Whoever comes next and is lost before any note takes nobody along.
        slot.open();
        assert_eq!(lost(slot.lose(&spatial()).1), Some(0));
        assert_eq!(slot.came, 5);
    }

    #[test]
    fn the_servers_of_the_lost_are_lost_when_they_were_last_seen() {
        let mut slot = slot();
        slot.reported_until = Time::from_nanos(7);
        assert!(!slot.open(), "nobody missed them");
        let (losses, _) = slot.lose(&spatial());
        // Counted among those that simulate, which the master does not.
        let servers: Vec<u32> = losses.iter().map(|loss| loss.server).collect();
        assert_eq!(servers, [0, 3, 6]);
        assert!(losses.iter().all(|loss| loss.at == slot.reported_until));
        assert!(slot.open(), "they were missed");
    }

    #[test]
    fn a_replacement_is_asked_for_repeatedly_and_not_for_ever() {
        let (mut slot, timeout) = (slot(), Duration::from_secs(9));
        let began = Instant::now();
        assert_eq!(slot.replace(began, timeout), Ok(None));
        slot.lose(&spatial());
        let lost = Instant::now();
        assert_eq!(slot.replace(began, timeout), Ok(None), "not at once");
        let first = lost + REPLACE_AFTER;
        assert_eq!(slot.replace(first, timeout), Ok(Some(0)));
        assert_eq!(slot.replace(first, timeout), Ok(None));
        assert_eq!(slot.replace(first + REPLACE_AGAIN, timeout), Ok(Some(1)));
        slot.complain("it rains".to_owned());
        let late = lost + timeout + REPLACE_AGAIN;
        assert_eq!(slot.replace(late, timeout), Err(": it rains".to_owned()));
    }
}
