//! What a user would otherwise take.

pub(crate) mod asio;
pub(crate) mod iperf;
pub(crate) mod kcp;
pub(crate) mod qperf;
pub(crate) mod sockperf;
