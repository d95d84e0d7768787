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
//! - `sim`: the world itself: [`Scenario`] (who plays, where and how often, as a TOML
//!   file says), [`Ground`], [`Crowd`], [`BotBehavior`], [`Movement`]
//! - `wire`: the world on the wire: messages, [`Replica`], [`Intent`]
//! - `server`: [`Server`] simulates the characters and sends the gateway their states:
//!   a [`GameServer`] alone, or a [`Master`] and a [`Region`] for each part of the
//!   [`Space`]
//! - `player`: [`Player`] walks, subscribes and keeps what it sees in a [`View`]
//! - `driver`: [`play_on`], the course of a world on any [`ConnectionBackend`], to an
//!   [`Outcome`]; [`play_shard`], the same for one of several processes, each with its
//!   [`Shard`] and in [`Coordination`]. Connections are sockets in real time ([`real`]),
//!   sockets in two hosts with an emulated link for each player ([`emulated`]), or links
//!   in virtual time, with the gateway's core between ([`virtual_time`]). Over the latter
//!   two each player has a [`PlayerTransport`] and network conditions of its own
//!   ([`player_link`]); [`matrix`]: transports times networks, on all processors
//! - `measure`: what is found: ages, who has authority ([`AuthorityChecker`]), what
//!   saturates, and the document

mod driver;
mod measure;
mod player;
mod server;
mod sim;
mod wire;

pub use driver::backend::{ConnectionBackend, End, Flow, PeerId, PlayError};
pub use driver::capacity_search::CapacitySearch;
pub use driver::coordination::{Coordination, Note, SingleProcess, Truth};
pub use driver::player_link::{player_link, player_seed};
pub use driver::player_transport::{PlayerTransport, UnknownTransport};
pub use driver::running_world::{Peer, play_on, play_shard};
pub use driver::shard::{Shard, Share};
#[cfg(target_os = "linux")]
pub use driver::{emulated, real};
pub use driver::{matrix, virtual_time};
pub use measure::assemble::{assemble, with_path};
pub use measure::authority::{
    Authority, AuthorityChecker, AuthoritySums, Claim, LONGEST_FLIGHT, Loss, Report,
};
pub use measure::digest::digest;
pub use measure::outcome::{GatewayTicks, Handovers, Moment, Outcome, ProcessStats, Returned};
pub use measure::windows::Windows;
pub use player::view::{Seen, View};
pub use player::{Player, PlayerCounts};
pub use server::{GameServer, Master, Region, Server, ServerCounts};
pub use sim::body::{Body, Movement, Step};
pub use sim::bot::{BotBehavior, BotConfig, Decision, Turn};
pub use sim::crowd::{Crowd, EntityId};
pub use sim::ground::{Ground, GroundPlan, Obstacle, TooCrowded};
pub use sim::scenario::{BUILT_IN, Channels, MOST_PLAYERS, Scenario, Tier};
pub use sim::space::Space;
pub use sim::vector::{Vector, Yaw};
pub use wire::intent::{BadIntent, Intent};
pub use wire::replica::Replica;
