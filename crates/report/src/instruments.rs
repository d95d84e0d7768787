//! What the instruments found, in words: the same for the terminal and the
//! page.

pub(crate) mod echo;
pub(crate) mod sweep;
