//! Settings with a name, and why they are so.

use std::time::Duration;

use lagometer_kcp::Rules;
use lagometer_units::{Size, Span};

use super::fec::FecGroup;
use super::settings::{Overrides, Settings};
use crate::PEER_TIMEOUT;
use crate::catalogue::{Preset, PresetKind, Source, checked};
use crate::tuned::tuned;

/// The reference's read-me.
const KCP_README: &str = "https://github.com/skywind3000/kcp/blob/master/README.en.md";
/// What KCP's author answers who finds a send late.
const KCP_FLUSH: &str = "https://github.com/skywind3000/kcp/issues/421";
/// What kcp-go's author advises where latency counts: the mode `fast2`.
const KCP_GO_MODES: &str = "https://github.com/xtaci/kcptun/issues/16";
/// The turbo mode, as both read-mes have it.
const TURBO: &str = "turbo mode: ikcp_nodelay(kcp, 1, 10, 2, 1)";
/// What fits neither library, for it is the lab's.
const LAB: [Source; 2] = [
    Source::lab("send_queue_limit", "the library queues without end"),
    Source::equal("peer_timeout"),
];

/// Where `kcp-default` comes from.
const KCP_DEFAULT: &[Source] = &[
    Source::library(
        "a KCP object is in normal mode unless set otherwise",
        KCP_README,
    ),
    LAB[0],
    LAB[1],
    Source::equal("dead_link"),
];

/// Where `kcp-game` comes from.
const KCP_GAME: &[Source] = &[
    Source::library("as `kcp-default`", KCP_README),
    Source::of("nodelay", TURBO, KCP_README),
    Source::of("interval", TURBO, KCP_README),
    Source::of("resend", TURBO, KCP_README),
    Source::of("nc", TURBO, KCP_README),
    Source::of(
        "send_window",
        "ikcp_wndsize(kcp, 128, 128)",
        "https://github.com/skywind3000/kcp/blob/master/test.cpp",
    ),
    Source::of("flush_on_send", "call flush after ikcp_send", KCP_FLUSH),
    Source::of("flush_on_input", "call flush after ikcp_input", KCP_FLUSH),
    LAB[0],
    LAB[1],
    Source::equal("dead_link"),
];

/// Where `kcp-go-default` comes from.
const KCP_GO_DEFAULT: &[Source] = &[
    Source::library(
        "a session on which nothing is set",
        "https://pkg.go.dev/github.com/xtaci/kcp-go/v5",
    ),
    LAB[0],
    LAB[1],
];

/// Where `kcp-go-game` comes from.
const KCP_GO_GAME: &[Source] = &[
    Source::library("as `kcp-go-default`", KCP_GO_MODES),
    Source::of(
        "nodelay",
        "NoDelay(1, 10, 2, 1) where latency counts",
        KCP_GO_MODES,
    ),
    Source::of(
        "interval",
        "NoDelay(1, 10, 2, 1) where latency counts",
        KCP_GO_MODES,
    ),
    Source::of(
        "resend",
        "NoDelay(1, 10, 2, 1) where latency counts",
        KCP_GO_MODES,
    ),
    Source::of(
        "nc",
        "NoDelay(1, 10, 2, 1) where latency counts",
        KCP_GO_MODES,
    ),
    LAB[0],
    LAB[1],
];

