//! `lagometer gateway`: the channel gateway.

mod log;
mod replay;
mod settings;

use std::net::SocketAddr;
use std::process::ExitCode;

use lagometer_gateway::server::{Handle, Server, ServerError};
use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;
use tracing::{error, info, warn};

use crate::cli::{GatewayAction, GatewayArguments};
use crate::failure::Failure;
use crate::output::print;

use settings::Settings;

/// Runs the gateway until it is told to end.
pub(crate) fn gateway(arguments: GatewayArguments) -> Result<ExitCode, Failure> {
    if let Some(GatewayAction::Replay(arguments)) = &arguments.action {
        return replay::replay(arguments);
    }
    keep_memory_small();
    if arguments.with_parent {
        // SIGKILL, as whoever asks for this takes no leave itself.
        rustix::process::set_parent_process_death_signal(Some(rustix::process::Signal::KILL))
            .map_err(|why| Failure::Environment(format!("cannot end with its parent: {why}")))?;
    }
    let settings = Settings::read(&arguments)?;
    let config = settings.resolve()?;
    if arguments.check {
        print("the settings are sound\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let _log = log::start(&settings.file.log)?;
    for warning in config.warnings() {
        warn!("{warning}");
    }
    // Before the ports are taken: from then on somebody may send one.
    let signals = Signals::new([SIGHUP, SIGINT, SIGTERM])
        .map_err(|why| Failure::Environment(format!("cannot listen for signals: {why}")))?;
    let server = Server::start(config).map_err(|error| failure(&error))?;
    info!(
        servers = %in_a_row(server.servers()),
        clients = %in_a_row(server.clients()),
        web = %in_a_row(server.web().as_slice()),
        "the gateway runs"
    );
    let handle = server.handle();
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || handle_signals(signals, &handle, &arguments))
        .map_err(|why| Failure::Environment(format!("no thread can be had: {why}")))?;
    server.join().map_err(|error| failure(&error))?;
    info!("the gateway has ended");
    Ok(ExitCode::SUCCESS)
}

/// Addresses as a line of the log has them.
fn in_a_row(addresses: &[SocketAddr]) -> String {
    if addresses.is_empty() {
        return "none".to_owned();
    }
    let all: Vec<String> = addresses.iter().map(SocketAddr::to_string).collect();
    all.join(",")
}

/// Has the system fill no gaps of the heap with huge pages: it would make two
/// megabytes of memory of each stretch that has a few pages in use, up to twice
/// what the gateway needs, and keep them. And has what is freed given back.
fn keep_memory_small() {
    lagometer_native::allocator::give_back_freed_memory_at_once();
    // A kernel that refuses this has no huge pages.
    let _ = rustix::thread::disable_transparent_huge_pages(true);
}

/// SIGHUP reads the settings again; the first SIGTERM or Ctrl-C lets everyone
/// go, the second ends the program.
fn handle_signals(mut signals: Signals, handle: &Handle, arguments: &GatewayArguments) {
    let mut is_ending = false;
    for signal in signals.forever() {
        if signal == SIGHUP {
            let read = Settings::read(arguments);
            match read.and_then(|settings| settings.resolve()) {
                Ok(config) => {
                    handle.reload(config);
                    info!("the settings were read again");
                }
                Err(failure) => error!("the settings stay as they were: {failure}"),
            }
        } else if is_ending {
            std::process::exit(130);
        } else {
            is_ending = true;
            handle.drain();
        }
    }
}

fn failure(error: &ServerError) -> Failure {
    Failure::Environment(error.to_string())
}
