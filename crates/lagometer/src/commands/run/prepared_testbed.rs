//! Where `run` plays: in virtual time, on emulated hosts, over a real path or in guests.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use lagometer_emu::LogSummary;
use lagometer_guest::Kernel;
use lagometer_lab::emu::EmuOptions;
use lagometer_lab::live::RunWatch;
use lagometer_lab::net::NetOptions;
use lagometer_lab::sim::SimCapture;
use lagometer_lab::{Resolved, RunOptions, SeedRun, play_captured};
use lagometer_remote::Remote;
use lagometer_results::Audit;
use lagometer_testbed::Testbed;
use lagometer_units::create_private_file;

use super::super::in_guest::{self, save_packets};
use super::super::in_guests::{self, Errand, InGuests, What};
use super::super::named::Ask;
use super::super::over_nats::Reached;
use super::super::qlog::GuestLogs;
use super::super::run_live::Shown;
use super::super::{emulated, over_net, shape};
use crate::cli::RunArguments;
use crate::failure::Failure;
use crate::remote_end;

/// Where a run is played, made ready.
pub(super) struct PreparedTestbed {
    testbed: Testbed,
    /// The other end of a real path.
    remote: Option<Remote>,
    /// The kernel of guests.
    pub(super) kernel: Option<Kernel>,
}

/// What was played.
pub(super) struct Played {
    pub(super) seeds: Vec<SeedRun>,
    pub(super) audit: Option<Audit>,
    /// What became of the capture, if there was to be one.
    pub(super) captured: Result<(), Failure>,
    /// Whether all that was asked for was played; what is missing where it was not.
    pub(super) whole: Result<(), Failure>,
    /// The real path, if it was one.
    pub(super) path: Option<over_net::Path>,
    /// How long it took by the clock of guests.
    pub(super) guests_wall: Option<Duration>,
    pub(super) guest_logs: GuestLogs,
}

impl Played {
    fn new(seeds: Vec<SeedRun>, captured: Result<(), Failure>) -> Self {
        Self {
            seeds,
            audit: None,
            captured,
            whole: Ok(()),
            path: None,
            guests_wall: None,
            guest_logs: GuestLogs::default(),
        }
    }
}

impl PreparedTestbed {
    /// Reaches, asks for or finds what the testbed needs.
    pub(super) fn prepare(arguments: &RunArguments, testbed: Testbed) -> Result<Self, Failure> {
        let remote = (testbed == Testbed::Net)
            .then(|| remote_end::reach(&arguments.remote))
            .transpose()?;
        if testbed == Testbed::Emu {
            emulated::acquire_permission()?;
        }
        let kernel = (testbed == Testbed::Kernel)
            .then(|| in_guest::kernel(&arguments.guest))
            .transpose()?;
        if kernel.is_some()
            && let Some(path) = &arguments.pcap
        {
            in_guest::make_capture(path)?;
        }
        Ok(Self {
            testbed,
            remote,
            kernel,
        })
    }

    /// Plays every seed.
    pub(super) fn play(
        &self,
        arguments: &RunArguments,
        ask: &Ask<'_>,
        resolved: &Resolved,
        options: &RunOptions,
        shown: &Shown,
        stop: &AtomicBool,
    ) -> Result<Played, Failure> {
        let on_played = |played| shown.played(played);
        if let Some(remote) = &self.remote {
            let options = over_a_path(arguments, options, shown.lanes());
            let found = over_net::play(resolved, &options, remote, &on_played, stop)?;
            let path = over_net::Path::of(&found, remote);
            let captured = report_capture(found.log.as_ref());
            return Ok(Played {
                path: Some(path),
                ..Played::new(found.seeds, captured)
            });
        }
        if let Some(kernel) = &self.kernel {
            let found = play_in_guests(ask, arguments, kernel, options, &on_played, stop)?;
            return Ok(Played {
                audit: found.audit.clone(),
                whole: found.check_whole(),
                guests_wall: Some(found.longest),
                captured: save_capture(arguments, &found),
                guest_logs: found.qlog,
                ..Played::new(found.seeds, Ok(()))
            });
        }
        if self.testbed == Testbed::Sim {
            let (seeds, log) = play_in_sim(arguments, resolved, options, &on_played, stop)?;
            return Ok(Played::new(seeds, report_capture(log.as_ref())));
        }
        let options = emulation(arguments, options, self.testbed, shown.lanes());
        let found = emulated::play(resolved, &options, &on_played, stop)?;
        let captured = report_capture(found.log.as_ref());
        Ok(Played {
            audit: found.audit,
            ..Played::new(found.seeds, captured)
        })
    }
}

/// Says what became of the capture, if there was to be one; it is a failure if it ended
/// early.
fn report_capture(log: Option<&LogSummary>) -> Result<(), Failure> {
    log.map_or(Ok(()), shape::report_log)
}

/// How a run over a real path is carried out.
fn over_a_path(
    arguments: &RunArguments,
    options: &RunOptions,
    lanes: Option<Arc<RunWatch>>,
) -> NetOptions {
    NetOptions {
        seeds: options.seeds.clone(),
        pcap: arguments.pcap.clone(),
        watch: lanes,
    }
}

/// How an emulated run is carried out.
fn emulation(
    arguments: &RunArguments,
    options: &RunOptions,
    testbed: Testbed,
    lanes: Option<Arc<RunWatch>>,
) -> EmuOptions {
    EmuOptions {
        testbed,
        seeds: options.seeds.clone(),
        ipv6: arguments.ipv6,
        pcap: arguments.pcap.clone(),
        tries: 1,
        watch: lanes,
    }
}

/// Plays every seed in virtual time: here, or on workers that NATS joins.
fn play_in_sim(
    arguments: &RunArguments,
    resolved: &Resolved,
    options: &RunOptions,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<(Vec<SeedRun>, Option<LogSummary>), Failure> {
    if let Some(urls) = &arguments.nats {
        let reached = Reached {
            urls,
            arguments: &arguments.reached,
            progress,
            stop,
        };
        return Ok((reached.play(resolved, options)?, None));
    }
    let Some(path) = &arguments.pcap else {
        let seeds = play_captured(resolved, options, None, progress, stop);
        return Ok((seeds, None));
    };
    let mut file = create_private_file(path).map_err(|why| Failure::Write {
        path: path.clone(),
        why,
    })?;
    let names = resolved.lanes.iter().map(|lane| &*lane.name);
    let capture = SimCapture::new(&mut file, names);
    let seeds = play_captured(resolved, options, Some(&capture), progress, stop);
    Ok((seeds, Some(capture.finish(path))))
}

/// Writes the packets of a guest to where the user wants them, if anywhere.
fn save_capture(arguments: &RunArguments, found: &InGuests) -> Result<(), Failure> {
    let Some(path) = &arguments.pcap else {
        return Ok(());
    };
    let saved = save_packets(&found.packets.log, path);
    found.packets.check().and(saved)
}

/// Plays every seed in a guest of its own.
fn play_in_guests(
    ask: &Ask<'_>,
    arguments: &RunArguments,
    kernel: &Kernel,
    options: &RunOptions,
    progress: &(dyn Fn(Duration) + Sync),
    stop: &AtomicBool,
) -> Result<InGuests, Failure> {
    let errand = Errand {
        what: What::Asked(ask),
        ipv6: arguments.ipv6,
        is_logged: arguments.pcap.is_some(),
        has_qlog: arguments.qlog.is_some(),
        real_limit: arguments.guest.real_limit.duration(),
    };
    let (seeds, at_once) = (&options.seeds, options.threads);
    in_guests::play(&errand, kernel, seeds, at_once, progress, stop)
}
