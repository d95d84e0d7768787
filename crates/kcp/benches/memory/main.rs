//! Our KCP engine against the C reference in memory: two ends of a bulk
//! transfer, no sockets, a simulated clock.
//!
//! Both are given the same messages, clock and losses, so that they make the
//! same datagrams; that they do is checked by a digest before anything is
//! timed. Then they run in turns, and the ratio is that of their times within
//! one turn. A figure is all the work of both ends for one segment, in time on
//! the processor.
//!
//! Two scenarios. *Exchange*: the clock goes 10 ms forward, the sender sends
//! its whole window, each datagram is taken in by the receiver and read, the
//! receiver answers. Nothing is ever in flight for longer, and without loss
//! the reference's lists are never walked in vain: what it pays for a large
//! window is memory. *Path*: 20 ms each way, in steps of 1 ms, at each of
//! which both ends take in what has arrived, read it, flush, and ask when they
//! must be woken, the sender producing messages evenly, a tenth less than the
//! window lets through; so nearly a window is in flight the whole time, and
//! each flush finds little of it to send.
//!
//! A datagram that is sent is copied once, as into a kernel. The wire itself
//! keeps of a full datagram only what makes it different from others, so that
//! what is timed is the ends and not the memory that a wire needs.
//!
//! ```text
//! cargo bench -p lagometer-kcp --bench memory [-- WORDS]
//! ```
//!
//! `WORDS` choose the rows whose names contain all of them, as in `path 8192`.
//! `--only=ours` or `--only=reference` plays that alone, for a profiler.

mod case;
mod digest;
mod ends;
mod wire;

use std::hint::black_box;
use std::time::Instant;

use case::{Case, MESSAGE_BYTES, Scenario, play};
use ends::{End, Ours, Reference};

const TURNS: usize = 9;

fn main() {
    let words: Vec<String> = std::env::args()
        .skip(1)
        .filter(|word| !word.starts_with('-'))
        .collect();
    let only = std::env::args().find_map(|word| Some(word.strip_prefix("--only=")?.to_owned()));
    println!(
        "{MESSAGE_BYTES} B messages, nodelay(1, 10, 2, 1); median of {TURNS} turns (least to most)"
    );
    println!(
        "{:<26} {:>21} {:>21}  {:>19}  digest",
        "", "ours ns/segment", "reference", "ratio"
    );
    for scenario in [Scenario::Exchange, Scenario::Path] {
        for loss_percent in [0, 5] {
            for window in [128, 1_024, 8_192] {
                let case = Case {
                    scenario,
                    window,
                    loss_percent,
                    segments: 400_000.max(40 * u64::from(window)),
                };
                let name = case.name();
                let wanted = words.iter().all(|word| name.contains(word.as_str()));
                match &only {
                    _ if !wanted => {}
                    None => compare(&case, &name),
                    Some(whose) => repeat(&case, whose),
                }
            }
        }
    }
}

/// Checks that both make the same datagrams, times them in turns and prints a
/// row.
fn compare(case: &Case, name: &str) {
    let digest = play::<Ours, true>(case);
    let expected = play::<Reference, true>(case);
    assert_eq!(digest, expected, "{name}: the datagrams differ");
    let mut turns: Vec<[f64; 3]> = (0..TURNS)
        .map(|turn| {
            let (ours, theirs);
            if turn % 2 == 0 {
                ours = time::<Ours>(case);
                theirs = time::<Reference>(case);
            } else {
                theirs = time::<Reference>(case);
                ours = time::<Ours>(case);
            }
            [ours, theirs, theirs / ours]
        })
        .collect();
    let mut spread = |column: usize| {
        turns.sort_by(|one, other| one[column].total_cmp(&other[column]));
        let value = |turn: usize| turns[turn][column];
        (value(TURNS / 2), value(0), value(TURNS - 1))
    };
    let (ours, ours_least, ours_most) = spread(0);
    let (theirs, theirs_least, theirs_most) = spread(1);
    let (ratio, ratio_least, ratio_most) = spread(2);
    println!(
        "{name:<26} {ours:>7.1} ({ours_least:.0} to {ours_most:.0}) {theirs:>9.1} ({theirs_least:.0} to {theirs_most:.0}) {ratio:>7.2} ({ratio_least:.2} to {ratio_most:.2})  {digest:016x}"
    );
}

/// Plays one side's engine again and again, for a profiler to look at.
fn repeat(case: &Case, whose: &str) {
    for _ in 0..TURNS {
        let ns = match whose {
            "ours" => time::<Ours>(case),
            _ => time::<Reference>(case),
        };
        println!("{} {whose} {ns:.1}", case.name());
    }
}

/// Nanoseconds for each segment delivered.
fn time<E: End>(case: &Case) -> f64 {
    let (start, wall) = (processor_ns(), Instant::now());
    black_box(play::<E, false>(case));
    let spent = match (start, processor_ns()) {
        (Some(start), Some(end)) => (end - start) as f64,
        _ => wall.elapsed().as_secs_f64() * 1e9,
    };
    spent / case.segments as f64
}

/// Nanoseconds that this thread has had a processor, where the system reports it:
/// a machine with other things to do stretches the wall's time, not this.
fn processor_ns() -> Option<u64> {
    // The kernel brings the figure up to date when the thread is switched.
    std::thread::yield_now();
    let written = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    written.split(' ').next()?.parse().ok()
}
