//! One module for each command: from arguments to results on standard output.

mod agree;
mod compare;
mod completions;
mod doctor;
mod echo;
mod emulated;
mod gateway;
mod import;
mod in_guest;
mod in_guests;
mod kernel;
mod list;
pub(crate) mod named;
mod over_net;
mod record;
mod reference;
mod report;
mod run;
mod serve;
mod shape;
mod shape_in_guest;
mod speed;
mod sweep;
mod world;

pub(crate) use agree::agree;
pub(crate) use compare::compare;
pub(crate) use completions::{completions, man};
pub(crate) use doctor::doctor;
pub(crate) use echo::echo;
pub(crate) use emulated::{acquire_permission, failure as emulation_failure};
pub(crate) use gateway::gateway;
pub(crate) use import::import;
pub(crate) use kernel::kernel;
pub(crate) use list::list;
pub(crate) use record::record;
#[cfg(test)]
pub(crate) use reference::pages_without_sockets;
pub(crate) use reference::reference;
pub(crate) use report::report;
pub(crate) use run::run;
pub(crate) use serve::serve;
pub(crate) use shape::{shape, shape_within};
pub(crate) use speed::speed;
pub(crate) use sweep::sweep;
pub(crate) use world::{described_metrics, world};
