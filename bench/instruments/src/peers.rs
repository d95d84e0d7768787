//! What a user would otherwise take.

pub(crate) mod asio;
pub(crate) mod qperf;
pub(crate) mod sockperf;
