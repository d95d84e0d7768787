//! Whether anybody listens in a host, from the kernel's tables of sockets.

use std::fs;

/// The state of a TCP socket that listens, as the tables write it.
const TCP_LISTENS: &str = "0A";
/// The state of a UDP socket that is connected to nobody.
const UDP_UNCONNECTED: &str = "07";

/// Whether a socket in the calling thread's network namespace takes
/// connections or datagrams from anybody.
pub(super) fn anybody() -> bool {
    [
        ("tcp", TCP_LISTENS),
        ("tcp6", TCP_LISTENS),
        ("udp", UDP_UNCONNECTED),
        ("udp6", UDP_UNCONNECTED),
    ]
    .iter()
    .any(|(table, state)| {
        fs::read_to_string(format!("/proc/thread-self/net/{table}"))
            .is_ok_and(|table| lists(&table, state))
    })
}

/// Whether a table lists a socket in `state`, its fourth column.
fn lists(table: &str, state: &str) -> bool {
    table
        .lines()
        .skip(1)
        .any(|line| line.split_whitespace().nth(3) == Some(state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_listener_is_found_and_a_connection_is_not() {
        let table = "\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt
   0: 0100007F:1538 00000000:0000 0A 00000000:00000000 00:00000000 00000000
";
        assert!(lists(table, TCP_LISTENS));
        assert!(!lists(&table.replace(" 0A ", " 01 "), TCP_LISTENS));
        assert!(!lists("", TCP_LISTENS));
    }
}
