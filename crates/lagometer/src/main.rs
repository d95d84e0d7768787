//! Lagometer's one binary: the command line and nothing but wiring.
//!
//! Results go to standard output, progress and diagnostics to standard error.
//! [`Exit`](exit::Exit) has the exit codes.

/// Says a line on standard error. A reader that has gone away is no failure: the
/// print macros of the standard library would panic. While a live view is on the
/// terminal, it shows the line.
macro_rules! note {
    ($($line:tt)*) => {{
        crate::live::say(format_args!($($line)*));
    }};
}

mod cli;
mod commands;
mod exit;
mod failure;
mod guest;
mod instrument;
mod interrupt;
mod live;
mod output;
mod overwriting;
mod progress;
mod remote_end;

use std::process::ExitCode;

use crate::cli::Command;
use crate::failure::Failure;

/// The gateway's channels allocate what its connections free, on another
/// thread: glibc's arenas then hold several times what is in use.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    if let Some(failure) = guest::become_part(&std::env::args_os().collect::<Vec<_>>()) {
        note!("lagometer: {failure}");
        return failure.exit_code();
    }
    match cli::parse(std::env::args_os()).and_then(|cli| dispatch(cli.command)) {
        Ok(code) => code,
        Err(failure) => {
            note!("lagometer: {failure}");
            failure.exit_code()
        }
    }
}

fn dispatch(command: Command) -> Result<ExitCode, Failure> {
    match command {
        Command::Run(arguments) => commands::run(&arguments),
        Command::Guest(arguments) => guest::run(arguments),
        Command::Agree(arguments) => commands::agree(&arguments),
        Command::Tune(arguments) => commands::tune(&arguments),
        Command::Echo(arguments) => commands::echo(&arguments),
        Command::Sweep(arguments) => commands::sweep(&arguments),
        Command::Speed(arguments) => commands::speed(&arguments),
        Command::Serve(arguments) => commands::serve(&arguments),
        Command::Record(arguments) => commands::record(&arguments),
        Command::Shape(arguments) => commands::shape(&arguments),
        Command::Kernel(arguments) => commands::kernel(&arguments.command),
        Command::Doctor(arguments) => commands::doctor(&arguments),
        Command::Gateway(arguments) => commands::gateway(*arguments),
        Command::World(arguments) => commands::world(&arguments),
        Command::Worker(arguments) => commands::worker(&arguments),
        Command::Replay(arguments) => commands::replay(&arguments),
        Command::Report(arguments) => commands::report(&arguments),
        Command::Compare(arguments) => commands::compare(&arguments),
        Command::Import(arguments) => commands::import(&arguments),
        Command::List(arguments) => commands::list(&arguments),
        Command::Completions(arguments) => commands::completions(&arguments),
        Command::Man(arguments) => commands::man(&arguments),
        Command::Reference(arguments) => commands::reference(&arguments),
    }
}
