//! Seeing the lanes of a seed through: the lead-in, the cue, and the end.
//!
//! Lanes connect over calm links. When all stand and have stood for a while (or
//! the lead-in is over) the testbed starts their schedules, and from then on it
//! only looks after them until the last is over.

use std::thread;
use std::time::Duration;

use lagometer_units::Time;

use super::status::LaneStatus;
use crate::plan::Plan;

/// From the decision to start measuring to the first message: every thread
/// reads it within the longest it sleeps.
pub(crate) const NOTICE: Duration = Duration::from_millis(300);

/// How often the testbed looks after its lanes.
const LOOK: Duration = Duration::from_millis(20);
/// For how long every lane's connection has stood before measuring starts:
/// endpoints learn the path's round trip meanwhile.
const SETTLING: Duration = Duration::from_secs(2);
/// How often progress is reported.
const REPORT_EVERY: Duration = Duration::from_secs(1);

/// What a testbed knows of its lanes while it looks after them. The testbed has
/// the clock.
pub(crate) struct Supervisor<'a> {
    statuses: &'a [LaneStatus],
    progress: &'a (dyn Fn(Duration) + Sync),
    began: Time,
    /// Since when every lane has had its connection, or given up.
    settled_at: Option<Time>,
    has_started: bool,
    /// How much of the time since the beginning has been reported.
    reported: Duration,
}

impl<'a> Supervisor<'a> {
    /// Of the lanes of these `statuses`, from `now` on. `progress` is called with
    /// the lane-seconds played since it was last called.
    pub(crate) fn new(
        statuses: &'a [LaneStatus],
        progress: &'a (dyn Fn(Duration) + Sync),
        now: Time,
    ) -> Self {
        Self {
            statuses,
            progress,
            began: now,
            settled_at: None,
            has_started: false,
            reported: Duration::ZERO,
        }
    }

    /// Sleeps until the lanes are to be looked after again; false, at once, when
    /// all are over.
    pub(crate) fn wait(&self) -> bool {
        if self.statuses.iter().all(LaneStatus::is_over) {
            return false;
        }
        thread::sleep(LOOK);
        true
    }

    /// Has every lane end where it is.
    pub(crate) fn stop(&self) {
        for status in self.statuses {
            status.cue.stop();
        }
    }

    /// The schedules have been started without being asked for here.
    pub(crate) const fn note_started(&mut self) {
        self.has_started = true;
    }

    /// Whether the schedules are to be started at `now`: true once.
    pub(crate) fn is_time_to_start(&mut self, now: Time) -> bool {
        if self.has_started {
            return false;
        }
        if self.statuses.iter().all(LaneStatus::is_settled) {
            self.settled_at.get_or_insert(now);
        }
        let is_settled = self.settled_at.is_some_and(|at| now.since(at) >= SETTLING);
        self.has_started = is_settled || now.since(self.began) >= Plan::LEAD_IN;
        self.has_started
    }

    /// Reports the lane-seconds that were played until `now`.
    pub(crate) fn report_progress(&mut self, now: Time) {
        while now.since(self.began) >= self.reported + REPORT_EVERY {
            self.reported += REPORT_EVERY;
            (self.progress)(REPORT_EVERY * self.statuses.len() as u32);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use lagometer_transport::State;

    use super::*;
    use crate::live::Role;

    const SECOND: Duration = Duration::from_secs(1);

    #[test]
    fn lanes_start_once_when_all_have_stood_for_a_while() {
        let statuses = [LaneStatus::default(), LaneStatus::default()];
        let mut supervisor = Supervisor::new(&statuses, &|_| {}, Time::ZERO);
        statuses[0].give_up();
        assert!(!supervisor.is_time_to_start(Time::ZERO + SECOND));
        for role in [Role::Client, Role::Server] {
            statuses[1].note_state(role, State::Ready);
        }
        let settled = Time::ZERO + 2 * SECOND;
        assert!(!supervisor.is_time_to_start(settled));
        let nearly = settled + SETTLING - Duration::from_nanos(1);
        assert!(!supervisor.is_time_to_start(nearly));
        assert!(supervisor.is_time_to_start(settled + SETTLING));
        assert!(!supervisor.is_time_to_start(settled + SETTLING));
    }

    #[test]
    fn lanes_start_at_the_end_of_the_lead_in_whatever_stands() {
        let statuses = [LaneStatus::default()];
        let began = Time::from_secs(5);
        let mut supervisor = Supervisor::new(&statuses, &|_| {}, began);
        let end = began + Plan::LEAD_IN;
        assert!(!supervisor.is_time_to_start(Time::from_secs(6)));
        assert!(supervisor.is_time_to_start(end));
    }

    #[test]
    fn progress_is_reported_a_second_at_a_time_for_every_lane() {
        let reported = Mutex::new(Vec::new());
        let note = |played| reported.lock().unwrap().push(played);
        let statuses = [LaneStatus::default(), LaneStatus::default()];
        let mut supervisor = Supervisor::new(&statuses, &note, Time::ZERO);
        for millis in [999, 1000, 3500] {
            supervisor.report_progress(Time::from_millis(millis));
        }
        assert_eq!(*reported.lock().unwrap(), [2 * SECOND; 3]);
    }
}
