//! `echo`, `sweep` and `speed` over an emulated network on a real kernel in virtual
//! time: what a transport carries, or how long messages take, the same every time.
//!
//! The guest is given the same command line, builds two hosts with a link between them,
//! serves in the one, measures from the other, and leaves its document. What it cost in
//! processor time nobody knows there.

use std::env;
use std::ffi::OsString;
use std::net::{IpAddr, Ipv4Addr};
use std::process::ExitCode;
use std::sync::atomic::AtomicBool;
use std::time::{Duration, SystemTime};

use lagometer_emu::LaneAddresses;
use lagometer_guest::{Kernel, Said, Traps};
use lagometer_instruments::placement::Pin;
use lagometer_link::{Link, Regime};
use lagometer_remote::{Limits, Remote, Secret, Server, ServerSettings};
use lagometer_results::{Document, merge_instrument_seeds};
use lagometer_testbed::{Emulated, Testbed, keep_audit};
use serde::{Deserialize, Serialize};

use super::in_guest::{self, Visit};
use super::in_guests::{check_whole, cut_at_limit, each_seed, found_by, label};
use super::named::find_plain_network;
use super::run::processors;
use super::{acquire_permission, emulation_failure};
use crate::cli::{GuestJob, PathArguments, RemoteArguments, ResultArguments};
use crate::failure::Failure;
use crate::{instrument, interrupt, output, remote_end};

/// Where the remote end of a guest listens.
const PORT: u16 = 7000;

/// What an instrument found, and what kept it from finding all.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Measured {
    pub(crate) document: Document,
    /// Why its remote end went away meanwhile, if it did.
    pub(crate) gone: Option<String>,
    /// Why its guest was ended at a limit, if it was.
    pub(crate) cut: Option<String>,
}

impl Measured {
    /// All of it; `gone` says why it is not, if the remote end went away.
    pub(crate) const fn new(document: Document, gone: Option<String>) -> Self {
        Self {
            document,
            gone,
            cut: None,
        }
    }

    /// The exit code for how the measuring ended.
    pub(super) fn outcome(self) -> Result<ExitCode, Failure> {
        check_whole(self.cut)?;
        instrument::outcome(self.gone)
    }
}

/// Refuses what has no meaning on the testbed that is asked for.
pub(super) fn check(path: &PathArguments, to: Option<&str>) -> Result<(), Failure> {
    let refuse = |why: &str| Err(Failure::Input(why.to_owned()));
    if path.testbed != Testbed::Kernel {
        let alone = [
            ("--network", path.network.is_some()),
            ("--kernel", path.guest.kernel.is_some()),
            ("--seeds", path.seeds != 1),
            ("--threads", path.threads.is_some()),
        ];
        return match alone.iter().find(|(_, given)| *given) {
            Some((flag, _)) => refuse(&format!("{flag} is for `--testbed kernel`")),
            None => Ok(()),
        };
    }
    if to.is_some() {
        return refuse("--to is a real path: leave it out, or `--testbed kernel`");
    }
    match &path.network {
        Some(network) => find_plain_network(network, "an instrument").map(drop),
        None => refuse(
            "`--testbed kernel` takes no time to compute, so nothing holds an instrument \
             back but a network: name one with --network, as in `--network 4g-moving`",
        ),
    }
}

/// Refuses a placement: a guest has one processor.
pub(super) fn check_pin(pin: Pin) -> Result<(), Failure> {
    if matches!(pin, Pin::Best | Pin::Free) {
        return Ok(());
    }
    Err(no_pin())
}

pub(super) fn no_pin() -> Failure {
    Failure::Input("--pin: there is one processor with `--testbed kernel`; leave it out".to_owned())
}

/// The placement that was asked for; in a guest there is none to choose.
pub(super) fn placed(asked: Pin, path: &PathArguments) -> Pin {
    if path.testbed == Testbed::Kernel {
        Pin::Free
    } else {
        asked
    }
}

/// Measures in a guest or over the path there is, shows what was found and says how it
/// ended.
pub(super) fn measure_and_show(
    path: &PathArguments,
    remote: &RemoteArguments,
    results: &ResultArguments,
    measure: impl FnOnce(&Remote, &AtomicBool) -> Result<Measured, Failure>,
) -> Result<ExitCode, Failure> {
    results.check()?;
    let measured = if path.testbed == Testbed::Kernel {
        play(path)?
    } else {
        let stop = interrupt::listen()?;
        measure(&remote_end::reach(remote)?, stop)?
    };
    let (json, html) = (results.json.as_ref(), results.html.as_ref());
    output::show(&measured.document, json, html)?;
    measured.outcome()
}

/// Plays this very command in a guest for each seed that is asked for, and makes one
/// document of what they found.
pub(super) fn play(path: &PathArguments) -> Result<Measured, Failure> {
    let kernel = in_guest::kernel(&path.guest)?;
    let stop = interrupt::listen()?;
    let started = SystemTime::now();
    let seeds: Vec<u64> = (0..u64::from(path.seeds))
        .map(|nth| path.seed.wrapping_add(nth))
        .collect();
    let at_once = path.threads.map_or_else(processors, usize::from);
    let found = each_seed(&seeds, at_once, stop, |_, seed| {
        play_seed(path, &kernel, seed, stop)
    });
    let mut documents = Vec::new();
    let (mut audit, mut gone, mut cut) = (None, None, None);
    let mut longest = Duration::ZERO;
    for (&seed, found) in seeds.iter().zip(found) {
        let (mut measured, took) = found?;
        longest = longest.max(took);
        gone = gone.or(measured.gone);
        cut = cut.or(measured.cut);
        if let Some(of_seed) = measured.document.audit.take() {
            keep_audit(&mut audit, of_seed);
        }
        documents.push((seed, measured.document));
    }
    let Some(mut document) = one_document(documents) else {
        return Err(Failure::Input(
            "stopped before anything was measured".to_owned(),
        ));
    };
    document.audit = audit;
    document.started = humantime::format_rfc3339_seconds(started).to_string();
    document.wall_s = longest.as_secs_f64();
    document.host = lagometer_instruments::machine::named();
    document.testbed = Some(Testbed::Kernel.name().to_owned());
    document.seed = path.seed;
    document.partial |= document.seeds.len() < seeds.len();
    if let Some(asked) = document.experiment.as_object_mut() {
        asked.insert("network".to_owned(), path.network.clone().into());
    }
    for lane in &mut document.lanes {
        if let Some(bulk) = &mut lane.bulk {
            bulk.send_cpu_s_per_gb = None;
            bulk.recv_cpu_s_per_gb = None;
        }
    }
    label(&mut document, &kernel);
    Ok(Measured {
        document,
        gone,
        cut,
    })
}

