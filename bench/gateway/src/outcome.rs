//! The figures of one run, and whether it was sustained.

use serde::{Deserialize, Serialize};

use crate::counters::{Counters, Spread};
use crate::crowd::{Mode, Plan};

/// What was seen beside the counters.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Seen {
    /// How long it was measured.
    pub(crate) seconds: f64,
    /// Windows of the player with the fewest, of those who check them.
    pub(crate) worst_windows: u64,
    /// Bytes of the player with the fewest, of those who do not.
    pub(crate) least_discarded_bytes: Option<u64>,
    /// Newest states that some player never got.
    pub(crate) missing: u64,
    /// Connections that ended under way.
    pub(crate) lost_connections: u64,
    /// Bytes that came over all sockets.
    pub(crate) received_bytes: u64,
    /// Processor seconds of the gateway.
    pub(crate) gateway_cpu_s: f64,
    /// Its resident memory, megabytes.
    pub(crate) gateway_rss_mb: f64,
    /// Processor seconds of this program.
    pub(crate) generator_cpu_s: f64,
}

/// One run's figures.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Outcome {
    /// Who updates.
    pub(crate) mode: Mode,
    /// How many players.
    pub(crate) players: usize,
    /// How many of them check every state they get.
    #[serde(default)]
    pub(crate) checked: usize,
    /// In how many channels.
    pub(crate) rooms: usize,
    /// Updates of each state a second.
    pub(crate) rate_hz: u32,
    /// Whether everything came in time: the worst player got 97 % of its
    /// windows, 99 % of states were younger than two windows and 60 ms,
    /// nothing was lost and the generator itself kept time.
    pub(crate) held: bool,
    /// What did not come in time, or as it should; of runs written before there
    /// was this, nothing.
    #[serde(default)]
    pub(crate) faults: Vec<String>,
    /// Windows a second, mean over players.
    pub(crate) windows_per_s: f64,
    /// The same of the worst player.
    pub(crate) worst_windows_per_s: f64,
    /// Milliseconds between windows.
    pub(crate) gap_ms: Spread,
    /// Milliseconds from a state's intended sending to its arrival.
    pub(crate) latency_ms: Spread,
    /// States delivered a second.
    pub(crate) states_per_s: f64,
    /// The share of all states sent that came by themselves.
    pub(crate) states_share: f64,
    /// States that came again or out of order.
    pub(crate) stale: u64,
    /// Newest states that some player never got.
    pub(crate) missing: u64,
    /// Connections that ended under way.
    pub(crate) lost_connections: u64,
    /// Channel data that was none.
    pub(crate) malformed: u64,
    /// Messages of players and of the gateway to them, a second.
    pub(crate) messages_per_s: f64,
    /// Bytes a second over all sockets from the gateway.
    pub(crate) received_bytes_per_s: f64,
    /// Mean size of a window's data.
    pub(crate) window_bytes: f64,
    /// The gateway's share of a core, percent.
    pub(crate) gateway_cpu_pct: f64,
    /// Its resident memory, megabytes.
    pub(crate) gateway_rss_mb: f64,
    /// States delivered for each second of the gateway's processor time.
    pub(crate) states_per_cpu_s: f64,
    /// Bytes delivered for each second of it.
    pub(crate) bytes_per_cpu_s: f64,
    /// This program's share of a core, percent.
    pub(crate) generator_cpu_pct: f64,
    /// By how much it sent too late.
    pub(crate) generator_late_ms: Spread,
}

/// The share of its windows that the worst player has to get.
const WINDOWS_SHARE: f64 = 0.97;

/// States older than two windows and this have not come in time, milliseconds.
const LATENCY_MS: f64 = 60.0;

/// A generator later than this measures itself, milliseconds.
const LATE_MS: f64 = 10.0;

impl Outcome {
    /// Puts a run's figures together.
    #[must_use]
    pub(crate) fn new(plan: &Plan, counters: &Counters, seen: &Seen) -> Self {
        let rate = |count: f64| count / seen.seconds;
        let players = plan.players as f64;
        let rate_hz = f64::from(plan.rate_hz);
        let in_room = players / plan.rooms as f64;
        // Windows that have something in them, and states sent to a player.
        let (filled_hz, observers) = match plan.mode {
            Mode::Client => ((in_room - 1.0).floor() * rate_hz, in_room - 1.0),
            Mode::Server => (rate_hz, in_room),
        };
        let window_ms = f64::from(plan.fan_out_ms);
        let expected_windows = filled_hz.min(1000.0 / window_ms);
        let worst_windows_per_s = rate(seen.worst_windows as f64);
        let checked = plan.checked as f64;
        // What one got who counts only bytes, beside the mean of those who check.
        let least_share = seen.least_discarded_bytes.map(|bytes| {
            let mean_bytes = (counters.data_bytes as f64 / checked).max(1.0);
            bytes as f64 / mean_bytes
        });
        let latency_ms = Spread::from(&counters.latency_us);
        let generator_late_ms = Spread::from(&counters.late_us);
        let states = counters.states as f64 * players / checked;
        let states_per_s = rate(states);
        let cpu_s = seen.gateway_cpu_s.max(1e-6);
        let faults: Vec<String> = [
            (
                worst_windows_per_s < WINDOWS_SHARE * expected_windows,
                "somebody's windows",
            ),
            (
                least_share.is_some_and(|share| share < WINDOWS_SHARE),
                "somebody's bytes",
            ),
            (
                latency_ms.p99 > 2.0 * window_ms + LATENCY_MS,
                "states too old",
            ),
            (seen.missing > 0, "states missing"),
            (seen.lost_connections > 0, "connections lost"),
            (counters.malformed > 0, "data malformed"),
            (counters.unsent > 0, "the gateway read too slowly"),
            (generator_late_ms.p99 > LATE_MS, "the generator late itself"),
        ]
        .into_iter()
        .filter(|(is_so, _)| *is_so)
        .map(|(_, fault)| fault.to_owned())
        .collect();
        Self {
            mode: plan.mode,
            players: plan.players,
            checked: plan.checked,
            rooms: plan.rooms,
            rate_hz: plan.rate_hz,
            held: faults.is_empty(),
            faults,
            windows_per_s: rate(counters.windows as f64) / checked,
            worst_windows_per_s,
            gap_ms: Spread::from(&counters.gaps_us),
            latency_ms,
            states_per_s,
            states_share: states_per_s / (observers * players * rate_hz).max(1.0),
            stale: counters.stale,
            missing: seen.missing,
            lost_connections: seen.lost_connections,
            malformed: counters.malformed,
            messages_per_s: rate(counters.windows as f64 * players / checked)
                + rate(counters.user_messages as f64)
                + players * rate_hz,
            received_bytes_per_s: rate(seen.received_bytes as f64),
            window_bytes: counters.data_bytes as f64 / counters.windows.max(1) as f64,
            gateway_cpu_pct: 100.0 * rate(seen.gateway_cpu_s),
            gateway_rss_mb: seen.gateway_rss_mb,
            states_per_cpu_s: states / cpu_s,
            bytes_per_cpu_s: seen.received_bytes as f64 / cpu_s,
            generator_cpu_pct: 100.0 * rate(seen.generator_cpu_s),
            generator_late_ms,
        }
    }
}
