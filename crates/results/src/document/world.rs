//! What a played world found: what players saw, how old it was, and what it
//! cost.

use serde::{Deserialize, Serialize};

use super::{PlayerCost, Quantiles};

/// A world of simulated servers and players, played on a channel gateway.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct World {
    /// The gateway's address for players; `own` where this program started it.
    pub gateway: String,
    /// How players reached the gateway: `tcp`, `kcp`, `kcp-tuned`,
    /// `websocket`; absent in documents from before there was a choice.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub transport: Option<String>,
    /// The network between players and gateway; absent without one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub network: Option<String>,
    /// Seconds that were measured, with every player in the game.
    pub measured_s: f64,
    /// Players, and what became of them.
    pub players: Players,
    /// How often players receive others and how old what they see is, the
    /// nearest tier first.
    pub tiers: Vec<WorldTier>,
    /// What reached the players.
    pub sight: Sight,
    /// The frames of the game server.
    pub frames: Frames,
    /// What servers and players cost.
    pub generator: Generator,
    /// What the gateway said of itself, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gateway_metrics: Option<GatewayMetrics>,
    /// What became of characters that went from server to server; absent where
    /// one server has the world.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub handovers: Option<Handovers>,
    /// What went over the links of all players; absent without links.
    ///
    /// `road` in documents from before it had this name.
    #[serde(default, alias = "road", skip_serializing_if = "Option::is_none")]
    pub path: Option<WorldPath>,
    /// What a player's hour takes of the network and of the gateway, where that is known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost: Option<PlayerCost>,
    /// The fingerprint of all this where it was played in virtual time: equal
    /// for equal seeds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// The fingerprint of what players decided while it was measured: equal
    /// for equal seeds, wherever the players were and on whatever gateway;
    /// absent in documents from before there was one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub inputs: Option<String>,
    /// The processes that played it together, the servers' first; none where
    /// one played all.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub processes: Vec<WorldProcess>,
    /// What was saturated first, in a sentence; absent where nothing was. `bend` in
    /// documents from before it had this name.
    #[serde(default, alias = "bend", skip_serializing_if = "Option::is_none")]
    pub bottleneck: Option<String>,
    /// How it went from the first player's coming on, every half second.
    pub timeline: Vec<WorldMoment>,
}

/// Players, and what became of them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Players {
    /// Asked for.
    pub asked: u32,
    /// In the game when measuring ended.
    pub in_game: u32,
    /// That lost their connections.
    pub lost: u32,
    /// That came back after they had lost them.
    #[serde(default)]
    pub returned: u32,
    /// Game servers that broke off, with their connections or their processes.
    #[serde(default)]
    pub servers_lost: u32,
    /// Game servers that came back after they had broken off.
    #[serde(default)]
    pub servers_returned: u32,
    /// That found no place on the map.
    pub turned_away: u64,
    /// Whose views were looked at; the others only counted what came.
    pub observers: u32,
}

/// How old what players see of others is at one tier of distance.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorldTier {
    /// The tier's distance in metres; null for every distance.
    pub within_m: Option<f64>,
    /// The asked time between two states of an entity, milliseconds.
    pub every_ms: f64,
    /// Age of information: the time since the simulation's time of the newest
    /// state a player has of an entity, over all players, entities they see
    /// and instants sampled.
    pub age_ms: Quantiles,
    /// Samples behind `age_ms`.
    pub samples: u64,
    /// The same in nanoseconds, `HdrHistogram` V2 in base64.
    pub histogram: String,
}

