//! What can be chosen of UDT.

use std::io;
use std::ops::RangeInclusive;
use std::time::Duration;

use lagometer_transport::framing::LENGTH_BYTES;
use lagometer_transport::{BadSetting, HeadOfLine, PeerTimeout, TransportProperties, Tunable};
use lagometer_units::{Encapsulation, Size, Span};
use serde::{Deserialize, Serialize};

use crate::connection::BoxedConnection;
use crate::transport::{Opening, SocketTransport, Unavailable};

/// How UDT is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Settings {
    /// Whether messages travel on a stream, with their length in front, rather
    /// than as UDT's own messages.
    pub stream: bool,
    /// Whether a message waits for those before it; without meaning on a
    /// stream.
    pub ordered: bool,
    /// How one waits for UDT.
    pub waiting: Waiting,
    /// What decides when a packet may leave.
    pub rate_control: RateControl,
    /// The window of `fixed-window`, in packets; 2 to 25,600.
    pub window_packets: u32,
    /// The silence of the peer after which `fixed-window` sends everything
    /// unacknowledged again, 10 ms to 60 s; 0 leaves it to UDT, which waits for
    /// 300 ms or more. Two ends with the same timeout can put each other off
    /// for minutes by asking whether the other is there.
    pub timeout: Span,
    /// Whether this end, with `fixed-window`, reports a loss again after one and a
    /// half round trips, until what was lost has come. UDT reports it once.
    pub repeat_loss_reports: bool,
    /// UDT's send buffer. It counts in packets of the largest size, and every
    /// message takes one at least; 1,472 B to 1 GiB.
    pub send_buffer: Size,
    /// UDT's receive buffer, counted likewise, 32 packets at least; 1,472 B to
    /// 1 GiB.
    pub receive_buffer: Size,
    /// The largest packet, all headers included; 576 B to 9,000 B.
    pub mtu: Size,
    /// The largest message; 8 B to 1 MiB.
    pub max_message: Size,
}

/// How one waits for UDT, which has no file to wait on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Waiting {
    /// A thread waits in UDT's receiving call and wakes whoever is concerned.
    Thread,
    /// One looks every millisecond.
    Sleep,
    /// UDT's epoll, which keeps time in steps of ten milliseconds; one looks
    /// every millisecond when something else is due sooner.
    Epoll,
}

/// What decides when a packet may leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RateControl {
    /// UDT's own, of release 4.11.
    Library,
    /// UDT's own, with the smallest increase that release 4.10 had.
    #[serde(rename = "release-4.10")]
    Release410,
    /// None: a window of fixed size, and a timeout of one's own.
    FixedWindow,
}

/// The payload of a packet of 1500 bytes, as UDT counts its buffers.
const SLOT: u64 = 1500 - Encapsulation::UdpIpv4.header_bytes() as u64;

/// UDT's own header of a data packet.
const UDT_HEADER_BYTES: u32 = 16;

/// About how long UDT takes to notice that its peer is gone, as was seen: its count
/// of timeouts cannot be set.
const GIVES_UP_AFTER: Duration = Duration::from_secs(45);

impl Settings {
    /// The 2015 comparison's: 93,440 B of buffers, 63 packets.
    pub const DGRAM_2015: Self = Self {
        stream: false,
        ordered: true,
        waiting: Waiting::Sleep,
        rate_control: RateControl::Library,
        window_packets: 16,
        timeout: Span::from_millis(0),
        repeat_loss_reports: false,
        send_buffer: Size(93_440),
        receive_buffer: Size(93_440),
        mtu: Size(1500),
        max_message: Size(64 << 10),
    };

    /// The 2015 comparison's on a stream: 934,400 B of buffers.
    pub const STREAM_2015: Self = Self {
        stream: true,
        send_buffer: Size(934_400),
        receive_buffer: Size(934_400),
        ..Self::DGRAM_2015
    };

    /// The 2015 comparison's with epoll, which ran on release 4.10.
    pub const EPOLL_2015: Self = Self {
        waiting: Waiting::Epoll,
        rate_control: RateControl::Release410,
        ..Self::DGRAM_2015
    };

    /// UDT's defaults: its rate control, 8192 packets of buffers.
    pub const DEFAULT: Self = Self {
        waiting: Waiting::Thread,
        send_buffer: Size(8192 * SLOT),
        receive_buffer: Size(8192 * SLOT),
        max_message: Size(1 << 20),
        ..Self::DGRAM_2015
    };