/// The document of all seeds, with its verdict; of a single one it is that one's.
fn one_document(mut documents: Vec<(u64, Document)>) -> Option<Document> {
    if documents.len() == 1 {
        let (seed, mut document) = documents.pop()?;
        document.seeds = vec![seed];
        return Some(document);
    }
    let mut merged = merge_instrument_seeds(&documents)?;
    let verdict = match (&merged.echo, &merged.sweep) {
        (Some(echo), _) => Some(lagometer_results::echo_verdict(echo)),
        (None, Some(sweep)) => lagometer_results::sweep_verdict(sweep),
        (None, None) => Some(lagometer_results::speed_verdict(&merged.lanes)),
    };
    let spread = lagometer_results::seeds_verdict(&merged);
    merged.verdict = verdict.map(|verdict| format!("{verdict} {spread}"));
    Some(merged)
}

/// Plays this very command with one seed in a guest; what was found, and how long it
/// took by the guest's clock.
fn play_seed(
    path: &PathArguments,
    kernel: &Kernel,
    seed: u64,
    stop: &AtomicBool,
) -> Result<(Measured, Duration), Failure> {
    let limit = path.guest.real_limit.duration();
    let own = env::args_os().skip(1);
    let visit = Visit {
        kernel,
        seed,
        traps: Traps::Trusted,
        words: std::iter::once(OsString::from("guest"))
            .chain(own)
            .chain([OsString::from(format!("--seed-within={seed}"))])
            .collect(),
        limit,
        // Instruments may have nothing to say for long.
        silence: limit,
        environment: Vec::new(),
        keeps_files: false,
    };
    let on_line = &mut |said: &Said<'_>| {
        if path.seeds == 1 {
            note!("{}", said.text());
        } else {
            note!("seed {seed}: {}", said.text());
        }
    };
    let (mut measured, ended): (Measured, _) = found_by(visit, on_line, stop)?;
    measured.cut = cut_at_limit(seed, &ended);
    Ok((measured, ended.at))
}

/// Measures within a guest; `watch` gives the flag that is raised when it is to end.
pub(crate) fn measure_within(
    job: GuestJob,
    watch: impl FnOnce() -> Result<&'static AtomicBool, Failure>,
) -> Result<Measured, Failure> {
    // While there is one thread.
    acquire_permission()?;
    let stop = watch()?;
    match job {
        GuestJob::Echo(arguments) => {
            let path = arguments.path.clone();
            between_hosts(&path, move |remote| {
                super::echo::measure_over(&arguments, remote, stop)
            })
        }
        GuestJob::Sweep(arguments) => {
            let path = arguments.path.clone();
            between_hosts(&path, move |remote| {
                super::sweep::measure_over(&arguments, remote, stop)
            })
        }
        GuestJob::Speed(arguments) => {
            let path = arguments.path.clone();
            between_hosts(&path, move |remote| {
                super::speed::measure_over(&arguments, remote, stop)
            })
        }
        GuestJob::Run(_) | GuestJob::Shape(_) | GuestJob::World(_) => {
            Err(Failure::Input("this is no instrument".to_owned()))
        }
    }
}

/// Serves in one host and measures from the other.
fn between_hosts(
    path: &PathArguments,
    measure: impl FnOnce(&Remote) -> Result<Measured, Failure> + Send + 'static,
) -> Result<Measured, Failure> {
    let network = path.network.as_deref().unwrap_or_default();
    let profile = find_plain_network(network, "an instrument")?;
    let seed = path.seed_within.unwrap_or(path.seed);
    let link = |_, starts| Link::new(&profile, seed, Regime::Time, starts);
    let names = std::iter::once("instrument".to_owned());
    let mut hosts =
        Emulated::build(Testbed::Kernel, false, None, names, link).map_err(emulation_failure)?;
    let secret = Secret::generate();
    let settings = ServerSettings {
        bind: (IpAddr::from(Ipv4Addr::UNSPECIFIED), PORT).into(),
        secret: secret.clone(),
        registry: remote_end::registry(),
        data_ports: None,
        limits: Limits::default(),
        on_event: Box::new(|_| {}),
    };
    let server = hosts.run_remote(move || Server::start(settings));
    let server = server.map_err(emulation_failure)??;
    let starts = hosts.clock().now();
    hosts
        .begin_impairments(|_| starts)
        .map_err(emulation_failure)?;
    let address = format!("{}:{PORT}", LaneAddresses::of(0).remote_v4);
    let measured = hosts.run_local(move || {
        let remote = Remote::connect(&address, &secret)?;
        measure(&remote)
    });
    let mut measured: Measured = measured.map_err(emulation_failure)??;
    drop(server);
    let between = hosts.collect().map_err(emulation_failure)?;
    measured.document.audit = Some(between.audit);
    Ok(measured)
}
