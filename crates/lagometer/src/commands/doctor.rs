//! `lagometer doctor`: this machine's noise floor, and what it permits.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Instant, SystemTime};

use lagometer_instruments::machine::{Permit, examined, permits};
use lagometer_results::{Host, NoiseQuantiles, Warning};
use serde_json::json;

use crate::cli::DoctorArguments;
use crate::failure::Failure;
use crate::{instrument, output};

/// Examines the machine and says what was found.
pub(crate) fn doctor(arguments: &DoctorArguments) -> Result<ExitCode, Failure> {
    let (started, began) = (SystemTime::now(), Instant::now());
    // Before anything has made a second thread: a process with several may
    // not enter a user namespace.
    let permits = permits();
    let host = examined();
    let words = host
        .noise
        .as_ref()
        .map(lagometer_results::machine_verdict)
        .unwrap_or_default();
    let shown = as_text(&host, &permits, &words);
    if let Some(path) = &arguments.json {
        let asked = json!({ "permits": permits_as_json(&permits) });
        let mut document = instrument::document("doctor", asked, started, began.elapsed(), host);
        document.verdict = Some(words);
        document.warnings = permits.iter().filter_map(warning).collect();
        let text = document.to_json();
        if path.as_os_str() == "-" {
            output::print(&text)?;
            return Ok(ExitCode::SUCCESS);
        }
        output::write(path, &text)?;
    }
    output::print(&shown)?;
    Ok(ExitCode::SUCCESS)
}

fn as_text(host: &Host, permits: &[Permit], words: &str) -> String {
    let mut text = format!("{} {}, {} processors\n\n", host.os, host.kernel, host.cpus);
    for (what, figure) in figures(host) {
        let _ = writeln!(text, "  {what:<34} {figure}");
    }
    text.push('\n');
    for permit in permits {
        match &permit.found {
            Ok(found) => {
                let _ = writeln!(text, "  {:<34} {found}", permit.name);
            }
            Err(why) => {
                let _ = writeln!(
                    text,
                    "  {:<34} MISSING: {why}\n  {:<34} for {}; {}",
                    permit.name, "", permit.serves, permit.mend
                );
            }
        }
    }
    let _ = write!(text, "\n{words}\n");
    text
}

/// Every figure with its unit.
fn figures(host: &Host) -> Vec<(&'static str, String)> {
    let Some(noise) = &host.noise else {
        return Vec::new();
    };
    let mut lines = vec![("a sleep of 2 ms is exceeded by", spread(&noise.wake_us))];
    if let Some(floor) = &noise.floor {
        lines.push((
            "a sleep of 50 µs, least slack",
            spread(&floor.short_sleep_us),
        ));
        lines.extend(
            floor
                .timer_slack_us
                .map(|slack| ("timer slack", format!("{slack} µs"))),
        );
        for (what, found) in [
            ("waking a thread, same core", &floor.wake_same_core_us),
            ("waking a thread, another core", &floor.wake_cross_core_us),
        ] {
            lines.extend(found.as_ref().map(|found| (what, spread(found))));
        }
        lines.push((
            "lost while spinning",
            format!(
                "{} %, longest gap {} µs",
                noise.steal_pct, floor.longest_gap_us
            ),
        ));
        lines.extend(
            floor
                .stolen_pct
                .map(|stolen| ("stolen by the host", format!("{stolen} %"))),
        );
        lines.push((
            "reading the clock",
            format!(
                "{} ns, source `{}`",
                floor.clock_read_ns, floor.clock_source
            ),
        ));
        lines.push(("a system call", format!("{} ns", floor.system_call_ns)));
        lines.extend(floor.udp_loopback_per_s.map(|rate| {
            let rate = format!("{:.0} k datagrams/s, one thread, one call each", rate / 1e3);
            ("UDP over loopback", rate)
        }));
    }
    lines
}

fn spread(of: &NoiseQuantiles) -> String {
    format!("p50 {} µs, p99 {} µs", of.p50, of.p99)
}

fn permits_as_json(permits: &[Permit]) -> serde_json::Value {
    permits
        .iter()
        .map(|permit| {
            let found = match &permit.found {
                Ok(found) | Err(found) => found,
            };
            json!({
                "name": permit.name,
                "serves": permit.serves,
                "is_there": permit.is_there(),
                "found": found,
            })
        })
        .collect()
}

fn warning(permit: &Permit) -> Option<Warning> {
    let why = permit.found.as_ref().err()?;
    Some(Warning {
        what: format!("{} missing: {why}", permit.name),
        why: format!("it serves {}", permit.serves),
        mend: permit.mend.clone(),
    })
}
