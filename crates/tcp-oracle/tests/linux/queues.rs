//! The link model's queueing disciplines beside the kernel's.

use std::ffi::OsString;
use std::path::Path;
use std::process::ExitCode;

use lagometer_guest::{Kernel, SHARE};
use libtest_mimic::{Failed, Trial};
use tcp_oracle::{Fates, QueueKind, QueueTrace, compare_queues, fates, record_queues};

use super::{AT_ONCE, SHOWN, TRACES, asked_seeds, traces};

/// By which the guest is asked to play queues.
pub(super) const DRIVE: [&str; 2] = ["guest", "queues"];

/// Plays of each kind that are always held.
const FIXED: u64 = 10;

pub(super) fn trials(kernel: &Kernel) -> Vec<Trial> {
    let trials = QueueKind::ALL.into_iter().map(|kind| {
        let kernel = kernel.clone();
        let name = format!("{}_sends_drops_and_marks_as_the_kernels_does", kind.name());
        Trial::test(name, move || hold(&kernel, kind))
    });
    trials.collect()
}

/// In a guest: plays the queues.
pub(super) fn drive(arguments: &[OsString]) -> ExitCode {
    let words: Vec<_> = arguments
        .iter()
        .map(|word| word.to_string_lossy())
        .collect();
    let asked = match &words[..] {
        [kind, first, count] => QueueKind::named(kind)
            .zip(first.parse().ok())
            .zip(count.parse().ok()),
        _ => None,
    };
    let Some(((kind, first), count)) = asked else {
        println!("no such queues: {words:?}");
        return ExitCode::FAILURE;
    };
    let path = Path::new(SHARE).join(TRACES);
    match record_queues(kind, (first, count), &path, &mut |name| println!("{name}")) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            println!("{why}");
            ExitCode::FAILURE
        }
    }
}

/// Plays queues of a kind and compares them: all must be the same.
fn hold(kernel: &Kernel, kind: QueueKind) -> Result<(), Failed> {
    let (first, count) = asked_seeds()?.unwrap_or((1, FIXED));
    let mut different = Vec::new();
    let mut all = Fates::default();
    let mut at = first;
    while at < first + count {
        let now = AT_ONCE.min(first + count - at);
        let arguments = [kind.name().to_owned(), at.to_string(), now.to_string()];
        let played = QueueTrace::parse_all(&traces(kernel, DRIVE, &arguments)?)?;
        if played.len() as u64 != now {
            return Err(format!("{} of {now} queues were recorded", played.len()).into());
        }
        for trace in played {
            let fates = fates(&trace);
            all.packets += fates.packets;
            all.dropped += fates.dropped;
            all.marked += fates.marked;
            different.extend(compare_queues(&trace));
        }
        at += now;
    }
    println!(
        "{}: {} of {count} the same; {} packets, {} dropped, {} marked",
        kind.name(),
        count - different.len() as u64,
        all.packets,
        all.dropped,
        all.marked
    );
    for difference in different.iter().take(SHOWN) {
        println!("{}", difference.text);
    }
    if all.dropped == 0 || all.marked == 0 {
        return Err("nothing was dropped or nothing marked: this shows nothing".into());
    }
    match different.len() {
        0 => Ok(()),
        some => Err(format!("{some} of {count} differ").into()),
    }
}