/// What reached the players.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sight {
    /// Updates a second of the player that got fewest.
    pub updates_per_s_min: f64,
    /// Updates a second of the middle player.
    pub updates_per_s_p50: f64,
    /// Updates a second of all players.
    pub updates_per_s_sum: f64,
    /// States of entities a second that observers were sent, all together.
    pub states_per_s: f64,
    /// The 99th percentile of the gaps between two windows of the channel that
    /// all share, at the player where it is longest; null where the world is in
    /// no such channel. A gap of which only a part was measured counts where that
    /// is longer than the player's median.
    pub worst_gap_p99_ms: Option<f64>,
    /// The longest that any player was without such a window, from when measuring
    /// began and until it ended too: the whole time of one that got none. Null
    /// likewise, and in documents from before it was measured.
    #[serde(default)]
    pub longest_gap_ms: Option<f64>,
    /// From subscribing to the first state, over all players.
    pub first_state_ms: Quantiles,
    /// Entities that a player knew of and had no state of at the end, summed over all
    /// players.
    pub missing: u64,
    /// Share of age samples above thrice the tier's interval and 100 ms.
    pub stale_share: f64,
    /// Views that were the server's truth once everything had stood still.
    pub views_right: u32,
    /// Views that were compared.
    pub views_compared: u32,
}

/// The frames of the game server.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Frames {
    /// Frames asked for each second.
    pub asked_per_s: f64,
    /// Frames simulated each second.
    pub per_s: f64,
    /// Frames left out because the one before was not done.
    pub missed: u64,
    /// Time that a frame's simulation took, in milliseconds.
    pub work_ms: Quantiles,
    /// Time from when a frame was due until it began, in milliseconds.
    pub late_ms: Quantiles,
    /// Moves of players applied each second.
    pub moves_per_s: f64,
    /// What the connection to the gateway had no room for.
    pub refused: u64,
}

/// What servers and players cost, all processes together; in each they share
/// one thread.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Generator {
    /// Processor time in per cent of one core; of several processes, the sum;
    /// null in virtual time.
    pub cpu_pct: Option<f64>,
    /// The same for each update that a player received, microseconds.
    pub cpu_us_per_update: Option<f64>,
    /// Bytes a second that players and servers received.
    pub received_bytes_per_s: f64,
    /// Bytes a second that they sent.
    pub sent_bytes_per_s: f64,
}

/// One of several processes that played a world together.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorldProcess {
    /// Its address; `here` for the one that puts together what all found.
    pub at: String,
    /// Game servers that it played.
    pub servers: u32,
    /// Players that it played.
    pub players: u32,
    /// Processor time that it spent on them, in per cent of one core.
    pub cpu_pct: Option<f64>,
    /// How far its clock may have been off the servers' after it was set
    /// right, microseconds.
    pub clock_error_us: f64,
    /// It broke off in the middle: of what it did, all up to half a second
    /// before at most is counted.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub lost: bool,
}

/// What became of characters that went from server to server, from the
/// beginning of the measured time until all stood still.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Handovers {
    /// Servers that simulate a part of the world each.
    pub servers: u32,
    /// Cells, each with a channel of its own.
    pub cells: u32,
    /// Characters taken over by another server each second of the measured
    /// time.
    pub per_s: f64,
    /// Characters that came to another cell of the same server, each second.
    pub cell_changes_per_s: f64,
    /// Handovers begun: a server let go of a character that left its part.
    pub begun: u64,
    /// Handovers completed: the server of the other part took it up.
    pub completed: u64,
    /// From the old server's last frame with a character to when the new one
    /// had it: the time in which nobody simulates it.
    pub flight_ms: Quantiles,
    /// From the last state by the old server to the first by the new one, at
    /// each player that saw it.
    pub gap_ms: Quantiles,
    /// Gaps behind `gap_ms`.
    pub gaps: u64,
    /// Times that two servers simulated one character.
    pub doubled: u64,
    /// Times that a character was nobody's for a second or longer.
    pub orphaned: u64,
    /// Characters that nobody simulated at the end.
    pub orphans: u64,
    /// Characters that servers simulated at the end, all servers together.
    pub simulated: u64,
    /// Handovers that sent the new server too little to go on with.
    pub failed: u64,
}

