//! How far a world in real time is.

use std::sync::{Arc, Mutex, PoisonError};

use lagometer_watch::View;
use lagometer_watch::world::WorldView;
use lagometer_world::{GatewayTicks, Moment, Scenario};

use crate::live::{Live, Watched};

/// A line on standard error for every second: a world is watched as it fills,
/// and a log of a long run can be read too. Or a live view in its place.
pub(super) struct Progress {
    reported_s: f64,
    live: Option<(Live, Arc<Mutex<WorldView>>)>,
}

/// A world that is played.
struct World(Arc<Mutex<WorldView>>);

impl Watched for World {
    fn look(&mut self, show: &mut dyn FnMut(&dyn View)) {
        show(
            self.0
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .board(),
        );
    }
}

impl Progress {
    /// Of a world that begins; with a live view where that is asked for and there is a
    /// terminal for it.
    pub(super) fn start(scenario: &Scenario, is_live: bool) -> Self {
        let view = Arc::new(Mutex::new(WorldView::new(scenario)));
        let live = Live::start(is_live, || World(Arc::clone(&view)));
        Self {
            reported_s: 0.0,
            live: live.map(|live| (live, view)),
        }
    }

    /// Writes a line where a second has passed since the last.
    pub(super) fn report(&mut self, moment: &Moment) {
        if let Some((_, view)) = &self.live {
            let mut view = view.lock().unwrap_or_else(PoisonError::into_inner);
            view.note(moment);
            return;
        }
        if moment.world.at_s - self.reported_s < 1.0 {
            return;
        }
        self.reported_s = moment.world.at_s;
        let age = moment
            .world
            .age_p50_ms
            .map_or_else(String::new, |age_ms| format!(", seen {age_ms:.0} ms old"));
        let generator = moment
            .world
            .generator_cpu_pct
            .map_or_else(String::new, |cpu_pct| format!(", generator {cpu_pct:.0} %"));
        let ticks = moment.gateway_ticks.as_ref().map(ticks).unwrap_or_default();
        note!(
            "{:5.0} s  {} players, {:.0} updates/s, {:.1} MB/s, {:.1} frames/s, late by {:.1} ms{ticks}{generator}{age}",
            moment.world.at_s,
            moment.world.players,
            moment.world.updates_per_s,
            moment.world.bytes_per_s / 1e6,
            moment.world.frames_per_s,
            moment.world.frame_late_ms,
        );
    }
}

/// The gateway's ticks in a line of progress, as far as it reports them.
fn ticks(of: &GatewayTicks) -> String {
    let mut parts = Vec::new();
    parts.extend(of.per_s.map(|per_s| format!("{per_s:.1} ticks/s")));
    parts.extend(of.longest_ms.map(|ms| format!("the longest {ms:.2} ms")));
    parts.extend(of.late_pct.map(|late| format!("{late:.0} % late")));
    if parts.is_empty() {
        return String::new();
    }
    let what = if of.per_s.is_some() { "" } else { "ticks, " };
    format!(", gateway {what}{}", parts.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_are_shown_as_far_as_the_gateway_reports_them() {
        let all = GatewayTicks {
            per_s: Some(50.02),
            late_pct: Some(1.6),
            longest_ms: Some(0.314),
        };
        assert_eq!(
            ticks(&all),
            ", gateway 50.0 ticks/s, the longest 0.31 ms, 2 % late"
        );
        let gauge = GatewayTicks {
            longest_ms: Some(9.9),
            ..GatewayTicks::default()
        };
        assert_eq!(ticks(&gauge), ", gateway ticks, the longest 9.90 ms");
        assert_eq!(ticks(&GatewayTicks::default()), "");
    }
}
