//! What `TCP_INFO` says of an end, of the kernel's and of ours, as text that can be compared:
//! a name and a number each.
//!
//! Left out is what the engine does not count: what it does with the peer's segments beside
//! their data (`segs_in`, `rcv_ooopack`), times since something came, time spent waiting
//! for a window, and the rate of delivery, which follows from what is compared.

use lagometer_tcp::congestion::CongestionState;
use lagometer_tcp::{Info, State};

/// Names of what is compared, in their order.
const NAMES: [&str; 30] = [
    "state",
    "ca",
    "cwnd",
    "ssthresh",
    "srtt",
    "rttvar",
    "min_rtt",
    "rto",
    "backoff",
    "retransmits",
    "probes",
    "ato",
    "out",
    "sacked",
    "lost",
    "retrans",
    "total_retrans",
    "reordering",
    "reord_seen",
    "dsack_dups",
    "delivered",
    "snd_mss",
    "rcv_mss",
    "advmss",
    "pmtu",
    "rcv_ssthresh",
    "rcv_rtt",
    "rcv_space",
    "snd_wnd",
    "notsent",
];
/// The kernel's numbers of two states.
const SYN_SENT: u64 = 2;
const CLOSED: u64 = 7;

fn text(values: [u64; NAMES.len()]) -> String {
    let words: Vec<String> = NAMES
        .iter()
        .zip(values)
        .map(|(name, value)| format!("{name}={value}"))
        .collect();
    words.join(" ")
}

/// What the kernel reported.
#[cfg(target_os = "linux")]
pub(crate) fn of_kernel(info: &nix::libc::tcp_info) -> String {
    text([
        info.tcpi_state.into(),
        info.tcpi_ca_state.into(),
        info.tcpi_snd_cwnd.into(),
        info.tcpi_snd_ssthresh.into(),
        info.tcpi_rtt.into(),
        info.tcpi_rttvar.into(),
        info.tcpi_min_rtt.into(),
        info.tcpi_rto.into(),
        info.tcpi_backoff.into(),
        info.tcpi_retransmits.into(),
        info.tcpi_probes.into(),
        info.tcpi_ato.into(),
        info.tcpi_unacked.into(),
        info.tcpi_sacked.into(),
        info.tcpi_lost.into(),
        info.tcpi_retrans.into(),
        info.tcpi_total_retrans.into(),
        info.tcpi_reordering.into(),
        info.tcpi_reord_seen.into(),
        info.tcpi_dsack_dups.into(),
        info.tcpi_delivered.into(),
        info.tcpi_snd_mss.into(),
        info.tcpi_rcv_mss.into(),
        info.tcpi_advmss.into(),
        info.tcpi_pmtu.into(),
        info.tcpi_rcv_ssthresh.into(),
        info.tcpi_rcv_rtt.into(),
        info.tcpi_rcv_space.into(),
        info.tcpi_snd_wnd.into(),
        info.tcpi_notsent_bytes.into(),
    ])
}

/// What a connection of ours says.
pub(crate) fn of_connection(info: &Info) -> String {
    let us = |time: std::time::Duration| time.as_micros() as u64;
    text([
        number_of(info.state),
        match info.congestion {
            CongestionState::Open => 0,
            CongestionState::Disorder => 1,
            CongestionState::WindowReduced => 2,
            CongestionState::Recovery => 3,
            CongestionState::Loss => 4,
        },
        info.cwnd.into(),
        info.ssthresh.into(),
        us(info.rtt),
        us(info.rtt_deviation),
        info.rtt_least.map_or(u64::from(u32::MAX), us),
        us(info.rto),
        info.backoff.into(),
        info.retransmits.into(),
        info.probes.into(),
        us(info.delayed_ack),
        info.unacked.into(),
        info.sacked.into(),
        info.lost.into(),
        info.retransmitted.into(),
        info.total_retransmitted,
        info.reordering.into(),
        info.reordering_seen.into(),
        info.duplicates_reported,
        info.delivered,
        info.mss.into(),
        info.peer_mss.into(),
        info.advertised_mss.into(),
        info.path_mtu.into(),
        info.receive_threshold.into(),
        us(info.receive_rtt),
        info.receive_space.into(),
        info.send_window.into(),
        info.not_sent.into(),
    ])
}

/// The kernel's number of a state. A socket whose connection is in TIME-WAIT is closed:
/// what is left of the connection is no socket's.
const fn number_of(state: State) -> u64 {
    match state {
        State::Established => 1,
        State::SynSent => SYN_SENT,
        State::SynReceived => 3,
        State::FinWait1 => 4,
        State::FinWait2 => 5,
        State::TimeWait | State::Closed => CLOSED,
        State::CloseWait => 8,
        State::LastAck => 9,
        State::Closing => 11,
    }
}

/// What first differs: its name, ours and the kernel's. Of a connection that does not stand
/// yet, or no more, the state alone is compared: the rest is guesses, or let go.
pub(crate) fn first_difference<'a>(
    ours: &'a str,
    theirs: &'a str,
) -> Option<(&'a str, &'a str, &'a str)> {
    let bare = [SYN_SENT, CLOSED].map(|state| format!("state={state} "));
    let is_bare = bare.iter().any(|state| theirs.starts_with(state));
    let pairs = ours.split(' ').zip(theirs.split(' '));
    let mut pairs = pairs.take(if is_bare { 1 } else { NAMES.len() });
    pairs.find(|(ours, theirs)| ours != theirs).map(|(a, b)| {
        let name = a.split_once('=').map_or(a, |(name, _)| name);
        (name, a, b)
    })
}

#[cfg(test)]
mod tests {
    use super::{first_difference, text};

    #[test]
    fn the_first_number_that_differs_is_named_and_of_closed_sockets_none_is() {
        let mut values = [1; 30];
        let one = text(values);
        values[2] = 9;
        let other = text(values);
        assert_eq!(first_difference(&one, &one), None);
        assert_eq!(
            first_difference(&one, &other),
            Some(("cwnd", "cwnd=1", "cwnd=9"))
        );
        let closed = |cwnd| {
            let mut values = [0; 30];
            (values[0], values[2]) = (7, cwnd);
            text(values)
        };
        assert_eq!(first_difference(&closed(1), &closed(2)), None);
    }
}
