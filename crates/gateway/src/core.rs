//! The gateway without sockets, clocks or threads: connections, channels, and
//! the bus between them.
//!
//! Two state machines, each handed the time and what has happened, give back
//! what is to be done and when they want to be woken:
//!
//! - a [`ConnectionManager`] owns connections: frames, what each may send when,
//!   what waits to be written to it, slow readers;
//! - the [`ChannelManager`] owns channels: data, subscriptions, windows of
//!   updates, rights, the grid and its entities, logins and bans.
//!
//! Between them goes the [`bus`]: owned messages, nothing shared. There is one
//! channel manager; there may be many connection managers, each on a thread of its
//! own, for that is where the work grows with the players: a channel's window
//! is made once and crosses the bus once for each connection manager.
//!
//! # How a server drives them
//!
//! ```
//! use lagometer_gateway::core::{
//!     AuthPolicy, ChannelSettings, ChannelManager, CloseReason, ConnectionSettings, ConnectionManager,
//!     Peer, SideId,
//! };
//! use lagometer_units::Time;
//!
//! let side = SideId(0);
//! let mut connections = ConnectionManager::new(ConnectionSettings::default());
//! let mut channels = ChannelManager::new(ChannelSettings {
//!     auth: AuthPolicy::AdmitAll,
//!     ..ChannelSettings::default()
//! });
//!
//! // A socket was accepted.
//! let now = Time::from_millis(1);
//! let key = connections.open(now, Peer::Client, None)?;
//! // Bytes were read from it: here AUTH, in a frame.
//! let login = b"CH\x00\x12\x00\x0a\x10\x20\x01\x2a\x0c\x0a\x04test\x12\x04test";
//! connections.receive(now, key, login);
//!
//! // What that asks of the channel manager, and what it answers, goes over the bus:
//! // two loops where one thread has both, two queues where it has not.
//! while let Some(message) = connections.poll_bus() {
//!     channels.handle(now, side, message);
//! }
//! while let Some((_side, message)) = channels.poll_bus() {
//!     connections.handle(now, message);
//! }
//!
//! // One vectored write for each connection that has something to say.
//! while let Some(key) = connections.poll_writable() {
//!     let slices: Vec<&[u8]> = connections.output(key).collect();
//!     let written: usize = slices.iter().map(|slice| slice.len()).sum(); // by writev
//!     assert_eq!(written, 13, "AuthResult");
//!     connections.wrote(now, key, written);
//! }
//!
//! // Connections the gateway wants to be rid of; then sleep until the earlier
//! // deadline or the next bytes, and call `handle_deadline` on both.
//! assert_eq!(connections.poll_close(), None);
//! let _wake_at = [connections.next_deadline(), channels.next_deadline()];
//! connections.handle_deadline(now);
//! channels.handle_deadline(now);
//!
//! // The socket was closed.
//! connections.close(key, CloseReason::PeerClosed);
//! # Ok::<_, Box<dyn std::error::Error>>(())
//! ```
//!
//! - **Time** is one clock for all sides, monotonic, and counted from whatever
//!   the server calls the beginning; [`ChannelSettings::unix_ns_at_zero`] says
//!   what that is on the calendar.
//! - **Deadlines**: `next_deadline` may change with every call that is handed
//!   the time or a message; ask for it before each sleep. Calling
//!   `handle_deadline` early does nothing.
//! - **Authentication providers** answer when they can:
//!   [`ChannelManager::poll_auth_request`] gives what is to be decided,
//!   [`ChannelManager::answer_auth`] takes the verdict, at any later time; the
//!   connection may be gone by then.
//! - **Closing** has two beginnings and one end. When the peer goes, or the
//!   socket fails, call [`ConnectionManager::close`]. When the gateway wants it
//!   ([`ConnectionManager::poll_close`]), write once more without waiting, close
//!   the socket, and call it too.
//! - **Writing** is due for a connection once
//!   [`ConnectionManager::poll_writable`] names it. Where the socket takes less
//!   than all, wait until it can be written to and continue with
//!   [`ConnectionManager::output`]; the connection is named again when there is
//!   something new, which is no reason to try earlier.
//! - **Counters** are plain numbers to be copied out at any time; **events** are
//!   data for a log ([`Event::severity`], `Display`), bounded in number.
//! - **Shutting down**: stop accepting, [`ConnectionManager::close_all`], drive on
//!   until every connection is closed or the time allowed is over.

mod arena;
mod budget;
pub(crate) mod burst_queue;
pub mod bus;
mod by_number;
pub(crate) mod channel_list;
mod channels;
mod check;
mod connections;
mod counters;
mod events;
mod ids;
mod settings;
mod shards;

pub use budget::{Budget, BudgetMonitor, OverBudgetCounters};
pub use bus::CloseReason;
pub use channels::{AuthRequest, AuthVerdict, ChannelManager, SnapshotError, Ticket};
pub(crate) use channels::{Envelope, encode};
pub use check::{BrokenInvariant, sides_agree};
pub use connections::{AddressBanned, ConnectionManager, ReadControl, Received, Recording};
pub use counters::{
    BUCKET_ENDS_US, Buckets, COUNTED_TYPES, ChannelCounters, ConnectionCounters, PeerCounters,
    TypeCounters,
};
pub use events::{Event, Severity};
pub use ids::{ChannelId, ConnId, ConnKey, GroupId, Peer, SideId, source_prefix};
pub use settings::{
    Acl, AclLevel, AntiDdos, AuthPolicy, Budgets, ChannelSettings, ChannelTypeSettings,
    ChannelTypes, ClientRights, ConnNumbers, ConnectionSettings, Fsm, FsmState, Grid, LoginBudget,
    LoginLimits, PeerBudgets, Position, RecordingLimits, Recovery, SettingsError, SlowReaders,
    channel_type_name, openings,
};
pub use shards::{Shard, ShardCount, ShardId, ShardMap};