/// The presets, in the order in which lanes are best shown.
pub(crate) const PRESETS: &[Preset] = &[
    Preset::new(
        "kcp-default",
        "KCP as it is created: flushed every 100 ms, congestion control, no fast resend",
        || checked(Settings::library_default()),
    )
    .of("kcp", PresetKind::Default, KCP_DEFAULT),
    Preset::new(
        "kcp-game",
        "KCP's turbo mode, (1, 10 ms, 2, 1), flushed after every send and input as its author advises",
        || checked(Settings::game()),
    )
    .of("kcp", PresetKind::Game, KCP_GAME),
    Preset::tuned("kcp", "kcp-tuned", || tuned("kcp")),
    Preset::new(
        "kcp",
        "KCP, this project's own all-round settings: flushed at once, linear backoff, no congestion control",
        || checked(Settings::best()),
    ),
    Preset::new(
        "kcp-turbo",
        "KCP's fastest mode as its read-me has it, (1, 10 ms, 2, 1): flushed by the clock alone",
        || checked(Settings::turbo()),
    ),
    Preset::new(
        "kcp-go-default",
        "a kcp-go session on which nothing is set, as channeld speaks it: (0, 100 ms, 0, 0), windows of 32",
        || checked(Settings::kcp_go_default()),
    )
    .of("kcp-go", PresetKind::Default, KCP_GO_DEFAULT),
    Preset::new(
        "kcp-go-game",
        "a kcp-go session as games set it: (1, 10 ms, 2, 1), windows of 32",
        || checked(Settings::kcp_go_game()),
    )
    .of("kcp-go", PresetKind::Game, KCP_GO_GAME),
    Preset::tuned("kcp-go", "kcp-go-tuned", || tuned("kcp-go")),
    Preset::new(
        "kcp-go-fec",
        "the same with kcp-go's forward error correction: 3 parity datagrams after 10",
        || checked(Settings::kcp_go_fec()),
    ),
    Preset::new(
        "kcp-2015-early",
        "asio_kcp of 1 to 3 July 2015: (1, 10 ms, 2, 1), 5 ms timer, windows of 32",
        || checked(Settings::early_2015()),
    ),
    Preset::new(
        "kcp-2015-late",
        "asio_kcp from 6 July 2015: client (1, 2 ms, 1, 1), server (1, 5 ms, 1, 1), 5 ms timer",
        || checked(Settings::late_2015()),
    ),
    Preset::new(
        "kcp-test-default",
        "KCP's own test.cpp, mode \"default\": (0, 10 ms, 0, 0)",
        || checked(Settings::test_cpp(0, 0, false)),
    ),
    Preset::new(
        "kcp-normal",
        "KCP's own test.cpp, mode \"normal\": (0, 10 ms, 0, 1)",
        || checked(Settings::test_cpp(0, 0, true)),
    ),
    Preset::new(
        "kcp-fast",
        "KCP's own test.cpp, mode \"fast\": (2, 10 ms, 2, 1), the client's least timeout 10 ms",
        || checked(Settings::test_cpp_fast()),
    ),
];

impl Settings {
    /// The preset `kcp`: the best all-round settings for small messages at a
    /// steady rate (a shooter's 500 B every 50 ms).
    ///
    /// - Flush on send and on input: with the interval alone each direction
    ///   waits half of it on average for data and again for the
    ///   acknowledgement, and the timeout grows by the same. The application's
    ///   answer shares the datagram of the acknowledgement.
    /// - `nodelay` 2: a lost resend is tried again after half a timeout more,
    ///   not after a timeout multiplied. At 20 messages a second the extra
    ///   traffic is nothing, and the worst delays are made of repeated losses.
    /// - `interval` 10 ms: the finest the reference permits. It is the grain
    ///   of the timeouts and the least margin within them.
    /// - `resend` 2: a skip counts after one later message; two of them take
    ///   longer here than the timeout does, and one would answer every
    ///   reordering with a resend.
    /// - `nc`: there is no congestion to control at 80 kbit/s, and with it one
    ///   timeout would shrink the window to one segment.
    /// - Windows of 256 segments: what 12 s of such traffic need, so that an
    ///   outage fills no window.
    ///
    /// The connection is given up by the silence of the peer, as that of every
    /// transport is. By `dead_link`, with timeouts that grow by a constant, the
    /// library's 20 would give one up after 6 s on a path of 40 ms.
    #[must_use]
    pub fn best() -> Self {
        Self {
            nodelay: 2,
            interval: Span::from_millis(10),
            resend: 2,
            nc: true,
            send_window: 256,
            receive_window: 256,
            flush_on_send: true,
            flush_on_input: true,
            ..Self::library_default()
        }
    }
    /// What `ikcp_create` sets: mode 0, a flush every 100 ms, no fast resend,
    /// congestion control on, windows of 32 and 128 segments, datagrams of
    /// 1400 bytes. Nothing is sent out of turn. After 20 transmissions the library
    /// calls a link dead, which ends nothing unless the application looks: here it
    /// goes by the peer's silence, as long as any transport does.
    #[must_use]
    pub fn library_default() -> Self {
        Self {
            nodelay: 0,
            interval: Span::from_millis(100),
            resend: 0,
            fast_limit: 5,
            nc: false,
            send_window: 32,
            receive_window: 128,
            mtu: Size(1_400),
            minimum_rto: None,
            stream: false,
            stream_message_limit: Size(1_000_000),
            dead_link: 0,
            peer_timeout: PEER_TIMEOUT,
            send_queue_limit: 16_384,
            flush_on_send: false,
            flush_on_input: false,
            ack_no_delay: false,
            fresh_clock: true,
            update_timer: None,
            wake_at_timeouts: false,
            one_receive_per_datagram: false,
            fec: None,
            client_phase: Span::ZERO,
            server_phase: Span(Duration::from_micros(3_700)),
            rules: Rules::default(),
            client: Overrides::default(),
            server: Overrides::default(),
        }
    }

