//! The registry of what runs over real sockets: the transports that own theirs,
//! those that the kernel has, and every endpoint of the crate `transport`.

use std::sync::LazyLock;

use lagometer_transport::{Preset, Spec};

use crate::spec::SocketSpec;
use crate::srt;
#[cfg(target_os = "linux")]
use crate::tcp;
use crate::transport::SocketTransport;
use crate::udt;

/// The transports that own their sockets, one a line, in the order in which lanes
/// are best shown. Each brings its presets.
const TRANSPORTS: &[&[Preset<SocketSpec>]] = &[udt::PRESETS, srt::PRESETS];

/// The transports whose presets are endpoints' and that the kernel plays over
/// sockets, one a line: each makes its own of the endpoint's settings.
const IN_KERNEL: &[fn(&Spec) -> Option<SocketSpec>] = &[
    #[cfg(target_os = "linux")]
    tcp::in_kernel,
];

/// Every preset of a transport that owns its sockets, in the order in which lanes
/// are best shown. The presets of the crate `transport` are not among them.
#[must_use]
pub fn presets() -> &'static [Preset<SocketSpec>] {
    static ALL: LazyLock<Vec<Preset<SocketSpec>>> = LazyLock::new(|| TRANSPORTS.concat());
    &ALL
}

/// The names of all presets that run over real sockets: of endpoints first.
pub fn names() -> impl Iterator<Item = &'static str> {
    let endpoints = lagometer_transport::presets().iter().map(|it| it.name);
    endpoints.chain(presets().iter().map(|it| it.name))
}

/// The preset called `name` as it runs over real sockets, if there is one.
pub(crate) fn preset(name: &str) -> Option<SocketSpec> {
    if let Some(preset) = presets().iter().find(|preset| preset.name == name) {
        return Some(preset.spec());
    }
    let endpoint = Spec::preset(name)?;
    let in_kernel = IN_KERNEL.iter().find_map(|made_of| made_of(&endpoint));
    Some(in_kernel.unwrap_or_else(|| endpoint.into()))
}

/// A preset's settings, which a test holds to their own check.
pub(crate) fn checked<T: SocketTransport>(settings: T) -> SocketSpec {
    SocketSpec::new(settings).expect("presets pass their own check")
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn names_are_unique_and_every_preset_passes_its_check() {
        let unique: BTreeSet<_> = names().collect();
        assert_eq!(unique.len(), names().count());
        for name in names() {
            let spec = preset(name).unwrap();
            assert!(name.starts_with(spec.transport()), "{name}");
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn tcp_is_the_kernels_and_other_endpoints_are_carried_by_udp() {
        let spec = |name: &str| preset(name).unwrap();
        assert!(spec("tcp-cubic").endpoint().is_none());
        assert!(spec("udt").endpoint().is_none());
        assert_eq!(spec("kcp").endpoint(), Spec::preset("kcp").as_ref());
        assert!(preset("nonesuch").is_none());
    }
}
