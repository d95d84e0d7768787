//! One module for each command: from arguments to results on standard output.

mod agree;
mod compare;
mod doctor;
mod echo;
mod emulated;
mod gateway;
mod import;
mod list;
mod named;
mod over_net;
mod record;
mod report;
mod run;
mod serve;
mod shape;
mod speed;
mod sweep;
mod world;

pub(crate) use agree::agree;
pub(crate) use compare::compare;
pub(crate) use doctor::doctor;
pub(crate) use echo::echo;
pub(crate) use gateway::gateway;
pub(crate) use import::import;
pub(crate) use list::list;
pub(crate) use record::record;
pub(crate) use report::report;
pub(crate) use run::run;
pub(crate) use serve::serve;
pub(crate) use shape::shape;
pub(crate) use speed::speed;
pub(crate) use sweep::sweep;
pub(crate) use world::world;
