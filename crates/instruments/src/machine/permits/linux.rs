//! What the doctor finds that Linux offers: namespaces, TUN, offloads, busy polling.

use std::fs::{self, OpenOptions};
use std::net::{Ipv4Addr, UdpSocket};

use lagometer_emu::Permission;
use nix::sys::socket::{setsockopt, sockopt};
use rustix::net::TxTimeFlags;
use rustix::time::ClockId;

use super::Permit;

pub(super) fn permits() -> Vec<Permit> {
    vec![
        namespaces(),
        tun(),
        offload(
            "UDP segmentation offload (GSO)",
            "many datagrams sent in one system call",
            |socket| setsockopt(socket, sockopt::UdpGsoSegment, &1200),
        ),
        offload(
            "UDP receive offload (GRO)",
            "many datagrams received in one system call",
            |socket| setsockopt(socket, sockopt::UdpGroSegment, &true),
        ),
        departure_times(),
        busy_polling(),
        congestion_control("bbr"),
        congestion_control("cubic"),
        congestion_control("reno"),
    ]
}

fn namespaces() -> Permit {
    let (found, mend) = match Permission::probe() {
        Ok(Permission::Privileged) => (Ok("with the privileges it has".to_owned()), None),
        Ok(Permission::OwnUserNamespace) => (Ok("in a user namespace of its own".to_owned()), None),
        Err(refusal) => (Err(refusal.reason), Some(refusal.mend)),
    };
    Permit {
        name: "network namespaces",
        serves: "the testbed `emu` and `shape`",
        found,
        mend: mend.unwrap_or_default(),
    }
}

fn tun() -> Permit {
    let opened = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun");
    Permit {
        name: "TUN devices",
        serves: "the testbed `emu` on the quickest way",
        found: opened
            .map(|_| "/dev/net/tun".to_owned())
            .map_err(|error| format!("/dev/net/tun: {error}")),
        mend: "`modprobe tun`, or in a container `--device /dev/net/tun`; \
               packet sockets over a pair of veth devices serve meanwhile"
            .to_owned(),
    }
}

fn offload(
    name: &'static str,
    serves: &'static str,
    set: impl Fn(&UdpSocket) -> nix::Result<()>,
) -> Permit {
    Permit {
        name,
        serves,
        found: try_on_socket(|socket| Ok(set(socket)?)),
        mend: "Linux 5.0 or later has it".to_owned(),
    }
}

fn departure_times() -> Permit {
    Permit {
        name: "departure times (SO_TXTIME)",
        serves: "packets that a queueing discipline (fq, etf) releases on time",
        found: try_on_socket(|socket| {
            Ok(rustix::net::sockopt::set_txtime(
                socket,
                ClockId::Monotonic,
                TxTimeFlags::empty(),
            )?)
        }),
        mend: "Linux 4.19 or later has it".to_owned(),
    }
}

/// The kernel shows the setting only where it can do it.
fn busy_polling() -> Permit {
    Permit {
        name: "busy polling (SO_BUSY_POLL)",
        serves: "reading a network card without waiting for its interrupt",
        found: fs::read_to_string("/proc/sys/net/core/busy_poll")
            .map(|micros| format!("net.core.busy_poll is {} us", micros.trim()))
            .map_err(|_| "the kernel was built without it".to_owned()),
        mend: "a kernel with CONFIG_NET_RX_BUSY_POLL".to_owned(),
    }
}

fn congestion_control(wanted: &'static str) -> Permit {
    let named =
        |file: &str| fs::read_to_string(format!("/proc/sys/net/ipv4/{file}")).unwrap_or_default();
    let available = named("tcp_available_congestion_control");
    let is_default = named("tcp_congestion_control").trim() == wanted;
    let found = if available.split_whitespace().any(|name| name == wanted) {
        Ok(if is_default {
            "the default here"
        } else {
            "available"
        }
        .to_owned())
    } else {
        Err(format!("there are: {}", available.trim()))
    };
    Permit {
        name: match wanted {
            "bbr" => "TCP with BBR",
            "cubic" => "TCP with CUBIC",
            _ => "TCP with Reno",
        },
        serves: "the lane of that name",
        found,
        mend: format!("`modprobe tcp_{wanted}`"),
    }
}

fn try_on_socket(what: impl FnOnce(&UdpSocket) -> std::io::Result<()>) -> Result<String, String> {
    UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|socket| what(&socket))
        .map(|()| "available".to_owned())
        .map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_missing_has_a_mend() {
        for permit in permits() {
            assert!(permit.is_there() || !permit.mend.is_empty(), "{permit:?}");
        }
    }

    #[test]
    fn a_congestion_control_nobody_has_is_missing() {
        assert!(!congestion_control("nobody's").is_there());
    }
}
