//! `lagometer speed`: bulk transfer over one transport after another.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::process::ExitCode;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Instant, SystemTime};

use lagometer_instruments::speed::{self, LanePlan, Pin, Plan, Progress};
use lagometer_remote::{Limits, Remote, Secret, Server, ServerSettings};
use lagometer_results::{Lane, Warning};
use lagometer_socket::{SocketSpec, udp};
use lagometer_testbed::Testbed;
use serde_json::{Map, Value, json};

use super::instrument_in_guest::{self, Measured};
use crate::cli::{Offload, SPEED_LANES, SpeedArguments};
use crate::exit::Exit;
use crate::failure::Failure;
use crate::{instrument, interrupt, output, remote_end};

/// Measures every lane and shows what was found.
pub(crate) fn speed(arguments: &SpeedArguments) -> Result<ExitCode, Failure> {
    arguments.results.check()?;
    let plan = plan(arguments)?;
    lanes(arguments, &plan)?;
    check(arguments)?;
    let measured = if arguments.path.testbed == Testbed::Kernel {
        instrument_in_guest::play(&arguments.path)?
    } else {
        let (remote, _own) = reach(arguments)?;
        measure_over(arguments, &remote, interrupt::listen()?)?
    };
    let document = &measured.document;
    let results = &arguments.results;
    output::show(document, results.json.as_ref(), results.html.as_ref())?;
    let mut has_failed = false;
    for lane in &document.lanes {
        if let Some(why) = &lane.failure {
            note!("lagometer: lane `{}`: {why}", lane.lane);
            has_failed = true;
        }
    }
    let code = measured.outcome()?;
    Ok(if has_failed {
        Exit::Environment.into()
    } else {
        code
    })
}

/// Refuses what has no meaning on the testbed.
fn check(arguments: &SpeedArguments) -> Result<(), Failure> {
    instrument_in_guest::check(&arguments.path, arguments.remote.to.as_deref())?;
    if arguments.path.testbed == Testbed::Kernel && arguments.pin.is_some() {
        return Err(instrument_in_guest::no_pin());
    }
    Ok(())
}

/// Measures to `remote`, until `stop`.
pub(super) fn measure_over(
    arguments: &SpeedArguments,
    remote: &Remote,
    stop: &AtomicBool,
) -> Result<Measured, Failure> {
    let plan = plan(arguments)?;
    let lanes = lanes(arguments, &plan)?;
    let started = SystemTime::now();
    let host = instrument::host(&arguments.path);
    let began = Instant::now();
    let found = measure(remote, &plan, &lanes, stop);
    let asked = experiment(arguments);
    let mut document = instrument::document("speed", asked, started, began.elapsed(), host);
    document.testbed = Some("net".to_owned());
    document.seed = plan.seed;
    document.seeds = vec![plan.seed];
    document.partial = stop.load(Ordering::Relaxed);
    document.verdict = Some(lagometer_results::speed_verdict(&found));
    document.warnings = warnings(&found);
    document.lanes = found;
    Ok(Measured::new(document, None))
}

/// Measures one lane after another, reporting each half second.
fn measure(remote: &Remote, plan: &Plan, lanes: &[LanePlan], stop: &AtomicBool) -> Vec<Lane> {
    let mut found = Vec::new();
    for lane in lanes {
        if stop.load(Ordering::Relaxed) {
            break;
        }
        let mut on_progress = |progress: &Progress<'_>| {
            let sample = progress.sample;
            note!(
                "{:<16} {:>6.1} s   sent {:>9.1} Mbit/s   received {:>9.1} Mbit/s",
                progress.lane,
                sample.t_s,
                sample.send_mbit_per_s,
                sample.recv_mbit_per_s
            );
        };
        found.push(speed::measure(remote, plan, lane, &mut on_progress, stop));
    }
    found
}

/// The remote end that was asked for, or one of this process's own.
fn reach(arguments: &SpeedArguments) -> Result<(Remote, Option<Server>), Failure> {
    if arguments.remote.to.is_some() {
        return Ok((remote_end::reach(&arguments.remote)?, None));
    }
    let local: IpAddr = if arguments.ipv6 {
        Ipv6Addr::LOCALHOST.into()
    } else {
        Ipv4Addr::LOCALHOST.into()
    };
    let secret = Secret::generate();
    let server = Server::start(ServerSettings {
        bind: (local, 0).into(),
        secret: secret.clone(),
        registry: remote_end::registry(),
        data_ports: None,
        limits: Limits::default(),
        on_event: Box::new(|_| {}),
    });
    let server = server?;
    let remote = Remote::connect(&server.address().to_string(), &secret)?;
    Ok((remote, Some(server)))
}