/// What a gateway's metrics said of the measured time; null where it does not
/// have that figure.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GatewayMetrics {
    /// Processor time in per cent of one core.
    pub cpu_pct: Option<f64>,
    /// Resident memory at the end.
    pub resident_bytes: Option<f64>,
    /// The longest tick of any type of channel that was seen.
    pub tick_max_ms: Option<f64>,
    /// Ticks a second at which it sent windows.
    pub ticks_per_s: Option<f64>,
    /// How many of them it came to more than 10 ms late, per cent.
    pub ticks_late_pct: Option<f64>,
    /// Messages that it received each second.
    pub messages_in_per_s: Option<f64>,
    /// Messages that it sent each second.
    pub messages_out_per_s: Option<f64>,
    /// How long messages waited in the queues between its threads, and bytes
    /// until they were written to connections, together and on the average,
    /// milliseconds: what waited over what went through.
    #[serde(default)]
    pub queue_ms: Option<f64>,
    /// Updates that it merged for players that took them too slowly, in per
    /// cent of the messages it sent.
    #[serde(default)]
    pub merged_pct: Option<f64>,
    /// How it went from the first player's coming on, every half second or a
    /// little more.
    #[serde(default)]
    pub timeline: Vec<GatewayMoment>,
}

/// What a gateway's metrics said at a moment of a played world; null where it
/// did not say.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct GatewayMoment {
    /// Seconds since the first player was asked in.
    pub at_s: f64,
    /// Connections that stood.
    pub connections: Option<f64>,
    /// Channels that there were.
    pub channels: Option<f64>,
    /// Processor time in per cent of one core.
    pub cpu_pct: Option<f64>,
    /// Resident memory.
    pub resident_bytes: Option<f64>,
    /// The longest tick of any type of channel that was seen.
    pub tick_ms: Option<f64>,
    /// Messages a second that it received.
    pub messages_in_per_s: Option<f64>,
    /// Messages a second that it sent.
    pub messages_out_per_s: Option<f64>,
    /// Bytes a second that it received.
    pub bytes_in_per_s: Option<f64>,
    /// Bytes a second that it sent.
    pub bytes_out_per_s: Option<f64>,
}

/// What went over the links of all players while a world was measured.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorldPath {
    /// From players to the gateway.
    pub up: WorldWay,
    /// From the gateway to players.
    pub down: WorldWay,
}

/// One direction of it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorldWay {
    /// IP packets sent each second of the measured time; null where there are no
    /// links: packets over plain sockets are this machine's, not a player's.
    pub packets_per_s: Option<f64>,
    /// Their bytes, headers included; null likewise.
    pub bytes_per_s: Option<f64>,
    /// Share of the packets that never arrived.
    pub lost_share: f64,
    /// Share of the packets that found a link's queue full; null in documents
    /// from before it was counted.
    #[serde(default)]
    pub full_share: Option<f64>,
    /// How long packets waited in their links' queues, on the average,
    /// milliseconds; null likewise.
    #[serde(default)]
    pub wait_ms: Option<f64>,
}

/// A moment of a played world.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct WorldMoment {
    /// Seconds since the first player was asked in.
    pub at_s: f64,
    /// Players in the game.
    pub players: u32,
    /// Updates a second of all players.
    pub updates_per_s: f64,
    /// Bytes a second that players and servers received.
    pub bytes_per_s: f64,
    /// Frames of the server a second.
    pub frames_per_s: f64,
    /// The latest start of a frame since the moment before.
    pub frame_late_ms: f64,
    /// The median age of what players saw; null where nothing was seen.
    pub age_p50_ms: Option<f64>,
    /// The 99th percentile of the age of what players saw, in milliseconds; null where
    /// nothing was seen.
    pub age_p99_ms: Option<f64>,
    /// Processor time of servers and players in per cent of one core; null in
    /// virtual time.
    pub generator_cpu_pct: Option<f64>,
    /// Characters a second that came from one game server to another; null
    /// where no servers share them.
    #[serde(default)]
    pub handovers_per_s: Option<f64>,
}
