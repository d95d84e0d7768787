//! A sweep in words: who is faster here and why, computed from the figures.

use crate::document::{Cell, Sweep};
use crate::written::units::{delay, rate, size};
use crate::written::{factor, lost_share};

/// Who is faster here and why; nothing where too little was measured to say.
#[must_use]
pub fn sweep_verdict(sweep: &Sweep) -> Option<String> {
    let sentences: Vec<String> = [
        faster_answer(sweep),
        small_messages(sweep),
        large_messages(sweep),
        batching(sweep),
        loss(sweep),
    ]
    .into_iter()
    .flatten()
    .collect();
    (!sentences.is_empty()).then(|| sentences.join(" ") + measured_once(sweep))
}

/// That nothing is known of how figures vary, where they are of one measurement each.
fn measured_once(sweep: &Sweep) -> &'static str {
    if sweep.cells.iter().any(|cell| cell.per_seed.len() > 1) {
        ""
    } else {
        " Each figure is of one measurement; how far another would be from it is not known."
    }
}

/// The smallest or largest size at which every one of `tests` has a figure,
/// with their cells.
fn at_common<'a, const N: usize>(
    sweep: &'a Sweep,
    tests: [&str; N],
    largest: bool,
) -> Option<[&'a Cell; N]> {
    let mut sizes = sweep.sizes();
    if largest {
        sizes.reverse();
    }
    sizes.into_iter().find_map(|bytes| {
        let cells = tests.map(|test| {
            sweep
                .cell(test, bytes)
                .filter(|cell| cell.figure().is_some())
        });
        let found: Vec<&Cell> = cells.into_iter().flatten().collect();
        <[&Cell; N]>::try_from(found).ok()
    })
}

/// TCP's answer against UDP's.
fn faster_answer(sweep: &Sweep) -> Option<String> {
    let [tcp, udp] = at_common(sweep, ["tcp_lat", "udp_lat"], false)?;
    let (tcp_us, udp_us) = (tcp.latency_us?, udp.latency_us?);
    let at = size(tcp.size_bytes);
    if (tcp_us / udp_us).max(udp_us / tcp_us) < 1.05 {
        return Some(format!(
            "At {at} TCP and UDP answer within 5 % of each other, UDP in {} one way.",
            delay(udp_us / 1e3)
        ));
    }
    let (first, quick, other, slow, why) = if udp_us < tcp_us {
        let why = "a stream also keeps order, acknowledgements and timers for every message";
        ("UDP", udp_us, "TCP", tcp_us, why)
    } else {
        let why = "an offload or the placement of this path may be why";
        ("TCP", tcp_us, "UDP", udp_us, why)
    };
    Some(format!(
        "At {at} {first} answers sooner: {} one way against {other}'s {}; {why}.",
        delay(quick / 1e3),
        delay(slow / 1e3)
    ))
}

/// Small messages: what coalescing gives the stream.
fn small_messages(sweep: &Sweep) -> Option<String> {
    let [tcp, udp] = at_common(sweep, ["tcp_bw", "udp_bw"], false)?;
    let (stream, datagrams) = (tcp.recv_mbit_per_s?, udp.recv_mbit_per_s?);
    let each_ns = |cell: &Cell, mbit: f64| f64::from(cell.size_bytes) * 8e3 / mbit;
    let costs = format!(
        "a message costs {:.0} ns over TCP and {:.0} ns over UDP",
        each_ns(tcp, stream),
        each_ns(udp, datagrams)
    );
    let at = size(tcp.size_bytes);
    Some(if stream > datagrams {
        format!(
            "At {at} a stream carries {} times as much as datagrams ({} against {}): {costs}; \
             the kernel gathers small writes into large segments, while every datagram walks \
             through all layers by itself.",
            factor(stream / datagrams),
            rate(stream),
            rate(datagrams)
        )
    } else {
        format!(
            "At {at} datagrams carry {} times as much as a stream ({} against {}): {costs}.",
            factor(datagrams / stream),
            rate(datagrams),
            rate(stream)
        )
    })
}

/// Large messages: copying and congestion control.
fn large_messages(sweep: &Sweep) -> Option<String> {
    let [small, _] = at_common(sweep, ["tcp_bw", "udp_bw"], false)?;
    let [tcp, udp] = at_common(sweep, ["tcp_bw", "udp_bw"], true)?;
    if small.size_bytes == tcp.size_bytes {
        return None;
    }
    let (stream, datagrams) = (tcp.recv_mbit_per_s?, udp.recv_mbit_per_s?);
    let control = sweep.congestion_control.as_deref().unwrap_or("its own");
    let at = size(tcp.size_bytes);
    Some(if datagrams > stream {
        format!(
            "At {at} datagrams are ahead, {} against {}: the cost of each call is spread over many \
             bytes, and nothing paces them, while TCP sends as its congestion control ({control}) \
             permits.",
            rate(datagrams),
            rate(stream)
        )
    } else {
        format!(
            "At {at} the stream is ahead, {} against {}, under {control}: it leaves in segments \
             that are cut as late as can be, and waits for the receiver instead of losing what \
             it cannot take.",
            rate(stream),
            rate(datagrams)
        )
    })
}

