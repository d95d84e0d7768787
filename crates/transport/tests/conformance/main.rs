//! One suite for every transport: what it promises it keeps, and nothing it
//! is handed breaks it. Each preset runs every test under its own name.

mod blocking;
mod dead_link;
mod dice;
mod garbage;
mod memory;
mod messages;
mod network;
mod promises;
mod properties;
mod replay;
mod settings;
mod sizes;

use lagometer_transport::{Spec, presets};

/// The tests of one transport, as `module::test`.
macro_rules! suite {
    ($module:ident, $preset:literal, $overrides:literal) => {
        mod $module {
            fn spec() -> lagometer_transport::Spec {
                crate::resolve($preset, $overrides)
            }

            #[test]
            fn keeps_its_promises_on_a_bad_network() {
                crate::promises::are_kept_on_a_bad_network(&spec());
            }

            #[test]
            fn delivers_everything_on_a_clean_network() {
                crate::promises::are_exceeded_on_a_clean_network(&spec());
            }

            #[test]
            fn carries_messages_of_every_size() {
                crate::sizes::are_all_carried(&spec());
            }

            #[test]
            fn refuses_a_message_that_is_too_large() {
                crate::sizes::too_large_is_refused(&spec());
            }

            #[test]
            fn shrugs_off_random_bytes() {
                crate::garbage::random_bytes_change_nothing(&spec());
            }

            #[test]
            fn survives_mangled_datagrams() {
                crate::garbage::mangled_datagrams_are_survived(&spec());
            }

            #[test]
            fn survives_garbage_before_it_is_connected() {
                crate::garbage::is_survived_while_connecting(&spec());
            }

            #[test]
            fn reports_a_dead_link() {
                crate::dead_link::is_reported(&spec());
            }

            #[test]
            fn reports_a_peer_that_was_never_there() {
                crate::dead_link::is_reported_when_nobody_answers(&spec());
            }

            #[test]
            fn comes_through_an_outage() {
                crate::dead_link::an_outage_is_not_one(&spec());
            }

            #[test]
            fn memory_is_bounded_when_the_peer_stops_reading() {
                crate::memory::is_bounded_when_the_peer_stops_reading(&spec());
            }

            #[test]
            fn memory_is_bounded_when_nothing_gets_through() {
                crate::memory::is_bounded_when_nothing_gets_through(&spec());
            }

            #[test]
            fn same_seed_same_bytes() {
                crate::replay::same_seed_same_bytes(&spec());
            }

            #[test]
            fn an_idle_connection_costs_little() {
                crate::replay::an_idle_connection_costs_little(&spec());
            }

            #[test]
            fn header_is_as_said() {
                crate::properties::of_the_header_is_true(&spec());
            }

            #[test]
            fn mtu_is_as_said() {
                crate::properties::of_the_mtu_is_true(&spec());
            }

            #[test]
            fn tells_how_long_messages_were_blocked() {
                crate::blocking::is_told_where_it_happens(&spec());
            }
        }
    };
}

/// The suite for each preset.
macro_rules! presets {
    ($($module:ident = $preset:literal,)*) => {
        $(suite!($module, $preset, "{}");)*

        #[test]
        fn every_preset_is_tested() {
            let tested = [$($preset),*];
            let known: Vec<_> = presets().iter().map(|preset| preset.name).collect();
            assert_eq!(tested.as_slice(), known.as_slice());
        }
    };
}

presets! {
    udp = "udp",
    udp_redundant = "udp-redundant",
    kcp = "kcp",
    kcp_turbo = "kcp-turbo",
    kcp_default = "kcp-default",
    kcp_go_default = "kcp-go-default",
    kcp_go_game = "kcp-go-game",
    kcp_2015_early = "kcp-2015-early",
    kcp_2015_late = "kcp-2015-late",
    kcp_test_default = "kcp-test-default",
    kcp_normal = "kcp-normal",
    kcp_fast = "kcp-fast",
    enet = "enet",
    enet_tutorial = "enet-tutorial",
    enet_no_throttle = "enet-no-throttle",
    enet_unreliable = "enet-unreliable",
    tcp_cubic = "tcp-cubic",
    tcp_bbr = "tcp-bbr",
    tcp_reno = "tcp-reno",
    tcp_game = "tcp-game",
    quic = "quic",
    quic_streams = "quic-streams",
    quic_datagram = "quic-datagram",
    webrtc = "webrtc",
    webrtc_unreliable = "webrtc-unreliable",
    renet = "renet",
    renet_unreliable = "renet-unreliable",
}

suite!(enet_checksum, "enet", r#"{ "checksum": true }"#);
suite!(enet_unsequenced, "enet", r#"{ "packets": "unsequenced" }"#);
suite!(kcp_stream, "kcp", r#"{ "stream": true }"#);
suite!(
    renet_in_ticks,
    "renet",
    r#"{ "flush_on_send": false, "tick": "33 ms" }"#
);
suite!(
    tcp_held_back,
    "tcp-cubic",
    r#"{ "send_buffer": "200 KB", "not_sent_low_water": "100 KB", "max_message": "8 KiB",
         "quick_ack": false, "thin_linear_timeouts": true }"#
);
suite!(udp_redundant_once, "udp-redundant", r#"{ "copies": 0 }"#);

fn resolve(name: &str, overrides: &str) -> Spec {
    let overrides = serde_json::from_str(overrides).expect("overrides are a table");
    Spec::resolve(name, &overrides).expect("the suite tests what there is")
}
