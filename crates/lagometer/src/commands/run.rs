//! `lagometer run`: an experiment, played and shown.

mod prepared_testbed;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant, SystemTime};

use lagometer_instruments::machine;
use lagometer_lab::{Bundle, Plan, Resolved, RunContext, RunOptions, assemble};
use lagometer_results::{Document, Host};
use lagometer_testbed::Testbed;
use lagometer_units::Span;

use super::gate::{Earlier, hold};
use super::named::{Ask, note_left_out, resolve_in_silence};
use super::run_live::Shown;
use super::{in_guest, in_guests, over_nats, over_net, prices, qlog};
use crate::cli::{RunArguments, kinds};
use crate::failure::Failure;
use crate::overwriting::Files;
use crate::{interrupt, output};
use prepared_testbed::PreparedTestbed;

/// Plays an experiment and shows what was found.
pub(crate) fn run(arguments: &RunArguments) -> Result<ExitCode, Failure> {
    check_flags(arguments)?;
    files(arguments).check()?;
    let baseline = baseline(arguments)?;
    let path_name = over_net::path_name(&arguments.remote);
    let testbed = testbed(arguments);
    let is_net = testbed == Testbed::Net;
    let presets = kinds(&arguments.presets);
    let ask = Ask {
        experiment: &arguments.experiment,
        network: arguments
            .network
            .as_deref()
            .or(is_net.then_some(path_name.as_str())),
        duration: arguments.duration,
        tick: arguments.tick,
        seed: arguments.seed,
        lanes: &arguments.lanes,
        presets: &presets,
        testbed,
        to: arguments.remote.to.as_deref(),
    };
    let mut resolved = prices::put_in(&arguments.prices, resolve_in_silence(&ask)?)?;
    let seeds = seeds_to_play(arguments, &mut resolved);
    let options = RunOptions {
        seeds: (0..u64::from(seeds))
            .map(|offset| resolved.plan.seed.wrapping_add(offset))
            .collect(),
        threads: arguments.threads.map_or_else(processors, usize::from),
    };
    if is_net && let Some(path) = &arguments.pcap {
        over_net::check_capture(&resolved, path)?;
    }
    let logs = qlog::begin(arguments.qlog.as_deref(), &mut resolved, &options, testbed)?;
    let prepared = PreparedTestbed::prepare(arguments, testbed)?;
    note_left_out(&resolved);
    let stop = interrupt::listen()?;
    let started = SystemTime::now();
    let host = host(testbed);
    announce(&resolved, &options);
    let shown = Shown::start(arguments.live.live, &resolved, &options, testbed);
    let began = Instant::now();
    let played = prepared.play(arguments, &ask, &resolved, &options, &shown, stop)?;
    shown.finish();
    let logged = logs.map_or(Ok(()), |logs| logs.report(played.guest_logs));
    let took = began.elapsed();
    announce_pace(played.guests_wall, took);
    let context = RunContext {
        started,
        wall: played.guests_wall.unwrap_or(took),
        host,
        testbed: Some(testbed),
        audit: played.audit,
    };
    let mut document = assemble(&resolved, &options.seeds, played.seeds, context);
    document.asked = ask.asked(arguments.ipv6);
    if let Some(path) = played.path {
        path.report_in(&mut document);
    }
    if let Some(kernel) = &prepared.kernel {
        in_guests::label(&mut document, kernel);
    }
    let shown = finish(arguments, &resolved, &document, baseline.as_ref());
    // What was found is not lost with what was to be written beside it.
    let beside = [played.whole, played.captured, logged].into_iter();
    Failure::unless(shown, beside.filter_map(Result::err))
}

/// The machine. Its noise has no part in what is played in virtual time, nor may it in a
/// document that is to be the same every time.
fn host(testbed: Testbed) -> Host {
    match testbed {
        Testbed::Sim | Testbed::Kernel => machine::named(),
        _ => machine::measured(),
    }
}

/// Says how long it took, and by the clock of guests where there were any.
fn announce_pace(wall: Option<Duration>, took: Duration) {
    let Some(wall) = wall else { return };
    let (wall, took) = (wall.as_secs_f64(), took.as_secs_f64());
    note!("lagometer: {wall:.1} s by the guests' clock took {took:.1} s");
}

