//! Addresses that flags name.

use std::net::{SocketAddr, ToSocketAddrs as _};

use crate::failure::Failure;

/// Where game servers connect where nothing else is said.
pub(super) const SERVERS_PORT: u16 = 11_288;

/// The first address of each of those that `flag` names, separated by commas.
pub(super) fn addresses(written: &str, flag: &str) -> Result<Vec<SocketAddr>, Failure> {
    let each = written.split(',').map(str::trim);
    each.map(|written| address(written, flag)).collect()
}

/// The first address of what `flag` names.
pub(super) fn address(written: &str, flag: &str) -> Result<SocketAddr, Failure> {
    let mut found = written.to_socket_addrs().map_err(|why| {
        Failure::Input(format!(
            "{flag} {written}: {why}; write HOST:PORT, as in 127.0.0.1:12108"
        ))
    })?;
    found
        .next()
        .ok_or_else(|| Failure::Input(format!("{flag} {written}: that host has no address")))
}