    /// The same on a stream: bulk, as UDT was made for.
    pub const BULK: Self = Self {
        stream: true,
        ..Self::DEFAULT
    };

    /// For a game: the rate control replaced, as UDT's interface offers, by a
    /// window of 0.8 s of 20 messages a second, and by loss reports that are
    /// repeated: else a report that is lost makes a stall of many seconds.
    pub const DGRAM: Self = Self {
        rate_control: RateControl::FixedWindow,
        repeat_loss_reports: true,
        ..Self::DEFAULT
    };

    /// The same on a stream.
    pub const STREAM: Self = Self {
        stream: true,
        ..Self::DGRAM
    };

    /// The same with UDT's epoll.
    pub const EPOLL: Self = Self {
        waiting: Waiting::Epoll,
        ..Self::DGRAM
    };

    /// What no option of UDT's changes.
    fn fixed(&self) -> String {
        let mut fixed = "gives its peer up by a count of timeouts of its own".to_owned();
        if !(self.rate_control == RateControl::FixedWindow && self.repeat_loss_reports) {
            fixed.push_str("; a loss is reported once");
        }
        fixed
    }

    /// How UDT carries what it is given.
    #[cfg(feature = "udt")]
    pub(super) fn mode(&self) -> lagometer_native::udt::Mode {
        if self.stream {
            lagometer_native::udt::Mode::Stream
        } else {
            lagometer_native::udt::Mode::Messages
        }
    }

    /// The options of a UDT socket.
    #[cfg(feature = "udt")]
    pub(super) fn options(&self) -> lagometer_native::udt::Options {
        lagometer_native::udt::Options {
            packet_bytes: self.mtu.bytes() as u32,
            send_buffer_bytes: self.send_buffer.bytes() as u32,
            receive_buffer_bytes: self.receive_buffer.bytes() as u32,
            rate_control: match self.rate_control {
                RateControl::Library => lagometer_native::udt::RateControl::Library,
                RateControl::Release410 => lagometer_native::udt::RateControl::Release410,
                RateControl::FixedWindow => lagometer_native::udt::RateControl::FixedWindow {
                    window_packets: self.window_packets,
                    timeout: Some(self.timeout.duration()).filter(|it| !it.is_zero()),
                    repeats_reports: self.repeat_loss_reports,
                },
            },
            // Set when there is a connection and a thread to wait on it.
            receive_waits: false,
            ..lagometer_native::udt::Options::default()
        }
    }
}