/// Writes and shows what was found, and says whether it holds against what it is held
/// against.
fn finish(
    arguments: &RunArguments,
    resolved: &Resolved,
    document: &Document,
    baseline: Option<&(&PathBuf, Document)>,
) -> Result<ExitCode, Failure> {
    // What cannot be written in one place is still shown, judged and written in the others.
    let bundled = arguments
        .bundle
        .as_ref()
        .map_or(Ok(()), |path| write_bundle(path, resolved, document));
    let html = page_path(arguments, &resolved.experiment.name);
    let shown = output::show(document, arguments.json.as_ref(), html.as_ref());
    let earlier = baseline.map(|(path, document)| Earlier { path, document });
    let held = hold(document, earlier.as_ref(), &arguments.gate);
    let beside = [bundled, shown].into_iter().filter_map(Result::err);
    Failure::unless(held.map(ExitCode::from), beside)
}

/// What is read and written.
fn files(arguments: &RunArguments) -> Files<'_> {
    let read = [Path::new(&arguments.experiment)].into_iter();
    let read = read.chain(arguments.network.as_deref().map(Path::new));
    let read = read.chain(arguments.baseline.as_deref());
    let read = read.chain(arguments.prices.prices.iter().map(PathBuf::as_path));
    let gate = &arguments.gate;
    Files {
        read: read.collect(),
        written: vec![
            arguments.json.as_ref(),
            arguments.html.as_ref(),
            arguments.bundle.as_ref(),
            arguments.pcap.as_ref(),
            gate.junit.as_ref(),
            gate.summary.as_ref(),
        ],
    }
}

/// The earlier run to hold this one against, and where it stands, if there is one.
fn baseline(arguments: &RunArguments) -> Result<Option<(&PathBuf, Document)>, Failure> {
    let path = arguments.baseline.as_ref();
    path.map(|path| output::read_document(path).map(|document| (path, document)))
        .transpose()
}

/// Writes the run and what it found into one file. One that was cut short is
/// shown all the same.
fn write_bundle(path: &Path, resolved: &Resolved, document: &Document) -> Result<(), Failure> {
    let bundle = match Bundle::of(env!("CARGO_PKG_VERSION"), resolved, document) {
        Ok(bundle) => bundle,
        Err(why) => {
            note!("lagometer: {} is not written: {why}", path.display());
            return Ok(());
        }
    };
    let bytes = bundle.to_bytes().map_err(Failure::input)?;
    output::write(path, &bytes)?;
    note!(
        "lagometer: {} plays it again {}: `lagometer replay`, digest {}",
        path.display(),
        match bundle.kernel() {
            Some(kernel) => format!("wherever there is the kernel {kernel}"),
            None => "anywhere".to_owned(),
        },
        bundle.digest()
    );
    Ok(())
}

/// Where the page goes, if there is to be one.
fn page_path(arguments: &RunArguments, experiment: &str) -> Option<PathBuf> {
    let usual = format!("lagometer-{experiment}.html");
    output::page_path(arguments.html.as_ref(), arguments.no_html, usual)
}

/// How much each lane plays in virtual time where nobody says how many seeds:
/// what is done in seconds and tells most lanes apart.
const ENOUGH: Duration = Duration::from_mins(10);

/// Into how many seeds that is cut: with fewer, all comparisons of a dozen
/// lanes together would decide little.
const SEEDS: u32 = 20;

/// How many seeds to play: what was asked for. Where nothing was, in virtual
/// time as many as give an answer, each [`ENOUGH`] over [`SEEDS`] long at most
/// unless a time was asked for; elsewhere one.
fn seeds_to_play(arguments: &RunArguments, resolved: &mut Resolved) -> u32 {
    if let Some(seeds) = arguments.seeds {
        return seeds;
    }
    if testbed(arguments) != Testbed::Sim {
        return 1;
    }
    if arguments.duration.is_none() {
        let each = resolved.plan.duration.min(ENOUGH / SEEDS);
        resolved.plan.duration = each;
        resolved.experiment.duration = Span(each);
        return SEEDS;
    }
    let fit = ENOUGH.as_nanos() / resolved.plan.duration.as_nanos().max(1);
    u32::try_from(fit).unwrap_or(SEEDS).clamp(1, SEEDS)
}

