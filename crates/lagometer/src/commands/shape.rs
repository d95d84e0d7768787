//! `lagometer shape`: any program behind an emulated link.

use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use lagometer_emu::{Audit, LogSummary, Output, Settings, Shape, ShapeError, Shaped, Waiting};
use lagometer_guest::{SHARE, STOP};
use lagometer_link::Regime;
use lagometer_testbed::Testbed;

use super::named::find_plain_network;
use super::shape_in_guest::shape_in_guest;
use crate::cli::{GuestShapeArguments, ShapeArguments};
use crate::failure::{Failure, Missing};
use crate::guest::PACKETS;

/// How long the clients wait for the server command to listen.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Runs the command behind the link; its exit code is the program's.
pub(crate) fn shape(arguments: &ShapeArguments) -> Result<ExitCode, Failure> {
    check_flags(arguments)?;
    let profile = find_plain_network(&arguments.network, "`shape`")?;
    if arguments.testbed == Testbed::Kernel {
        return shape_in_guest(arguments);
    }
    let shape = Shape {
        profile: &profile,
        seed: arguments.seed,
        regime: Regime::Time,
        settings: Settings {
            log: arguments.pcap.clone(),
            ..Settings::default()
        },
        command: &arguments.command,
        clients: arguments.clients,
        output: Output::Inherited,
        remote: arguments.remote.as_deref(),
        timeout: TIMEOUT,
        stop: None,
    };
    let shaped = shape.run().map_err(failure)?;
    report(&shaped)
}

/// Flags that have a meaning in a guest only.
fn check_flags(arguments: &ShapeArguments) -> Result<(), Failure> {
    let alone = [
        ("--twice", arguments.twice),
        ("--keep", arguments.keep.is_some()),
        ("--plain", arguments.plain),
        ("--kernel", arguments.guest.kernel.is_some()),
    ];
    match alone.iter().find(|(_, given)| *given) {
        Some((flag, _)) if arguments.testbed != Testbed::Kernel => {
            Err(Failure::Input(format!("{flag} is for `--testbed kernel`")))
        }
        _ => Ok(()),
    }
}

/// Runs the commands within a guest.
pub(crate) fn shape_within(arguments: &GuestShapeArguments) -> Result<ExitCode, Failure> {
    let profile = find_plain_network(&arguments.network, "`shape`")?;
    let folder = Path::new(SHARE);
    let is_logged = arguments.log || arguments.pcap.is_some();
    let shape = Shape {
        profile: &profile,
        seed: arguments.seed,
        regime: Regime::Time,
        settings: Settings {
            log: is_logged.then(|| folder.join(PACKETS)),
            waiting: Waiting::Sleep,
            ..Settings::default()
        },
        command: &arguments.command,
        clients: arguments.clients,
        output: Output::Tagged,
        remote: arguments.remote.as_deref(),
        timeout: TIMEOUT,
        stop: Some(&folder.join(STOP)),
    };
    let mut shaped = shape.run().map_err(failure)?;
    // The log is reported by the path where it will be found.
    shaped.network.log = shaped
        .network
        .log
        .zip(arguments.pcap.clone())
        .map(|(log, path)| LogSummary { path, ..log });
    report(&shaped)
}

/// Says what came of it; the exit code is the client's, unless the log of packets ended
/// early.
fn report(shaped: &Shaped) -> Result<ExitCode, Failure> {
    if let Some(status) = shaped.remote_ended {
        note!("lagometer: the server command ended before the client: {status}");
    }
    let logged = shaped.network.log.as_ref().map_or(Ok(()), report_log);
    note!("lagometer: {}", in_a_line(&shaped.network.audit));
    for fault in &shaped.network.audit.faults {
        note!("lagometer: not valid: {fault}");
    }
    logged?;
    // Exit codes have eight bits, here as in shells.
    Ok(ExitCode::from(shaped.exit_code as u8))
}

/// Says what became of a log of packets; it is a failure if it ended early.
pub(super) fn report_log(log: &LogSummary) -> Result<(), Failure> {
    let path = log.path.display();
    match &log.failure {
        Some(why) => {
            return Err(Failure::Cut {
                path: log.path.clone(),
                why: why.clone(),
                missing: Missing(Some(log.missing)),
            });
        }
        None if log.missing > 0 => note!(
            "lagometer: {path}: the disk was too slow for {} of {} packets",
            log.missing,
            log.packets + log.missing
        ),
        None => note!("lagometer: {path} holds {} packets", log.packets),
    }
    Ok(())
}

/// What the emulator did, asked against delivered.
fn in_a_line(audit: &Audit) -> String {
    let lanes = || audit.lanes.iter();
    let up: u64 = lanes().map(|lane| lane.up.packets).sum();
    let down: u64 = lanes().map(|lane| lane.down.packets).sum();
    let (asked, realised) = (&audit.asked, &audit.realised);
    format!(
        "audit: {}; {up} packets up and {down} down in {:.1} s; delay {:.2} of {:.2} ms asked, \
         loss {:.2} of {:.2} %, {:.2} Mbit/s; released {:.0} us late (p50), {:.0} us (p99){}",
        if audit.valid { "valid" } else { "NOT VALID" },
        audit.seconds,
        realised.delay_ms.mean,
        asked.delay_ms.mean,
        realised.loss_pct,
        asked.loss_pct,
        realised.rate_mbit_per_s,
        audit.release_error_us.p50,
        audit.release_error_us.p99,
        if audit.outside_error_us.is_none() && audit.waiting != Waiting::Sleep.name() {
            "; not audited by the kernel's stamps"
        } else {
            ""
        },
    )
}

fn failure(error: ShapeError) -> Failure {
    match error {
        ShapeError::Network(error) => super::emulated::failure(error),
        error @ ShapeError::CannotStart { .. } => Failure::input(error),
    }
}