impl SocketTransport for Settings {
    const TRANSPORT: &'static str = "udt";
    const TUNABLES: &'static [Tunable] = &[
        Tunable::choice("rate_control", &["library", "fixed-window"]),
        Tunable::ratio("window_packets", 4, 1024),
        Tunable::flag("repeat_loss_reports"),
        Tunable::choice("waiting", &["thread", "sleep", "epoll"]),
    ];

    fn library(&self) -> String {
        if cfg!(feature = "udt") {
            "UDT 4.11".to_owned()
        } else {
            "UDT, not linked".to_owned()
        }
    }

    fn check(&self) -> Result<(), BadSetting> {
        size("send_buffer", self.send_buffer, SLOT..=1 << 30)?;
        size("receive_buffer", self.receive_buffer, SLOT..=1 << 30)?;
        size("mtu", self.mtu, 576..=9000)?;
        size("max_message", self.max_message, 8..=1 << 20)?;
        if !(2..=25_600).contains(&self.window_packets) {
            return Err(BadSetting::new("window_packets", "expected 2 to 25,600"));
        }
        let timeout = self.timeout.duration();
        let range = Duration::from_millis(10)..=Duration::from_mins(1);
        if !timeout.is_zero() && !range.contains(&timeout) {
            return Err(BadSetting::new("timeout", "expected 0, or 10 ms to 60 s"));
        }
        if !self.stream && self.max_message.bytes() > self.send_buffer.bytes() {
            return Err(BadSetting::new(
                "max_message",
                "expected no more than the send buffer holds",
            ));
        }
        Ok(())
    }

    fn available(&self) -> Result<(), Unavailable> {
        if cfg!(feature = "udt") {
            return Ok(());
        }
        Err(Unavailable {
            lacks: "this lagometer was built without UDT".to_owned(),
            mend: "Linux alone has it, where `apt-get install libudt-dev g++` and \
                   `cargo build --features udt` bring it"
                .to_owned(),
        })
    }

    fn properties(&self) -> TransportProperties {
        TransportProperties {
            reliable: true,
            ordered: self.ordered || self.stream,
            head_of_line: HeadOfLine::of(true, self.ordered || self.stream),
            encrypted: false,
            mtu_bytes: self.mtu.bytes() as u32,
            header_bytes: Encapsulation::UdpIpv4.header_bytes()
                + UDT_HEADER_BYTES
                + if self.stream { LENGTH_BYTES as u32 } else { 0 },
            acks: "at once after a short packet, every 10 ms otherwise".to_owned(),
            varies: String::new(),
            late_answer: "nothing: acknowledgements never share a packet".to_owned(),
            congestion_control: match self.rate_control {
                RateControl::Library => "UDT 4.11's rate control".to_owned(),
                RateControl::Release410 => "UDT 4.10's rate control".to_owned(),
                RateControl::FixedWindow => {
                    let reports = if self.repeat_loss_reports {
                        "; loss reports repeated"
                    } else {
                        ""
                    };
                    format!("none, a window of {} packets{reports}", self.window_packets)
                }
            },
            peer_timeout: PeerTimeout::Fixed(GIVES_UP_AFTER),
            fixed: self.fixed(),
        }
    }

    fn largest_message_bytes(&self) -> usize {
        self.max_message.bytes() as usize
    }

    fn is_carried_by_udp(&self) -> bool {
        true
    }

    #[cfg(feature = "udt")]
    fn client(&self, opening: &Opening) -> io::Result<BoxedConnection> {
        let side = super::connection::UdtConnection::connect(self, opening.local, opening.remote)?;
        Ok(Box::new(side))
    }

    #[cfg(feature = "udt")]
    fn server(&self, opening: &Opening) -> io::Result<BoxedConnection> {
        let side = super::connection::UdtConnection::listen(self, opening.remote)?;
        Ok(Box::new(side))
    }

    #[cfg(not(feature = "udt"))]
    fn client(&self, _opening: &Opening) -> io::Result<BoxedConnection> {
        self.available().map_err(io::Error::other)?;
        Err(io::ErrorKind::Unsupported.into())
    }

    #[cfg(not(feature = "udt"))]
    fn server(&self, opening: &Opening) -> io::Result<BoxedConnection> {
        self.client(opening)
    }
}

/// Refuses a size outside a range.
fn size(setting: &str, size: Size, range: RangeInclusive<u64>) -> Result<(), BadSetting> {
    if range.contains(&size.bytes()) {
        return Ok(());
    }
    Err(BadSetting::new(
        setting,
        format!("expected {} B to {} B", range.start(), range.end()),
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bad_settings_are_named() {
        let base = Settings::DGRAM;
        for (settings, at_fault) in [
            (
                Settings {
                    mtu: Size(100),
                    ..base.clone()
                },
                "mtu",
            ),
            (
                Settings {
                    send_buffer: Size(10),
                    ..base.clone()
                },
                "send_buffer",
            ),
            (
                Settings {
                    window_packets: 1,
                    ..base.clone()
                },
                "window_packets",
            ),
            (
                Settings {
                    timeout: Span::from_millis(1),
                    ..base.clone()
                },
                "timeout",
            ),
            (
                Settings {
                    send_buffer: Size(2000),
                    ..base.clone()
                },
                "max_message",
            ),
        ] {
            assert_eq!(settings.check().unwrap_err().setting, at_fault);
        }
        base.check().unwrap();
    }

    #[test]
    #[cfg(not(feature = "udt"))]
    fn whoever_lacks_it_is_shown_the_package() {
        let said = Settings::DGRAM.available().unwrap_err().to_string();
        assert!(said.contains("libudt-dev"), "{said}");
    }

    #[test]
    fn the_release_is_written_as_it_is_spoken() {
        let written = serde_json::to_value(Settings::EPOLL_2015).unwrap();
        assert_eq!(written["rate_control"], "release-4.10");
        assert_eq!(written["waiting"], "epoll");
    }
}
