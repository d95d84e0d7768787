//! TCP as Linux has it: in virtual time by the engine of the crate
//! `lagometer-tcp`, over real sockets by the kernel itself, with the same
//! presets and the same [`Settings`].
//!
//! Messages travel on one stream, each behind its length as a 32-bit
//! little-endian number. Datagrams are whole IPv4 packets with time stamps
//! (RFC 7323); the engine checks IP's and TCP's checksums itself, and damage
//! they miss is delivered. What the engine does as the kernel does, and where it
//! is known to differ, is in the project's `docs/tcp.md`.
//!
//! - [`Settings`]: what can be chosen, and the presets
//! - `endpoint`: messages on a connection, as an [`Endpoint`](crate::Endpoint)
//! - [`Stream`]: the connection as a stream of bytes
//! - `host`: a host with one connection, which both are made of

mod endpoint;
mod host;
mod settings;
mod stream;

pub use lagometer_tcp::congestion::Algorithm;
pub use settings::{Settings, StreamOptions};
pub use stream::Stream;

use crate::catalogue::{Preset, PresetKind, Source, checked};
use crate::tuned::tuned;

/// A socket on which nothing is set.
const PLAIN: &[Source] = &[
    Source::library("a socket on which nothing is set", "tcp(7)"),
    Source::equal("user_timeout"),
    Source::lab("max_message", "what the peer may announce"),
];

/// Linux's own pages on small messages that must not be late.
const GAME: &[Source] = &[
    Source::library("as `tcp-default`", "tcp(7)"),
    Source::of(
        "no_delay",
        "TCP_NODELAY: segments are always sent as soon as possible",
        "tcp(7)",
    ),
    Source::of(
        "quick_ack",
        "TCP_QUICKACK: acks are sent immediately",
        "tcp(7)",
    ),
    Source::of(
        "thin_linear_timeouts",
        "for thin streams whose user is hurt by delay, as online games",
        "https://docs.kernel.org/networking/tcp-thin.html",
    ),
    Source::of(
        "congestion_control",
        "BBR takes the path's rate, not its losses, for a sign of congestion",
        "https://github.com/google/bbr",
    ),
    Source::of(
        "not_sent_low_water",
        "what is not sent yet stays with the application",
        "https://docs.kernel.org/networking/ip-sysctl.html (tcp_notsent_lowat)",
    ),
    Source::lab("max_message", "what the peer may announce"),
    Source::equal("user_timeout"),
];

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset] = &[
    Preset::new(
        "tcp-default",
        "Linux's TCP on a socket with nothing set: CUBIC, Nagle's algorithm, delayed acknowledgements",
        || checked(Settings::plain()),
    )
    .of("tcp", PresetKind::Default, PLAIN),
    Preset::new(
        "tcp-game",
        "Linux's TCP set up for small messages: BBR, no delay, thin-stream timeouts, little unsent",
        || checked(Settings::game()),
    )
    .of("tcp", PresetKind::Game, GAME),
    Preset::tuned("tcp", "tcp-tuned", || tuned("tcp")),
    Preset::new(
        "tcp-cubic",
        "Linux's TCP with CUBIC, no delay: what most servers speak",
        || checked(Settings::with("cubic")),
    )
    .formerly(&["tcp-smoltcp"]),
    Preset::new(
        "tcp-bbr",
        "Linux's TCP with BBR, which heeds the path's rate rather than its losses",
        || checked(Settings::with("bbr")),
    ),
    Preset::new(
        "tcp-reno",
        "Linux's TCP with Reno, the textbook's congestion control",
        || checked(Settings::with("reno")),
    )
    .formerly(&["tcp-smoltcp-reno"]),
];

/// The ICMP message by which a path says to the sender of `packet` that it takes
/// at most `mtu_bytes` (RFC 1191, section 4), as if the packet's destination had
/// sent it; nothing if the packet is none of TCP's.
#[must_use]
pub fn packet_too_big(packet: &[u8], mtu_bytes: u64) -> Option<Vec<u8>> {
    let (header, _) = lagometer_tcp::wire::parse_packet(packet).ok()?;
    let mtu = u16::try_from(mtu_bytes).unwrap_or(u16::MAX);
    lagometer_tcp::wire::icmp_too_big(header.destination, packet, mtu)
}
