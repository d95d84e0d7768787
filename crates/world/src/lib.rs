//! The world: simulated game servers and players that drive a channel gateway.
//!
//! The servers do the work that headless game servers do in the published
//! tests of channel gateways: they simulate characters at a fixed frame rate
//! and send their states; the players walk, turn and jump. Everything here is
//! handed the time and gives back bytes: a seed makes a world, and the same
//! seed makes the same one.
//!
//! # Map
//!
//! - [`Scenario`]: who plays, where and how often, as a TOML file says
//! - [`Ground`], [`BotBehavior`], [`Movement`], [`Body`], [`Crowd`]: the world itself
//! - [`Replica`], [`Intent`], `messages`, `sight`, `ids`: the world on the wire
//! - [`Server`]: simulates the characters and tells the gateway of them: a
//!   [`GameServer`] alone, or a [`Master`] and a [`Region`] for each part of the
//!   [`Space`]; the [`AuthorityChecker`] holds that each character has one of them
//! - [`Player`]: walks, subscribes and keeps what it sees in a [`View`]
//! - [`play_on`]: the course of a world on any [`ConnectionBackend`], to an [`Outcome`]
//! - [`play_shard`]: the same for one of several processes, each with its
//!   [`Shard`] and in [`Coordination`]
//! - [`real`]: a backend that are sockets, in real time

mod assemble;
mod authority;
mod backend;
mod body;
mod bot;
mod bottleneck;
mod capacity_search;
mod coordination;
mod crowd;
mod ground;
mod ids;
mod input_digest;
mod intent;
mod merging;
mod messages;
mod outcome;
mod player;
#[cfg(target_os = "linux")]
pub mod real;
mod replica;
mod scenario;
mod seed;
mod server;
mod shard;
mod sight;
mod space;
mod stage;
mod vector;
mod view;
mod windows;

pub use assemble::{assemble, verdict, with_path};
pub use authority::{
    Authority, AuthorityChecker, AuthoritySums, Claim, LONGEST_FLIGHT, Loss, Report,
};
pub use backend::{ConnectionBackend, End, Flow, PeerId, PlayError};
pub use body::{Body, Movement, Step};
pub use bot::{BotBehavior, BotConfig, Decision, Turn};
pub use capacity_search::CapacitySearch;
pub use coordination::{Coordination, Note, SingleProcess, Truth};
pub use crowd::{Crowd, EntityId};
pub use ground::{Ground, GroundPlan, Obstacle, TooCrowded};
pub use intent::{BadIntent, Intent};
pub use outcome::{GatewayTicks, Handovers, Moment, Outcome, ProcessStats, Returned};
pub use player::{Player, PlayerCounts};
pub use replica::Replica;
pub use scenario::{BUILT_IN, Channels, MOST_PLAYERS, Scenario, Tier};
pub use server::{GameServer, Master, Region, Server, ServerCounts};
pub use shard::{Shard, Share};
pub use space::Space;
pub use stage::{Peer, play_on, play_shard};
pub use vector::{Vector, Yaw};
pub use view::{Seen, View};
pub use windows::Windows;