/// Flags that have a meaning in one testbed only.
fn check_flags(arguments: &RunArguments) -> Result<(), Failure> {
    let is_emu = arguments.testbed == Testbed::Emu;
    let is_guest = arguments.testbed == Testbed::Kernel;
    let is_net = testbed(arguments) == Testbed::Net;
    if (is_emu || is_guest) && arguments.remote.to.is_some() {
        return Err(Failure::Input(
            "--to is for a real path: leave out `--testbed`".to_owned(),
        ));
    }
    in_guest::check_kernel(&arguments.guest, is_guest)?;
    if is_net && arguments.network.is_some() {
        return Err(Failure::Input(
            "a real path is what it is: leave out `--network`, or `--to` and `--testbed net`"
                .to_owned(),
        ));
    }
    let of_both = "`--testbed emu` and `--testbed kernel`";
    let flags = [
        ("--ipv6", arguments.ipv6, is_emu || is_guest, of_both),
        (
            "--qlog",
            arguments.qlog.is_some(),
            arguments.nats.is_none(),
            "seeds that are played here: leave out `--nats`",
        ),
        (
            "--emu-mode",
            arguments.emu_mode == Testbed::Relay,
            is_emu,
            "`--testbed emu`",
        ),
    ];
    over_nats::check_testbed(arguments.nats.as_deref(), testbed(arguments))?;
    if arguments.nats.is_some() && arguments.pcap.is_some() {
        return Err(Failure::Input(
            "--pcap is of seeds that are played here: leave out `--nats`; one seed is enough, as \
             in `--seeds 1`"
                .to_owned(),
        ));
    }
    if arguments.bundle.is_some() && !matches!(testbed(arguments), Testbed::Sim | Testbed::Kernel) {
        return Err(Failure::Input(
            "--bundle is for `--testbed sim` and `--testbed kernel`, where a run is the same every \
             time"
                .to_owned(),
        ));
    }
    if arguments.bundle.is_some() && arguments.ipv6 {
        return Err(Failure::Input(
            "a bundle keeps no `--ipv6`: leave it out, or `--bundle`".to_owned(),
        ));
    }
    if let Some((flag, .., testbeds)) = flags.iter().find(|(_, given, fits, _)| *given && !fits) {
        return Err(Failure::Input(format!("{flag} is for {testbeds}")));
    }
    if arguments.ipv6 && arguments.emu_mode == Testbed::Relay {
        return Err(Failure::Input(
            "--ipv6 needs hosts of its own: leave out `--emu-mode proxy`".to_owned(),
        ));
    }
    Ok(())
}

/// The testbed that the arguments ask for.
fn testbed(arguments: &RunArguments) -> Testbed {
    match arguments.testbed {
        Testbed::Sim if arguments.remote.to.is_some() => Testbed::Net,
        Testbed::Emu => arguments.emu_mode,
        asked => asked,
    }
}

pub(super) fn announce(resolved: &Resolved, options: &RunOptions) {
    let (lanes, each, network) = (
        resolved.lanes.len(),
        resolved.experiment.duration,
        &resolved.network,
    );
    match options.seeds[..] {
        [first, .., last] => note!(
            "lagometer: playing {lanes} lanes over `{network}`, {} seeds ({first} to {last}) of \
             {each} each",
            options.seeds.len(),
        ),
        [seed] => {
            note!("lagometer: playing {lanes} lanes for {each} over `{network}`, seed {seed}");
        }
        [] => {}
    }
    for remark in resolved.remarks(&options.seeds) {
        note!("lagometer: {remark}");
    }
}

/// The virtual time that all lanes of all seeds play together.
pub(super) fn total_play(resolved: &Resolved, options: &RunOptions) -> Duration {
    let seeds = u32::try_from(options.seeds.len()).unwrap_or(u32::MAX);
    play_of_a_seed(resolved).saturating_mul(seeds)
}

/// Virtual time that the lanes of one seed play together.
pub(super) fn play_of_a_seed(resolved: &Resolved) -> Duration {
    let lanes = u32::try_from(resolved.lanes.len()).unwrap_or(u32::MAX);
    (Plan::LEAD_IN + resolved.plan.duration).saturating_mul(lanes)
}

pub(super) fn processors() -> usize {
    std::thread::available_parallelism().map_or(1, std::num::NonZero::get)
}
