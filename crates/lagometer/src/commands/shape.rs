//! `lagometer shape`: any program behind an emulated link.

use std::process::ExitCode;
use std::time::Duration;

use lagometer_emu::{Audit, LogSummary, Settings, Shape, ShapeError};
use lagometer_link::Regime;

use super::named::find_network;
use crate::cli::ShapeArguments;
use crate::failure::Failure;

/// How long the command waits for the far one to listen.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the command behind the link; its exit code is the program's.
pub(crate) fn shape(arguments: &ShapeArguments) -> Result<ExitCode, Failure> {
    let profile = find_network(&arguments.network, None)?;
    let shape = Shape {
        profile: &profile,
        seed: arguments.seed,
        regime: Regime::Time,
        settings: Settings {
            log: arguments.pcap.clone(),
            ..Settings::default()
        },
        command: &arguments.command,
        remote: arguments.remote.as_deref(),
        timeout: TIMEOUT,
    };
    let shaped = shape.run().map_err(failure)?;
    if let Some(status) = shaped.remote_ended {
        note!("lagometer: the far command ended before the near one: {status}");
    }
    if let Some(log) = &shaped.network.log {
        tell_log(log);
    }
    note!("lagometer: {}", in_a_line(&shaped.network.audit));
    for fault in &shaped.network.audit.faults {
        note!("lagometer: not valid: {fault}");
    }
    // Exit codes have eight bits, here as in shells.
    Ok(ExitCode::from(shaped.exit_code as u8))
}

/// Says what became of a log of packets.
pub(super) fn tell_log(log: &LogSummary) {
    let path = log.path.display();
    match &log.failure {
        Some(why) => note!(
            "lagometer: {path}: writing ended early: {why}; {} packets are missing",
            log.missing
        ),
        None if log.missing > 0 => note!(
            "lagometer: {path}: the disk was too slow for {} of {} packets",
            log.missing,
            log.packets + log.missing
        ),
        None => note!("lagometer: {path} holds {} packets", log.packets),
    }
}

/// What the emulator did, asked against delivered.
fn in_a_line(audit: &Audit) -> String {
    let (up, down) = match &audit.lanes[..] {
        [lane, ..] => (lane.up.packets, lane.down.packets),
        [] => (0, 0),
    };
    let (asked, realised) = (&audit.asked, &audit.realised);
    format!(
        "audit: {}; {up} packets up and {down} down in {:.1} s; delay {:.2} of {:.2} ms asked, \
         loss {:.2} of {:.2} %, {:.2} Mbit/s; released {:.0} us late (p50), {:.0} us (p99)",
        if audit.valid { "valid" } else { "NOT VALID" },
        audit.seconds,
        realised.delay_ms.mean,
        asked.delay_ms.mean,
        realised.loss_pct,
        asked.loss_pct,
        realised.rate_mbit_per_s,
        audit.release_error_us.p50,
        audit.release_error_us.p99,
    )
}

fn failure(error: ShapeError) -> Failure {
    match error {
        ShapeError::Network(error) => super::emulated::failure(error),
        error @ ShapeError::CannotStart { .. } => Failure::input(error),
    }
}