    /// [`turbo`](Self::turbo), flushed after every `ikcp_send` and `ikcp_input`, as
    /// KCP's author answers who asks for less delay (skywind3000/kcp#421).
    #[must_use]
    pub fn game() -> Self {
        Self {
            flush_on_send: true,
            flush_on_input: true,
            ..Self::turbo()
        }
    }

    /// The library's "fastest mode", `ikcp_nodelay(kcp, 1, 10, 2, 1)` with
    /// windows of 128, as its read-me recommends it and as it is usually
    /// copied: flushes every 10 ms and only then.
    #[must_use]
    pub fn turbo() -> Self {
        Self {
            nodelay: 1,
            interval: Span::from_millis(10),
            resend: 2,
            nc: true,
            send_window: 128,
            ..Self::library_default()
        }
    }

    /// A kcp-go 5.4.20 session on which nothing is set, which is what channeld
    /// and its peers speak: windows of 32 segments both ways, mode 0,
    /// congestion control, and kcp-go's rules and habits: a flush after each
    /// write, at the nearest timeout and each 100 ms; acknowledgements wait
    /// for one of these. Where kcp-go blocks a write the message waits in the
    /// queue here.
    #[must_use]
    pub fn kcp_go_default() -> Self {
        Self {
            fast_limit: 0,
            receive_window: 32,
            flush_on_send: true,
            wake_at_timeouts: true,
            rules: Rules::of_kcp_go(),
            ..Self::library_default()
        }
    }

    /// The same after `SetNoDelay(1, 10, 2, 1)`, as games set it.
    #[must_use]
    pub fn kcp_go_game() -> Self {
        Self {
            nodelay: 1,
            interval: Span::from_millis(10),
            resend: 2,
            nc: true,
            ..Self::kcp_go_default()
        }
    }

    /// The same with forward error correction, as `DialWithOptions` and
    /// `ListenWithOptions` are asked for it in kcp-go's read-me and kcptun's
    /// defaults: 10 data shards and 3 of parity.
    #[must_use]
    pub fn kcp_go_fec() -> Self {
        Self {
            fec: Some(FecGroup {
                data: 10,
                parity: 3,
            }),
            ..Self::kcp_go_game()
        }
    }

    /// `asio_kcp` on 1 to 3 July 2015: (1, 10, 2, 1) on both sides, updates
    /// from a timer of 5 ms, windows of 32 segments, the `ikcp.c` of its day,
    /// and an echo server that reads one message for each datagram. Nobody
    /// looked whether the link was dead.
    #[must_use]
    pub fn early_2015() -> Self {
        Self {
            nodelay: 1,
            interval: Span::from_millis(10),
            resend: 2,
            fast_limit: 0,
            nc: true,
            receive_window: 32,
            peer_timeout: Span::ZERO,
            fresh_clock: false,
            update_timer: Some(Span::from_millis(5)),
            rules: Rules {
                interval_floor: Span::from_millis(10),
                ..Rules::of_2015()
            },
            server: Overrides {
                one_receive_per_datagram: Some(true),
                ..Overrides::default()
            },
            ..Self::library_default()
        }
    }

