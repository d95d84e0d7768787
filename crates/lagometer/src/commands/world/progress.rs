//! How far a world in real time is.

use lagometer_world::{GatewayTicks, Moment};

/// A line on standard error for every second: a world is watched as it fills,
/// and a log of a long run can be read too.
#[derive(Default)]
pub(super) struct Progress {
    reported_s: f64,
}

impl Progress {
    /// Writes a line where a second has passed since the last.
    pub(super) fn report(&mut self, moment: &Moment) {
        if moment.at_s - self.reported_s < 1.0 {
            return;
        }
        self.reported_s = moment.at_s;
        let age = moment
            .age_p50_ms
            .map_or_else(String::new, |age_ms| format!(", seen {age_ms:.0} ms old"));
        let generator = moment
            .generator_cpu_pct
            .map_or_else(String::new, |cpu_pct| format!(", generator {cpu_pct:.0} %"));
        let ticks = moment.gateway_ticks.as_ref().map(ticks).unwrap_or_default();
        note!(
            "{:5.0} s  {} players, {:.0} updates/s, {:.1} MB/s, {:.1} frames/s, late by {:.1} ms{ticks}{generator}{age}",
            moment.at_s,
            moment.players,
            moment.updates_per_s,
            moment.bytes_per_s / 1e6,
            moment.frames_per_s,
            moment.frame_late_ms,
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
    fn ticks_are_told_as_far_as_the_gateway_tells() {
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
