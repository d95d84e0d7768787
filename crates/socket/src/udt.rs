//! UDT, the real library: messages, or a stream with lengths in front.
//!
//! It is linked where the cargo feature `udt` asks for it. Without, its presets
//! are known all the same, and the error of one that is chosen names the package.
//!
//! - `settings`: what can be chosen, as in 2015 and as it serves a game
//! - `connection`: the connection behind [`SocketConnection`](crate::SocketConnection)
//! - `inbox`: a thread that waits in UDT, since UDT has no file to wait on
//!
//! What a reader of its figures should know. UDT reports a loss once, when it
//! first sees the gap; should the report be lost, or what is sent upon it, only
//! a timer helps, and everything that arrives puts that timer off. A direction
//! with a hole can so stand still for as long as the other is lively. The presets
//! for a game report losses again; those of the library and of 2015 do not. UDT's
//! own rate control takes the rate at which messages arrive for what the path can
//! carry, slows down with every loss from there, and recovers by steps made for
//! gigabits.

#[cfg(feature = "udt")]
mod connection;
#[cfg(feature = "udt")]
mod inbox;
mod settings;

pub use settings::{RateControl, Settings, Waiting};

use lagometer_transport::{Preset, PresetKind, Source};

use crate::catalogue::{TUNED, checked};
use crate::spec::SocketSpec;
use crate::tuned::tuned;

/// The library's manual.
const MANUAL: &str = "https://udt.sourceforge.io/udt4/index.htm";

/// Nothing set.
const DEFAULT: &[Source] = &[
    Source::library("a socket on which nothing is set", MANUAL),
    Source::lab("waiting", "UDT has no file to wait on"),
    Source::lab("max_message", "what one call may send"),
];

/// What the manual offers who does not want UDT's rate control. Its maintainers advise
/// nothing for games: the control is this project's.
const GAME: &[Source] = &[
    DEFAULT[0],
    DEFAULT[1],
    DEFAULT[2],
    Source::of(
        "rate_control",
        "UDT_CC: an application brings a congestion control of its own",
        "https://udt.sourceforge.io/udt4/doc/opt.htm",
    ),
    Source::of(
        "repeat_loss_reports",
        "CCC: that control sees the packets that come and may send some of its own",
        "https://udt.sourceforge.io/udt4/doc/ccc.htm",
    ),
    Source::lab("window_packets", "0.8 s of 20 messages a second"),
];

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset<SocketSpec>] = &[
    Preset::new(
        "udt-default",
        "UDT's messages in order, everything as the library has it",
        || checked(Settings::DEFAULT),
    )
    .of("udt", PresetKind::Default, DEFAULT),
    Preset::new(
        "udt-game",
        "UDT's messages in order, its rate control replaced by a window of 16 packets \
         and loss reports that are repeated",
        || checked(Settings::DGRAM),
    )
    .of("udt", PresetKind::Game, GAME)
    .also(&["udt-dgram"]),
    Preset::found("udt", "udt-tuned", || tuned("udt"), TUNED),
    Preset::new(
        "udt",
        "UDT's stream, everything as the library has it: what it was made for, bulk",
        || checked(Settings::BULK),
    ),
    Preset::new(
        "udt-stream",
        "UDT's stream, its rate control replaced by a window of 16 packets and loss \
         reports that are repeated",
        || checked(Settings::STREAM),
    ),
    Preset::new("udt-epoll", "`udt-game` waited for by UDT's epoll", || {
        checked(Settings::EPOLL)
    }),
    Preset::new(
        "udt-dgram-2015",
        "UDT's messages as compared in 2015: its rate control, 63 packets of buffer",
        || checked(Settings::DGRAM_2015),
    ),
    Preset::new(
        "udt-stream-2015",
        "UDT's stream as compared in 2015: its rate control, 634 packets of buffer",
        || checked(Settings::STREAM_2015),
    ),
    Preset::new(
        "udt-epoll-2015",
        "UDT as compared in 2015 with epoll: release 4.10's rate control, 63 packets of buffer",
        || checked(Settings::EPOLL_2015),
    ),
];
