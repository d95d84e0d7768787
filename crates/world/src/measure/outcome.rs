//! What a played world found.

use std::collections::BTreeMap;
use std::time::Duration;

use lagometer_results::{GatewayMetrics, WorldMoment};
use lagometer_stats::Distribution;
use lagometer_units::Time;
use serde::{Deserialize, Serialize};

use crate::measure::authority::AuthoritySums;
use crate::measure::windows::Windows;
use crate::player::PlayerCounts;
use crate::server::ServerCounts;
use crate::sim::scenario::Scenario;

/// What a played world found, over the time that was measured.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Outcome {
    /// How long was measured.
    pub measured: Duration,
    /// Players that were in the game at the end.
    pub players: u32,
    /// Players that lost their connection, with the first reason.
    pub lost: Vec<String>,
    /// Servers that broke off, with their connections or their processes, each
    /// time.
    pub servers_lost: u32,
    /// Who came back after the connection had broken off.
    pub returned: Returned,
    /// What every player sees, how old it is, by tier.
    pub age: Vec<Distribution>,
    /// States received of entities at each tier; only players that look know.
    pub states: u64,
    /// Entities that players knew of and had no state of, when measuring
    /// ended.
    pub missing: usize,
    /// Samples of an age that was more than thrice its tier's interval and a
    /// tenth of a second above it.
    pub stale: u64,
    /// From subscribing to the first state, one for each player.
    pub first_state: Distribution,
    /// Updates that each player received, by its number, over all connections
    /// that it had.
    pub updates: BTreeMap<u32, u64>,
    /// The 99th percentile of the gaps between the windows of GLOBAL, the
    /// worst player's; none where the world is not in GLOBAL.
    pub worst_gap_p99: Option<Duration>,
    /// The longest that any player was without such a window; none likewise.
    pub longest_gap: Option<Duration>,
    /// After everything had stood still: views that were complete and right,
    /// and views that were looked at.
    pub right_views: (usize, usize),
    /// What the servers did.
    pub server: ServerCounts,
    /// How long the server's frames took.
    pub frame_work: Distribution,
    /// How late they began.
    pub frame_late: Distribution,
    /// Frames left out because the one before was still under way.
    pub frames_missed: u64,
    /// What all players did together.
    pub sum: PlayerCounts,
    /// What each player made of the time that was measured, as a fingerprint,
    /// by its number: a function of the seed and the number alone.
    pub input_digest: BTreeMap<u32, u64>,
    /// Processor time of servers and players together; none where time is not
    /// the processor's.
    pub generator_cpu: Option<Duration>,
    /// Who played which part and what that cost, where several processes
    /// shared the world.
    pub processes: Vec<ProcessStats>,
    /// Bytes that went to players and servers, and from them.
    pub wire: (u64, u64),
    /// What the gateway said of itself, where it was asked.
    pub gateway: Option<GatewayMetrics>,
    /// What came of handovers, where several servers simulate.
    pub handovers: Option<Handovers>,
    /// How it went, every half second.
    pub timeline: Vec<Moment>,
    /// It was stopped before its time.
    pub partial: bool,
}

impl Outcome {
    /// Counts what a player waited for windows up to `now`.
    pub(crate) fn count_gaps(&mut self, windows: &Windows, now: Time) {
        self.worst_gap_p99 = self.worst_gap_p99.max(Some(windows.gap(0.99, now)));
        self.longest_gap = self.longest_gap.max(Some(windows.longest_gap(now)));
    }

    /// Nothing yet, of such a world.
    #[must_use]
    pub fn nothing(scenario: &Scenario) -> Self {
        Self {
            measured: Duration::ZERO,
            players: 0,
            lost: Vec::new(),
            servers_lost: 0,
            returned: Returned::default(),
            age: scenario.tiers.iter().map(|_| Distribution::new()).collect(),
            states: 0,
            missing: 0,
            stale: 0,
            first_state: Distribution::new(),
            updates: BTreeMap::new(),
            worst_gap_p99: None,
            longest_gap: None,
            right_views: (0, 0),
            server: ServerCounts::default(),
            frame_work: Distribution::new(),
            frame_late: Distribution::new(),
            frames_missed: 0,
            sum: PlayerCounts::default(),
            input_digest: BTreeMap::new(),
            generator_cpu: None,
            processes: Vec::new(),
            wire: (0, 0),
            gateway: None,
            handovers: scenario.space.map(|_| Handovers::default()),
            timeline: Vec::new(),
            partial: false,
        }
    }
}

/// One of several processes that played a world together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ProcessStats {
    /// Where it is: its address, or `here`.
    pub at: String,
    /// Game servers that it played.
    pub servers: u32,
    /// Players that it played.
    pub players: u32,
    /// Processor time it spent on them while it was measured.
    pub cpu: Option<Duration>,
    /// How far its clock, as it was set right, may have been off.
    pub clock_error: Duration,
    /// It broke off in the middle: of what it did, all up to its last note,
    /// half a second before at most, is in the sums.
    pub lost: bool,
}

/// Those that came back after their connections had broken off.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Returned {
    /// Players, each time.
    pub players: u32,
    /// Servers, each time.
    pub servers: u32,
}

/// Characters that went from server to server while it was measured and until
/// all stood still.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Handovers {
    /// Whether each character had one server at every instant.
    pub authority: AuthoritySums,
    /// From the old server's last frame to when the new one had it.
    pub flights: Distribution,
    /// From the last state by the old server to the first by the new, as
    /// players saw it.
    pub gaps: Distribution,
    /// Characters that no server had at the end.
    pub orphans: u64,
    /// Characters that servers had at the end.
    pub simulated: u64,
}

impl Default for Handovers {
    fn default() -> Self {
        Self {
            authority: AuthoritySums::default(),
            flights: Distribution::new(),
            gaps: Distribution::new(),
            orphans: 0,
            simulated: 0,
        }
    }
}

/// One half second of a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Moment {
    /// What the document keeps of it.
    #[serde(flatten)]
    pub world: WorldMoment,
    /// What the gateway said of its ticks; none where it was not asked or did
    /// not answer.
    #[serde(default)]
    pub gateway_ticks: Option<GatewayTicks>,
}

/// What a gateway said of the ticks of its channels since it was last looked
/// at; none where it does not report them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GatewayTicks {
    /// Ticks a second at which it sent windows.
    pub per_s: Option<f64>,
    /// How many of them it came to more than 10 ms late, per cent.
    pub late_pct: Option<f64>,
    /// The longest tick of any type of channel that was seen, milliseconds.
    pub longest_ms: Option<f64>,
}
