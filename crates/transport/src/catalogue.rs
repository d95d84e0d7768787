//! The presets: every transport there is, with settings that have a name.

use crate::{Spec, Transport, enet, kcp, quic, renet, tcp, udp, udp_redundant, webrtc};

/// A named choice of a transport and its settings.
#[derive(Clone, Copy, Debug)]
pub struct Preset {
    /// The name to write in an experiment.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    pub(crate) spec: fn() -> Spec,
}

/// Every preset, in the order in which lanes are best shown.
#[must_use]
pub fn presets() -> &'static [Preset] {
    PRESETS
}

const PRESETS: &[Preset] = &[
    Preset {
        name: "udp",
        about: "one message, one datagram; lost is lost",
        spec: || checked(udp::Settings::PLAIN),
    },
    Preset {
        name: "udp-redundant",
        about: "each message rides again in the next 3 datagrams, as shooters send input",
        spec: || checked(udp_redundant::Settings::THREE_COPIES),
    },
    Preset {
        name: "kcp",
        about: "KCP, the best all-round settings: flushed at once, linear backoff, no congestion control",
        spec: || checked(kcp::Settings::best()),
    },
    Preset {
        name: "kcp-turbo",
        about: "KCP's fastest mode as its read-me has it, (1, 10 ms, 2, 1): flushed by the clock alone",
        spec: || checked(kcp::Settings::turbo()),
    },
    Preset {
        name: "kcp-default",
        about: "KCP as it is created: flushed every 100 ms, congestion control, no fast resend",
        spec: || checked(kcp::Settings::library_default()),
    },
    Preset {
        name: "kcp-go-default",
        about: "a kcp-go session on which nothing is set, as channeld speaks it: (0, 100 ms, 0, 0), windows of 32",
        spec: || checked(kcp::Settings::kcp_go_default()),
    },
    Preset {
        name: "kcp-go-game",
        about: "a kcp-go session as games set it: (1, 10 ms, 2, 1), windows of 32",
        spec: || checked(kcp::Settings::kcp_go_game()),
    },
    Preset {
        name: "kcp-2015-early",
        about: "asio_kcp of 1 to 3 July 2015: (1, 10 ms, 2, 1), 5 ms timer, windows of 32",
        spec: || checked(kcp::Settings::early_2015()),
    },
    Preset {
        name: "kcp-2015-late",
        about: "asio_kcp from 6 July 2015: client (1, 2 ms, 1, 1), server (1, 5 ms, 1, 1), 5 ms timer",
        spec: || checked(kcp::Settings::late_2015()),
    },
    Preset {
        name: "kcp-test-default",
        about: "KCP's own test.cpp, mode \"default\": (0, 10 ms, 0, 0)",
        spec: || checked(kcp::Settings::test_cpp(0, 0, false)),
    },
    Preset {
        name: "kcp-normal",
        about: "KCP's own test.cpp, mode \"normal\": (0, 10 ms, 0, 1)",
        spec: || checked(kcp::Settings::test_cpp(0, 0, true)),
    },
    Preset {
        name: "kcp-fast",
        about: "KCP's own test.cpp, mode \"fast\": (2, 10 ms, 2, 1), the client's least timeout 10 ms",
        spec: || checked(kcp::Settings::test_cpp_fast()),
    },
    Preset {
        name: "enet",
        about: "ENet, reliable packets, no bandwidth limits (64 KiB window)",
        spec: || checked(enet::Settings::RELIABLE),
    },
    Preset {
        name: "enet-tutorial",
        about: "ENet with the tutorial's modem bandwidths times ten, as benchmarked in 2015: 4 KiB window",
        spec: || checked(enet::Settings::TUTORIAL),
    },
    Preset {
        name: "enet-no-throttle",
        about: "ENet, reliable packets, with the throttle switched off",
        spec: || checked(enet::Settings::NO_THROTTLE),
    },
    Preset {
        name: "enet-unreliable",
        about: "ENet, unreliable sequenced packets: the late are dropped, as are those the throttle picks",
        spec: || checked(enet::Settings::UNRELIABLE),
    },
    Preset {
        name: "tcp-cubic",
        about: "Linux's TCP with CUBIC, no delay: what most servers speak",
        spec: || checked(tcp::Settings::with("cubic")),
    },
    Preset {
        name: "tcp-bbr",
        about: "Linux's TCP with BBR, which heeds the path's rate rather than its losses",
        spec: || checked(tcp::Settings::with("bbr")),
    },
    Preset {
        name: "tcp-reno",
        about: "Linux's TCP with Reno, the textbook's congestion control",
        spec: || checked(tcp::Settings::with("reno")),
    },
    Preset {
        name: "tcp-game",
        about: "Linux's TCP set up for small messages: BBR, thin-stream timeouts, little unsent, given up after 10 s",
        spec: || checked(tcp::Settings::game()),
    },
    Preset {
        name: "quic",
        about: "QUIC, every message on the same stream: reliable, ordered",
        spec: || checked(quic::Settings::ONE_STREAM),
    },
    Preset {
        name: "quic-streams",
        about: "QUIC, a stream for each message: reliable, none waits for another",
        spec: || checked(quic::Settings::STREAM_EACH),
    },
    Preset {
        name: "quic-datagram",
        about: "QUIC, unreliable datagrams, under congestion control all the same",
        spec: || checked(quic::Settings::DATAGRAM),
    },
    Preset {
        name: "webrtc",
        about: "WebRTC data channel as a browser makes it: reliable, ordered",
        spec: || checked(webrtc::Settings::RELIABLE),
    },
    Preset {
        name: "webrtc-unreliable",
        about: "WebRTC data channel, unordered, nothing sent again",
        spec: || checked(webrtc::Settings::UNRELIABLE),
    },
    Preset {
        name: "renet",
        about: "renet, reliable ordered channel, its default resend time of 300 ms",
        spec: || checked(renet::Settings::RELIABLE),
    },
    Preset {
        name: "renet-unreliable",
        about: "renet, unreliable channel",
        spec: || checked(renet::Settings::UNRELIABLE),
    },
];

/// What a preset that there once was is called now, if `name` is one's.
#[must_use]
pub fn new_name(name: &str) -> Option<&'static str> {
    match name {
        "tcp-smoltcp" => Some("tcp-cubic"),
        "tcp-smoltcp-reno" => Some("tcp-reno"),
        _ => None,
    }
}

/// A preset's settings, which a test holds to their own check.
fn checked<T: Transport>(settings: T) -> Spec {
    Spec::new(settings).expect("presets pass their own check")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_every_preset_passes_its_check() {
        let names: BTreeSet<_> = presets().iter().map(|preset| preset.name).collect();
        assert_eq!(names.len(), presets().len());
        for preset in presets() {
            let spec = (preset.spec)();
            assert!(
                preset.name.starts_with(spec.transport()),
                "{} is a {}",
                preset.name,
                spec.transport()
            );
        }
    }
}
