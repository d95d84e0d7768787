//! The presets of transports that own their sockets.

use crate::spec::SocketSpec;
use crate::srt;
use crate::transport::SocketTransport;
use crate::udt;

/// A named choice of a transport that owns its sockets, and its settings.
#[derive(Clone, Copy, Debug)]
pub struct SocketPreset {
    /// The name to write in an experiment.
    pub name: &'static str,
    /// What it is, in one line.
    pub about: &'static str,
    pub(crate) spec: fn() -> SocketSpec,
}

/// Every preset, in the order in which lanes are best shown. The presets of
/// the crate `transport` are not among them.
#[must_use]
pub fn presets() -> &'static [SocketPreset] {
    PRESETS
}

const PRESETS: &[SocketPreset] = &[
    SocketPreset {
        name: "udt",
        about: "UDT's stream, everything as the library has it: what it was made for, bulk",
        spec: || checked(udt::Settings::BULK),
    },
    SocketPreset {
        name: "udt-dgram",
        about: "UDT's messages in order, its rate control replaced by a window of 16 packets",
        spec: || checked(udt::Settings::DGRAM),
    },
    SocketPreset {
        name: "udt-stream",
        about: "UDT's stream, its rate control replaced by a window of 16 packets",
        spec: || checked(udt::Settings::STREAM),
    },
    SocketPreset {
        name: "udt-epoll",
        about: "`udt-dgram` waited for by UDT's epoll",
        spec: || checked(udt::Settings::EPOLL),
    },
    SocketPreset {
        name: "udt-default",
        about: "UDT's messages in order, everything as the library has it",
        spec: || checked(udt::Settings::DEFAULT),
    },
    SocketPreset {
        name: "udt-dgram-2015",
        about: "UDT's messages as compared in 2015: its rate control, 63 packets of buffer",
        spec: || checked(udt::Settings::DGRAM_2015),
    },
    SocketPreset {
        name: "udt-stream-2015",
        about: "UDT's stream as compared in 2015: its rate control, 634 packets of buffer",
        spec: || checked(udt::Settings::STREAM_2015),
    },
    SocketPreset {
        name: "udt-epoll-2015",
        about: "UDT as compared in 2015 with epoll: release 4.10's rate control, 63 packets of buffer",
        spec: || checked(udt::Settings::EPOLL_2015),
    },
    SocketPreset {
        name: "srt",
        about: "SRT's messages, reliable and in order, delivered as they come",
        spec: || checked(srt::Settings::RELIABLE),
    },
    SocketPreset {
        name: "srt-live",
        about: "SRT as for live video: delivered 120 ms after being sent, dropped when later",
        spec: || checked(srt::Settings::LIVE),
    },
];

/// A preset's settings, which a test holds to their own check.
fn checked<T: SocketTransport>(settings: T) -> SocketSpec {
    SocketSpec::new(settings).expect("presets pass their own check")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_every_preset_passes_its_check() {
        let others = lagometer_transport::presets().iter().map(|it| it.name);
        let names: BTreeSet<_> = presets().iter().map(|it| it.name).chain(others).collect();
        assert_eq!(
            names.len(),
            presets().len() + lagometer_transport::presets().len()
        );
        for preset in presets() {
            let spec = (preset.spec)();
            assert!(preset.name.starts_with(spec.transport()), "{}", preset.name);
        }
    }
}