/// What sharing system calls gives, where that was measured.
fn batching(sweep: &Sweep) -> Option<String> {
    let mut best: Option<(&Cell, &Cell, f64)> = None;
    for many in sweep
        .cells
        .iter()
        .filter(|cell| cell.test == "udp_bw_batched")
    {
        let Some(one) = sweep.cell("udp_bw", many.size_bytes) else {
            continue;
        };
        let (Some(together), Some(each)) = (many.recv_mbit_per_s, one.recv_mbit_per_s) else {
            continue;
        };
        if each > 0.0 && best.is_none_or(|(.., gain)| together / each > gain) {
            best = Some((many, one, together / each));
        }
    }
    let (many, one, gain) = best?;
    Some(format!(
        "With {} datagrams of {} carry {} times as much, {} instead of {}: most of what a datagram \
         costs is its walk through the kernel, which is then taken once for many.",
        many.method,
        size(many.size_bytes),
        factor(gain),
        rate(many.recv_mbit_per_s?),
        rate(one.recv_mbit_per_s?)
    ))
}

/// Datagrams that were lost.
fn loss(sweep: &Sweep) -> Option<String> {
    let share = |cell: &Cell| cell.lost as f64 / cell.sent.max(1) as f64;
    let worst = sweep
        .cells
        .iter()
        .filter(|cell| cell.test == "udp_bw" && cell.lost > 0)
        .max_by(|one, other| share(one).total_cmp(&share(other)))?;
    Some(format!(
        "Nothing holds a sender of datagrams back: at {} the receiver missed {} % of them.",
        size(worst.size_bytes),
        lost_share(share(worst))
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cell(test: &str, bytes: u32, latency: Option<f64>, mbit: Option<f64>) -> Cell {
        Cell {
            test: test.to_owned(),
            size_bytes: bytes,
            method: "GSO".to_owned(),
            latency_us: latency,
            recv_mbit_per_s: mbit,
            sent: 100,
            received: 90,
            lost: if test == "udp_bw" { 10 } else { 0 },
            ..Cell::default()
        }
    }

    fn sweep(cells: Vec<Cell>) -> Sweep {
        Sweep {
            congestion_control: Some("bbr".to_owned()),
            cells,
            ..Sweep::default()
        }
    }

    #[test]
    fn the_paragraph_names_who_is_faster_and_why() {
        let text = sweep_verdict(&sweep(vec![
            cell("tcp_lat", 1, Some(2.6), None),
            cell("udp_lat", 1, Some(2.1), None),
            cell("tcp_bw", 1, None, Some(28.0)),
            cell("udp_bw", 1, None, Some(5.6)),
            cell("tcp_bw", 16_384, None, Some(16_000.0)),
            cell("udp_bw", 16_384, None, Some(33_000.0)),
            cell("udp_bw_batched", 1, None, Some(84.0)),
        ]))
        .unwrap();
        for words in [
            "At 1 B UDP answers sooner: 2.10 µs one way against TCP's 2.60 µs",
            "a stream carries 5.00 times as much as datagrams (28.0 Mbit/s against 5.60 Mbit/s)",
            "286 ns over TCP and 1429 ns over UDP",
            "At 16 KiB datagrams are ahead, 33.0 Gbit/s against 16.0 Gbit/s",
            "(bbr)",
            "15.0 times as much, 84.0 Mbit/s instead of 5.60 Mbit/s",
            "missed 10.00 % of them",
        ] {
            assert!(text.contains(words), "{words:?} is not in: {text}");
        }
    }

    #[test]
    fn the_other_way_round_it_says_the_other() {
        let text = sweep_verdict(&sweep(vec![
            cell("tcp_lat", 1, Some(2.1), None),
            cell("udp_lat", 1, Some(2.6), None),
            cell("tcp_bw", 1, None, Some(3.0)),
            cell("udp_bw", 1, None, Some(6.0)),
            cell("tcp_bw", 16_384, None, Some(50_000.0)),
            cell("udp_bw", 16_384, None, Some(33_000.0)),
        ]))
        .unwrap();
        for words in [
            "TCP answers sooner",
            "may be why",
            "Each figure is of one measurement",
            "datagrams carry 2.00 times",
            "stream is ahead",
        ] {
            assert!(text.contains(words), "{words:?} is not in: {text}");
        }
    }

    #[test]
    fn nothing_is_said_of_what_was_not_measured() {
        assert_eq!(sweep_verdict(&Sweep::default()), None);
        let failed = Cell {
            failure: Some("no".to_owned()),
            ..cell("tcp_bw", 1, None, None)
        };
        assert_eq!(sweep_verdict(&sweep(vec![failed])), None);
    }
}
