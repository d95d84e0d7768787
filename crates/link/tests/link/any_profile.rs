//! Profiles and traffic drawn by proptest.

use lagometer_units::Time;
use proptest::prelude::*;

/// The text of a profile that may have everything at once.
pub(crate) fn any_profile() -> impl Strategy<Value = String> {
    (any_way("up"), any_way("down")).prop_map(|(up, down)| up + &down)
}

fn any_way(name: &'static str) -> impl Strategy<Value = String> {
    let way = (
        (0..60_u32, any_jitter(), 0..30_u32, any_bursts()),
        (any_service(), any_spells("outages"), any_spells("stalls")),
        (0..20_u32, 0..20_u32, 0..20_u32, any_handover(), any_mtu()),
    );
    way.prop_map(move |(path, spells, rest)| {
        let (delay, jitter, loss, bursts) = path;
        let (service, outages, stalls) = spells;
        let (copied, reordered, damaged, handover, mtu) = rest;
        format!(
            "[{name}]\ndelay = \"{delay} ms\"\nloss = \"{loss} %\"\n{jitter}{bursts}{service}\
             {outages}{stalls}{handover}{mtu}corruption = \"{damaged} %\"\n\
             duplication = {{ share = \"{copied} %\", apart = \"1 ms\" }}\n\
             reordering = {{ share = \"{reordered} %\", extra = \"7 ms\" }}\n"
        )
    })
}

/// Instants that never decrease, and sizes.
pub(crate) fn any_traffic(packets: usize) -> impl Strategy<Value = Vec<(Time, usize)>> {
    let gap = prop_oneof![Just(0), 0..400_u64, 0..50_000_u64, 0..2_000_000_u64];
    proptest::collection::vec((gap, 1..1500_usize), 1..packets).prop_map(|offers| {
        let mut micros = 0;
        offers
            .into_iter()
            .map(|(gap, bytes)| {
                micros += gap;
                (Time::from_micros(micros), bytes)
            })
            .collect()
    })
}

fn any_jitter() -> impl Strategy<Value = String> {
    let shape = prop_oneof![
        Just("distribution = \"uniform\""),
        Just("distribution = \"normal\", mean = \"4 ms\", deviation = \"3 ms\""),
        Just("distribution = \"pareto\", mean = \"2 ms\""),
    ];
    let correlation = prop_oneof![Just(""), Just(", correlation = \"20 ms\"")];
    let some = (shape, 1..80_u32, correlation, any::<bool>()).prop_map(
        |(shape, maximum, correlation, reorder)| {
            format!(
                "jitter = {{ {shape}, maximum = \"{maximum} ms\"{correlation}, \
                 reorder = {reorder} }}\n"
            )
        },
    );
    prop_oneof![Just(String::new()), some]
}

fn any_bursts() -> impl Strategy<Value = String> {
    let some = (10..3000_u32, 5..500_u32, 1..100_u32).prop_map(|(good, bad, loss)| {
        format!(
            "bursts = {{ mean_good = \"{good} ms\", mean_bad = \"{bad} ms\", \
             loss_bad = \"{loss} %\" }}\n"
        )
    });
    prop_oneof![Just(String::new()), some]
}

fn any_service() -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        (64..20_000_u32).prop_map(|rate| format!("rate = \"{rate} kbit/s\"\n")),
        (64..20_000_u32, 0..200_u32)
            .prop_map(|(rate, ms)| format!("rate = \"{rate} kbit/s\"\nqueue = \"{ms} ms\"\n")),
        (64..20_000_u32, 0..64_u32)
            .prop_map(|(rate, kb)| format!("rate = \"{rate} kbit/s\"\nqueue = \"{kb} KB\"\n")),
    ]
}

fn any_spells(name: &'static str) -> impl Strategy<Value = String> {
    prop_oneof![
        Just(String::new()),
        (100..5000_u32, 1..80_u32).prop_map(move |(gap, length)| format!(
            "{name} = [{{ mean_gap = \"{gap} ms\", mean_for = \"{length} ms\" }}]\n"
        )),
        (100..5000_u32, 1..80_u32).prop_map(move |(every, length)| format!(
            "{name} = [{{ every = \"{every} ms\", for = \"{length} ms\" }}]\n"
        )),
        (0..5000_u32, 1..80_u32).prop_map(move |(at, length)| format!(
            "{name} = [{{ at = \"{at} ms\", every = \"1 s\", for = \"{length} ms\" }}, \
             {{ mean_gap = \"1 s\", for = \"5 ms\", up_to = \"90 ms\" }}]\n"
        )),
    ]
}

fn any_handover() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just(""),
        Just("handover = { every = \"500 ms\", extra = \"30 ms\" }\n"),
    ]
}

fn any_mtu() -> impl Strategy<Value = &'static str> {
    prop_oneof![
        Just(""),
        Just("mtu = \"1000 B\"\n"),
        Just("mtu = \"1000 B\"\noversize = \"refuse\"\n"),
    ]
}
