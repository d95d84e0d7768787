//! The core in virtual time: both halves, several connection managers, peers that
//! read frames.

mod access;
mod auth;
mod broadcasting;
mod channels;
mod congestion;
mod fan_out;
mod full_servers;
mod hostile;
mod hostile_answers;
mod hostile_budgets;
mod hostile_data;
mod hostile_logins;
mod hostile_values;
mod long_messages;
mod recovery;
mod schedules;
mod sessions;
mod shard_recovery;
mod shards;
mod slow_readers;
mod snapshots;
mod spatial;
mod twins;
mod world;
