//! One module for each command: from arguments to results on standard output.

mod compare;
mod import;
mod list;
mod report;
mod run;

pub(crate) use compare::compare;
pub(crate) use import::import;
pub(crate) use list::list;
pub(crate) use report::report;
pub(crate) use run::run;
