//! Sweeps: the seeds of one run, played by workers on any machines.
//!
//! A coordinator puts one job for each seed into a work queue of NATS `JetStream`, and
//! what they play (the [`Recipe`](lagometer_lab::bundle::Recipe)) beside it. Workers take
//! jobs, play them and put what they found into the sweep's own stream; the queue gives a
//! job whose worker falls silent to another. What was found is kept by seed, so that the
//! document is the one that a single machine makes.
//!
//! The logic knows of no network: [`Deal`] is the coordinator's, which seeds are still
//! owed and what was found; [`parts`] cuts what is longer than a message. [`nats`] is the
//! thin shell around them, on a thread of its own. Membership, redelivery and storage are
//! NATS's.

mod deal;
mod message;
pub mod nats;
pub mod parts;

pub use deal::{BadAttempt, Deal, Given, WorkerEvent};
pub use message::{Brought, Job, pack, unpack};
