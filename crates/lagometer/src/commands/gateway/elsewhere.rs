//! What the gateway asks of Linux alone, on other systems.

use std::io;
use std::sync::mpsc;

use super::Order;

/// Ctrl-C ends; settings are read once.
pub(super) fn listen() -> io::Result<impl Iterator<Item = Order> + Send + 'static> {
    let (send, orders) = mpsc::channel();
    ctrlc::set_handler(move || {
        // Nobody obeys any more where the gateway has ended.
        let _ = send.send(Order::End);
    })
    .map_err(io::Error::other)?;
    Ok(orders.into_iter())
}

/// There is no such tie.
pub(super) fn end_with_parent() -> io::Result<()> {
    Err(io::Error::new(
        io::ErrorKind::Unsupported,
        "only Linux ties a process to the one that started it; leave it out",
    ))
}

/// Leaves pages as the system likes them.
pub(super) const fn use_no_huge_pages() {}
