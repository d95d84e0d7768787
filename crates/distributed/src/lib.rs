//! Sweeps: the seeds of a run, or the plays of a search, played by workers on any
//! machines.
//!
//! A coordinator puts one job for each seed into a work queue of NATS `JetStream`, and
//! what they play (the [`Recipe`](lagometer_lab::bundle::Recipe)s) beside it. Workers take
//! jobs, play them and put what they found into the sweep's own stream; the queue gives a
//! job whose worker falls silent to another. What was found is kept by job, so that the
//! document is the one that a single machine makes. A search puts in more once it knows
//! what the last were found to do.
//!
//! The logic knows of no network: [`Deal`] is the coordinator's, which jobs are still
//! owed and what was found; [`fragments`] cuts what is longer than a message. [`nats`] is the
//! thin shell around them, on a thread of its own. Membership, redelivery and storage are
//! NATS's.

mod deal;
pub mod fragments;
mod message;
pub mod nats;

pub use deal::{BadAttempt, Deal, Given, Task, WorkerEvent};
pub use message::{Brought, Job, pack, unpack};
