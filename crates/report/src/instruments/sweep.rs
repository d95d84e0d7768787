//! A cell of a sweep in words.

use lagometer_results::Cell;

use crate::written;
use crate::written::units::{delay, rate};

/// The figure that a cell is about, written.
pub(crate) fn figure(cell: &Cell) -> String {
    match (&cell.failure, cell.latency_us, cell.recv_mbit_per_s) {
        (Some(_), ..) => "failed".to_owned(),
        (None, Some(latency), _) => delay(latency / 1e3),
        (None, None, Some(bandwidth)) => rate(bandwidth),
        _ => written::NOTHING.to_owned(),
    }
}
