//! One suite for every transport: what it promises it keeps, and nothing it
//! is handed breaks it. Each preset of the registry runs every test under its own
//! name, as `kcp_turbo::reports_a_dead_link`; those with the same settings once.

mod blocking;
mod dead_link;
mod deliveries;
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
use libtest_mimic::{Arguments, Trial};

/// A test of one transport, and its name.
type Test = (&'static str, fn(&Spec));

/// The tests of every transport.
const SUITE: &[Test] = &[
    (
        "keeps_its_promises_on_a_bad_network",
        promises::are_kept_on_a_bad_network,
    ),
    (
        "delivers_everything_on_a_clean_network",
        promises::are_exceeded_on_a_clean_network,
    ),
    (
        "keeps_each_streams_promise_beside_the_others",
        deliveries::stand_beside_each_other,
    ),
    ("carries_messages_of_every_size", sizes::are_all_carried),
    (
        "refuses_a_message_that_is_too_large",
        sizes::too_large_is_refused,
    ),
    (
        "shrugs_off_random_bytes",
        garbage::random_bytes_change_nothing,
    ),
    (
        "survives_mangled_datagrams",
        garbage::mangled_datagrams_are_survived,
    ),
    (
        "survives_garbage_before_it_is_connected",
        garbage::is_survived_while_connecting,
    ),
    ("reports_a_dead_link", dead_link::is_reported),
    (
        "reports_a_peer_that_was_never_there",
        dead_link::is_reported_when_nobody_answers,
    ),
    ("comes_through_an_outage", dead_link::an_outage_is_not_one),
    (
        "memory_is_bounded_when_the_peer_stops_reading",
        memory::is_bounded_when_the_peer_stops_reading,
    ),
    (
        "memory_is_bounded_when_nothing_gets_through",
        memory::is_bounded_when_nothing_gets_through,
    ),
    ("same_seed_same_bytes", replay::same_seed_same_bytes),
    (
        "an_idle_connection_costs_little",
        replay::an_idle_connection_costs_little,
    ),
    ("header_is_as_said", properties::of_the_header_is_true),
    ("mtu_is_as_said", properties::of_the_mtu_is_true),
    (
        "reports_how_long_messages_were_blocked",
        blocking::is_reported_where_it_happens,
    ),
];

/// Settings beside the presets' that change what a transport does: the name of
/// the suite, a preset, and what is set.
const VARIANTS: &[(&str, &str, &str)] = &[
    ("enet_checksum", "enet", r#"{ "checksum": true }"#),
    (
        "enet_unsequenced",
        "enet",
        r#"{ "packets": "unsequenced" }"#,
    ),
    ("kcp_fec", "kcp", r#"{ "fec": { "data": 3, "parity": 1 } }"#),
    ("kcp_stream", "kcp", r#"{ "stream": true }"#),
    (
        "renet_in_ticks",
        "renet",
        r#"{ "flush_on_send": false, "tick": "33 ms" }"#,
    ),
    (
        "tcp_held_back",
        "tcp-cubic",
        r#"{ "send_buffer": "200 KB", "not_sent_low_water": "100 KB", "max_message": "8 KiB",
         "quick_ack": false, "thin_linear_timeouts": true }"#,
    ),
    ("udp_redundant_once", "udp-redundant", r#"{ "copies": 0 }"#),
    (
        "udp_spaced_thrice",
        "udp-spaced",
        r#"{ "copies": 2, "spacing": "15 ms" }"#,
    ),
    (
        "udp_fec_interleaved",
        "udp-fec",
        r#"{ "data": 6, "parity": 3, "every": 6, "interleave": 2, "parity_delay": "30 ms" }"#,
    ),
    ("udp_fec_without_parity", "udp-fec", r#"{ "parity": 0 }"#),
];

fn main() {
    let arguments = Arguments::from_args();
    let of_presets = distinct_presets()
        .into_iter()
        .map(|name| (name.replace('-', "_"), name, "{}"));
    let of_variants = VARIANTS
        .iter()
        .map(|&(name, preset, overrides)| (name.to_owned(), preset, overrides));
    let trials = of_presets
        .chain(of_variants)
        .flat_map(|(suite, preset, overrides)| {
            SUITE.iter().map(move |&(name, test)| {
                Trial::test(format!("{suite}::{name}"), move || {
                    test(&resolve(preset, overrides));
                    Ok(())
                })
            })
        });
    let of_all = Trial::test("settings::one_setting_changed_is_refused_or_works", || {
        settings::one_setting_changed_is_refused_or_works();
        Ok(())
    });
    libtest_mimic::run(&arguments, trials.chain([of_all]).collect()).exit();
}

/// The presets, each of those with the same settings once.
fn distinct_presets() -> Vec<&'static str> {
    let mut distinct: Vec<(&str, Option<Spec>)> = Vec::new();
    for preset in presets() {
        let spec = Spec::preset(preset.name);
        if distinct.iter().all(|(_, other)| *other != spec) {
            distinct.push((preset.name, spec));
        }
    }
    distinct.into_iter().map(|(name, _)| name).collect()
}

fn resolve(name: &str, overrides: &str) -> Spec {
    let overrides = serde_json::from_str(overrides).expect("overrides are a table");
    Spec::resolve(name, &overrides).expect("the suite tests what there is")
}
