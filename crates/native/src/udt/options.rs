//! Socket options that are set before a socket is bound.

use std::time::Duration;

/// A socket's options. The defaults are UDT's own, but for the time that
/// closing waits for unsent data: none, rather than three minutes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Options {
    /// The largest packet, with all headers, in bytes: 76 to 65,507. UDT's
    /// payload is 44 bytes less over IPv4.
    pub packet_bytes: u32,
    /// How many packets may be in flight, 32 at least.
    pub flight_packets: u32,
    /// The send buffer in bytes. UDT counts in packets of the largest size,
    /// and every message takes one at least.
    pub send_buffer_bytes: u32,
    /// The receive buffer in bytes; 32 packets at least, and no more than are
    /// allowed in flight.
    pub receive_buffer_bytes: u32,
    /// What decides when a packet may leave.
    pub rate_control: RateControl,
    /// Whether receiving waits for something to arrive. Sending never waits.
    pub receive_waits: bool,
}

/// What decides when a packet may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RateControl {
    /// UDT's own, of release 4.11.
    Library,
    /// UDT's own as it was in release 4.10: after a loss its rate grows by a
    /// fifteenth as much.
    Release410,
    /// None: a fixed window, packets as they come.
    FixedWindow {
        /// How many packets may be unacknowledged.
        window_packets: u32,
        /// The silence after which everything unacknowledged is sent again;
        /// UDT's own, 300 ms or more, where none is given. One that is given
        /// never ends the connection, and two ends with the same can put each
        /// other off for minutes by asking whether the other is there.
        timeout: Option<Duration>,
        /// Whether this end reports a loss again after one and a half round trips,
        /// until what was lost has come. UDT reports it once, and where that report
        /// or the packet sent upon it is lost, too, the gap stays as long as the
        /// other direction is lively: whatever arrives puts off the peer's timer.
        repeats_reports: bool,
    },
}

impl Default for Options {
    fn default() -> Self {
        Self {
            packet_bytes: 1500,
            flight_packets: 25_600,
            send_buffer_bytes: 8192 * 1472,
            receive_buffer_bytes: 8192 * 1472,
            rate_control: RateControl::Library,
            receive_waits: false,
        }
    }
}
