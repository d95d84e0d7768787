//! The list of testbeds, and what each plays of the transports.

use lagometer_results as document;
use lagometer_socket::{SocketSpec, tcp};
use lagometer_transport::{BadSpec, Spec};
use serde_json::{Map, Value};

/// Where lanes run, and what lies between their two ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Testbed {
    /// Virtual time.
    Sim,
    /// Real sockets in two hosts behind an emulated link.
    Emu,
    /// Real sockets with a relay of UDP datagrams between them.
    Relay,
    /// Real sockets in two hosts behind an emulated link, all of it within a
    /// kernel in virtual time.
    Kernel,
    /// Real sockets over a real path.
    Net,
}

impl Testbed {
    /// Its name in documents and on the command line; the relay is a manner of
    /// `emu`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sim => "sim",
            Self::Emu | Self::Relay => "emu",
            Self::Kernel => "kernel",
            Self::Net => "net",
        }
    }

    /// What it is, in a line.
    #[must_use]
    pub const fn about(self) -> &'static str {
        match self {
            Self::Sim => "Virtual time: deterministic, faster than real time",
            Self::Emu => "Real sockets and real kernels behind emulated links, in real time",
            Self::Relay => {
                "Real sockets with a relay of UDP datagrams on the loopback device, in real time"
            }
            Self::Kernel => {
                "Real sockets and a real Linux kernel behind emulated links, in virtual time: \
                 deterministic; needs `lagometer kernel build` once"
            }
            Self::Net => "Real sockets over a real path, to `lagometer serve` on another machine",
        }
    }

    /// The transport called `name` with `settings` in place of its own, as it is
    /// played here.
    ///
    /// # Errors
    ///
    /// [`BadSpec`]: there is none of that name, it is not played here, or a setting
    /// does not fit.
    pub fn transport(
        self,
        name: &str,
        settings: &Map<String, Value>,
    ) -> Result<SocketSpec, BadSpec> {
        if self == Self::Sim {
            if lagometer_socket::presets().iter().any(|it| it.name == name) {
                return Err(BadSpec::NotHere(format!(
                    "{name} owns its sockets and cannot run in virtual time; `--testbed emu` \
                     plays it"
                )));
            }
            return match Spec::preset(name) {
                Some(endpoint) => Ok(endpoint.with_overrides(settings)?.into()),
                None => Err(BadSpec::unknown(name, lagometer_socket::names())),
            };
        }
        let spec = SocketSpec::resolve(name, settings)?;
        // Guests have a kernel of their own, and ask it themselves.
        let offered = || match self {
            Self::Kernel => Ok(()),
            _ => spec.offered(),
        };
        if let Err(lacks) = spec.available().and_then(|()| offered()) {
            return Err(BadSpec::NotHere(lacks.to_string()));
        }
        // Hosts of this program's own making ask by their routes.
        if self == Self::Net
            && spec.asks_for_ecn()
            && let Err(lacks) = tcp::machine_asks_for_ecn()
        {
            return Err(BadSpec::NotHere(lacks.to_string()));
        }
        if self == Self::Relay && !spec.is_carried_by_udp() {
            return Err(BadSpec::NotHere(format!(
                "{name} is not carried by UDP datagrams, and the relay carries nothing else; \
                 `--emu-mode namespaces` plays it"
            )));
        }
        Ok(spec)
    }
}

/// What a transport promises and what it costs, as documents have it.
#[must_use]
pub fn promises(transport: &SocketSpec) -> document::TransportProperties {
    let properties = transport.properties();
    document::TransportProperties {
        reliable: properties.reliable,
        ordered: properties.ordered,
        head_of_line: properties.head_of_line.to_string(),
        encrypted: properties.encrypted,
        mtu_bytes: properties.mtu_bytes,
        header_bytes: properties.header_bytes,
        acks: properties.acks,
        late_answer: properties.late_answer,
        congestion_control: properties.congestion_control,
        peer_timeout: properties.peer_timeout.to_string(),
        fixed: properties.fixed,
        varies: properties.varies,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(testbed: Testbed, name: &str) -> String {
        let found = testbed.transport(name, &Map::new());
        found.unwrap_err().to_string()
    }

    #[test]
    fn virtual_time_plays_endpoints_and_says_where_others_are_played() {
        for preset in lagometer_transport::presets() {
            let spec = Testbed::Sim.transport(preset.name, &Map::new()).unwrap();
            assert_eq!(spec.endpoint(), Spec::preset(preset.name).as_ref());
        }
        let why = refused(Testbed::Sim, "udt-stream");
        assert!(why.contains("`--testbed emu` plays it"), "{why}");
        let why = refused(Testbed::Sim, "udt-steam");
        assert!(why.ends_with("did you mean `udt-stream`?"), "{why}");
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn hosts_of_our_own_ask_for_ecn_and_over_a_real_path_the_machine_must() {
        let asks = Map::from_iter([("ecn".to_owned(), Value::Bool(true))]);
        for testbed in [Testbed::Emu, Testbed::Kernel] {
            assert!(testbed.transport("tcp-reno", &asks).is_ok(), "{testbed:?}");
        }
        let over_path = Testbed::Net.transport("tcp-reno", &asks);
        match tcp::machine_asks_for_ecn() {
            Ok(()) => assert!(over_path.is_ok()),
            Err(lacks) => assert_eq!(over_path.unwrap_err().to_string(), {
                BadSpec::NotHere(lacks.to_string()).to_string()
            }),
        }
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn what_the_machines_kernel_lacks_guests_may_have() {
        let lacking = "congestion_control";
        let lacking = Map::from_iter([(lacking.to_owned(), Value::from("nonesuch"))]);
        let why = Testbed::Emu.transport("tcp-cubic", &lacking).unwrap_err();
        assert!(why.to_string().contains("`nonesuch`"), "{why}");
        assert!(Testbed::Kernel.transport("tcp-cubic", &lacking).is_ok());
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn the_relay_plays_what_udp_carries() {
        assert!(Testbed::Relay.transport("kcp", &Map::new()).is_ok());
        let why = refused(Testbed::Relay, "tcp-cubic");
        assert!(why.contains("not carried by UDP"), "{why}");
    }
}
