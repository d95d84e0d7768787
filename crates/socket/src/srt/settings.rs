//! What can be chosen of SRT.

use std::io;
use std::time::Duration;

use lagometer_transport::{
    BadSetting, HeadOfLine, PEER_TIMEOUT, PeerTimeout, TransportProperties, Tunable,
};
use lagometer_units::{Encapsulation, Span};
use serde::{Deserialize, Serialize};

use crate::connection::BoxedConnection;
use crate::transport::{Opening, SocketTransport, Unavailable};

/// How SRT is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Deliver every message so long after it was sent, and drop what comes
    /// later; up to 60 s. 0 delivers messages as they come and drops none.
    pub latency: Span,
    /// How long the peer may be silent before the connection is given up; 1 s
    /// to 1 h.
    pub peer_idle: Span,
    /// Report a loss again, every so often, until it is mended.
    pub repeat_loss_reports: bool,
    /// Send what was reported lost no more than once in a round trip, rather than upon
    /// every report.
    pub resend_once_a_round_trip: bool,
    /// The most packets that may overtake a missing one before it is reported lost; SRT
    /// adapts below it. 0 to 1,000.
    pub reorder_tolerance_packets: u32,
}

/// The largest packet.
const MTU_BYTES: u32 = 1500;

/// Headers of a data packet: IPv4's, UDP's and the 16 bytes of SRT's own.
const HEADER_BYTES: u32 = Encapsulation::UdpIpv4.header_bytes() + 16;

/// What a packet has room for.
const LARGEST_MESSAGE_BYTES: usize = (MTU_BYTES - HEADER_BYTES) as usize;

impl Settings {
    /// Nothing dropped, nothing delayed.
    pub const RELIABLE: Self = Self {
        latency: Span::from_millis(0),
        peer_idle: PEER_TIMEOUT,
        repeat_loss_reports: true,
        resend_once_a_round_trip: true,
        reorder_tolerance_packets: 0,
    };

    /// SRT's own default for live traffic.
    pub const LIVE: Self = Self {
        latency: Span::from_millis(120),
        ..Self::RELIABLE
    };

    /// How it mends losses, which its options change only so far.
    const fn fixed(&self) -> &'static str {
        if self.repeat_loss_reports {
            "losses are reported, and again every so often, not timed by the sender"
        } else {
            "losses are reported once; the sender times what is not acknowledged"
        }
    }
}

impl SocketTransport for Settings {
    const TRANSPORT: &'static str = "srt";
    const TUNABLES: &'static [Tunable] = &[
        Tunable::flag("repeat_loss_reports"),
        Tunable::flag("resend_once_a_round_trip"),
        Tunable::integer("reorder_tolerance_packets", 0, 16),
    ];

    #[cfg(feature = "srt")]
    fn library(&self) -> String {
        lagometer_native::srt::Library::version()
    }

    #[cfg(not(feature = "srt"))]
    fn library(&self) -> String {
        "libsrt, not linked".to_owned()
    }

    fn check(&self) -> Result<(), BadSetting> {
        if self.latency.duration() > Duration::from_mins(1) {
            return Err(BadSetting::new("latency", "expected at most 60 s"));
        }
        let peer_idle = self.peer_idle.duration();
        if !(Duration::from_secs(1)..=Duration::from_hours(1)).contains(&peer_idle) {
            return Err(BadSetting::new("peer_idle", "expected 1 s to 1 h"));
        }
        if self.reorder_tolerance_packets > 1000 {
            return Err(BadSetting::new(
                "reorder_tolerance_packets",
                "expected at most 1,000",
            ));
        }
        Ok(())
    }

    fn available(&self) -> Result<(), Unavailable> {
        if cfg!(feature = "srt") {
            return Ok(());
        }
        Err(Unavailable {
            lacks: "this lagometer was built without SRT".to_owned(),
            mend: "Linux alone has it, where `apt-get install libsrt-openssl-dev pkg-config` \
                   and `cargo build --features srt` bring it"
                .to_owned(),
        })
    }

    fn properties(&self) -> TransportProperties {
        let timed = !self.latency.duration().is_zero();
        TransportProperties {
            reliable: !timed,
            ordered: true,
            head_of_line: HeadOfLine::AtReceiver,
            encrypted: false,
            mtu_bytes: MTU_BYTES,
            header_bytes: HEADER_BYTES,
            acks: "every 10 ms".to_owned(),
            varies: String::new(),
            late_answer: "nothing: acknowledgements never share a packet".to_owned(),
            congestion_control: "none for live traffic".to_owned(),
            peer_timeout: PeerTimeout::After(self.peer_idle.0),
            fixed: self.fixed().to_owned(),
        }
    }

    fn largest_message_bytes(&self) -> usize {
        LARGEST_MESSAGE_BYTES
    }

    fn is_carried_by_udp(&self) -> bool {
        true
    }

    #[cfg(feature = "srt")]
    fn client(&self, opening: &Opening) -> io::Result<BoxedConnection> {
        let side = super::connection::SrtConnection::connect(self, opening.local, opening.remote)?;
        Ok(Box::new(side))
    }

    #[cfg(feature = "srt")]
    fn server(&self, opening: &Opening) -> io::Result<BoxedConnection> {
        let side = super::connection::SrtConnection::listen(self, opening.remote)?;
        Ok(Box::new(side))
    }

    #[cfg(not(feature = "srt"))]
    fn client(&self, _opening: &Opening) -> io::Result<BoxedConnection> {
        self.available().map_err(io::Error::other)?;
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(not(feature = "srt"))]
    fn server(&self, opening: &Opening) -> io::Result<BoxedConnection> {
        self.client(opening)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_settings_are_named() {
        let late = Settings {
            latency: Span::from_millis(120_000),
            ..Settings::RELIABLE
        };
        assert_eq!(late.check().unwrap_err().setting, "latency");
        let hasty = Settings {
            peer_idle: Span::from_millis(1),
            ..Settings::RELIABLE
        };
        assert_eq!(hasty.check().unwrap_err().setting, "peer_idle");
        let patient = Settings {
            reorder_tolerance_packets: 1001,
            ..Settings::RELIABLE
        };
        let at_fault = patient.check().unwrap_err().setting;
        assert_eq!(at_fault, "reorder_tolerance_packets");
    }

    #[test]
    #[cfg(not(feature = "srt"))]
    fn whoever_lacks_it_is_shown_the_package() {
        let said = Settings::RELIABLE.available().unwrap_err().to_string();
        assert!(said.contains("libsrt-openssl-dev"), "{said}");
    }
}