fn plan(arguments: &SpeedArguments) -> Result<Plan, Failure> {
    let plan = Plan {
        duration: arguments.duration.duration(),
        chunk: arguments.chunk,
        every: arguments.every.map(lagometer_units::Span::duration),
        pin: arguments.pin.as_deref().map(pin).transpose()?,
        offload: match arguments.offload {
            Offload::Full => udp::Offload::Full,
            Offload::Batches => udp::Offload::Batches,
            Offload::Plain => udp::Offload::Plain,
        },
        seed: 1,
        sleeps: arguments.path.testbed == Testbed::Kernel,
    };
    plan.check().map_err(Failure::input)?;
    Ok(plan)
}

fn pin(written: &str) -> Result<Pin, Failure> {
    let processors = written
        .split_once(',')
        .and_then(|(send, receive)| Some((send.parse().ok()?, receive.parse().ok()?)));
    let (send, receive) = processors.ok_or_else(|| {
        Failure::Input(format!(
            "--pin {written}: expected two processors, as in `0,1`"
        ))
    })?;
    Ok(Pin { send, receive })
}

/// The lanes asked for, with their settings.
fn lanes(arguments: &SpeedArguments, plan: &Plan) -> Result<Vec<LanePlan>, Failure> {
    let mut names = BTreeSet::new();
    if let Some(twice) = arguments.lanes.iter().find(|name| !names.insert(*name)) {
        return Err(Failure::Input(format!("--lanes: `{twice}` is named twice")));
    }
    let settings = arguments
        .set
        .iter()
        .map(|written| setting(written, &names))
        .collect::<Result<Vec<_>, _>>()?;
    let is_virtual = arguments.path.testbed == Testbed::Kernel;
    let is_default = arguments
        .lanes
        .iter()
        .map(String::as_str)
        .eq(SPEED_LANES.split(','));
    arguments
        .lanes
        .iter()
        .filter(|name| !(is_virtual && is_default && *name == "udp" && plan.every.is_none()))
        .map(|name| {
            let own = settings.iter().filter(|(lane, ..)| lane == name);
            let overrides: Map<String, Value> = own
                .map(|(_, key, value)| (key.clone(), value.clone()))
                .collect();
            let lane = LanePlan::resolve(name, &overrides).map_err(Failure::input)?;
            lane.check(plan).map_err(Failure::input)?;
            if is_virtual && plan.every.is_none() && !is_held_back(name) {
                return Err(Failure::Input(format!(
                    "--lanes {name}: nothing holds it back, and computing takes no time with \
                     `--testbed kernel`: say with --every how often it sends"
                )));
            }
            Ok(lane)
        })
        .collect()
}

/// Whether a transport sends only as fast as what it sent arrives.
fn is_held_back(name: &str) -> bool {
    // What is no preset is kernel TCP under a congestion control.
    SocketSpec::resolve(name, &Map::new()).map_or(true, |spec| spec.properties().reliable)
}

/// `LANE.KEY=VALUE`; the value as in JSON, or else a text.
fn setting(written: &str, lanes: &BTreeSet<&String>) -> Result<(String, String, Value), Failure> {
    let parts = written.split_once('=').and_then(|(place, value)| {
        let (lane, key) = place.split_once('.')?;
        Some((lane.to_owned(), key.to_owned(), value))
    });
    let (lane, key, value) = parts.ok_or_else(|| {
        Failure::Input(format!(
            "--set {written}: expected LANE.KEY=VALUE, as in `kcp.send_window=1024`"
        ))
    })?;
    if !lanes.contains(&lane) {
        return Err(Failure::Input(format!(
            "--set {written}: `{lane}` is none of the lanes; see --lanes"
        )));
    }
    let value = serde_json::from_str(value).unwrap_or_else(|_| Value::from(value));
    Ok((lane, key, value))
}

/// What was asked for, defaults filled in.
fn experiment(arguments: &SpeedArguments) -> Value {
    json!({
        "name": "speed",
        "summary": match arguments.every {
            Some(every) if !every.duration().is_zero() => "one message at a time, by the clock",
            _ => "as much as each transport carries",
        },
        "lanes": arguments.lanes,
        "for": arguments.duration,
        "chunk": arguments.chunk,
        "every": arguments.every,
        "set": arguments.set,
        "pin": arguments.pin,
        "ipv6": arguments.ipv6,
    })
}

/// What a reader should know of lanes that did not do what was asked.
fn warnings(lanes: &[Lane]) -> Vec<Warning> {
    let behind = lanes.iter().filter_map(|lane| {
        let bulk = lane.bulk.as_ref()?;
        let offered = bulk.offered_mbit_per_s?;
        (bulk.recv_mbit_per_s < 0.98 * offered).then(|| Warning {
            what: format!(
                "{} carried {:.0} of the {offered:.0} Mbit/s offered.",
                lane.lane, bulk.recv_mbit_per_s
            ),
            why: "The rest was lost, or the transport could not take it in time.".to_owned(),
            mend: "offer less with --every, or leave it out to see the most it carries".to_owned(),
        })
    });
    behind.collect()
}
