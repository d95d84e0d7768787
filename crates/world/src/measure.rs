//! What is measured of a world: ages, authority, inputs and cost, what saturates, and
//! the document that is made of it.

pub(crate) mod assemble;
pub(crate) mod authority;
pub(crate) mod bottleneck;
pub(crate) mod digest;
pub(crate) mod input_digest;
pub(crate) mod merging;
pub(crate) mod outcome;
pub(crate) mod windows;
