//! A network to test on, and sockets in its hosts.

use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::time::Duration;

use lagometer_emu::{Device, Host, LaneSetup, Network, Settings};
use lagometer_link::{Link, Profile, Regime};
use lagometer_units::{Clock, Time};

/// Nothing in these tests takes this long unless it hangs.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(20);

/// A link that behaves as `ways`, the text of a profile without its summary.
pub(crate) fn link(ways: &str) -> Link {
    let text = format!("summary = \"a test\"\n{ways}");
    let profile = Profile::from_text("test", &text).expect("the profile is right");
    Link::new(&profile, 1, Regime::Time, Time::ZERO)
}

/// A network with a lane for each of `ways`.
pub(crate) fn network(ways: &[&str]) -> Network {
    network_with(&Settings::default(), ways)
}

pub(crate) fn network_with(settings: &Settings, ways: &[&str]) -> Network {
    let lanes = ways
        .iter()
        .enumerate()
        .map(|(number, ways)| LaneSetup {
            name: format!("lane {number}"),
            link: link(ways).into(),
        })
        .collect();
    Network::start(settings, Clock::start(), lanes).expect("the network starts")
}

/// The devices this machine has.
pub(crate) fn devices() -> Vec<Device> {
    if std::fs::exists("/dev/net/tun").unwrap_or(false) {
        vec![Device::Tun, Device::Ethernet]
    } else {
        vec![Device::Ethernet]
    }
}

/// A UDP socket in `host` at `address` and a port of the system's choice.
pub(crate) fn udp(host: &Host, address: impl Into<IpAddr>) -> UdpSocket {
    let address = SocketAddr::new(address.into(), 0);
    let socket = host
        .run(move || UdpSocket::bind(address))
        .expect("the host works")
        .expect("its address is there");
    socket.set_read_timeout(Some(TIMEOUT)).unwrap();
    socket
}

/// A pair of UDP sockets, local and remote, connected to each other.
pub(crate) fn udp_pair(
    network: &Network,
    local: impl Into<IpAddr>,
    remote: impl Into<IpAddr>,
) -> (UdpSocket, UdpSocket) {
    let local = udp(network.local(), local);
    let remote = udp(network.remote(), remote);
    local.connect(remote.local_addr().unwrap()).unwrap();
    remote.connect(local.local_addr().unwrap()).unwrap();
    (local, remote)
}

/// A TCP listener in `host` at `address`.
pub(crate) fn listener(host: &Host, address: impl Into<IpAddr>) -> TcpListener {
    let address = SocketAddr::new(address.into(), 0);
    host.run(move || TcpListener::bind(address))
        .expect("the host works")
        .expect("its address is there")
}
