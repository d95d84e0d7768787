//! What the instrument `sweep` found: latency and bandwidth by message size.

use serde::{Deserialize, Serialize};

use super::{Placement, Quantiles, SeedValue};

/// Latency and bandwidth by message size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Sweep {
    /// The remote end's address; `own` where the local end started it itself.
    #[serde(alias = "far")]
    pub remote: String,
    /// TCP's congestion control, as the system names it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub congestion_control: Option<String>,
    /// Seconds each cell was measured.
    pub cell_s: f64,
    /// One for each test and size, in the order measured.
    pub cells: Vec<Cell>,
}

/// One test at one message size.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Cell {
    /// `tcp_lat`, `tcp_bw`, `udp_lat`, `udp_bw`; with `_batched` behind it
    /// where many messages share a system call.
    pub test: String,
    /// Bytes of a message.
    pub size_bytes: u32,
    /// How messages were handed over, in a few words: `one write each`,
    /// `sendmmsg`, `GSO and GRO`, …
    pub method: String,
    /// The processors on which both ends ran.
    pub placement: Placement,
    /// Why the cell has no figures.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// One-way latency in microseconds: half of the mean round trip.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub latency_us: Option<f64>,
    /// The round trips behind it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub rtt_ms: Option<Quantiles>,
    /// The same in nanoseconds, `HdrHistogram` V2 in base64.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub histogram: Option<String>,
    /// Payload handed to the system, in 10⁶ bits for each second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub send_mbit_per_s: Option<f64>,
    /// Payload received and verified byte by byte, in 10⁶ bits for each
    /// second.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub recv_mbit_per_s: Option<f64>,
    /// Messages sent; in a latency test, those answered or given up.
    pub sent: u64,
    /// Messages received and verified; in a latency test, those answered.
    pub received: u64,
    /// Messages that did not arrive.
    pub lost: u64,
    /// Messages that overtook others or came twice.
    pub disordered: u64,
    /// Arrivals of wrong length or content.
    pub corrupt: u64,
    /// Of several seeds, each one's `latency_us`, or `recv_mbit_per_s` in a bandwidth
    /// test.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub per_seed: Vec<SeedValue>,
}

/// The most that a datagram holds over IPv4, in bytes: 65535 less headers of 20
/// (RFC 791) and 8 (RFC 768).
const LONGEST_DATAGRAM: u32 = 65_507;

/// The largest size of a sweep, in bytes.
const LARGEST: u32 = 64 << 10;

impl Sweep {
    /// The tests that were measured, in order.
    #[must_use]
    pub fn tests(&self) -> Vec<&str> {
        let mut tests: Vec<&str> = Vec::new();
        for cell in &self.cells {
            if !tests.contains(&cell.test.as_str()) {
                tests.push(&cell.test);
            }
        }
        tests
    }

    /// The sizes that were asked for, ascending: what no datagram holds is measured
    /// over UDP at the largest that one does, which is no size of its own then.
    #[must_use]
    pub fn sizes(&self) -> Vec<u32> {
        let mut sizes: Vec<u32> = self.cells.iter().map(|cell| cell.size_bytes).collect();
        sizes.sort_unstable();
        sizes.dedup();
        if let [.., LONGEST_DATAGRAM, LARGEST] = sizes[..] {
            sizes.remove(sizes.len() - 2);
        }
        sizes
    }

    /// The cell of one test at one of the [`sizes`](Self::sizes).
    #[must_use]
    pub fn cell(&self, test: &str, bytes: u32) -> Option<&Cell> {
        let at = |bytes: u32| {
            let mut cells = self.cells.iter();
            cells.find(move |cell| cell.test == test && cell.size_bytes == bytes)
        };
        at(bytes).or_else(|| at(LONGEST_DATAGRAM).filter(|_| bytes == LARGEST))
    }
}

impl Cell {
    /// The figure that the cell is about: `latency_us`, or else `recv_mbit_per_s`.
    #[must_use]
    pub fn figure(&self) -> Option<f64> {
        self.latency_us.or(self.recv_mbit_per_s)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bandwidth(test: &str, size_bytes: u32, mbit_per_s: f64) -> Cell {
        Cell {
            test: test.to_owned(),
            size_bytes,
            recv_mbit_per_s: Some(mbit_per_s),
            ..Cell::default()
        }
    }

    fn sweep(cells: Vec<Cell>) -> Sweep {
        Sweep {
            cells,
            ..Sweep::default()
        }
    }

    #[test]
    fn the_longest_datagram_stands_for_what_none_holds() {
        let largest = sweep(vec![
            bandwidth("udp_bw", 65_507, 33_000.0),
            bandwidth("tcp_bw", 65_536, 16_000.0),
        ]);
        assert_eq!(largest.sizes(), [65_536]);
        assert!(largest.cell("udp_bw", 65_536).is_some());
        let alone = sweep(vec![bandwidth("udp_bw", 65_507, 33_000.0)]);
        assert_eq!(alone.sizes(), [65_507]);
    }
}
