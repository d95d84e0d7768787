//! What the gateway asks of Linux alone.

use std::io;

use rustix::process::{Signal, set_parent_process_death_signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use super::Order;

/// SIGHUP reads the settings again; SIGTERM and Ctrl-C end.
pub(super) fn listen() -> io::Result<impl Iterator<Item = Order> + Send + 'static> {
    let mut signals = Signals::new([SIGHUP, SIGINT, SIGTERM])?;
    Ok(std::iter::from_fn(move || {
        signals.forever().next().map(|signal| {
            if signal == SIGHUP {
                Order::Reload
            } else {
                Order::End
            }
        })
    }))
}

/// The process ends when the one that started it does.
pub(super) fn end_with_parent() -> io::Result<()> {
    // SIGKILL, as whoever asks for this takes no leave itself.
    Ok(set_parent_process_death_signal(Some(Signal::KILL))?)
}

/// Has the system fill no gaps of the heap with huge pages.
pub(super) fn use_no_huge_pages() {
    // A kernel that refuses this has no huge pages.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}
