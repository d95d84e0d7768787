//! What the transports over UDP have in common that acknowledge nothing: the bounds
//! of their sizes and what they promise.

use lagometer_units::Size;

use crate::transport::within;
use crate::{BadSetting, Encapsulation, HeadOfLine, PeerTimeout, TransportProperties};

/// The default socket buffer of Linux (`net.core.rmem_default`).
pub(crate) const BUFFER: Size = Size(212_992);

/// Checks the largest datagram, 64 B to 65507 B, and the buffer, 1 KiB to 1 GB.
pub(crate) fn check_sizes(max_datagram: Size, buffer: Size) -> Result<(), BadSetting> {
    within("max_datagram", max_datagram.bytes(), 64..=65_507)?;
    within("buffer", buffer.bytes(), 1024..=1_000_000_000)
}

/// What all of them promise. `header_bytes` stand before each message in its
/// datagram; `congestion_control` says what is sent beside it.
pub(crate) fn properties(
    max_datagram: Size,
    header_bytes: usize,
    congestion_control: String,
) -> TransportProperties {
    TransportProperties {
        reliable: false,
        ordered: false,
        head_of_line: HeadOfLine::Nowhere,
        encrypted: false,
        mtu_bytes: max_datagram.bytes() as u32 + Encapsulation::UdpIpv4.header_bytes(),
        header_bytes: header_bytes as u32 + Encapsulation::UdpIpv4.header_bytes(),
        acks: "none".to_owned(),
        varies: String::new(),
        late_answer: "nothing: no acknowledgements".to_owned(),
        congestion_control,
        peer_timeout: PeerTimeout::NoConnection,
        fixed: "no connection: a dead path is never noticed".to_owned(),
    }
}