    /// `asio_kcp` from 6 July 2015 on: the floor under the interval lowered to
    /// 2 ms, (1, 2, 1, 1) on the client and (1, 5, 1, 1) on the server; the
    /// rest as before. The timer of 5 ms makes the client's 2 a 5 as well, but
    /// for the 2015 estimator the interval is no part of the timeout.
    #[must_use]
    pub fn late_2015() -> Self {
        let early = Self::early_2015();
        Self {
            resend: 1,
            rules: Rules::of_2015(),
            client: Overrides {
                interval: Some(Span::from_millis(2)),
                ..Overrides::default()
            },
            server: Overrides {
                interval: Some(Span::from_millis(5)),
                ..early.server
            },
            ..early
        }
    }

    /// A mode of the reference's own simulation, `test.cpp`: flushes every
    /// 10 ms, windows of 128 segments, the clock set every millisecond. Mode 0
    /// with congestion control is its "default", without its "normal".
    #[must_use]
    pub fn test_cpp(nodelay: u8, resend: u32, nc: bool) -> Self {
        Self {
            nodelay,
            interval: Span::from_millis(10),
            resend,
            nc,
            send_window: 128,
            ..Self::library_default()
        }
    }

    /// The "fast" mode of `test.cpp`: (2, 10, 2, 1), and on the side that
    /// sends first, which is the client, a least timeout of 10 ms and a resend
    /// after one skip.
    #[must_use]
    pub fn test_cpp_fast() -> Self {
        Self {
            client: Overrides {
                resend: Some(1),
                minimum_rto: Some(Span::from_millis(10)),
                ..Overrides::default()
            },
            ..Self::test_cpp(2, 2, true)
        }
    }
}

impl Default for Settings {
    /// [`Settings::best`].
    fn default() -> Self {
        Self::best()
    }
}

#[cfg(test)]
mod tests {
    use super::super::settings::Side;
    use super::*;

    #[test]
    fn the_late_preset_differs_by_side() {
        let late = Settings::late_2015();
        assert_eq!(late.of(Side::Client).config().interval_ms, 2);
        assert_eq!(late.of(Side::Server).config().interval_ms, 5);
        assert!(late.of(Side::Server).one_receive_per_datagram);
        assert!(!late.of(Side::Client).one_receive_per_datagram);
    }

    #[test]
    fn what_is_a_sides_own_already_is_no_other_sides() {
        let server = Settings::late_2015().of(Side::Server);
        assert_eq!(server.of(Side::Client), server);
    }

    /// `ikcp_nodelay` and `SetNoDelay` as read-mes and `test.cpp` call them.
    #[test]
    fn modes_are_those_that_are_published() {
        for (settings, wanted) in [
            (Settings::turbo(), (1, 10, 2, true)),
            (Settings::game(), (1, 10, 2, true)),
            (Settings::kcp_go_game(), (1, 10, 2, true)),
            (Settings::test_cpp(0, 0, false), (0, 10, 0, false)),
            (Settings::test_cpp(0, 0, true), (0, 10, 0, true)),
            (Settings::test_cpp_fast().of(Side::Server), (2, 10, 2, true)),
            // `kcp1->rx_minrto = 10; kcp1->fastresend = 1`.
            (Settings::test_cpp_fast().of(Side::Client), (2, 10, 1, true)),
        ] {
            let config = settings.config();
            let found = (
                config.nodelay,
                config.interval_ms,
                config.resend,
                !config.congestion_control,
            );
            assert_eq!(found, wanted);
        }
        let fast = Settings::test_cpp_fast();
        assert_eq!(fast.of(Side::Client).config().minimum_rto_ms, Some(10));
        assert_eq!(fast.of(Side::Server).config().minimum_rto_ms, None);
    }
}
