//! Names of testbeds, and of what the lanes of `emu` run between.

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use lagometer_testbed::Testbed;

/// Reads the name of one of `among`.
pub(crate) fn testbeds<const N: usize>(
    among: [Testbed; N],
) -> impl TypedValueParser<Value = Testbed> {
    named(among.map(|testbed| (testbed.name(), testbed, testbed.about())))
}

/// The name of the relay of datagrams among what lanes of `emu` run between.
pub(crate) const EMU_MODE_RELAY: &str = "proxy";

/// Reads what the lanes of `emu` run between.
pub(super) fn emu_modes() -> impl TypedValueParser<Value = Testbed> {
    named([
        (
            "namespaces",
            Testbed::Emu,
            "Hosts in network namespaces, with a router between them",
        ),
        (
            EMU_MODE_RELAY,
            Testbed::Relay,
            "A relay of UDP datagrams on the loopback device, for systems that permit no \
             namespaces",
        ),
    ])
}

/// Reads one of these names, each with what it means and a line about it.
fn named<const N: usize>(
    values: [(&'static str, Testbed, &'static str); N],
) -> impl TypedValueParser<Value = Testbed> {
    PossibleValuesParser::new(values.map(|(name, _, about)| PossibleValue::new(name).help(about)))
        .try_map(move |name| {
            let found = values.iter().find(|value| value.0 == name);
            found.map(|value| value.1).ok_or("no such testbed")
        })
}
