//! `lagometer kernel`: kernels with a clock of their own, built and kept.

use std::fmt::Write as _;
use std::process::ExitCode;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget};
use lagometer_guest::{Cache, Error, Kernel, Request, Step, build};

use crate::cli::{KernelBuildArguments, KernelCommand};
use crate::failure::Failure;
use crate::{interrupt, output};

/// How often the line of progress is drawn anew while nothing happens.
const REDRAW: Duration = Duration::from_millis(500);

/// Builds, lists or removes kernels.
pub(crate) fn kernel(command: &KernelCommand) -> Result<ExitCode, Failure> {
    let cache = Cache::of_user().map_err(failure)?;
    match command {
        KernelCommand::Build(arguments) => build_one(&cache, arguments)?,
        KernelCommand::Status => output::print(&status(&cache)?)?,
        KernelCommand::Remove { name, .. } => {
            let removed = cache.remove(name.as_deref()).map_err(failure)?;
            let lines = removed.iter().fold(String::new(), |mut lines, kernel| {
                let _ = writeln!(lines, "removed {}", kernel.name());
                lines
            });
            output::print(&lines)?;
        }
    }
    Ok(ExitCode::SUCCESS)
}

fn build_one(cache: &Cache, arguments: &KernelBuildArguments) -> Result<(), Failure> {
    let stop = interrupt::listen()?;
    let request = Request {
        source: arguments.source.clone(),
        hz: arguments.hz,
    };
    let began = Instant::now();
    let bar = ProgressBar::with_draw_target(None, ProgressDrawTarget::stderr());
    bar.enable_steady_tick(REDRAW);
    let built = build(cache, &request, &mut |step| show(&bar, step), stop);
    bar.finish_and_clear();
    let built = built.map_err(failure)?;
    let took = began.elapsed().as_secs();
    if built.was_there {
        note!("lagometer: it is there already");
    } else {
        note!("lagometer: built in {} min {} s", took / 60, took % 60);
    }
    output::print(&about(&built.kernel))
}

/// Says how far the build is: a line for each step, and on a terminal how many
/// files are compiled.
fn show(bar: &ProgressBar, step: &Step) {
    let said = match step {
        Step::Waiting => "somebody else is building a kernel; waiting for them".to_owned(),
        Step::Installing(packages) => format!("installing {packages}"),
        Step::Unpacking(source) => format!("unpacking {}", source.display()),
        Step::Configuring(version) => format!("configuring Linux {version}"),
        Step::Compiling(0) => "compiling".to_owned(),
        Step::Compiling(files) => {
            bar.set_message(format!("{files} files compiled"));
            return;
        }
    };
    bar.suspend(|| note!("lagometer: {said}"));
    bar.set_message(said);
}

/// Every kernel, the one that guests are started on last.
fn status(cache: &Cache) -> Result<String, Failure> {
    let kernels = cache.kernels().map_err(failure)?;
    if kernels.is_empty() {
        return Ok(format!(
            "no kernel in {}; `lagometer kernel build` builds one\n",
            cache.folder().display()
        ));
    }
    let mut text = kernels.iter().map(about).collect::<Vec<_>>().join("\n");
    if let [_, .., last] = &kernels[..] {
        let _ = write!(
            text,
            "\nguests start on the last, Linux {}; `--kernel VERSION` has them start on another\n",
            last.record().version,
        );
    }
    Ok(text)
}

fn about(kernel: &Kernel) -> String {
    let record = kernel.record();
    format!(
        "Linux {}\n  tick           {} Hz\n  configuration  {}\n  built          {} in {} s\n  \
         from           {}\n  speed          {}\n  size           {:.1} MB\n  path           {}\n",
        record.version,
        record.hz,
        record.configuration,
        record.built,
        record.build_s,
        record.source,
        if kernel.does_without_tracing() {
            "fast: without tracing"
        } else {
            "slow: guests are traced; a version from 6.16 on need not (`kernel build --source`)"
        },
        kernel.size_bytes() as f64 / 1e6,
        kernel.program().display(),
    )
}

/// Whether the user or the machine is to mend it.
pub(super) fn failure(error: Error) -> Failure {
    if error.is_input() {
        return Failure::input(error);
    }
    Failure::Environment(error.to_string())
}
