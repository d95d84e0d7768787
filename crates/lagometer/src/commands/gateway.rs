//! `lagometer gateway`: the channel gateway.

mod log;
mod replay;
mod role;
mod settings;
#[cfg_attr(target_os = "linux", path = "gateway/linux.rs")]
#[cfg_attr(not(target_os = "linux"), path = "gateway/elsewhere.rs")]
mod system;
mod watched;

use std::net::SocketAddr;
use std::process::ExitCode;

use lagometer_gateway::server::{Handle, Server, ServerError};
use tracing::{error, info, warn};

use crate::cli::{GatewayAction, GatewayArguments};
use crate::failure::Failure;
use crate::live::{self, Live};
use crate::output::print;

use settings::Settings;

/// What whoever runs the gateway wants of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Order {
    /// Read the settings again.
    #[cfg_attr(
        not(target_os = "linux"),
        expect(dead_code, reason = "only Linux's SIGHUP asks for it")
    )]
    Reload,
    /// Come to an end.
    End,
}

/// Runs the gateway until it is asked to end.
pub(crate) fn gateway(arguments: GatewayArguments) -> Result<ExitCode, Failure> {
    if let Some(GatewayAction::Replay(arguments)) = &arguments.action {
        return replay::replay(arguments);
    }
    keep_memory_small();
    if arguments.with_parent {
        system::end_with_parent()
            .map_err(|why| Failure::Environment(format!("cannot end with its parent: {why}")))?;
    }
    let settings = Settings::read(&arguments)?;
    let config = settings.resolve()?;
    let role = role::role(&arguments.node)?;
    if arguments.check {
        print("the settings are sound\n")?;
        return Ok(ExitCode::SUCCESS);
    }
    let _log = log::start(&settings.file.log)?;
    for warning in config.warnings() {
        warn!("{warning}");
    }
    // Before the ports are taken: from then on somebody may send one.
    let orders = system::listen()
        .map_err(|why| Failure::Environment(format!("cannot listen for signals: {why}")))?;
    let server = Server::start_as(config, role).map_err(|error| failure(&error))?;
    info!(
        servers = %in_a_row(server.servers()),
        clients = %in_a_row(server.clients()),
        web = %in_a_row(server.web().as_slice()),
        "the gateway runs"
    );
    let handle = server.handle();
    let live = Live::start(arguments.live.live, || {
        watched::Gateway::new(
            &server,
            &in_a_row(server.servers()),
            &in_a_row(server.clients()),
        )
    });
    std::thread::Builder::new()
        .name("signals".into())
        .spawn(move || carry_out(orders, &handle, &arguments))
        .map_err(|why| Failure::Environment(format!("no thread can be had: {why}")))?;
    let ended = server.join().map_err(|error| failure(&error));
    drop(live);
    ended?;
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
    system::use_no_huge_pages();
}

/// Carries orders out. The first to end lets everyone go, the second ends the program.
fn carry_out(
    orders: impl IntoIterator<Item = Order>,
    handle: &Handle,
    arguments: &GatewayArguments,
) {
    let mut is_ending = false;
    for order in orders {
        match order {
            Order::Reload => reload(handle, arguments),
            Order::End if is_ending => {
                live::give_back();
                std::process::exit(130)
            }
            Order::End => {
                is_ending = true;
                handle.drain();
            }
        }
    }
}

/// The settings are to be read again.
fn reload(handle: &Handle, arguments: &GatewayArguments) {
    let read = Settings::read(arguments);
    match read.and_then(|settings| settings.resolve()) {
        Ok(config) => {
            handle.reload(config);
            info!("the settings were read again");
        }
        Err(failure) => error!("the settings stay as they were: {failure}"),
    }
}

fn failure(error: &ServerError) -> Failure {
    Failure::Environment(error.to_string())
}
