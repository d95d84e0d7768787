//! Processors for threads, and files for connections.

/// The processors this process may run on; none where threads cannot be placed.
pub(super) fn processors() -> Vec<usize> {
    lagometer_platform::processors()
}

/// Keeps the calling thread on one processor. If the system does not allow it,
/// the thread runs where the system likes.
pub(super) fn pin(processor: usize) {
    let _ = lagometer_platform::place_thread(&[processor]);
}

/// Asks for as many files as the system allows; each connection is one.
/// Returns how many that is.
pub(super) fn raise_file_limit() -> u64 {
    lagometer_platform::raise_open_files();
    lagometer_platform::open_files().unwrap_or(u64::MAX)
}
